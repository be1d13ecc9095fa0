/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What the module has now, read from the kernel.
 */
#ifndef RDMA_ISOLATE_CONFIG_READ_H
#define RDMA_ISOLATE_CONFIG_READ_H

#include <stdint.h>
#include <stdio.h>

#include "config_item.h"

/* Each returns CMD_DONE, or another status after telling what is wrong. */
int config_read(struct config *config);
int config_dump(FILE *file);

/* The id of the rule that says what "rule add" would, 0 if there is none */
uint32_t config_find_rule(const struct call *add);

#endif /* RDMA_ISOLATE_CONFIG_READ_H */
