/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Whose turn it is. See line.c.
 */
#ifndef SHIM_LINE_H
#define SHIM_LINE_H

#include <sys/queue.h>

struct shim_cq;
struct shim_qp;

TAILQ_HEAD(shim_line, shim_qp);

/**
 * enum shim_place - where a flow waits that holds something
 * @SHIM_PLACE_NONE: nowhere, as it holds nothing
 * @SHIM_PLACE_LINE: in line for grants, shim_member.line
 * @SHIM_PLACE_ROOM: for something of its own to complete, shim_cq.crowd
 * @SHIM_PLACE_ENTRY: for an entry of its CQ that another flow has, shim_cq.queue
 */
enum shim_place {
	SHIM_PLACE_NONE,
	SHIM_PLACE_LINE,
	SHIM_PLACE_ROOM,
	SHIM_PLACE_ENTRY,
};

void shim_line_join(struct shim_qp *f);
void shim_line_jump(struct shim_qp *f);
void shim_line_step_aside(struct shim_qp *f);
void shim_line_leave(struct shim_qp *f);
void shim_line_come_back(struct shim_qp *f);
void shim_line_make_room(struct shim_cq *c);
void shim_line_admit(struct shim_qp *f);

#endif /* SHIM_LINE_H */
