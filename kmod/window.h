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

/**
 * struct riso_room - what bounds a flow's next post
 * @chunk: size that its message is cut to, bytes; 0 if nothing is cut
 * @share: chunks that may have a tag together, at least 1
 * @need: wire bytes of the smallest part that is posted
 * @part: of these, what has to fit in what may stand in the device
 * @limit: wire bytes that the flow may have in flight by itself
 */
struct riso_room {
	u32 chunk;
	u32 share;
	u32 need;
	u32 part;
	u64 limit;
};

/**
 * riso_window_fits - may the flow post, as far as what it has out goes?
 * @f: the flow
 * @room: what bounds its next post
 *
 * Context: under &riso_dev.lock.
 * Return: true if it may. A flow with nothing out may post any message.
 */
static inline bool riso_window_fits(const struct riso_flow *f, const struct riso_room *room)
{
	u64 out = f->inflight[f->next.dir];

	return f->slots->head == f->slots->tail || !out || out + room->need <= room->limit;
}

struct riso_room riso_window_room(struct riso_flow *f);
void riso_window_rebound(struct riso_flow *f);
void riso_window_update(struct riso_flow *f, enum riso_dir dir);
void riso_window_add(struct riso_flow *f, enum riso_dir dir, u32 wire, u64 now);
void riso_window_sub(struct riso_flow *f, enum riso_dir dir, u64 wire);
void riso_window_complete(struct riso_flow *f, enum riso_dir dir, u64 wire, bool success);
void riso_window_note_dry(struct riso_flow *f, enum riso_dir dir, u64 now);
void riso_window_measure(struct riso_flow *f, const struct riso_slot *slot, u64 now);
struct riso_pacer_say riso_window_ask(struct riso_flow *f, const struct riso_pacer_limits *l,
				      struct riso_room *room, u64 now);
u64 riso_window_next_reap(struct riso_dev *rd, u64 now);

#endif /* RISO_WINDOW_H */
