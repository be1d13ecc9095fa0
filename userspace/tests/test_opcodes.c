// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The table of opcodes of kmod/core, held against what the InfiniBand specification says of
 * each one: written down here a second time, by name.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <infiniband/verbs.h>

#include "core/wr.h"

/* What is true of an opcode, one letter each */
struct expected {
	uint32_t opcode;
	enum riso_wr_kind kind;
	const char *traits;
};

static const struct expected all[] = {
	/*
	 * d: data, r: from the peer, f: fetches, t: tells the peer, c: may be cut,
	 * u: libibverbs has it
	 */
	{ IBV_WR_RDMA_WRITE, RISO_WR_RDMA, "dcu" },
	{ IBV_WR_RDMA_WRITE_WITH_IMM, RISO_WR_RDMA, "dtu" },
	{ IBV_WR_SEND, RISO_WR_PLAIN, "dtu" },
	{ IBV_WR_SEND_WITH_IMM, RISO_WR_PLAIN, "dtu" },
	{ IBV_WR_RDMA_READ, RISO_WR_RDMA, "drfcu" },
	{ IBV_WR_ATOMIC_CMP_AND_SWP, RISO_WR_ATOMIC, "dfu" },
	{ IBV_WR_ATOMIC_FETCH_AND_ADD, RISO_WR_ATOMIC, "dfu" },
	{ IBV_WR_LOCAL_INV, RISO_WR_PLAIN, "u" },
	{ IBV_WR_BIND_MW, RISO_WR_UNKNOWN, "u" },
	{ IBV_WR_SEND_WITH_INV, RISO_WR_PLAIN, "dtu" },
	{ RISO_OPCODE_READ_INV, RISO_WR_RDMA, "drf" },
	{ RISO_OPCODE_MASKED_CMP_AND_SWP, RISO_WR_ATOMIC, "df" },
	{ RISO_OPCODE_MASKED_FETCH_AND_ADD, RISO_WR_ATOMIC, "df" },
	{ RISO_OPCODE_REG_MR, RISO_WR_REG, "" },
};

enum { NUM = sizeof(all) / sizeof(*all) };

static const struct expected *find(uint32_t opcode)
{
	size_t i;

	for (i = 0; i < NUM; i++)
		if (all[i].opcode == opcode)
			return &all[i];
	return NULL;
}

static bool has(const struct expected *e, char trait)
{
	const char *t;

	for (t = e->traits; *t; t++)
		if (*t == trait)
			return true;
	return false;
}

static void knows_each(void **state)
{
	/* Of an opcode that is not known the worst is taken to be true. */
	const struct expected unknown = { .kind = RISO_WR_UNKNOWN, .traits = "dt" };
	uint32_t opcode;

	(void)state;
	for (opcode = 0; opcode < 70000; opcode++) {
		const struct expected *e = find(opcode);

		if (!e)
			e = &unknown;
		assert_int_equal(riso_wr_kind(opcode), e->kind);
		assert_int_equal(riso_wr_has_data(opcode), has(e, 'd'));
		assert_int_equal(riso_wr_is_read(opcode), has(e, 'r'));
		assert_int_equal(riso_wr_is_fetch(opcode), has(e, 'f'));
		assert_int_equal(riso_wr_is_told(opcode), has(e, 't'));
		assert_int_equal(riso_wr_is_cut(opcode), has(e, 'c'));
		assert_int_equal(riso_wr_may_cut(opcode, false), has(e, 'c'));
		assert_int_equal(riso_wr_may_cut(opcode, true),
				 has(e, 'c') || opcode == RISO_OPCODE_WRITE_IMM);
		assert_int_equal(riso_wr_is_user(opcode), has(e, 'u'));
	}
	assert_int_equal(riso_wr_kind(UINT32_MAX), RISO_WR_UNKNOWN);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(knows_each),
	};

	return cmocka_run_group_tests_name("opcodes", tests, NULL, NULL);
}
