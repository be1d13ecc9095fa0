// SPDX-License-Identifier: GPL-2.0
/*
 * The cut-and-merge rule of kmod/core/chunk.h: whatever the elements of a message and the
 * size of the chunks, the chunks are the message, and whatever becomes of them, its owner
 * hears of it once. And what a message costs.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/chunk.h"
#include "core/cost.h"

#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))

enum {
	MAX_SGE = 32,
	KB = 1024,
	MB = 1024 * KB,
	CHUNK = 4 * KB,
	LARGEST = 3 * MB + 7,
	ROUNDS = 20000,
	CANARY = 0xa5,
};

/* A message in pieces of memory, and the same bytes in a row. */
struct message {
	uint8_t *data;
	uint32_t len;
	uint32_t num;
	struct riso_sge sge[MAX_SGE];
};

/* xorshift64: the same numbers every time, so that a failure can be repeated */
static uint64_t rand_state;

static uint32_t rnd(uint32_t below)
{
	rand_state ^= rand_state << 13;
	rand_state ^= rand_state >> 7;
	rand_state ^= rand_state << 17;
	return (rand_state >> 11) % below;
}

static int setup(void **state)
{
	struct message *m;
	uint32_t i;

	m = calloc(1, sizeof(*m));
	if (!m)
		return -1;
	m->data = malloc(2 * (size_t)LARGEST);
	if (!m->data) {
		free(m);
		return -1;
	}
	rand_state = 0x9e3779b97f4a7c15;
	for (i = 0; i < LARGEST; i++)
		m->data[i] = rnd(256);
	*state = m;
	return 0;
}

static int teardown(void **state)
{
	struct message *m = *state;

	free(m->data);
	free(m);
	return 0;
}

static void begin(struct message *m)
{
	m->len = 0;
	m->num = 0;
}

/*
 * Elements lie in a row in memory but are not told to: each has a key of its
 * own, and an empty one points to nowhere.
 */
static void add_sge(struct message *m, uint32_t length)
{
	struct riso_sge *sge = &m->sge[m->num];

	assert_true(m->num < MAX_SGE);
	assert_true(length <= LARGEST - m->len);
	sge->addr = length ? (uintptr_t)(m->data + m->len) : ~(__u64)0;
	sge->length = length;
	sge->lkey = 1000 + m->num++;
	m->len += length;
}

/* Is each element of a chunk a part of the one that its key names? */
static void check_keys(const struct message *m, const struct riso_sge *out,
		       uint32_t n)
{
	const struct riso_sge *in;
	uint32_t i;

	for (i = 0; i < n; i++) {
		assert_in_range(out[i].lkey, 1000, 1000 + m->num - 1);
		in = &m->sge[out[i].lkey - 1000];
		assert_true(out[i].length > 0);
		assert_true(out[i].addr >= in->addr);
		assert_true(out[i].addr + out[i].length <=
			    in->addr + in->length);
		/* in order, and none of them twice in one chunk */
		if (i)
			assert_true(out[i].lkey > out[i - 1].lkey);
	}
}

/* Take one chunk, look at it, and copy its bytes behind those before it. */
static void cut(const struct message *m, struct riso_cursor *cur, uint32_t len)
{
	struct riso_sge out[MAX_SGE];
	uint8_t *joined = m->data + LARGEST;
	struct riso_sge untouched[MAX_SGE];
	uint64_t at = cur->done;
	uint32_t i, n;

	memset(out, CANARY, sizeof(out));
	memset(untouched, CANARY, sizeof(untouched));
	n = riso_chunk_cut(m->sge, m->num, cur, len, out);
	assert_true(n <= m->num);
	assert_int_equal(cur->done, at + len);
	assert_memory_equal(out + n, untouched, (MAX_SGE - n) * sizeof(*out));
	check_keys(m, out, n);
	for (i = 0; i < n; i++) {
		memcpy(joined + at, (const void *)(uintptr_t)out[i].addr,
		       out[i].length);
		at += out[i].length;
	}
	assert_int_equal(at, cur->done);
}

static void check_joined(const struct message *m)
{
	assert_memory_equal(m->data, m->data + LARGEST, m->len);
}

