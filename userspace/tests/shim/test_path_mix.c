// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Limits of paths, modes of the device, grants and refusals come and go at random while four queue
 * pairs post. After each step the books add up, and in the end all has completed once, in order,
 * and all bytes were given to the provider.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "prog.h"
#include "random.h"
#include "record.h"
#include "slot.h"
#include "tests.h"

enum {
	QPS = 4,
	STEPS = 4000,
	SEEDS = 60,
	/* Messages of a queue pair whose completion may be awaited */
	WANTED = STEPS + 1,
	/* Rounds until all must have ended */
	PATIENCE = 3000,
};

/**
 * struct lane - a queue pair, and what is known of it
 * @qp: the queue pair
 * @f: its flow
 * @posted: number of messages posted, which is the next wr_id
 * @wanted: wr_id of those that are to complete
 * @num_wanted: how many there were
 * @num_seen: how many of them have completed
 * @out: messages that may be out
 * @bytes: of all messages
 * @scanned: number of the provider's work requests that were looked at
 * @given: their bytes
 */
struct lane {
	struct fake_qp *qp;
	struct shim_qp *f;
	uint64_t posted;
	uint64_t wanted[WANTED];
	uint32_t num_wanted;
	uint32_t num_seen;
	uint32_t out;
	uint64_t bytes;
	uint32_t scanned;
	uint64_t given;
};

static struct lane lanes[QPS];

static void scan(struct lane *l)
{
	for (; l->scanned != l->qp->posted; l->scanned++)
		l->given += fake_len(&l->qp->sq[l->scanned % FAKE_SQ].wr);
}

static void scan_all(void)
{
	uint32_t i;

	for (i = 0; i < QPS; i++)
		scan(&lanes[i]);
}

struct sums {
	uint64_t held[RISO_USER_PATHS];
	uint64_t stuck[RISO_USER_PATHS];
	uint64_t out[RISO_USER_PATHS];
	uint32_t records;
	uint32_t busy;
};

static void add_flow(const struct shim_qp *f, struct sums *s)
{
	uint64_t cost[RISO_USER_DIRS] = { 0 }, pos;
	const struct shim_rec *head = shim_find_rec(f, f->sq.head);
	int dir;

	s->records += shim_queue_len(f);
	s->busy += !!shim_queue_len(f);
	for (pos = f->sq.head; pos != f->tail; pos++)
		cost[shim_get_dir(shim_find_rec(f, pos))] += shim_find_rec(f, pos)->cost;
	for (dir = 0; dir < RISO_USER_DIRS; dir++) {
		assert_int_equal(cost[dir], f->cost[dir]);
		s->held[f->book[dir]] += cost[dir];
		s->stuck[f->book[dir]] += f->full ? cost[dir] : 0;
	}
	for (pos = f->slots->tail; pos != f->sq.slot; pos++)
		s->out[shim_slots_at(f->slots, pos)->book] += shim_slots_at(f->slots, pos)->cost;
	if (f->sq.paid)
		s->out[shim_get_book(f, head)] += f->sq.paid;
	if (f->place == SHIM_PLACE_LINE)
		assert_int_equal(f->in_line, shim_get_book(f, head));
	assert_int_equal(f->place == SHIM_PLACE_NONE, !shim_queue_len(f));
}

/* The books say what there is. */
static void check_books(void)
{
	const struct shim_member *m = lanes[0].f->ctx->m;
	struct sums s = { 0 };
	uint32_t i;

	for (i = 0; i < QPS; i++)
		add_flow(lanes[i].f, &s);
	assert_int_equal(m->held, s.records);
	assert_int_equal(m->num_busy, s.busy);
	for (i = 0; i < RISO_USER_PATHS; i++) {
		assert_int_equal(m->book[i].held, s.held[i]);
		assert_int_equal(m->book[i].stuck, s.stuck[i]);
		assert_int_equal(m->book[i].posted - m->book[i].done, s.out[i]);
		assert_true(m->book[i].debt <= m->book[i].posted);
	}
}

static void post_one(struct lane *l)
{
	static const enum ibv_wr_opcode ops[] = {
		IBV_WR_RDMA_WRITE, IBV_WR_RDMA_READ, IBV_WR_SEND,
	};
	uint32_t len = random_to(3) ? random_to(8 * FAKE_CHUNK) : random_to(2000);
	/* The last one that it may have has a completion, or none would be known to be done. */
	bool wanted = !random_to(3) || l->out >= PROG_DEPTH - 1;
	int err;

	if (l->out >= PROG_DEPTH)
		return;
	err = prog_post(l->qp, ops[random_to(ARRAY_SIZE(ops))], l->posted, len,
			wanted ? IBV_SEND_SIGNALED : 0);
	if (err) {
		assert_int_equal(err, l->qp->refuse);
		return;
	}
	if (wanted)
		l->wanted[l->num_wanted++] = l->posted;
	l->posted++;
	l->out++;
	l->bytes += len;
}

