/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Metrics over HTTP.
 */
#ifndef RISO_EXPORT_H
#define RISO_EXPORT_H

#include "conf.h"
#include "metrics.h"

/**
 * export_open - answer GET /metrics from now on, and GET / with a page that leads there
 * @addr: address and port, and no longer those of before
 * @own: adds what the module does not know
 *
 * Return: 0, or a negative errno. If the port is not to be had all is as it was.
 */
int export_open(const union conf_addr *addr, void (*own)(struct metrics *m));
/* Nothing if it is not open */
void export_close(void);

#endif /* RISO_EXPORT_H */
