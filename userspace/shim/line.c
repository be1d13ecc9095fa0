// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Lines: whose turn it is among the flows that hold something.
 *
 * Owns where such a flow waits. Flows stand in line for grants, in one line for each path that the
 * next piece may take. Who drives looks at the first ones only, and stops where a grant does not
 * suffice, so that a post or a poll costs the same however many wait. A flow that waits for room is
 * in no line: it would be looked at in vain. It comes back when something of its own completes. If
 * nothing of its own will, it waits for entries of the CQ, and comes back when another flow's do.
 *
 * Lock: everything here runs under shim_member.lock, in threads of the program and in the helper.
 */
#include "cq.h"
#include "ctx.h"
#include "line.h"
#include "member.h"
#include "pay.h"
#include "qp.h"
#include "record.h"

/**
 * shim_line_leave - be nowhere
 * @f: the flow
 */
void shim_line_leave(struct shim_qp *f)
{
	if (f->place == SHIM_PLACE_LINE)
		TAILQ_REMOVE(&f->ctx->m->line[f->in_line], f, line);
	else if (f->place == SHIM_PLACE_ROOM)
		TAILQ_REMOVE(&f->cq->crowd, f, line);
	else if (f->place == SHIM_PLACE_ENTRY)
		TAILQ_REMOVE(&f->cq->queue, f, line);
	f->place = SHIM_PLACE_NONE;
}

static void stand_in_line(struct shim_qp *f)
{
	shim_line_leave(f);
	f->in_line = shim_get_book(f, shim_find_rec(f, f->sq.head));
	f->place = SHIM_PLACE_LINE;
}

/**
 * shim_line_join - go to the end of the line of the piece that goes next
 * @f: a flow that holds something
 */
void shim_line_join(struct shim_qp *f)
{
	stand_in_line(f);
	TAILQ_INSERT_TAIL(&f->ctx->m->line[f->in_line], f, line);
}

/**
 * shim_line_jump - go to the front of that line
 * @f: a flow that holds something, and needs no grant or keeps its turn
 */
void shim_line_jump(struct shim_qp *f)
{
	stand_in_line(f);
	TAILQ_INSERT_HEAD(&f->ctx->m->line[f->in_line], f, line);
}

/**
 * shim_line_step_aside - wait for room
 * @f: a flow that holds something
 */
void shim_line_step_aside(struct shim_qp *f)
{
	shim_line_leave(f);
	f->place = f->sq.signaled ? SHIM_PLACE_ROOM : SHIM_PLACE_ENTRY;
	TAILQ_INSERT_TAIL(f->sq.signaled ? &f->cq->crowd : &f->cq->queue, f, line);
}

/* It wants a grant again. */
static void come_back(struct shim_qp *f)
{
	shim_set_full(f, false);
	shim_line_join(f);
}

/**
 * shim_line_come_back - something of a flow has completed
 * @f: the flow
 */
void shim_line_come_back(struct shim_qp *f)
{
	/* Before it, or it would take the entry that has become free. */
	shim_line_make_room(f->cq);
	if (f->place == SHIM_PLACE_ROOM)
		come_back(f);
}

/**
 * shim_line_make_room - entries of a CQ are free again
 * @c: the CQ
 */
void shim_line_make_room(struct shim_cq *c)
{
	struct shim_qp *f = TAILQ_FIRST(&c->queue);

	if (f)
		come_back(f);
}

/**
 * shim_line_admit - let a flow look for room again
 * @f: a flow that holds something
 */
void shim_line_admit(struct shim_qp *f)
{
	if (f->place != SHIM_PLACE_LINE)
		come_back(f);
}
