// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The engine of kmod/core in simulated time, against a simulated adapter, in millions of
 * random steps: after each one it is held against what the engine promises.
 *
 * The seed is printed. An argument is the seed to begin with.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "../random.h"
#include "adapter.h"
#include "core/chunk.h"
#include "core/estimate.h"
#include "core/pacer.h"
#include "core/share.h"

enum {
	NUMBERS = 2000000,
	STEPS = 8000000,
	/* Steps of one world: a device with settings and load of its own */
	WORLD_STEPS = 20000,
	GROUPS = 8,
	/* Until a burst ends, a group has so many chunks, on average. */
	BURST = 40,
};

/* A number of any size: small ones are as likely as large ones. */
static uint64_t any_size(void)
{
	return random_u64() >> random_to(64);
}

/* --- arithmetic --- */

static void multiplies_and_divides(void **state)
{
	int i;

	(void)state;
	for (i = 0; i < NUMBERS; i++) {
		uint64_t a = any_size(), b = any_size(), c = any_size() | 1;
		uint64_t wanted = UINT64_MAX;

		if ((__uint128_t)a * b / c < wanted)
			wanted = (__uint128_t)a * b / c;
		assert_true(riso_mul_div(a, b, c) == wanted);
	}
	assert_int_equal(riso_mul_div(UINT64_MAX, UINT64_MAX, UINT64_MAX), UINT64_MAX);
	assert_int_equal(riso_mul_div(0, UINT64_MAX, 1), 0);
	assert_int_equal(riso_time_of(1000, 0), 0);
	assert_int_equal(riso_time_of(1000, 1000000), 1000000);
	assert_int_equal(riso_bytes_in(1000000, 1000000), 1000);
}

/* --- a world --- */

struct group {
	struct riso_share_group share;
	struct riso_share_tenant tenant;
	uint32_t weight;
	uint64_t chunks;	/* to be posted */
	bool always;		/* never runs out of them */
	uint64_t waits_since;	/* what all had posted when it was served, or came, last */
};

static struct {
	struct adapter adapter;
	struct riso_share_line line;
	struct riso_pacer pacer;
	struct riso_pacer_limits limits;
	struct riso_estimate estimate;
	struct riso_path path;
	struct group groups[GROUPS];
	unsigned int num_groups;
	uint64_t chunk;
	uint64_t now;
	uint64_t begin_ns;
	uint64_t inflight;
	uint64_t on_path;
	__u64 load;		/* as the pacer counts it */
	uint64_t posted;
	uint64_t posted_ns;	/* what they take at the pace, rounded down each */
	uint64_t timer_ns;
	uint64_t polled_ns;	/* when completions were looked for last */
	uint64_t nearest_ns;	/* the shortest delay that the path has had, if it changes */
} w;

static uint64_t cost(uint64_t bytes)
{
	return riso_time_of(bytes, w.limits.pace);
}

static void begin_world(void)
{
	uint64_t rate = 1000000 + any_size() % 50000000000ULL;
	unsigned int i;

	memset(&w, 0, sizeof(w));
	w.now = 1 + random_to(1ULL << 40);
	w.begin_ns = w.now;
	adapter_init(&w.adapter, rate, random_to(3) ? 0 : random_to(2000000), w.now);
	w.chunk = 1024 + random_to(65536);
	w.num_groups = 1 + random_to(GROUPS);
	w.limits = (struct riso_pacer_limits) {
		.clocked = random_to(4),
		.tick_ns = random_to(2) ? 0 : 50000,
		.pace = rate / 2 + random_to(rate / 2) + 1,
		.window = random_to(2) ? riso_pacer_window(w.chunk, rate) :
					 (2 + random_to(6)) * w.chunk,
	};
	w.limits.speed = rate;
	w.limits.lag_ns = random_to(4) ? w.limits.tick_ns : 100000;
	w.timer_ns = RISO_NEVER;
	w.pacer.next = w.now;
	w.line.slice_ns = cost(2 * w.chunk);
	riso_estimate_restart(&w.estimate);
	riso_path_restart(&w.path, w.now);
	for (i = 0; i < w.num_groups; i++) {
		struct group *g = &w.groups[i];

		g->weight = 1 + random_to(400);
		g->always = random_to(2);
		riso_share_begin_tenant(&w.line, &g->tenant);
		riso_share_begin_group(&g->tenant, &g->share);
	}
}

