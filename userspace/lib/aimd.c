// SPDX-License-Identifier: GPL-2.0
/*
 * The controller: aimd.h says what it does and why.
 *
 * Owns the two laws and what they have in common: L = 0, the floor, and section 4.5.
 * Runs in the thread of its caller, on nothing but its arguments, in whole numbers.
 */
#include <string.h>

#include "aimd.h"
#include "core/chunk.h"
#include "minmax.h"

#define MS UINT64_C(1000000)
#define SECOND (1000 * MS)

enum {
	/*
	 * Windows from a test whose answer was "local" to the next; then four times that,
	 * up to so many retest_ns
	 */
	RETEST_WINDOWS = 8,
	RETEST_LOCAL = 4,
	/* Windows without a miss until a cause that was not local is believed gone */
	CALM_WINDOWS = 8,
	/* Windows between decreases where no more than a few samples miss */
	SLIGHT_WINDOWS = 2,
	/* The largest decrease, permille */
	MAX_CUT = 500,
	/* A message waits for a chunk and a half: one takes this part of the target at most. */
	CHUNK_PARTS = 2,
	/* So often in a row a decrease doubles; MAX_CUT limits it as well */
	MAX_DOUBLINGS = 5,
};

void aimd_defaults(struct aimd_params *p, uint64_t max_rate, uint64_t target99_ns)
{
	*p = (struct aimd_params) {
		.law = AIMD_LAW_DEFAULT,
		.max_rate = max_rate,
		.target99_ns = target99_ns,
		.paper_step = 1000000,
		.keep_permille = 900,
		.step_permille = 1,
		.window_ns = 120 * MS,
		.retest_ns = 10 * SECOND,
		.delta_ns = 5 * SECOND,
	};
}

static void restart(struct aimd_state *s, const struct aimd_params *p)
{
	memset(s, 0, sizeof(*s));
	s->safe_util = p->max_rate;
	s->missed = p->max_rate;
	s->wait_ns = RETEST_WINDOWS * p->window_ns;
	s->mode = AIMD_OPEN;
}

void aimd_init(struct aimd_state *s, const struct aimd_params *p)
{
	restart(s, p);
}

void aimd_resume(struct aimd_state *s, uint64_t safe_util, uint32_t chunk)
{
	s->safe_util = safe_util;
	s->chunk = chunk;
	/* As if it had just come down to there, so that it goes up by small steps. */
	s->missed = safe_util;
	s->mode = AIMD_TRACKING;
}

void aimd_forgive(struct aimd_input *in, uint64_t target99_ns)
{
	/* Just below the target SafeUtil would stay where it is. */
	in->current99_ns = min_u64(in->current99_ns, target99_ns / 2);
	in->short99_ns = min_u64(in->short99_ns, target99_ns / 2);
	in->short95_ns = min_u64(in->short95_ns, target99_ns / 2);
}

void aimd_blame(struct aimd_input *in, uint64_t ns)
{
	in->current99_ns = max_u64(in->current99_ns, ns);
	in->short99_ns = max_u64(in->short99_ns, ns);
	in->short95_ns = max_u64(in->short95_ns, ns);
}

uint64_t aimd_floor(const struct aimd_params *p, const struct aimd_input *in)
{
	uint64_t bt = (uint64_t)in->b + in->t, all = bt + in->l;

	if (!all)
		return p->max_rate;
	/* In two parts, for 64 bits */
	return max_u64(1, p->max_rate / all * bt + p->max_rate % all * bt / all);
}

uint64_t aimd_judged(enum aimd_law law, const struct aimd_input *in)
{
	if (law == AIMD_LAW_PAPER)
		return in->current99_ns;
	/* The short window's 99th alone is three samples. */
	return min_u64(in->short99_ns, max_u64(in->current99_ns, in->short95_ns));
}

static void law_paper(struct aimd_state *s, const struct aimd_params *p, uint64_t floor,
		      bool miss, unsigned int *events)
{
	if (miss) {
		if (s->safe_util > floor)
			*events |= AIMD_EV_DECREASE;
		s->safe_util = max_u64(s->safe_util / 2, floor);
	} else {
		s->safe_util += min_u64(p->paper_step, p->max_rate - s->safe_util);
	}
}

/* Sending less makes the latency shorter by more than a fifth. */
static bool differs(uint64_t at_max, uint64_t at_floor)
{
	return at_max - at_max / 5 > at_floor;
}

