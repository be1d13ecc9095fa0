/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * A program that sleeps at a completion channel, one in a test.
 */
#ifndef RISO_TEST_CHANNEL_H
#define RISO_TEST_CHANNEL_H

#include "prog.h"

/* The program, and the channel's file: the first is read */
extern struct prog *channel_prog;
extern int channel_ends[2];

void channel_open(struct prog *p, struct ibv_comp_channel *channel);
void channel_close(void);
/* The program is told of an event of its CQ. */
void channel_expect(struct ibv_comp_channel *channel);
/* A completion comes, with an event if the CQ is armed, and no other one while it sleeps. */
void channel_receive(void);
/* The program was told of an event, and has armed the CQ again and found nothing. */
void channel_know(struct prog *p, struct ibv_comp_channel *channel);
/* A message of which the first chunk has completed; as many as @out are out at a time. */
void channel_post_large(struct prog *p, struct fake_qp *qp, uint32_t out);

#endif /* RISO_TEST_CHANNEL_H */