/* Cut it all as the module does; returns the number of chunks. */
static uint32_t cut_all(const struct message *m, uint32_t chunk)
{
	struct riso_cursor cur = {};
	uint32_t chunks = 0;
	uint32_t len;

	memset(m->data + LARGEST, 0, m->len);
	do {
		len = riso_chunk_next(m->len - cur.done, chunk);
		if (chunk && cur.done + len != m->len)
			assert_int_equal(len, chunk);
		cut(m, &cur, len);
		chunks++;
	} while (cur.done != m->len);
	check_joined(m);
	return chunks;
}

static uint32_t chunks_of(uint32_t len, uint32_t chunk)
{
	return chunk && len ? (len + chunk - 1) / chunk : 1;
}

static const uint32_t sizes[] = {
	0, 1, CHUNK - 1, CHUNK, CHUNK + 1, 2 * CHUNK, MB, LARGEST,
};

static void one_element(void **state)
{
	struct message *m = *state;
	uint32_t i;

	for (i = 0; i < ARRAY_SIZE(sizes); i++) {
		begin(m);
		add_sge(m, sizes[i]);
		assert_int_equal(cut_all(m, CHUNK),
				 chunks_of(sizes[i], CHUNK));
		assert_int_equal(cut_all(m, 0), 1);
		assert_int_equal(cut_all(m, LARGEST), 1);
	}
}

/* A message without any element is a chunk without any. */
static void no_element(void **state)
{
	struct riso_sge out = { .addr = 1, .length = 2, .lkey = 3 };
	struct riso_cursor cur = {};

	(void)state;
	assert_int_equal(riso_chunk_next(0, CHUNK), 0);
	assert_int_equal(riso_chunk_cut(NULL, 0, &cur, 0, &out), 0);
	assert_int_equal(cur.done, 0);
	assert_int_equal(out.addr, 1);
	assert_int_equal(out.length, 2);
	assert_int_equal(out.lkey, 3);
}

/* Each size in 1 to MAX_SGE elements, as even as it goes. */
static void many_elements(void **state)
{
	struct message *m = *state;
	uint32_t i, k, num;

	for (i = 0; i < ARRAY_SIZE(sizes); i++) {
		for (num = 1; num <= MAX_SGE; num++) {
			begin(m);
			for (k = 0; k < num; k++)
				add_sge(m, sizes[i] / num +
					   (k < sizes[i] % num));
			assert_int_equal(m->len, sizes[i]);
			assert_int_equal(cut_all(m, CHUNK),
					 chunks_of(sizes[i], CHUNK));
		}
	}
}

/* Elements that end where a chunk does, or one byte beside it. */
static void at_the_edge(void **state)
{
	static const int beside[] = { -1, 0, 1 };
	struct message *m = *state;
	uint32_t a, b;

	for (a = 0; a < ARRAY_SIZE(beside); a++) {
		for (b = 0; b < ARRAY_SIZE(beside); b++) {
			begin(m);
			add_sge(m, CHUNK + beside[a]);
			add_sge(m, 2 * CHUNK + beside[b]);
			add_sge(m, 1);
			assert_int_equal(cut_all(m, CHUNK),
					 chunks_of(m->len, CHUNK));
		}
	}
}

/* Empty elements in front, between, behind, in a row, and nothing else. */
static void empty_elements(void **state)
{
	static const uint32_t lengths[][6] = {
		{ 0, CHUNK, CHUNK + 1, 1, 1, 1 },
		{ CHUNK, 0, CHUNK, 0, CHUNK, 0 },
		{ CHUNK, 0, 0, 0, 0, CHUNK },
		{ 3 * CHUNK, 0, 0, 0, 0, 0 },
		{ 0, 0, 0, 0, 0, 3 * CHUNK },
		{ 1, 0, 1, 0, 1, 0 },
		{ 0, 0, 0, 0, 0, 0 },
	};
	struct message *m = *state;
	uint32_t i, k;

	for (i = 0; i < ARRAY_SIZE(lengths); i++) {
		begin(m);
		for (k = 0; k < ARRAY_SIZE(lengths[i]); k++)
			add_sge(m, lengths[i][k]);
		assert_int_equal(cut_all(m, CHUNK), chunks_of(m->len, CHUNK));
		assert_int_equal(cut_all(m, 1),
				 m->len ? m->len : 1);
	}
}

/* A few bytes, many elements, every chunk size: more corners than sizes. */
static uint32_t random_length(void)
{
	switch (rnd(8)) {
	case 0:
	case 1:
		return 0;
	case 2:
		return 1 + rnd(3);
	case 3:
		return CHUNK - 1 + rnd(3);
	case 4:
		return CHUNK * (1 + rnd(4));
	default:
		return rnd(3 * CHUNK);
	}
}

