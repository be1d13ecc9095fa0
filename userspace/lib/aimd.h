/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The controller: how much may bandwidth and throughput flows send while there are
 * latency flows, so that the 99th percentile of a small message stays below a target.
 *
 * A step function on numbers: no clock, no I/O, no allocation, no lock; one instance
 * belongs to one device and has one caller, which steps it once per RefPeriod or more rarely. The
 * terms are those of sections 4.2 and 4.5 of the paper (Justitia, NSDI '22):
 * MaxRate is what the device can do, L, B and T are the numbers of groups of latency,
 * bandwidth and throughput flows, SafeUtil is what those of B and T may send together.
 *
 * Both laws keep the guarantee of the paper: SafeUtil is MaxRate at once when L = 0,
 * and else between (B+T)/(L+B+T) x MaxRate, the floor, and MaxRate.
 *
 * AIMD_LAW_PAPER is Pseudocode 1, at every step, with the long window (RefCount =
 * 10000 samples): halve when Current99 is above the target, else add paper_step.
 * That window remembers a miss for 5 s, so SafeUtil lies at the floor that long.
 *
 * AIMD_LAW_DEFAULT goes by the short window, which forgets, and changes nothing again
 * before that can have forgotten what was measured before the last change:
 *
 * - The target is missed when the short window's 99th is above it and either the long
 *   window's is too or the short one's 95th. Three of 200 samples are above a target
 *   every few hundred ms even where only one of 200 ever is, and would hold SafeUtil at
 *   the floor for a target that is met; a queue shows in all samples within 5 ms.
 * - A first miss takes away 1 - keep (the more above the target the more, from a
 *   quarter of it to all), each further one twice as much as the one before, up to half
 *   of SafeUtil: near the knee that costs little, and from far away it is there soon.
 * - Where the short window's 95th meets the target the miss is slight, as a 99th that
 *   lies at the target looks every other time: a quarter of 1 - keep, then half of it,
 *   once in two window_ns.
 * - Below 95 % of the target SafeUtil goes a quarter of the way to where it last
 *   missed, and slower (step) when it is there: most of the time it is just below
 *   that. If it misses no more there, steps grow again with the distance from it. Between
 *   95 % and the target it stays.
 * - A target that is missed at the floor is put to the test: MaxRate for one window. If
 *   the floor's latency is not shorter than that by more than a fifth, what misses the
 *   target is not what is sent here: AIMD_NOT_LOCAL, SafeUtil stays at MaxRate. The
 *   reverse is tried every retest_ns, or when the latency has doubled, and the mode left
 *   when the target was met in both windows for a second (eight window_ns). Readings of
 *   both ends tell more than those around two decreases: the first of these would be
 *   taken while the short window still fills, and a full queue is as long at 90 % as at
 *   100 %.
 * - Before that test another size of chunks is tried at the floor, and also where the cause is not
 *   local, if the law may choose the size: small ones cost the processor, large ones are waited
 *   for. First it tries twice the size, then half of it, each for one window. One is kept that
 *   meets the target, or makes the latency shorter by more than a fifth; from one that is kept it
 *   goes on in the same direction. When no size is left to try it tries again after retest_ns.
 * - Without groups of B and T there is nobody to hold back, and nothing is changed.
 */
#ifndef RISO_AIMD_H
#define RISO_AIMD_H

#include <stdbool.h>
#include <stdint.h>

/* Target99 over the 99th percentile without load, where nobody has set it. */
enum { AIMD_TARGET_TIMES = 4 };

enum aimd_law {
	AIMD_LAW_PAPER,
	AIMD_LAW_DEFAULT,
};

/**
 * struct aimd_params - what the operator and the device say; constant between restarts
 * @law: what SafeUtil follows
 * @max_rate: MaxRate, bytes per second, 1 to 10^12
 * @target99_ns: Target99, 1 to 10^11
 * @paper_step: law paper: what is added per step, bytes per second. The paper
 *	writes "+ 1" and no unit; aimd_defaults() takes 1 MB/s
 * @keep_permille: law default: what the first decrease leaves, 501 to 999
 * @step_permille: law default: smallest increase per @window_ns, of @max_rate, 1 to 100
 * @window_ns: law default: time between changes: no increase within it after any
 *	change, no decrease within it after a decrease. The time in which all samples
 *	of the short window are replaced, and a queue drains
 * @retest_ns: law default: from a test that found a cause not local to the next; it
 *	costs one @window_ns at the floor. Those of a cause that is local come to be four
 *	times as far apart, each one @window_ns at @max_rate
 * @delta_ns: delta of section 4.5: a target that was missed for longer is unattainable,
 *	if SafeUtil is at the floor
 * @give_up: then set SafeUtil to MaxRate and ignore latency flows until L/(B+T) is
 *	larger than it was. Else keep to the law, which stays at the floor; and it is
 *	unattainable until then, or until it was met for as long
 * @stay: while the cause is not local stay at the floor. Else at MaxRate
 * @choose_chunk: law default: other sizes of chunks may be tried
 */
struct aimd_params {
	enum aimd_law law;
	uint64_t max_rate;
	uint64_t target99_ns;
	uint64_t paper_step;
	uint32_t keep_permille;
	uint32_t step_permille;
	uint64_t window_ns;
	uint64_t retest_ns;
	uint64_t delta_ns;
	bool give_up;
	bool stay;
	bool choose_chunk;
};

/**
 * enum aimd_mode - where the controller stands
 * @AIMD_OPEN: no latency flows; SafeUtil is MaxRate
 * @AIMD_TRACKING: the target is met
 * @AIMD_MISSED: it is not, for no longer than delta_ns, or above the floor
 * @AIMD_NOT_LOCAL: it is not, and SafeUtil has no part in that (law default)
 * @AIMD_UNATTAINABLE: it was not, for longer than delta_ns, at the floor
 */
enum aimd_mode {
	AIMD_OPEN,
	AIMD_TRACKING,
	AIMD_MISSED,
	AIMD_NOT_LOCAL,
	AIMD_UNATTAINABLE,
};

/* What happened in a step, any of these together */
enum aimd_event {
	/* The mode is another one than before, see @mode. */
	AIMD_EV_MODE = 1 << 0,
	/* SafeUtil was lowered because the target was missed. */
	AIMD_EV_DECREASE = 1 << 1,
	/* SafeUtil is MaxRate for one window, to see whether that matters. */
	AIMD_EV_TEST = 1 << 2,
	/* Chunks of another size are kept, see @chunk. */
	AIMD_EV_CHUNK = 1 << 5,
	/* Latency flows are ignored from now on, and no longer. */
	AIMD_EV_GAVE_UP = 1 << 3,
	AIMD_EV_RESUMED = 1 << 4,
};

/**
 * struct aimd_input - what is known at a step
 * @now_ns: any clock that does not go backwards
 * @l: groups of latency flows, less than 2^30
 * @b: of bandwidth flows, less than 2^30
 * @t: of throughput flows, less than 2^30
 * @current99_ns: 99th percentile of the long window
 * @short99_ns: of the short one
 * @short95_ns: 95th percentile of the short one
 * @chunk: the size of chunks where the law has chosen none, bytes; 0 if there are none
 * @have_samples: they are worth something: enough samples, and none too old. Without
 *	that SafeUtil stays where it is, except for L = 0 and the floor
 */
struct aimd_input {
	uint64_t now_ns;
	uint32_t l;
	uint32_t b;
	uint32_t t;
	uint64_t current99_ns;
	uint64_t short99_ns;
	uint64_t short95_ns;
	uint32_t chunk;
	bool have_samples;
};

/**
 * struct aimd_output - what a step says
 * @safe_util: bytes per second, at least 1
 * @chunk: size of chunks that the law has chosen, bytes; 0 if it has chosen none
 * @mode: where the controller stands
 * @events: of enum aimd_event
 */
struct aimd_output {
	uint64_t safe_util;
	uint32_t chunk;
	enum aimd_mode mode;
	unsigned int events;
};

/*
 * Tests of the law default: SafeUtil is at one end, what was read at the other is known. Or chunks
 * are larger or smaller than those with which that was read.
 */
enum aimd_test {
	AIMD_TEST_NONE,
	AIMD_TEST_MAX,
	AIMD_TEST_FLOOR,
	AIMD_TEST_LARGER,
	AIMD_TEST_SMALLER,
};

/**
 * struct aimd_state - all that is remembered; belongs to aimd.c
 * @safe_util: the last answer
 * @missed: SafeUtil at which the target was last missed
 * @down_ns: not before then may it decrease
 * @up_ns: not before then may it increase
 * @slight_ns: not before then may it decrease for a slight miss
 * @miss_ns: when the target began to be missed; when it was last, if it is unattainable
 * @calm_ns: not before then is AIMD_NOT_LOCAL left because the target is met
 * @test_ns: not before then is it tested (again)
 * @wait_ns: from the last test to the next
 * @ref99_ns: short99_ns at the other end, or with the other chunks
 * @chunk: size of chunks, the last answer
 * @chunk_was: before the test that is under way
 * @chunk_floor: the least SafeUtil when that test began
 * @chunk_ns: not before then are chunks of another size tried (again)
 * @mode: the last answer
 * @test: the one that is under way
 * @larger_failed: larger chunks than these do not help
 * @smaller_failed: smaller ones do not
 * @misses: windows that missed, less those after which it increased
 * @ignore: latency flows are ignored
 * @gave_up_l: L when the target was found unattainable
 * @gave_up_bt: B + T then
 */
struct aimd_state {
	uint64_t safe_util;
	uint64_t missed;
	uint64_t down_ns;
	uint64_t up_ns;
	uint64_t slight_ns;
	uint64_t miss_ns;
	uint64_t calm_ns;
	uint64_t test_ns;
	uint64_t wait_ns;
	uint64_t ref99_ns;
	uint32_t chunk;
	uint32_t chunk_was;
	uint64_t chunk_floor;
	uint64_t chunk_ns;
	enum aimd_mode mode;
	enum aimd_test test;
	bool larger_failed;
	bool smaller_failed;
	unsigned int misses;
	bool ignore;
	uint64_t gave_up_l;
	uint64_t gave_up_bt;
};

/* Law default, for a short window of 200 samples at a RefPeriod of 0.5 ms */
void aimd_defaults(struct aimd_params *p, uint64_t max_rate, uint64_t target99_ns);

/* Begins in AIMD_OPEN, with SafeUtil at MaxRate. */
void aimd_init(struct aimd_state *s, const struct aimd_params *p);

/* Goes on from a SafeUtil and chunks that were found in force, in AIMD_TRACKING. */
void aimd_resume(struct aimd_state *s, uint64_t safe_util, uint32_t chunk);

/* What a law holds against the target, which is missed when this is above it */
uint64_t aimd_judged(enum aimd_law law, const struct aimd_input *in);

/* What was measured has another cause than SafeUtil: as if the target was met. */
void aimd_forgive(struct aimd_input *in, uint64_t target99_ns);
/* No less than that was measured, by somebody else */
void aimd_blame(struct aimd_input *in, uint64_t ns);

/* (B+T)/(L+B+T) x MaxRate, rounded down but at least 1; MaxRate without any group */
uint64_t aimd_floor(const struct aimd_params *p, const struct aimd_input *in);

struct aimd_output aimd_step(struct aimd_state *s, const struct aimd_params *p,
			     const struct aimd_input *in);

#endif /* RISO_AIMD_H */
