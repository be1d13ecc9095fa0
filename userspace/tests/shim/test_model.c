// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * A program that does what random numbers say, and a model of what it may expect: no CQ
 * overflows, the shim counts right, and all completes in the end.
 */
#include <errno.h>
#include <string.h>
#include <sys/queue.h>

#include "prog.h"
#include "random.h"
#include "slot.h"
#include "tests.h"

/*
 * A program that gives its CQ an entry for each of its work requests, and posts no more
 * of them than that, whatever happens to its queue pairs.
 */
enum { MIX_QPS = 24, MIX_CQE = 48, MIX_OPS = 4000, MIX_RUNS = 60 };

static struct {
	struct prog p;
	struct fake_qp *qp[MIX_QPS];
	uint64_t posted[MIX_QPS];	/* work requests, of all queue pairs in this place */
	uint64_t finished[MIX_QPS];
	uint32_t out;
} mix;

static void mix_poll(uint32_t num)
{
	struct ibv_wc wc;
	uint64_t nr;
	uint32_t i;

	while (num-- && prog_poll_one(&mix.p, &wc)) {
		i = wc.wr_id % MIX_QPS;
		nr = wc.wr_id / MIX_QPS;
		assert_true(nr < mix.posted[i]);
		/* One of a queue pair that is gone may come late. */
		if (nr < mix.finished[i])
			continue;
		mix.out -= nr + 1 - mix.finished[i];
		mix.finished[i] = nr + 1;
	}
}

static void mix_post(uint32_t i)
{
	uint64_t nr = mix.posted[i];
	bool last = mix.out + 1 == MIX_CQE || nr % 4 == 3;

	if (mix.out == MIX_CQE)
		return;
	if (prog_post(mix.qp[i], random_to(4) ? IBV_WR_RDMA_WRITE : IBV_WR_SEND,
		      nr * MIX_QPS + i, random_to(50 * FAKE_CHUNK),
		      last || random_to(2) ? IBV_SEND_SIGNALED : 0))
		return;
	mix.posted[i]++;
	mix.out++;
}

/* Its work requests are the program's no more, once the CQ has been polled empty. */
static void mix_lost(uint32_t i)
{
	mix_poll(UINT32_MAX);
	mix.out -= mix.posted[i] - mix.finished[i];
	mix.finished[i] = mix.posted[i];
}

static void mix_tear_down(uint32_t i, uint32_t how)
{
	struct ibv_qp *qp = &mix.qp[i]->ex.qp_base;
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_ERR };

	fake_verbs.runs_on = mix.qp[i];
	if (how < 2) {
		attr.qp_state = how ? IBV_QPS_RESET : IBV_QPS_ERR;
		assert_int_equal(shim_modify_qp(qp, &attr, IBV_QP_STATE), 0);
	} else {
		assert_int_equal(shim_destroy_qp(qp), 0);
		fake_verbs.runs_on = NULL;
		mix.qp[i] = prog_make_qp(&mix.p, mix.p.cq, 0);
	}
	fake_verbs.runs_on = NULL;
	if (how)
		mix_lost(i);
}

/* What is counted is what is there, and each message that is bare has an entry to go on. */
static void mix_check(void)
{
	const struct shim_cq *c = shim_map_find(&shim_cqs, mix.p.cq);
	const struct shim_slots *s;
	struct shim_used used = {};
	uint32_t i;

	for (i = 0; i < MIX_QPS; i++) {
		const struct shim_qp *f = shim_map_find(&shim_qps, mix.qp[i]);
		uint64_t pos;

		for (pos = f->slots->tail; pos != f->sq.slot; pos++) {
			const struct shim_slot *slot = shim_slots_at(f->slots, pos);

			used.hidden += shim_slot_hidden(slot);
			used.extra += !!(slot->flags & SHIM_SLOT_EXTRA);
		}
		used.open += !!f->sq.parts;
		used.bare += f->sq.parts && f->sq.silent >= f->sq.parts;
	}
	LIST_FOREACH(s, &c->zombies, zombie) {
		used.hidden += s->used.hidden;
		used.extra += s->used.extra;
	}
	assert_memory_equal(&used, &c->used, sizeof(used));
	assert_true(used.extra + used.bare <= c->spare);
}