static void poll_all(struct prog *p)
{
	struct ibv_wc wc;
	struct lane *l;

	while (prog_poll_one(p, &wc) > 0) {
		assert_int_equal(wc.status, IBV_WC_SUCCESS);
		for (l = lanes; l->qp->ex.qp_base.qp_num != wc.qp_num; l++)
			assert_true(l < lanes + QPS - 1);
		assert_true(l->num_seen < l->num_wanted);
		assert_int_equal(wc.wr_id, l->wanted[l->num_seen++]);
		l->out = l->posted - wc.wr_id - 1;
	}
}

static void run_all(uint32_t most)
{
	uint32_t i;

	for (i = 0; i < QPS; i++) {
		scan(&lanes[i]);
		fake_run(lanes[i].qp, random_to(most) + 1);
	}
}

/* Two limits for each direction, or none */
static void change_limit(void)
{
	uint32_t dir = random_to(RISO_USER_DIRS);
	uint32_t path = random_to(3) ? 2 + 2 * dir + random_to(2) : dir;

	fake_kernel.k.path[path].chunk = random_to(4) ? FAKE_CHUNK : 3 * FAKE_CHUNK * random_to(2);
	if (fake_kernel.k.paths <= path)
		fake_kernel.k.paths = path + 1;
	fake_kernel.path[dir] = path;
	fake_kernel.k.classes++;
}

static void change_mode(void)
{
	fake_kernel.k.mode = random_to(2) ? RISO_USER_OPEN : RISO_USER_PACED;
}

/* While the provider is given a batch, now and then */
static void change_in_post(void)
{
	if (random_to(2))
		change_mode();
	if (!random_to(16))
		fake_kernel.k.classes++;
}

static void refuse(struct fake_qp *qp)
{
	qp->refuse = random_to(2) ? ENOMEM : 0;
	qp->refuse_from = qp->posted + random_to(4);
}

static void step(struct prog *p, struct lane *l, uint32_t what)
{
	if (what < 30) {
		post_one(l);
	} else if (what < 45) {
		fake_grant(random_to(fake_kernel.k.paths),
			   random_to(4 * fake_cost(FAKE_CHUNK)) + 1);
	} else if (what < 60) {
		run_all(5);
	} else if (what < 75) {
		poll_all(p);
	} else if (what < 80) {
		prog_drive(p);
	} else if (what < 83) {
		change_mode();
	} else if (what < 89) {
		change_limit();
	} else if (what < 90) {
		fake_kernel.class_id = random_to(4) ? RISO_CLASS_BANDWIDTH : RISO_CLASS_LATENCY;
		fake_kernel.k.classes++;
	} else {
		refuse(l->qp);
	}
}

static bool have_ended(void)
{
	uint32_t i;

	for (i = 0; i < QPS; i++)
		if (shim_queue_len(lanes[i].f) || lanes[i].num_seen != lanes[i].num_wanted)
			return false;
	return true;
}

/* All that is held goes out and completes, whatever the mode is. */
static void end_all(struct prog *p)
{
	uint32_t rounds, i;

	for (i = 0; i < QPS; i++)
		lanes[i].qp->refuse = 0;
	for (rounds = 0; !have_ended(); rounds++) {
		assert_true(rounds < PATIENCE);
		for (i = 0; i < fake_kernel.k.paths; i++)
			fake_grant(i, 2 * fake_cost(FAKE_CHUNK));
		prog_drive(p);
		run_all(FAKE_SQ);
		poll_all(p);
		check_books();
		fake_kernel.now += 10000;
	}
	scan_all();
	for (i = 0; i < QPS; i++)
		assert_int_equal(lanes[i].given, lanes[i].bytes);
}

static void mix_paths(struct prog *p)
{
	uint32_t n, i;

	memset(lanes, 0, sizeof(lanes));
	fake_kernel.k.sparse = random_to(2) ? fake_cost(FAKE_CHUNK) : 0;
	fake_kernel.k.window = random_to(2) ? 1ULL << 40 : 6 * fake_cost(FAKE_CHUNK);
	fake_verbs.at_call = random_to(2) ? change_in_post : NULL;
	for (i = 0; i < QPS; i++) {
		lanes[i].qp = i ? prog_make_qp(p, p->cq, 0) : p->qp;
		lanes[i].f = shim_map_find(&shim_qps, lanes[i].qp);
	}
	for (n = 0; n < STEPS; n++) {
		fake_kernel.now += random_to(2) ? 1000 : random_to(5 * MSEC);
		step(p, &lanes[random_to(QPS)], random_to(100));
		scan_all();
		check_books();
	}
	fake_verbs.at_call = NULL;
	end_all(p);
	for (i = 1; i < QPS; i++)
		shim_destroy_qp(&lanes[i].qp->ex.qp_base);
}

static void paths_mixed(void **state)
{
	uint32_t i;

	for (i = 0; i < SEEDS; i++) {
		seed = i + 1;
		if (i) {
			prog_teardown(state);
			prog_setup(state);
		}
		mix_paths(*state);
	}
}

static const struct CMUnitTest tests[] = {
	PROG_TEST(paths_mixed),
};

const struct prog_tests prog_path_mix_tests = { tests, ARRAY_SIZE(tests) };
