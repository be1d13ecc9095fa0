/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Processes that post by themselves, under grants. See process.c.
 */
#ifndef RISO_PROCESS_H
#define RISO_PROCESS_H

#include "grant.h"

enum {
	/*
	 * Batches that one call may post before it leaves the rest to the timer. It gives as
	 * many grants, and sees as many processes that want none any more.
	 */
	RISO_RUN_BATCHES = 16,
	/* Processes are looked at every 20 ms, to see which are active. */
	RISO_WATCH_NS = 20 * NSEC_PER_MSEC,
};

bool riso_process_grant(struct riso_dev *rd, enum riso_dir dir, struct riso_process *pr, u64 now);
u64 riso_process_open_limit(const struct riso_dev *rd, enum riso_dir dir);
void riso_process_read_some(struct riso_dev *rd, u64 now);
void riso_process_refresh_all(struct riso_dev *rd);
void riso_process_forget_all(struct riso_dev *rd);
void riso_process_admit(struct riso_process *pr, struct riso_process_path *ud, u64 now);
void riso_process_ask(struct riso_process *pr);
int riso_process_join(struct riso_process *pr);
void riso_process_leave(struct riso_process *pr);
void riso_process_leave_all(struct riso_dev *rd);
u32 riso_process_watch(struct riso_dev *rd);

#endif /* RISO_PROCESS_H */
