/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What the test programs share: how they set up a queue pair and a CQ, post, poll, and
 * check what they get. Functions that return nothing fail the test when a call fails.
 */
#ifndef RISO_TEST_PROG_H
#define RISO_TEST_PROG_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <pthread.h>

#include <cmocka.h>
#include <linux/rdma_isolate.h>

#include "class.h"
#include "cq.h"
#include "ctx.h"
#include "fake_cq.h"
#include "fake_kernel.h"
#include "fake_qp.h"
#include "fake_verbs.h"
#include "qp.h"
#include "shim.h"

enum {
	/* Work requests of a queue pair, where a test asks for no other number */
	PROG_DEPTH = 16,
	/* Bytes of the largest message: many chunks and a part of one */
	PROG_LARGEST = 3 * MB + 7,
};

/**
 * struct prog - a program
 * @cq: its CQ
 * @qp: its queue pair
 * @attr: what it asked for when it created the last queue pair
 */
struct prog {
	struct fake_cq *cq;
	struct fake_qp *qp;
	struct ibv_qp_init_attr attr;
};

/* Memory here and at the peer, PROG_LARGEST + 1 bytes each */
extern uint8_t *prog_local, *prog_remote;

/* Fixtures of cmocka. The state of a test is its struct prog. */
int prog_group_setup(void **state);
int prog_setup(void **state);
int prog_setup_sig_all(void **state);
int prog_setup_empty(void **state);
int prog_teardown(void **state);

/*
 * A test of a program that has a CQ and a queue pair, of one whose queue pair has
 * sq_sig_all, and of one that has neither
 */
#define PROG_TEST(fn) cmocka_unit_test_setup_teardown(fn, prog_setup, prog_teardown)
#define PROG_TEST_SIG_ALL(fn) \
	cmocka_unit_test_setup_teardown(fn, prog_setup_sig_all, prog_teardown)
#define PROG_TEST_EMPTY(fn) \
	cmocka_unit_test_setup_teardown(fn, prog_setup_empty, prog_teardown)

/**
 * prog_setup_as - open the device, and create a CQ and a queue pair
 * @p: the program
 * @sig_all: sq_sig_all of the queue pair
 *
 * Returns: 0, or -1 where there is no queue pair.
 */
int prog_setup_as(struct prog *p, int sig_all);

/**
 * prog_make_cq - create a CQ
 * @cqe: entries
 *
 * Returns: the CQ, or NULL.
 */
struct fake_cq *prog_make_cq(int cqe);

/**
 * prog_make_qp - create a queue pair, ready to send
 * @p: the program; its @attr is what the shim returns
 * @cq: CQ for both directions
 * @sig_all: sq_sig_all
 *
 * Returns: the queue pair, or NULL.
 */
struct fake_qp *prog_make_qp(struct prog *p, struct fake_cq *cq, int sig_all);

/**
 * prog_make_qp_ex - create a queue pair that has ibv_wr_*
 * @p: the program, whose CQ it uses
 *
 * Returns: the queue pair.
 */
struct fake_qp *prog_make_qp_ex(struct prog *p);

/**
 * prog_grow_cq - give a CQ another size behind the back of the shim
 * @cq: the CQ
 * @asked: entries
 */
void prog_grow_cq(struct fake_cq *cq, int asked);

/**
 * prog_modify - move the queue pair of a program to another state
 * @p: the program
 * @to: the state
 */
void prog_modify(struct prog *p, enum ibv_qp_state to);

/**
 * prog_choose - ask for a class, which the kernel gives
 * @p: the program
 * @class_id: the class
 */
void prog_choose(struct prog *p, uint32_t class_id);

/**
 * prog_post - post one work request from prog_local to prog_remote
 * @qp: the queue pair
 * @opcode: its opcode
 * @wr_id: its number
 * @len: its bytes
 * @flags: its send_flags
 *
 * Returns: what ibv_post_send() returns.
 */
int prog_post(struct fake_qp *qp, int opcode, uint64_t wr_id, uint32_t len,
	      unsigned int flags);

/**
 * prog_arm - arm the CQ of a program for any completion
 * @p: the program
 */
void prog_arm(struct prog *p);

/**
 * prog_poll_one - poll for one completion
 * @p: the program
 * @wc: the completion
 *
 * Returns: what ibv_poll_cq() returns.
 */
int prog_poll_one(struct prog *p, struct ibv_wc *wc);

/**
 * prog_expect - poll for one completion, of the program's queue pair
 * @p: the program
 * @wr_id: its number
 * @status: its status
 */
void prog_expect(struct prog *p, uint64_t wr_id, enum ibv_wc_status status);

/**
 * prog_expect_none - poll, and find nothing
 * @p: the program
 */
void prog_expect_none(struct prog *p);

/**
 * prog_pump - grant, run and poll until completions have come, and check the books
 * @p: the program
 * @wr_id: number of the first completion; the others follow in order
 * @num: how many
 */
void prog_pump(struct prog *p, uint64_t wr_id, uint32_t num);

/**
 * prog_drive - do what the helper does now and then
 * @p: the program
 */
void prog_drive(struct prog *p);

/**
 * prog_help - do what the helper does in a round that looks at the program's CQ
 * @p: the program
 */
void prog_help(struct prog *p);

/**
 * prog_reap_nothing - leave what completes from now on to who polls
 * @p: the program
 */
void prog_reap_nothing(struct prog *p);

/**
 * prog_wait_posted - wait until the helper has posted
 * @p: the program
 * @num: work requests of its queue pair, with those from before
 */
void prog_wait_posted(struct prog *p, uint32_t num);

/**
 * prog_fill - fill memory with bytes that tell where they are
 * @data: prog_local or prog_remote
 */
void prog_fill(uint8_t *data);

/**
 * prog_is_locked - tell whether anybody has a lock
 * @lock: the lock
 */
bool prog_is_locked(pthread_mutex_t *lock);

#endif /* RISO_TEST_PROG_H */