/* As window.c has it: what is on the path does not stand in the device. */
static void update_load(void)
{
	const struct riso_out out = {
		.bytes = w.inflight,
		.far = w.path.rtt_min == RISO_NEVER ? 0 : w.inflight * w.path.rtt_min,
	};

	w.on_path = riso_estimate_path(&w.estimate, riso_out_delay(&out), w.limits.window,
				       w.adapter.rate);
	riso_pacer_set_load(&w.pacer, &w.load, riso_out_standing(&out, w.on_path));
}

static void complete_oldest(void)
{
	const struct adapter_piece *piece = adapter_oldest(&w.adapter);
	uint64_t own = riso_time_of(piece->bytes, w.limits.speed);
	uint64_t begun = RISO_NEVER;
	uint64_t due = w.polled_ns;

	if (w.path.rtt_min != RISO_NEVER) {
		due = riso_max(due, riso_pacer_begins(&w.pacer, piece->posted_ns,
						      w.path.rtt_min) + own);
		begun = piece->posted_ns + w.path.rtt_min;
	}
	assert_true(w.inflight >= piece->bytes);
	w.inflight -= piece->bytes;
	w.estimate.done += piece->bytes;
	w.pacer.completed_ns = riso_min(w.now, due);
	riso_estimate_complete(&w.estimate, own, begun, w.now);
	riso_path_sample(&w.path, piece->posted_ns, own, w.now);
	adapter_complete(&w.adapter);
	update_load();
	/* The device is not thought to be faster, nor the path shorter, than they are. */
	assert_true(w.estimate.peak <= w.adapter.rate + w.adapter.rate / 10);
	assert_true(w.path.rtt_min >= (w.nearest_ns ? w.nearest_ns : w.adapter.delay_ns));
}

static void poll_adapter(void)
{
	while (adapter_next(&w.adapter) <= w.now)
		complete_oldest();
	w.polled_ns = w.now;
}

static struct group *first(void)
{
	struct riso_share_group *share = riso_share_first(&w.line);

	return share ? (struct group *)((char *)share - offsetof(struct group, share)) : NULL;
}

/* The provider refuses: nothing of it is lost, and nothing is left of it. */
static void post_in_vain(struct group *g)
{
	struct riso_pacer before = w.pacer;
	uint64_t key = g->share.node.key;
	uint64_t ns = cost(w.chunk);

	riso_share_charge(&w.line, &g->tenant, &g->share, true, ns, g->weight);
	riso_pacer_advance(&w.pacer, w.limits.lag_ns, ns, w.now);
	riso_pacer_refund(&w.pacer, ns, 0);
	riso_share_refund(&w.line, &g->tenant, &g->share, ns, g->weight);
	assert_int_equal(g->share.node.key, key);
	/* Time that had gone by unused is lost, whether something is posted or not. */
	assert_int_equal(w.pacer.next, riso_max(before.next, w.now - w.limits.lag_ns));
	w.pacer = before;
}

static void post(struct group *g, uint64_t chunks)
{
	uint64_t bytes = chunks * w.chunk;
	uint64_t served = riso_max(w.line.vnow, w.line.slice_ns);
	uint64_t vtime = riso_max(g->tenant.node.key, served - w.line.slice_ns);
	uint64_t i;

	if (!g->share.in_line)
		riso_share_limit(&w.line, &g->tenant, &g->share);
	riso_share_charge(&w.line, &g->tenant, &g->share, true, cost(bytes), g->weight);
	/* Credit of more than a slice pays for nothing, in line or not. */
	assert_true(g->tenant.node.key >=
		    vtime + cost(bytes) * RISO_WEIGHT_DEFAULT / g->weight);
	if (w.limits.clocked)
		riso_pacer_advance(&w.pacer, w.limits.lag_ns, cost(bytes), w.now);
	for (i = 0; i < chunks; i++)
		adapter_post(&w.adapter, w.chunk, g - w.groups, w.now);
	w.inflight += bytes;
	w.posted += bytes;
	w.posted_ns += cost(bytes);
	update_load();
	g->waits_since = w.posted_ns;
	g->chunks -= chunks;
	if (!g->chunks && g->share.in_line)
		riso_share_leave(&w.line, &g->tenant, &g->share);
}