static void random_message(struct message *m)
{
	uint32_t num = 1 + rnd(MAX_SGE);

	begin(m);
	while (m->num < num)
		add_sge(m, random_length());
}

static void random_chunks(void **state)
{
	static const uint32_t mtus[] = { 256, 512, 1024, 2048, 4096 };
	struct message *m = *state;
	uint32_t i, chunk, mtu;

	for (i = 0; i < ROUNDS; i++) {
		random_message(m);
		mtu = mtus[rnd(ARRAY_SIZE(mtus))];
		chunk = riso_chunk_round(1 + rnd(4 * CHUNK), mtu);
		assert_int_equal(cut_all(m, chunk), chunks_of(m->len, chunk));
	}
}

/* The size of chunks may be set while a message is being cut. */
static void random_pieces(void **state)
{
	struct message *m = *state;
	struct riso_cursor cur;
	uint32_t i, len, left;

	for (i = 0; i < ROUNDS; i++) {
		random_message(m);
		memset(&cur, 0, sizeof(cur));
		memset(m->data + LARGEST, 0, m->len);
		while (cur.done != m->len) {
			left = m->len - cur.done;
			len = rnd(4) ? 1 + rnd(left < 9000 ? left : 9000) : left;
			cut(m, &cur, len);
		}
		check_joined(m);
	}
}

/* What was not taken by the provider is cut again from where it was. */
static void cut_again(void **state)
{
	struct message *m = *state;
	struct riso_cursor cur, mark;
	uint32_t i;

	for (i = 0; i < ROUNDS; i++) {
		random_message(m);
		memset(&cur, 0, sizeof(cur));
		memset(m->data + LARGEST, 0, m->len);
		while (cur.done != m->len) {
			mark = cur;
			cut(m, &cur, riso_chunk_next(m->len - cur.done, CHUNK));
			if (!rnd(3)) {
				memset(m->data + LARGEST + mark.done, 0,
				       cur.done - mark.done);
				cur = mark;
			}
		}
		check_joined(m);
	}
}

static void next_chunk(void **state)
{
	(void)state;
	assert_int_equal(riso_chunk_next(0, 0), 0);
	assert_int_equal(riso_chunk_next(1, 0), 1);
	assert_int_equal(riso_chunk_next(UINT32_MAX, 0), UINT32_MAX);
	assert_int_equal(riso_chunk_next(0, CHUNK), 0);
	assert_int_equal(riso_chunk_next(CHUNK - 1, CHUNK), CHUNK - 1);
	assert_int_equal(riso_chunk_next(CHUNK, CHUNK), CHUNK);
	assert_int_equal(riso_chunk_next(CHUNK + 1, CHUNK), CHUNK);
	assert_int_equal(riso_chunk_next(CHUNK, UINT32_MAX), CHUNK);
	assert_int_equal(riso_chunk_next(UINT32_MAX, UINT32_MAX), UINT32_MAX);
	assert_int_equal(riso_chunk_next(UINT32_MAX, 1), 1);
}

/* Off stays off; anything else fills its packets, and grows by less than one. */
static void round_chunk(void **state)
{
	static const uint32_t mtus[] = { 1, 256, 512, 1024, 2048, 4096, 1500 };
	uint32_t i, chunk, got;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(mtus); i++) {
		assert_int_equal(riso_chunk_round(0, mtus[i]), 0);
		for (chunk = 1; chunk <= 3 * 4096 + 1; chunk++) {
			got = riso_chunk_round(chunk, mtus[i]);
			assert_int_equal(got % mtus[i], 0);
			assert_in_range(got, chunk, chunk + mtus[i] - 1);
		}
	}
	assert_int_equal(riso_chunk_round(5 * KB, 2 * KB), 6 * KB);
	assert_int_equal(riso_chunk_round(MB, 4 * KB), MB);
}

/* 10 us of the link, in whole pages, and never less or more than is useful. */
static void automatic_chunk(void **state)
{
	(void)state;
	assert_int_equal(riso_chunk_auto(100000), 4 * KB);
	assert_int_equal(riso_chunk_auto(50000000), 4 * KB);
	assert_int_equal(riso_chunk_auto(3125000000), 28 * KB);
	assert_int_equal(riso_chunk_auto(12500000000), 120 * KB);
	assert_int_equal(riso_chunk_auto(50000000000), 488 * KB);
	assert_int_equal(riso_chunk_auto(200000000000), 512 * KB);
	assert_int_equal(riso_chunk_auto(1000000000000), 512 * KB);
}

