/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The line: whose turn it is. See line.c.
 */
#ifndef RISO_LINE_H
#define RISO_LINE_H

#include "dev.h"

struct riso_flow;

/**
 * struct riso_bill - what a group is charged for
 * @wire: wire bytes
 * @ops: messages
 * @busy_ns: time that the device is busy with them at the pace
 * @debt: it was not the turn of the group
 * @grant: a process was granted it, or says that it has posted it
 */
struct riso_bill {
	u64 wire;
	u32 ops;
	u64 busy_ns;
	bool debt;
	bool grant;
};

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

/**
 * riso_line_first - find the group whose turn it is
 * @a: one direction of a device
 *
 * Context: under &riso_dev.lock.
 * Return: its place, NULL if nobody is in line.
 */
static inline struct riso_group_dir *riso_line_first(const struct riso_arb *a)
{
	struct riso_share_group *first = riso_share_first(&a->share);

	return first ? container_of(first, struct riso_group_dir, share) : NULL;
}

void riso_line_enter(struct riso_dev *rd, enum riso_dir dir, struct riso_group_dir *gd,
		     u64 now);
void riso_line_leave(struct riso_dev *rd, enum riso_dir dir, struct riso_group_dir *gd,
		     u64 now);
void riso_line_enter_tenant(struct riso_dev *rd, struct riso_group *g,
			    struct riso_tenant *tenant);
void riso_line_note_active(struct riso_arb *a, struct riso_group *g, u64 now);
void riso_line_charge(struct riso_dev *rd, enum riso_dir dir, struct riso_group *g,
		      const struct riso_bill *bill, u64 now);
bool riso_line_is_sparse(const struct riso_flow *f, const u64 *wire, u64 now);
void riso_line_refund(struct riso_dev *rd, enum riso_dir dir, struct riso_group *g, u64 wire,
		      u32 ops);
void riso_line_sync_waits(struct riso_dev *rd, struct riso_group *g, u64 now);
void riso_line_group_info(struct riso_dev *rd, struct riso_group *g,
			  struct riso_group_info *info);

#endif /* RISO_LINE_H */