static struct riso_pacer_piece oldest_piece(void)
{
	const struct adapter_piece *oldest = adapter_oldest(&w.adapter);

	if (!oldest || w.path.rtt_min == RISO_NEVER)
		return (struct riso_pacer_piece) { .known = false };
	return (struct riso_pacer_piece) {
		.known = true,
		.posted_ns = oldest->posted_ns,
		.path_ns = w.path.rtt_min,
		.bytes = oldest->bytes,
	};
}

/*
 * The window was kept, except for the oldest piece: how much of it has left is a guess, and
 * it is out alone whatever its size. The adapter has no more to do either than the books
 * say, except what it is thought to have sent.
 */
static void check_window(uint64_t oldest)
{
	uint64_t limit = w.limits.window + riso_max(oldest, w.chunk);
	/* The adapter takes up to a nanosecond more for each piece. */
	uint64_t rounding = riso_bytes_in(w.adapter.head - w.adapter.tail, w.adapter.rate) + 1;

	assert_true(w.load <= limit);
	assert_true(adapter_standing(&w.adapter, w.now) <= limit + w.on_path + rounding);
}

/*
 * The clock was kept: since the begin no more than the pace, a tick and a lag, and the clock
 * is ahead by a tick at most. A single chunk may go beyond that, by itself.
 */
static void check_clock(uint64_t chunks)
{
	uint64_t alone = cost(w.chunk);

	if (!w.limits.clocked)
		return;
	assert_true(w.posted_ns <= w.now - w.begin_ns + w.limits.tick_ns + w.limits.lag_ns + alone);
	assert_true(w.pacer.next <= w.now + w.limits.tick_ns + (chunks > 1 ? 1 : alone));
}

/* There is always something that will have the pacer asked again, and none too early. */
static void check_denial(const struct riso_pacer_say *say)
{
	uint64_t clock = w.pacer.next - riso_min(w.pacer.next, w.limits.tick_ns / 2);

	assert_true(say->when != RISO_NEVER || adapter_oldest(&w.adapter));
	assert_true(say->when > w.now || say->verdict == RISO_PACER_WINDOW);
	/* Completions that nobody polls are looked for when the clock allows to post. */
	if (w.limits.clocked && w.pacer.next > w.now + w.limits.tick_ns)
		assert_true(say->when >= clock && say->when != RISO_NEVER);
}

/* Let a group post what it may, true if it may. */
static bool take_turn(struct group *g)
{
	struct riso_pacer_piece oldest = oldest_piece();
	struct riso_pacer_say say;
	uint64_t chunks = 1;

	/* One piece at a time sees the delay of the path. */
	if (w.path.probes && w.inflight)
		return false;
	say = riso_pacer_ask(&w.pacer, &w.limits, w.chunk, &oldest, w.now);
	if (riso_pacer_is_open(&w.pacer, &w.limits, w.chunk, w.now))
		assert_int_equal(say.verdict, RISO_PACER_GO);
	if (say.verdict != RISO_PACER_GO) {
		check_denial(&say);
		w.timer_ns = say.when;
		return false;
	}
	while (chunks < g->chunks && (chunks + 1) * w.chunk <= say.bytes)
		chunks++;
	post(g, chunks);
	check_window(oldest.known ? oldest.bytes : 0);
	check_clock(chunks);
	return true;
}

/* A group that finds nobody in line may have its turn without standing there. */
static void bring_chunks(struct group *g)
{
	bool comes = !g->chunks;

	g->chunks += g->always ? WORLD_STEPS : 1 + random_to(2 * BURST);
	if (!comes)
		return;
	g->waits_since = w.posted_ns;
	if (!first() && random_to(2))
		take_turn(g);
	if (g->chunks)
		riso_share_enter(&w.line, &g->tenant, &g->share);
}

