/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A device that the agent steers.
 */
#ifndef RISO_STEER_H
#define RISO_STEER_H

#include <stdbool.h>
#include <stdint.h>

#include <linux/rdma_isolate.h>

#include "aimd.h"
#include "conf.h"
#include "metrics.h"
#include "nl.h"
#include "percentile.h"
#include "probe.h"

struct steer;

/**
 * steer_open - steer a device from now on
 * @nl: requests to the module
 * @conf: settings of the agent, which outlive the steering
 * @dev: settings of this device, which outlive the steering
 *
 * Return: NULL if there is no memory or timer for it.
 */
struct steer *steer_open(struct nl *nl, const struct conf *conf,
			 const struct conf_dev *dev);
/* Whoever steers it next may go on with what was lent, until the lease is over. */
void steer_close(struct steer *st);
/* Before that, if nobody will: what the operator has set is in force again. */
void steer_give_back(struct steer *st);
const char *steer_name(const struct steer *st);
/* The module has told something of the device: see at once. */
void steer_look(struct steer *st);
/* Add what the agent knows of it. */
void steer_metrics(const struct steer *st, struct metrics *m);

#endif /* RISO_STEER_H */
