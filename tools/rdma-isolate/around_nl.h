/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What the module tells of queue pairs that may post around the shim. Used by the agent, too.
 */
#ifndef RDMA_ISOLATE_AROUND_NL_H
#define RDMA_ISOLATE_AROUND_NL_H

#include "around.h"
#include "nl.h"
#include "psn.h"

/**
 * around_list - find the queue pairs of programs that can send, and are to be held
 * @nl: the module
 * @look: filled in, in order; around_clear() frees it
 *
 * Those are flows of reliable connections that are not of class latency, on devices that are
 * enabled; without the shim also where the device is observed.
 *
 * Return: 0 or a negative errno, which was told.
 */
int around_list(struct nl *nl, struct around_look *look);

/**
 * around_ask - begin to ask what they send
 * @p: who asks, see psn_begin()
 * @look: those; the ones that are marked are left out
 * @first: place of the one to begin with; those before it come last
 *
 * Return: as psn_begin().
 */
int around_ask(struct psn *p, const struct around_look *look, size_t first);

/* Take the answers that are there; false at their end. */
bool around_take(struct psn *p, struct around_look *look);

/**
 * around_read_told - find what their processes have told of
 * @nl: the module
 * @look: filled in; to be called when the answers have been taken
 *
 * Return: 0 or a negative errno, which was told.
 */
int around_read_told(struct nl *nl, struct around_look *look);

#endif /* RDMA_ISOLATE_AROUND_NL_H */