/* Post what may be posted; the number of calls of the pacer is bounded. */
static void run(void)
{
	unsigned int asked = 0;
	struct group *g;

	w.timer_ns = RISO_NEVER;
	while ((g = first())) {
		/* A window of 7 chunks, a tick of 100 us at the pace, and what fills the path */
		assert_true(asked++ < 10 + (riso_bytes_in(200000, w.limits.pace) + w.on_path) /
				       w.chunk);
		if (!random_to(16))
			post_in_vain(g);
		if (!take_turn(g))
			return;
	}
}

/* The device time of the most that goes in one turn */
static uint64_t largest_turn(void)
{
	uint64_t ticks = riso_bytes_in(w.limits.tick_ns + w.limits.lag_ns, w.limits.pace);

	return cost(riso_max(ticks, w.limits.window) + w.chunk);
}

/*
 * While somebody waits, each of the others has no more than makes up for the last turn of
 * the one that waits, a slice of credit, and a turn.
 */
static void check_starvation(void)
{
	uint64_t turn = largest_turn();
	unsigned int i, j;

	for (i = 0; i < w.num_groups; i++) {
		const struct group *g = &w.groups[i];
		uint64_t ahead = turn * RISO_WEIGHT_DEFAULT / g->weight + cost(2 * w.chunk);
		uint64_t most = 0;

		for (j = 0; j < w.num_groups; j++)
			most += ahead * w.groups[j].weight / RISO_WEIGHT_DEFAULT + turn;
		if (g->chunks)
			assert_true(w.posted_ns - g->waits_since <= most);
	}
}

/* Those that never ran dry have had the same, by weight, within a piece of each. */
static void check_shares(void)
{
	uint64_t turn = largest_turn();
	unsigned int i, j;

	for (i = 0; i < w.num_groups; i++) {
		for (j = 0; j < w.num_groups; j++) {
			const struct group *a = &w.groups[i], *b = &w.groups[j];
			uint64_t ahead = turn * RISO_WEIGHT_DEFAULT / a->weight + 1;

			if (a->always && b->always)
				assert_true(a->tenant.node.key <= b->tenant.node.key + ahead);
		}
	}
}

static void step(void)
{
	uint64_t next = riso_min(adapter_next(&w.adapter), w.timer_ns);
	unsigned int i;

	for (i = 0; i < w.num_groups; i++)
		if (!w.groups[i].chunks && (w.groups[i].always || !random_to(BURST)))
			bring_chunks(&w.groups[i]);
	/* A timer may be late, completions too. */
	if (next != RISO_NEVER)
		w.now = riso_max(w.now, next) + (random_to(4) ? 0 : random_to(2000));
	else
		w.now += random_to(100000);
	poll_adapter();
	run();
}

static void keeps_promises(void **state)
{
	int i;

	(void)state;
	for (i = 0; i < STEPS; i++) {
		if (i % WORLD_STEPS == 0)
			begin_world();
		step();
		if (i % 64 == 0)
			check_starvation();
		if (i % WORLD_STEPS == WORLD_STEPS - 1)
			check_shares();
	}
}

/* --- single promises --- */

static void begin_busy_world(uint64_t rate, uint64_t delay_ns)
{
	memset(&w, 0, sizeof(w));
	w.now = RISO_SECOND;
	w.begin_ns = w.now;
	adapter_init(&w.adapter, rate, delay_ns, w.now);
	w.chunk = 4096;
	w.num_groups = 1;
	w.limits = (struct riso_pacer_limits) {
		.clocked = true, .pace = rate, .window = riso_pacer_window(w.chunk, rate),
		.speed = rate,
	};
	w.timer_ns = RISO_NEVER;
	riso_estimate_restart(&w.estimate);
	riso_path_restart(&w.path, w.now);
	w.groups[0].weight = RISO_WEIGHT_DEFAULT;
	w.groups[0].always = true;
	bring_chunks(&w.groups[0]);
}

static void run_for(uint64_t ns)
{
	uint64_t end = w.now + ns;

	while (w.now < end) {
		uint64_t next = riso_min(adapter_next(&w.adapter), w.timer_ns);

		if (next != RISO_NEVER)
			w.now = riso_max(w.now, next);
		poll_adapter();
		if (!w.groups[0].chunks)
			bring_chunks(&w.groups[0]);
		run();
	}
}

