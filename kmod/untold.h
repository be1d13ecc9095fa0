/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What programs send without telling the module. See untold.c.
 */
#ifndef RISO_UNTOLD_H
#define RISO_UNTOLD_H

#include <linux/types.h>

struct riso_dev;
struct riso_flow;

/**
 * struct riso_untold - what a flow of a program sends untold, under &riso_dev.mutex
 * @psn: packet number of the send queue at the last look, if @known
 * @looked_ns: when that was
 * @rate: bytes per second at most, 0 unless @marked
 * @strikes: looks in a row that disagreed with @marked
 * @known: there was a look, and the flow was such as it is now
 * @shim: its process posted for it under grants then
 * @marked: it sends, and nobody has told of it
 */
struct riso_untold {
	u32 psn;
	u64 looked_ns;
	u64 rate;
	u32 strikes;
	bool known;
	bool shim;
	bool marked;
};

bool riso_untold_look(struct riso_dev *rd, u64 now);
void riso_untold_forget(struct riso_flow *f);

#endif /* RISO_UNTOLD_H */