/* Few pieces are larger on a long path, and no larger than is allowed. */
static void filling_chunk(void **state)
{
	(void)state;
	assert_int_equal(riso_chunk_fill(4 * KB, 0, 1, MB), 4 * KB);
	assert_int_equal(riso_chunk_fill(4 * KB, 12 * 4 * KB, 15, MB), 4 * KB);
	assert_int_equal(riso_chunk_fill(4 * KB, 12 * 64 * KB, 15, MB), 64 * KB);
	assert_int_equal(riso_chunk_fill(4 * KB, 1 << 30, 15, MB), MB);
	assert_int_equal(riso_chunk_fill(4 * KB, 1 << 30, 15, 16 * KB), 16 * KB);
	/* What is set is not made smaller. */
	assert_int_equal(riso_chunk_fill(64 * KB, 1 << 30, 15, 16 * KB), 64 * KB);
	assert_int_equal(riso_chunk_fill(MB, 1ULL << 60, 1, MB), MB);
}

/* Equal pieces, none smaller than asked for, except of what is smaller altogether. */
static void even_chunks(void **state)
{
	uint32_t len, chunk, left, next;

	(void)state;
	assert_int_equal(riso_chunk_even(MB, 700 * KB), MB);
	assert_int_equal(riso_chunk_even(MB, 512 * KB), 512 * KB);
	assert_int_equal(riso_chunk_even(MB, 300 * KB), 344 * KB);
	assert_int_equal(riso_chunk_even(100, 4 * KB), 4 * KB);
	for (chunk = 4 * KB; chunk <= MB; chunk += 36 * KB) {
		for (len = 1; len < 5 * MB; len += 99991) {
			for (left = len; left; left -= next) {
				next = riso_chunk_next(left, riso_chunk_even(left, chunk));
				assert_in_range(next, 1, left);
				assert_true(next >= chunk || next == left);
				assert_true(next < 2 * chunk + 4 * KB || left < 2 * chunk);
			}
		}
	}
}

/* Equal chunks, none larger than asked for by more than an eighth, and never more of them. */
static void equal_chunks(void **state)
{
	uint32_t len, chunk, left, next, chunks;

	(void)state;
	assert_int_equal(riso_chunk_equal(MB, 480 * KB), 512 * KB);
	assert_int_equal(riso_chunk_equal(MB, 120 * KB), 128 * KB);
	assert_int_equal(riso_chunk_equal(MB, 28 * KB), 32 * KB - 4 * KB);
	assert_int_equal(riso_chunk_equal(MB, 700 * KB), 512 * KB);
	assert_int_equal(riso_chunk_equal(128 * KB, 120 * KB), 128 * KB);
	assert_int_equal(riso_chunk_equal(9000, 4 * KB), 4 * KB);
	/* The message behind it is no smaller. */
	assert_int_equal(riso_chunk_equal(100, 4 * KB), 4 * KB);
	for (chunk = 4 * KB; chunk <= 512 * KB; chunk += 36 * KB) {
		for (len = 1; len < 5 * MB; len += 99991) {
			chunks = 0;
			for (left = len; left; left -= next) {
				next = riso_chunk_next(left, riso_chunk_equal(left, chunk));
				assert_in_range(next, 1, left);
				assert_true(next <= chunk + chunk / 8);
				chunks++;
			}
			assert_in_range(chunks, 1, (len + chunk - 1) / chunk);
		}
	}
}

static void wire_bytes(void **state)
{
	static const struct {
		uint64_t payload;
		uint32_t mtu, header;
		uint64_t want;
	} rows[] = {
		{ 0, 4096, 58, 58 },
		{ 1, 4096, 58, 59 },
		{ 4095, 4096, 58, 4153 },
		{ 4096, 4096, 58, 4154 },
		{ 4097, 4096, 58, 4097 + 2 * 58 },
		{ 4096, 1024, 58, 4096 + 4 * 58 },
		{ MB, 4096, 58, MB + 256 * 58 },
		{ LARGEST, 1024, 58, LARGEST + 3073 * 58 },
		{ 12345, 1024, 0, 12345 },
		{ 0, 1024, 0, 0 },
		{ 1ULL << 31, 256, 100, (1ULL << 31) + (1ULL << 23) * 100 },
	};
	uint32_t i;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(rows); i++)
		assert_int_equal(riso_wire_bytes(rows[i].payload, rows[i].mtu,
						 rows[i].header), rows[i].want);
}

