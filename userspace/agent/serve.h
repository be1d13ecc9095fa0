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
/* A connection of a guest, and what is said over it */
typedef void (*serve_fn)(void *arg, struct rdma_cm_id *id, struct talk *talk);
/* Call @fn for each guest; it may say something, and hear what the guest has said. */
void serve_talk(serve_fn fn, void *arg);

#endif /* RISO_SERVE_H */