/* While there is something to post, the device is never without work. */
static void conserves_work(void **state)
{
	(void)state;
	begin_busy_world(50000000, 0);
	run_for(RISO_SECOND);
	assert_true(w.adapter.idle_ns < RISO_SECOND / 1000);
	assert_true(w.posted > 49900000 && w.posted < 50100000);
}

/* However long the path is, it is filled within the first second. */
static void fills_the_path(void **state)
{
	static const uint64_t rates[] = { 50000000, 3125000000, 12500000000 };
	static const uint64_t delays[] = { 20000, 100000, 500000, 1000000, 4000000, 12000000 };
	size_t i, k;

	(void)state;
	for (i = 0; i < sizeof(rates) / sizeof(*rates); i++) {
		for (k = 0; k < sizeof(delays) / sizeof(*delays); k++) {
			begin_busy_world(rates[i], delays[k]);
			w.chunk = riso_chunk_fill(riso_chunk_auto(rates[i]),
						  riso_bytes_in(delays[k], rates[i]), 32,
						  1 << 20);
			w.limits.window = riso_pacer_window(w.chunk, rates[i]);
			run_for(RISO_SECOND);
			assert_true(w.posted > rates[i] / 100 * 95);
			assert_true(w.path.rtt_min < delays[k] + 1000);
		}
	}
}

/* A path that has become longer is found out, and is not taken for a queue. */
static void follows_the_path(void **state)
{
	uint64_t before;

	(void)state;
	begin_busy_world(50000000, 100000);
	w.nearest_ns = 100000;
	run_for(100000000);
	assert_true(w.path.rtt_min >= 100000 && w.path.rtt_min < 101000);
	/* Pieces that are out keep their time. */
	w.adapter.delay_ns = 3000000;
	run_for(2 * RISO_SECOND);
	assert_true(w.path.rtt_min >= 3000000 && w.path.rtt_min < 3001000);
	before = w.posted;
	run_for(RISO_SECOND / 2);
	assert_true(w.posted - before > 50000000 / 2 / 100 * 95);
	/* One that has become shorter is seen at once. */
	riso_path_sample(&w.path, w.now - 100000, 0, w.now);
	assert_int_equal(w.path.rtt_min, 100000);
}

/* The first piece of a flow waits for what others have in the device. That is not its path. */
static void knows_queue_from_path(void **state)
{
	struct riso_pacer p = { .load = 100000, .completed_ns = 5000 };
	struct riso_path path = {};
	__u64 speed = 1000000000;

	(void)state;
	/* What stands there takes 100 us, and began to leave when the last piece had left, ... */
	assert_int_equal(riso_pacer_ahead(&p, 0, speed, 5000), 100000);
	assert_int_equal(riso_pacer_ahead(&p, 0, speed, 35000), 70000);
	assert_int_equal(riso_pacer_ahead(&p, 0, speed, 500000), 0);
	/* ... or when it was posted to a device that was idle. */
	assert_int_equal(riso_pacer_ahead(&p, 500000, speed, 500000), 100000);
	path.ahead_ns = riso_pacer_ahead(&p, 0, speed, 35000);
	riso_path_restart(&path, 35000);
	riso_path_sample(&path, 35000, 4000, 35000 + 70000 + 4000 + 2500);
	assert_int_equal(path.rtt_min, 2500);
	/* Nobody knows exactly what stands there. */
	riso_path_restart(&path, 200000);
	riso_path_sample(&path, 200000, 4000, 210000);
	assert_int_equal(path.rtt_min, 0);
}