/*
 * Chunks that fill their packets need as many as the message; so cutting costs
 * no wire except for the header of each further message.
 */
static void wire_of_chunks(void **state)
{
	static const uint32_t mtus[] = { 256, 512, 1024, 2048, 4096 };
	uint32_t i, len, left, chunk, mtu, part;
	uint64_t sum;

	(void)state;
	for (i = 0; i < ROUNDS; i++) {
		mtu = mtus[rnd(ARRAY_SIZE(mtus))];
		chunk = riso_chunk_round(1 + rnd(64 * KB), mtu);
		len = 1 + rnd(LARGEST);
		sum = 0;
		for (left = len; left; left -= part) {
			part = riso_chunk_next(left, chunk);
			sum += riso_wire_bytes(part, mtu, 58);
		}
		assert_int_equal(sum, riso_wire_bytes(len, mtu, 58));
	}
}

/* All that riso_merge() can be asked; callers pass flags, so any bit is true. */
static void merge_table(void **state)
{
	static const struct {
		bool success, last, signaled, reported;
		enum riso_verdict want;
	} rows[] = {
		/* an error that nobody was told of is told, whatever chunk */
		{ 0, 0, 0, 0, RISO_DELIVER },
		{ 0, 0, 1, 0, RISO_DELIVER },
		{ 0, 1, 0, 0, RISO_DELIVER },
		{ 0, 1, 1, 0, RISO_DELIVER },
		/* success is that of the last chunk, if it was asked for */
		{ 1, 0, 0, 0, RISO_HIDE },
		{ 1, 0, 1, 0, RISO_HIDE },
		{ 1, 1, 0, 0, RISO_HIDE },
		{ 1, 1, 1, 0, RISO_DELIVER },
		/* after an error nothing of the message is told any more */
		{ 0, 0, 0, 1, RISO_HIDE },
		{ 0, 0, 1, 1, RISO_HIDE },
		{ 0, 1, 0, 1, RISO_HIDE },
		{ 0, 1, 1, 1, RISO_HIDE },
		{ 1, 0, 0, 1, RISO_HIDE },
		{ 1, 0, 1, 1, RISO_HIDE },
		{ 1, 1, 0, 1, RISO_HIDE },
		{ 1, 1, 1, 1, RISO_HIDE },
	};
	static const int trues[] = { 1, 2, 4, 8, 1 << 30, -1, 16 };
	const uint32_t n = ARRAY_SIZE(trues);
	uint32_t i, k;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(rows); i++)
		for (k = 0; k < n; k++)
			if (riso_merge(rows[i].success * trues[k],
				       rows[i].last * trues[(k + 1) % n],
				       rows[i].signaled * trues[(k + 2) % n],
				       rows[i].reported * trues[(k + 3) % n]) !=
			    rows[i].want)
				fail_msg("row %u with %d", i, trues[k]);
}

/*
 * A message of any number of chunks that fails at any of them, or not at all:
 * one completion if it was asked for or failed, and never a second one.
 */
static void one_completion(void **state)
{
	int chunks, fails, i, signaled, reported, told, want;

	(void)state;
	for (chunks = 1; chunks <= 9; chunks++) {
		for (fails = 0; fails <= chunks; fails++) {
			for (signaled = 0; signaled <= 1; signaled++) {
				want = signaled || fails < chunks;
				reported = 0;
				told = 0;
				for (i = 0; i < chunks; i++) {
					told += riso_merge(i < fails,
							   i == chunks - 1,
							   signaled, reported) ==
						RISO_DELIVER;
					if (i >= fails)
						reported = 1;
				}
				assert_int_equal(told, want);
			}
		}
	}
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(one_element),
		TEST(no_element),
		TEST(many_elements),
		TEST(at_the_edge),
		TEST(empty_elements),
		TEST(random_chunks),
		TEST(random_pieces),
		TEST(cut_again),
		TEST(next_chunk),
		TEST(round_chunk),
		TEST(automatic_chunk),
		TEST(filling_chunk),
		TEST(even_chunks),
		TEST(equal_chunks),
		TEST(wire_bytes),
		TEST(wire_of_chunks),
		TEST(merge_table),
		TEST(one_completion),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests_name("chunk", tests, NULL, NULL);
}
