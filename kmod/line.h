/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The line: whose turn it is. See line.c.
 */
#ifndef RISO_LINE_H
#define RISO_LINE_H

#include "dev.h"

/**
 * riso_line_holds - does a group stand in line?
 * @gd: its place
 *
 * Context: under &riso_dev.lock.
 * Return: true if it has something to post, or wants a grant.
 */
static inline bool riso_line_holds(const struct riso_group_dir *gd)
{
	return !list_empty(&gd->flows) || gd->asks;
}

/**
 * riso_line_group - the group of a place
 * @gd: the place
 * @dir: its direction
 *
 * Return: the group.
 */
static inline struct riso_group *riso_line_group(struct riso_group_dir *gd, enum riso_dir dir)
{
	return container_of(gd - dir, struct riso_group, dir[0]);
}

void riso_line_enter(struct riso_dev *rd, enum riso_dir dir, struct riso_group_dir *gd);
void riso_line_leave(struct riso_dev *rd, enum riso_dir dir, struct riso_group_dir *gd);
void riso_line_enter_tenant(struct riso_dev *rd, struct riso_group *g,
			    struct riso_tenant *tenant);
struct riso_group_dir *riso_line_first(const struct riso_arb *a);
void riso_line_note_active(struct riso_arb *a, struct riso_group *g, u64 now);
void riso_line_move_clock(struct riso_dev *rd, enum riso_dir dir, u64 ns, u64 now);
void riso_line_charge(struct riso_dev *rd, enum riso_dir dir, struct riso_group *g, u64 wire,
		      u32 ops, bool debt, u64 now);
void riso_line_refund(struct riso_dev *rd, enum riso_dir dir, struct riso_group *g, u64 wire,
		      u32 ops);
void riso_line_sync_waits(struct riso_dev *rd, struct riso_group *g, u64 now);
void riso_line_group_info(struct riso_dev *rd, struct riso_group *g,
			  struct riso_group_info *info);

#endif /* RISO_LINE_H */