/* A device that is slower than its settings say is found out, and its path too. */
static void learns_rate_and_path(void **state)
{
	(void)state;
	begin_busy_world(50000000, 20000);
	/* Nothing limits it, so that the device is full. */
	w.limits.clocked = false;
	w.limits.window = 64 * w.chunk;
	run_for(100000000);
	assert_true(w.estimate.ceiling > 49000000 && w.estimate.ceiling < 51000000);
	assert_true(riso_estimate_pace(90000000, 100000000, w.estimate.ceiling) > 44000000);
	assert_true(riso_estimate_pace(90000000, 100000000, w.estimate.ceiling) < 46000000);
	assert_int_equal(riso_estimate_pace(90000000, 100000000, RISO_NEVER), 90000000);
	/* A tenth of a MaxRate is no room: so much was believed to be there. */
	assert_int_equal(riso_estimate_pace(52000000,
					    riso_estimate_whole(52000000, 520000000, false),
					    50000000), 52000000);
	assert_int_equal(riso_estimate_pace(90000000,
					    riso_estimate_whole(90000000, 900000000, false),
					    50000000), 50000000);
	/* But most of it is, and whatever an agent has chosen. */
	assert_int_equal(riso_estimate_whole(90000000, 100000000, false), 100000000);
	assert_int_equal(riso_estimate_whole(10000000, 100000000, true), 100000000);
	/* One piece alone sees the delay of the path. */
	w.groups[0].always = false;
	w.groups[0].chunks = 0;
	riso_share_leave(&w.line, &w.groups[0].tenant, &w.groups[0].share);
	while (adapter_oldest(&w.adapter)) {
		w.now = riso_max(w.now, adapter_next(&w.adapter));
		complete_oldest();
	}
	riso_path_restart(&w.path, w.now);
	w.groups[0].chunks = 1;
	riso_share_enter(&w.line, &w.groups[0].tenant, &w.groups[0].share);
	run();
	w.now = adapter_next(&w.adapter);
	complete_oldest();
	assert_true(w.path.rtt_min >= 20000 && w.path.rtt_min < 20100);
	/* What was learnt is forgotten. */
	riso_estimate_expire(&w.estimate, w.now + 2 * RISO_SECOND);
	assert_true(w.estimate.ceiling == RISO_NEVER);
}

/* A piece that was posted to a device without work does not leave before it is there. */
static void waits_for_the_path(void **state)
{
	struct riso_pacer p = { .load = 8192, .completed_ns = 1000 };
	const struct riso_pacer_limits l = { .window = 8192, .speed = 4096000000ULL };
	struct riso_pacer_piece oldest = {
		.known = true, .posted_ns = 1000000, .path_ns = 20000, .bytes = 4096,
	};
	struct riso_pacer_say say = riso_pacer_ask(&p, &l, 4096, &oldest, 1010000);

	(void)state;
	assert_int_equal(say.verdict, RISO_PACER_WINDOW);
	assert_int_equal(say.when, 1000000 + 20000 + 1000);
	/* It left in the time that it takes on the wire. */
	say = riso_pacer_ask(&p, &l, 4096, &oldest, say.when);
	assert_int_equal(say.verdict, RISO_PACER_GO);
	/* Of one that is not known only its completion tells. */
	oldest.known = false;
	say = riso_pacer_ask(&p, &l, 4096, &oldest, 2000000);
	assert_int_equal(say.verdict, RISO_PACER_WINDOW);
	assert_true(say.when == RISO_NEVER);
	/* Nothing stands in the device: a message of any size goes. */
	p.load = 0;
	say = riso_pacer_ask(&p, &l, 1 << 20, &oldest, 2000000);
	assert_int_equal(say.verdict, RISO_PACER_GO);
}

/* Whatever processes say, they move the clock by a sixteenth of the time at most. */
static void limits_debt(void **state)
{
	struct riso_pacer p = {};
	uint64_t now = RISO_SECOND;
	uint64_t moved = 0;
	int i;

	(void)state;
	p.debt_ns = now;
	for (i = 0; i < 100000; i++) {
		now += random_to(100000);
		moved += riso_pacer_take_debt(&p, 20000000, any_size(), now);
		assert_true(moved <= (now - RISO_SECOND) / 16);
	}
	/* Nobody says anything for a while: no more than the span counts. */
	now += RISO_SECOND;
	assert_true(riso_pacer_take_debt(&p, 20000000, RISO_SECOND, now) == 20000000 / 16);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(multiplies_and_divides),
		cmocka_unit_test(conserves_work),
		cmocka_unit_test(fills_the_path),
		cmocka_unit_test(follows_the_path),
		cmocka_unit_test(knows_queue_from_path),
		cmocka_unit_test(learns_rate_and_path),
		cmocka_unit_test(waits_for_the_path),
		cmocka_unit_test(limits_debt),
		cmocka_unit_test(keeps_promises),
	};

	random_begin(argc, argv);
	return cmocka_run_group_tests_name("engine", tests, NULL, NULL);
}
