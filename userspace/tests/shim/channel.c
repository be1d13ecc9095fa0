// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * A program that sleeps at a completion channel.
 */
#include <unistd.h>

#include "channel.h"
#include "event.h"
#include "prog.h"
#include "shim.h"

struct prog *channel_prog;

int channel_ends[2];

/* The program has a channel with the file @channel_ends[0]. */
void channel_open(struct prog *p, struct ibv_comp_channel *channel)
{
	assert_int_equal(pipe(channel_ends), 0);
	*channel = (struct ibv_comp_channel) { .context = fake_ctx, .fd = channel_ends[0] };
	fake_verbs.from = p->cq;
	channel_prog = p;
}

void channel_close(void)
{
	fake_verbs.at_sleep = NULL;
	close(channel_ends[0]);
	close(channel_ends[1]);
}

void channel_expect(struct ibv_comp_channel *channel)
{
	struct fake_cq *cq = channel_prog->cq;
	struct ibv_cq *got;
	void *context;

	assert_int_equal(shim_get_cq_event(channel, &got, &context), 0);
	assert_ptr_equal(got, cq);
	shim_real.ack_cq_events(got, 1);
	assert_int_equal(cq->acked, cq->taken);
}

void channel_receive(void)
{
	struct fake_cq *cq = channel_prog->cq;

	fake_verbs.at_sleep = NULL;
	fake_receive(cq);
	cq->events += cq->armed;
	cq->armed = false;
}

void channel_know(struct prog *p, struct ibv_comp_channel *channel)
{
	struct ibv_wc wc;

	prog_arm(p);
	prog_expect_none(p);
	channel_receive();
	channel_expect(channel);
	assert_int_equal(prog_poll_one(p, &wc), 1);
	prog_arm(p);
	prog_expect_none(p);
	assert_int_equal(p->cq->events, p->cq->taken);
}

void channel_post_large(struct prog *p, struct fake_qp *qp, uint32_t out)
{
	fake_kernel.k.window = out * fake_cost(FAKE_CHUNK);
	assert_int_equal(prog_post(qp, IBV_WR_RDMA_WRITE, 1, 16 * FAKE_CHUNK,
				   IBV_SEND_SIGNALED), 0);
	fake_grant(RISO_USER_TX, 8 * fake_cost(FAKE_CHUNK));
	prog_drive(p);
	fake_run(qp, 1);
}