static void decrease(struct aimd_state *s, const struct aimd_params *p, uint64_t to,
		     uint64_t now, unsigned int *events)
{
	s->missed = s->safe_util;
	s->safe_util = to;
	s->down_ns = now + p->window_ns;
	s->up_ns = now + p->window_ns;
	*events |= AIMD_EV_DECREASE;
}

/* What the next miss in a row leaves */
static uint64_t cut(const struct aimd_state *s, const struct aimd_params *p,
		    uint64_t short99)
{
	uint64_t full = 1000 - p->keep_permille;
	uint64_t above = min_u64(short99 - p->target99_ns, p->target99_ns);
	uint64_t part = max_u64(full * above / p->target99_ns, full / 4);

	part = min_u64(max_u64(part, 1) << s->misses, MAX_CUT);
	return s->safe_util - s->safe_util * part / 1000;
}

/* What a miss leaves that is one of a few samples, the first and the others in a row */
static uint64_t slight_cut(const struct aimd_state *s, const struct aimd_params *p)
{
	uint64_t part = (1000 - p->keep_permille) / (s->misses ? 2 : 4);

	return s->safe_util - s->safe_util * max_u64(part, 1) / 1000;
}

static void to_max(struct aimd_state *s, const struct aimd_params *p, uint64_t now)
{
	s->safe_util = p->max_rate;
	s->down_ns = now + p->window_ns;
	s->up_ns = now + p->window_ns;
}

/* A test is over: does SafeUtil matter, with these readings at its two ends? */
static void test_end(struct aimd_state *s, const struct aimd_params *p,
		     const struct aimd_input *in, uint64_t floor, unsigned int *events)
{
	bool at_max = s->test == AIMD_TEST_MAX;
	bool local = at_max ? differs(in->short99_ns, s->ref99_ns) :
			      differs(s->ref99_ns, in->short99_ns);

	s->test = AIMD_TEST_NONE;
	if (!local) {
		s->mode = AIMD_NOT_LOCAL;
		s->test_ns = in->now_ns + p->retest_ns;
		if (!at_max)
			to_max(s, p, in->now_ns);
		else
			s->ref99_ns = in->short99_ns;
		return;
	}
	if (at_max) {
		decrease(s, p, floor, in->now_ns, events);
	} else {
		s->mode = AIMD_MISSED;
		s->miss_ns = in->now_ns;
	}
	s->test_ns = in->now_ns + s->wait_ns;
	s->wait_ns = min_u64(4 * s->wait_ns, RETEST_LOCAL * p->retest_ns);
}

static bool tries_chunk(const struct aimd_state *s)
{
	return s->test == AIMD_TEST_LARGER || s->test == AIMD_TEST_SMALLER;
}

/* How large chunks may become. */
static uint64_t chunk_most(const struct aimd_params *p)
{
	return min_u64(riso_bytes_in(p->target99_ns / CHUNK_PARTS, p->max_rate),
		       RISO_CHUNK_AUTO_MAX);
}

/* Which chunks are to be tried next, if any */
static enum aimd_test chunk_next(const struct aimd_state *s, const struct aimd_params *p,
				 const struct aimd_input *in)
{
	uint64_t chunk = s->chunk ? s->chunk : in->chunk;

	if (!p->choose_chunk || !chunk || in->now_ns < s->chunk_ns)
		return AIMD_TEST_NONE;
	if (!s->larger_failed && 2 * chunk <= chunk_most(p))
		return AIMD_TEST_LARGER;
	if (!s->smaller_failed && chunk / 2 >= RISO_CHUNK_AUTO_MIN)
		return AIMD_TEST_SMALLER;
	return AIMD_TEST_NONE;
}

/* SafeUtil alone does not help: try other chunks, if there are any to try. */
static bool chunk_begin(struct aimd_state *s, const struct aimd_params *p,
			const struct aimd_input *in, uint64_t floor)
{
	uint32_t chunk = s->chunk ? s->chunk : in->chunk;
	enum aimd_test test = chunk_next(s, p, in);

	if (test == AIMD_TEST_NONE) {
		/* Things may be different then. */
		if (s->larger_failed || s->smaller_failed)
			s->chunk_ns = in->now_ns + p->retest_ns;
		s->larger_failed = false;
		s->smaller_failed = false;
		return false;
	}
	s->test = test;
	s->chunk_floor = floor;
	s->ref99_ns = in->short99_ns;
	s->chunk_was = s->chunk;
	s->chunk = test == AIMD_TEST_LARGER ? 2 * chunk : chunk / 2;
	s->down_ns = in->now_ns + p->window_ns;
	s->up_ns = s->down_ns;
	return true;
}