/* For a moment, the provider takes a few and no more. */
static void mix_refuse(struct fake_qp *qp)
{
	qp->refuse = ENOMEM;
	qp->refuse_from = qp->posted + random_to(4);
	fake_grant(RISO_USER_TX, SHIM_SLOTS * fake_cost(FAKE_CHUNK));
	prog_drive(&mix.p);
	mix_check();
	qp->refuse = 0;
}

static void mix_once(uint32_t what, uint32_t i)
{
	if (what < 40)
		mix_post(i);
	else if (what < 60)
		fake_grant(RISO_USER_TX, random_to(64) * fake_cost(FAKE_CHUNK));
	else if (what < 80)
		fake_run(mix.qp[i], random_to(SHIM_SLOTS));
	else if (what < 90)
		mix_poll(random_to(8));
	else if (what < 92)
		mix_tear_down(i, random_to(3));
	else if (what < 94)
		mix.qp[i]->fail_at = mix.qp[i]->run + random_to(8);
	else if (what < 95)
		mix_refuse(mix.qp[i]);
	else if (what < 96)
		fake_kernel.k.mode = random_to(4) ? RISO_USER_PACED : RISO_USER_OPEN;
	else
		prog_drive(&mix.p);
}

/* All that is out completes in the end. */
static void mix_end(void)
{
	uint32_t i, rounds;

	fake_kernel.k.mode = RISO_USER_PACED;
	for (rounds = 0; rounds < 10000 && mix.out; rounds++) {
		fake_grant(RISO_USER_TX, MIX_QPS * SHIM_SLOTS * fake_cost(FAKE_CHUNK));
		prog_drive(&mix.p);
		for (i = 0; i < MIX_QPS; i++)
			fake_run(mix.qp[i], UINT32_MAX);
		mix_poll(UINT32_MAX);
		for (i = 0; i < MIX_QPS; i++)
			if (mix.posted[i] != mix.finished[i] && rounds % 100 == 99)
				mix_post(i);
		fake_kernel.now += 1000;
	}
	assert_int_equal(mix.out, 0);
}

static void never_overflows(void **state)
{
	static const int spares[] = { 8, 20, 128 };
	uint32_t run, n, i;

	(void)state;
	fake_verbs.no_resize = 1;
	for (run = 0; run < MIX_RUNS; run++) {
		seed = run + 1;
		memset(&mix, 0, sizeof(mix));
		mix.p.cq = prog_make_cq(MIX_CQE);
		mix.p.cq->cq.cqe = MIX_CQE + spares[run % ARRAY_SIZE(spares)];
		for (i = 0; i < MIX_QPS; i++)
			mix.qp[i] = prog_make_qp(&mix.p, mix.p.cq, 0);
		mix.p.qp = mix.qp[0];
		for (n = 0; n < MIX_OPS && !mix.p.cq->overflow; n++) {
			mix_once(random_to(100), random_to(MIX_QPS));
			mix.p.qp = mix.qp[0];
			mix_check();
			fake_kernel.now += random_to(1000);
		}
		if (mix.p.cq->overflow)
			fail_msg("seed %u, %u", run + 1, n);
		mix_end();
		for (i = 0; i < MIX_QPS; i++)
			shim_destroy_qp(&mix.qp[i]->ex.qp_base);
		shim_destroy_cq(ibv_cq_ex_to_cq(&mix.p.cq->cq));
	}
}

static const struct CMUnitTest tests[] = {
	PROG_TEST(never_overflows),
};

const struct prog_tests prog_model_tests = { tests, ARRAY_SIZE(tests) };
