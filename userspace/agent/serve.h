/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The end that other agents measure.
 */
#ifndef RISO_SERVE_H
#define RISO_SERVE_H

#include "cm.h"

/* Listens; 0 or a negative errno */
int serve_open(const union conf_addr *addr);
void serve_close(void);

#endif /* RISO_SERVE_H */