/* The size of before is in force again. */
static void chunk_drop(struct aimd_state *s)
{
	s->chunk = s->chunk_was;
	s->test = AIMD_TEST_NONE;
}

/* Others choose the size from now on. */
static void chunk_forget(struct aimd_state *s)
{
	if (tries_chunk(s))
		s->test = AIMD_TEST_NONE;
	s->chunk = 0;
	s->larger_failed = false;
	s->smaller_failed = false;
}

/* They are kept: where the target was missed last says nothing of them. */
static void chunk_keep(struct aimd_state *s, const struct aimd_params *p,
		       unsigned int *events)
{
	*events |= AIMD_EV_CHUNK;
	s->larger_failed = s->test == AIMD_TEST_SMALLER;
	s->smaller_failed = s->test == AIMD_TEST_LARGER;
	s->missed = p->max_rate;
	s->test = AIMD_TEST_NONE;
}

/* The target is missed with the chunks that are tried. */
static void chunk_end(struct aimd_state *s, const struct aimd_params *p,
		      const struct aimd_input *in, unsigned int *events)
{
	if (differs(s->ref99_ns, in->short99_ns)) {
		chunk_keep(s, p, events);
		return;
	}
	if (s->test == AIMD_TEST_LARGER)
		s->larger_failed = true;
	else
		s->smaller_failed = true;
	chunk_drop(s);
	s->down_ns = in->now_ns + p->window_ns;
	s->up_ns = s->down_ns;
}

static void test_begin(struct aimd_state *s, const struct aimd_params *p,
		       const struct aimd_input *in, enum aimd_test test,
		       unsigned int *events)
{
	s->test = test;
	s->ref99_ns = in->short99_ns;
	*events |= AIMD_EV_TEST;
	if (test == AIMD_TEST_MAX)
		to_max(s, p, in->now_ns);
}

/* The target is missed. */
static void missed(struct aimd_state *s, const struct aimd_params *p,
		   const struct aimd_input *in, uint64_t floor, unsigned int *events)
{
	uint64_t now = in->now_ns;

	if (tries_chunk(s))
		chunk_end(s, p, in, events);
	else if (s->test != AIMD_TEST_NONE)
		test_end(s, p, in, floor, events);
	if (now < s->down_ns)
		return;
	if (s->mode == AIMD_NOT_LOCAL) {
		if (chunk_begin(s, p, in, floor))
			return;
		if (p->stay) {
			if (s->safe_util > floor)
				decrease(s, p, floor, now, events);
		} else if (s->safe_util > floor &&
			   (now >= s->test_ns || in->short99_ns / 2 > s->ref99_ns)) {
			test_begin(s, p, in, AIMD_TEST_FLOOR, events);
			decrease(s, p, floor, now, events);
		}
		return;
	}
	if (s->misses && s->safe_util == floor && chunk_begin(s, p, in, floor))
		return;
	if (s->misses && s->safe_util == floor && now >= s->test_ns) {
		test_begin(s, p, in, AIMD_TEST_MAX, events);
		return;
	}
	if (s->safe_util > floor && in->short95_ns <= p->target99_ns) {
		if (now < s->slight_ns)
			return;
		decrease(s, p, max_u64(slight_cut(s, p), floor), now, events);
		s->slight_ns = now + SLIGHT_WINDOWS * p->window_ns;
		if (!s->misses)
			s->misses = 1;
		return;
	}
	if (s->safe_util > floor)
		decrease(s, p, max_u64(cut(s, p, in->short99_ns), floor), now, events);
	else
		s->down_ns = now + p->window_ns;
	if (s->misses < MAX_DOUBLINGS)
		s->misses++;
}

static void met(struct aimd_state *s, const struct aimd_params *p,
		const struct aimd_input *in, unsigned int *events)
{
	uint64_t step = p->max_rate * p->step_permille / 1000;
	uint64_t away = max_u64(s->safe_util, s->missed) -
			min_u64(s->safe_util, s->missed);

	if (tries_chunk(s))
		chunk_keep(s, p, events);
	if (s->mode == AIMD_NOT_LOCAL)
		return;
	s->test = AIMD_TEST_NONE;
	if (in->now_ns < s->up_ns ||
	    in->short99_ns >= p->target99_ns - p->target99_ns / 20)
		return;
	s->wait_ns = RETEST_WINDOWS * p->window_ns;
	s->safe_util += min_u64(max_u64(step, away / 4), p->max_rate - s->safe_util);
	s->up_ns = in->now_ns + p->window_ns;
	if (s->misses)
		s->misses--;
}

