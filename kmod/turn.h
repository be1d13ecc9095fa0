/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Whose turn it is to post. See turn.c.
 */
#ifndef RISO_TURN_H
#define RISO_TURN_H

#include "flow.h"

/**
 * struct riso_turn - a flow that may post
 * @f: the flow
 * @dir: direction whose budget it takes
 * @pace: rate that the clock runs at, bytes per second
 * @qt: how much it may post
 */
struct riso_turn {
	struct riso_flow *f;
	enum riso_dir dir;
	u64 pace;
	struct riso_quantum qt;
};

void riso_turn_remove(struct riso_flow *f, u64 now);
void riso_turn_wake(struct riso_flow *f, u64 now);
void riso_turn_admit(struct riso_flow *f, u64 now);
bool riso_turn_pick_alone(struct riso_flow *f, u64 now, struct riso_turn *t);
bool riso_turn_pick(struct riso_dev *rd, u64 now, struct riso_turn *t);

#endif /* RISO_TURN_H */
