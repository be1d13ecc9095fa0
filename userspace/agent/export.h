/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Metrics over HTTP.
 */
#ifndef RISO_EXPORT_H
#define RISO_EXPORT_H

#include <stdint.h>

#include "metrics.h"

/**
 * export_open - answer GET /metrics from now on
 * @port: of 127.0.0.1, and no longer of the one before
 * @own: adds what the module does not know
 *
 * Return: 0, or a negative errno. If the port is not to be had all is as it was.
 */
int export_open(uint16_t port, void (*own)(struct metrics *m));
/* Nothing if it is not open */
void export_close(void);

#endif /* RISO_EXPORT_H */
