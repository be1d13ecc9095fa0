/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What is posted and not completed. See window.c.
 */
#ifndef RISO_WINDOW_H
#define RISO_WINDOW_H

#include "flow.h"

enum {
	/* A completion that nobody polls is looked for after 50 us at the earliest, ... */
	RISO_REAP_MIN_NS = 50 * NSEC_PER_USEC,
	/* ... and after 250 us at the latest, when the device may have run dry. */
	RISO_REAP_MAX_NS = 250 * NSEC_PER_USEC,
};

u32 riso_window_chunk(const struct riso_flow *f, enum riso_dir dir);
u64 riso_window_of_flow(const struct riso_flow *f, enum riso_dir dir);
bool riso_window_fits(const struct riso_flow *f, enum riso_dir dir, u32 need);
void riso_window_update(struct riso_flow *f, enum riso_dir dir);
void riso_window_add(struct riso_flow *f, enum riso_dir dir, u32 wire);
void riso_window_sub(struct riso_flow *f, enum riso_dir dir, u64 wire);
void riso_window_complete(struct riso_flow *f, enum riso_dir dir, u32 wire);
void riso_window_measure(struct riso_flow *f, const struct riso_slot *slot);
void riso_window_idle(struct riso_flow *f);
struct riso_pacer_say riso_window_ask(struct riso_dev *rd, enum riso_dir dir,
				      const struct riso_pacer_limits *l, u32 need, u64 now);
u64 riso_window_next_reap(struct riso_dev *rd, u64 now);

#endif /* RISO_WINDOW_H */