/* L/(B+T) is larger than when the target was found unattainable. */
static bool has_grown(const struct aimd_state *s, const struct aimd_input *in)
{
	return in->l * s->gave_up_bt > s->gave_up_l * ((uint64_t)in->b + in->t);
}

static void set_mode(struct aimd_state *s, const struct aimd_params *p,
		     const struct aimd_input *in, uint64_t floor, bool miss,
		     unsigned int *events)
{
	/* Less than that is not to be had; a test comes from there, and goes back. */
	bool least = s->safe_util == floor || s->test == AIMD_TEST_MAX;

	if (miss || in->current99_ns > p->target99_ns)
		s->calm_ns = in->now_ns + CALM_WINDOWS * p->window_ns;
	if (s->mode == AIMD_UNATTAINABLE) {
		if (miss)
			s->miss_ns = in->now_ns;
		if (in->now_ns - s->miss_ns <= p->delta_ns && !has_grown(s, in))
			return;
		s->mode = AIMD_TRACKING;
	}
	if (!miss && s->mode == AIMD_NOT_LOCAL && s->test == AIMD_TEST_NONE &&
	    in->now_ns < s->calm_ns)
		return;
	if (!miss) {
		s->mode = AIMD_TRACKING;
	} else if (s->mode == AIMD_TRACKING) {
		s->mode = AIMD_MISSED;
		s->miss_ns = in->now_ns;
	} else if (s->mode == AIMD_MISSED && least &&
		   in->now_ns - s->miss_ns > p->delta_ns) {
		s->mode = AIMD_UNATTAINABLE;
		s->gave_up_l = in->l;
		s->gave_up_bt = (uint64_t)in->b + in->t;
		/* Without B and T there is nobody to give it to. */
		s->ignore = p->give_up && s->gave_up_bt;
		if (s->ignore)
			*events |= AIMD_EV_GAVE_UP;
	}
}

static void step_latency(struct aimd_state *s, const struct aimd_params *p,
			 const struct aimd_input *in, unsigned int *events)
{
	uint64_t floor = aimd_floor(p, in);
	bool paper = p->law == AIMD_LAW_PAPER;
	bool miss = aimd_judged(p->law, in) > p->target99_ns;

	if (s->ignore && has_grown(s, in)) {
		restart(s, p);
		*events |= AIMD_EV_RESUMED;
	}
	if (s->mode == AIMD_OPEN)
		s->mode = AIMD_TRACKING;
	s->safe_util = min_u64(max_u64(s->safe_util, floor), p->max_rate);
	/* Who began or ended to send says nothing of the chunks. */
	if (tries_chunk(s) && (floor != s->chunk_floor || !in->have_samples))
		chunk_drop(s);
	if (!p->choose_chunk)
		chunk_forget(s);
	if (!s->ignore) {
		/* A test goes on until the short window has no older samples. */
		if (!in->have_samples || (s->test && in->now_ns < s->down_ns))
			return;
		set_mode(s, p, in, floor, miss, events);
	}
	if (s->ignore)
		s->safe_util = p->max_rate;
	else if (paper)
		law_paper(s, p, floor, miss, events);
	else if (!in->b && !in->t)
		/* There is nobody to hold back. */
		s->test = AIMD_TEST_NONE;
	else if (!miss)
		met(s, p, in, events);
	else
		missed(s, p, in, floor, events);
}

struct aimd_output aimd_step(struct aimd_state *s, const struct aimd_params *p,
			     const struct aimd_input *in)
{
	enum aimd_mode before = s->mode;
	unsigned int events = 0;

	if (in->l) {
		step_latency(s, p, in, &events);
	} else {
		if (s->ignore)
			events |= AIMD_EV_RESUMED;
		restart(s, p);
	}
	if (s->mode != before)
		events |= AIMD_EV_MODE;
	return (struct aimd_output) {
		.safe_util = s->safe_util,
		.chunk = s->chunk,
		.mode = s->mode,
		.events = events,
	};
}
