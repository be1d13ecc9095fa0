// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The helper thread: when it starts and ends, how long it waits, and what it does for a
 * program that does not call.
 */
#include <dirent.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "guard.h"
#include "helper.h"
#include "member.h"
#include "prog.h"
#include "tests.h"

/* The helper posts for a program that does not call, and keeps what it finds. */
static void helper_posts(void **state)
{
	struct prog *p = *state;
	struct shim_qp *f = shim_map_find(&shim_qps, p->qp);
	uint32_t i;

	fake_kernel.run_helper = true;
	/* It has armed once, and waits otherwise now. */
	prog_arm(p);
	prog_expect_none(p);
	assert_int_equal(prog_post(p->qp, IBV_WR_RDMA_WRITE, 1, 64 * FAKE_CHUNK,
				   IBV_SEND_SIGNALED), 0);
	assert_int_equal(prog_post(p->qp, IBV_WR_RDMA_WRITE, 2, 64 * FAKE_CHUNK, 0), 0);
	fake_grant(RISO_USER_TX, 128 * fake_cost(FAKE_CHUNK));
	for (i = 0; i < 100000; i++) {
		fake_run(p->qp, UINT32_MAX);
		if (!__atomic_load_n(&f->ctx->m->held, __ATOMIC_RELAXED))
			break;
		usleep(20);
	}
	pthread_mutex_lock(&fake_verbs.lock);
	assert_int_equal(p->qp->posted, 128);
	pthread_mutex_unlock(&fake_verbs.lock);
	/* All is posted, so it sleeps. */
	usleep(20000);
	i = __atomic_load_n(&fake_kernel.waits, __ATOMIC_RELAXED);
	usleep(20000);
	assert_int_equal(__atomic_load_n(&fake_kernel.waits, __ATOMIC_RELAXED), i);
	fake_run(p->qp, UINT32_MAX);
	prog_expect(p, 1, IBV_WC_SUCCESS);
	prog_expect_none(p);
}

/* A kernel that is gone wakes nobody: the helper must not spin until the provider takes it. */
static void sleeps_without_kernel(void **state)
{
	struct prog *p = *state;
	struct shim_qp *f = shim_map_find(&shim_qps, p->qp);
	int waits;

	fake_kernel.run_helper = true;
	fake_grant(RISO_USER_TX, fake_cost(FAKE_CHUNK));
	assert_int_equal(prog_post(p->qp, IBV_WR_RDMA_WRITE, 1, FAKE_CHUNK,
				   IBV_SEND_SIGNALED), 0);
	p->qp->refuse = ENOMEM;
	fake_kernel.wait_err = ENODEV;
	assert_int_equal(prog_post(p->qp, IBV_WR_RDMA_WRITE, 2, 8 * FAKE_CHUNK,
				   IBV_SEND_SIGNALED), 0);
	usleep(20000);
	waits = __atomic_load_n(&fake_kernel.waits, __ATOMIC_RELAXED);
	usleep(50000);
	waits = __atomic_load_n(&fake_kernel.waits, __ATOMIC_RELAXED) - waits;
	assert_in_range(waits, 1, 1000);
	pthread_mutex_lock(&fake_verbs.lock);
	p->qp->refuse = 0;
	pthread_mutex_unlock(&fake_verbs.lock);
	while (__atomic_load_n(&f->ctx->m->held, __ATOMIC_RELAXED))
		fake_run(p->qp, UINT32_MAX);
	fake_run(p->qp, UINT32_MAX);
	prog_expect(p, 1, IBV_WC_SUCCESS);
	prog_expect(p, 2, IBV_WC_SUCCESS);
}

static void wait_ended(void)
{
	uint32_t i;

	for (i = 0; i < 30000; i++) {
		if (__atomic_load_n(&fake_kernel.ended, __ATOMIC_ACQUIRE) ==
		    fake_kernel.begun)
			return;
		usleep(100);
	}
	fail();
}

/*
 * It ends when there is nothing for it to do, so that a process can whose last threads
 * return, and there is another one when there is again.
 */
static void helper_ends(void **state)
{
	struct prog *p = *state;
	int before = fake_kernel.begun;
	uint32_t i;

	fake_kernel.run_helper = true;
	for (i = 1; i <= 2; i++) {
		assert_int_equal(prog_post(p->qp, IBV_WR_RDMA_WRITE, i, FAKE_CHUNK,
					   IBV_SEND_SIGNALED), 0);
		assert_int_equal(fake_kernel.begun, before + i);
		fake_grant(RISO_USER_TX, fake_cost(FAKE_CHUNK));
		prog_wait_posted(p, i);
		wait_ended();
		fake_run(p->qp, UINT32_MAX);
		prog_expect(p, i, IBV_WC_SUCCESS);
	}
}

static void expect_timeout(uint32_t timeout)
{
	uint32_t i;

	for (i = 0; i < 10000; i++) {
		if (__atomic_load_n(&fake_kernel.timeout, __ATOMIC_RELAXED) == timeout)
			return;
		usleep(100);
	}
	fail();
}

/* How long it waits depends on what it waits for. */
static void helper_waits(void **state)
{
	struct prog *p = *state;

	fake_kernel.run_helper = true;
	/* For a grant. */
	assert_int_equal(prog_post(p->qp, IBV_WR_RDMA_WRITE, 1,
				   4 * SHIM_SLOTS * FAKE_CHUNK, IBV_SEND_SIGNALED), 0);
	expect_timeout(100000);
	/* For a grant, and there are completions to be told. */
	fake_grant(RISO_USER_TX, SHIM_SLOTS / 2 * fake_cost(FAKE_CHUNK));
	expect_timeout(1000);
	/* For room, the grant is there. */
	fake_grant(RISO_USER_TX, SHIM_SLOTS * fake_cost(FAKE_CHUNK));
	expect_timeout(100);
	fake_run(p->qp, UINT32_MAX);
	expect_timeout(1000);
	prog_modify(p, IBV_QPS_ERR);
}

/* Of a thread that would not let it run */
static void helper_of_real_time(void **state)
{
	struct sched_param least = { .sched_priority = sched_get_priority_min(SCHED_FIFO) };
	struct sched_param none = { .sched_priority = 0 };
	struct prog *p = *state;

	if (sched_setscheduler(0, SCHED_FIFO, &least))
		skip();
	assert_int_equal(prog_post(p->qp, IBV_WR_SEND, 1, 8, IBV_SEND_SIGNALED), 0);
	assert_int_equal(sched_setscheduler(0, SCHED_OTHER, &none), 0);
	assert_int_equal(fake_kernel.helpers, 1);
	assert_int_equal(fake_kernel.inherits, PTHREAD_EXPLICIT_SCHED);
}

/* How many processors may the helper run on? 0 if there is no helper. */
static int count_cpus_of_helper(void)
{
	char path[64], name[16];
	struct dirent *d;
	int num = 0;
	cpu_set_t set;
	DIR *tasks;
	FILE *file;

	tasks = opendir("/proc/self/task");
	assert_non_null(tasks);
	while ((d = readdir(tasks))) {
		snprintf(path, sizeof(path), "/proc/self/task/%d/comm", atoi(d->d_name));
		file = fopen(path, "r");
		if (!file)
			continue;
		if (fgets(name, sizeof(name), file) && !strcmp(name, "rdma_isolate\n") &&
		    !sched_getaffinity(atoi(d->d_name), sizeof(set), &set))
			num = CPU_COUNT(&set);
		fclose(file);
	}
	closedir(tasks);
	return num;
}

/* Of a thread that has a processor of its own */
static void helper_of_pinned(void **state)
{
	struct prog *p = *state;
	cpu_set_t all, one;
	int i;

	assert_int_equal(sched_getaffinity(0, sizeof(all), &all), 0);
	if (CPU_COUNT(&all) == 1)
		skip();
	CPU_ZERO(&one);
	for (i = 0; !CPU_ISSET(i, &all); i++)
		;
	CPU_SET(i, &one);
	assert_int_equal(sched_setaffinity(0, sizeof(one), &one), 0);
	fake_kernel.run_helper = true;
	assert_int_equal(prog_post(p->qp, IBV_WR_SEND, 1, 8, IBV_SEND_SIGNALED), 0);
	assert_int_equal(sched_setaffinity(0, sizeof(all), &all), 0);
	for (i = 0; i < 1000 && count_cpus_of_helper() != CPU_COUNT(&all); i++)
		usleep(1000);
	assert_int_equal(count_cpus_of_helper(), CPU_COUNT(&all));
	prog_modify(p, IBV_QPS_ERR);
}

/* Where a processor is to spare, it looks at the page for a while before it sleeps. */
static void helper_spins(void **state)
{
	struct prog *p = *state;

	fake_kernel.run_helper = true;
	fake_kernel.timeout = 0;
	setenv("RDMA_ISOLATE_SPIN_US", "50", 1);
	assert_int_equal(prog_setup_as(p, 0), 0);
	assert_int_equal(prog_post(p->qp, IBV_WR_RDMA_WRITE, 1, 2 * FAKE_CHUNK,
				   IBV_SEND_SIGNALED), 0);
	fake_grant(RISO_USER_TX, fake_cost(FAKE_CHUNK));
	prog_wait_posted(p, 1);
	usleep(20000);
	assert_int_equal(__atomic_load_n(&fake_kernel.timeout, __ATOMIC_RELAXED), 0);
	__atomic_add_fetch(&fake_kernel.now, 49000, __ATOMIC_RELAXED);
	usleep(20000);
	assert_int_equal(__atomic_load_n(&fake_kernel.timeout, __ATOMIC_RELAXED), 0);
	__atomic_add_fetch(&fake_kernel.now, 1000, __ATOMIC_RELAXED);
	expect_timeout(100000);
	prog_modify(p, IBV_QPS_ERR);
}

static void spin_wrong(void **state)
{
	static const char * const words[] = { "", "1001", "-1", "5us", "x" };
	struct shim_member *m;
	uint32_t i;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(words); i++) {
		setenv("RDMA_ISOLATE_SPIN_US", words[i], 1);
		m = shim_member_get(&fake_verbs.device);
		assert_int_equal(m->spin_ns, 0);
		shim_member_put(m);
	}
	setenv("RDMA_ISOLATE_SPIN_US", "1000", 1);
	m = shim_member_get(&fake_verbs.device);
	assert_int_equal(m->spin_ns, 1000000);
	shim_member_put(m);
}

/* One for each device, as it waits in the kernel; on any stack that there is. */
static void helper_each(void **state)
{
	struct prog *p = *state;
	struct ibv_device other = { .name = "fake1", .dev_name = "uverbs1" };
	struct shim_member *m = shim_member_get(&other);

	assert_int_equal(prog_post(p->qp, IBV_WR_RDMA_WRITE, 1, FAKE_CHUNK, 0), 0);
	assert_int_equal(fake_kernel.helpers, 1);
	shim_lock(&m->lock);
	m->held = 1;
	fake_kernel.least_stack = MB;
	shim_unlock_and_drive(m);
	m->held = 0;
	assert_int_equal(fake_kernel.helpers, 2);
	assert_ptr_equal(fake_kernel.helps[1], m);
	shim_member_put(m);
}

/* The program polls for a while, and is granted a chunk now and then. */
static void poll_for(struct prog *p, uint32_t rounds)
{
	struct ibv_wc wc;
	uint32_t i;

	for (i = 0; i < rounds; i++) {
		if (!(i % 10)) {
			fake_grant(RISO_USER_TX, fake_cost(FAKE_CHUNK));
			usleep(100);
		}
		fake_run(p->qp, UINT32_MAX);
		prog_poll_one(p, &wc);
		__atomic_add_fetch(&fake_kernel.now, 20000, __ATOMIC_RELAXED);
	}
}

/* The helper may not get a processor for some time, in which so many chunks go out. */
enum { NAP_CHUNKS = 600 };

static void poll_until_nap(struct prog *p)
{
	uint32_t *polls = &fake_kernel.u.polls;
	uint32_t i;

	for (i = 0; i < NAP_CHUNKS && !__atomic_load_n(polls, __ATOMIC_RELAXED); i++)
		poll_for(p, 10);
	assert_int_equal(__atomic_load_n(polls, __ATOMIC_RELAXED), 1);
}

/* A program that polls posts by itself, and wakes up nobody until it may sleep. */
static void helper_naps(void **state)
{
	uint32_t *polls = &fake_kernel.u.polls;
	struct prog *p = *state;
	int waits;

	fake_kernel.run_helper = true;
	assert_int_equal(prog_post(p->qp, IBV_WR_RDMA_WRITE, 1, 2000 * FAKE_CHUNK,
				   IBV_SEND_SIGNALED), 0);
	poll_until_nap(p);
	/* One grant is wanted beyond what is held. */
	poll_for(p, 1);
	assert_true(fake_kernel.u.path[0].want + fake_kernel.u.path[0].posted >
		    2000 * fake_cost(FAKE_CHUNK));
	waits = __atomic_load_n(&fake_kernel.waits, __ATOMIC_RELAXED);
	fake_kernel.k.looks_until = UINT64_MAX;
	fake_kernel.k.looked = UINT64_MAX / 2;
	poll_for(p, 100);
	assert_int_equal(__atomic_load_n(&fake_kernel.waits, __ATOMIC_RELAXED), waits);
	/* The kernel's timer is late: the program stands in for it. */
	fake_kernel.k.looked = fake_kernel.now;
	poll_for(p, 99);
	assert_int_equal(__atomic_load_n(&fake_kernel.waits, __ATOMIC_RELAXED), waits);
	poll_for(p, 9);
	assert_int_equal(__atomic_load_n(&fake_kernel.waits, __ATOMIC_RELAXED), waits + 1);
	prog_arm(p);
	assert_int_equal(__atomic_load_n(polls, __ATOMIC_RELAXED), 0);
	prog_modify(p, IBV_QPS_ERR);
}

/* Polls from before the program armed its CQ do not count for the next nap. */
static void naps_until_armed(void **state)
{
	struct prog *p = *state;
	struct shim_qp *f = shim_map_find(&shim_qps, p->qp);

	fake_kernel.run_helper = true;
	assert_int_equal(prog_post(p->qp, IBV_WR_RDMA_WRITE, 1, NAP_CHUNKS * FAKE_CHUNK,
				   IBV_SEND_SIGNALED), 0);
	poll_until_nap(p);
	/* As if it had, since the helper looked. */
	shim_lock(&f->ctx->m->lock);
	f->ctx->m->polls += 1000;
	__atomic_add_fetch(&fake_kernel.now, 2 * MSEC, __ATOMIC_RELAXED);
	shim_unlock(&f->ctx->m->lock);
	prog_arm(p);
	usleep(20000);
	assert_int_equal(__atomic_load_n(&fake_kernel.u.polls, __ATOMIC_RELAXED), 0);
	prog_modify(p, IBV_QPS_ERR);
}

/* A program that polls, and has held nothing for a while, wants nothing ahead. */
static void wants_ahead_no_more(void **state)
{
	__u64 *want = &fake_kernel.u.path[RISO_USER_TX].want;
	struct prog *p = *state;
	struct ibv_wc wc;
	uint32_t i;

	fake_kernel.run_helper = true;
	assert_int_equal(prog_post(p->qp, IBV_WR_RDMA_WRITE, 1, NAP_CHUNKS * FAKE_CHUNK,
				   IBV_SEND_SIGNALED), 0);
	poll_until_nap(p);
	fake_grant(RISO_USER_TX, NAP_CHUNKS * fake_cost(FAKE_CHUNK));
	for (i = 0; i < 100000 && !prog_poll_one(p, &wc); i++)
		fake_run(p->qp, UINT32_MAX);
	for (i = 0; i < 50000 && __atomic_load_n(want, __ATOMIC_RELAXED); i++) {
		prog_expect_none(p);
		__atomic_add_fetch(&fake_kernel.now, 20000, __ATOMIC_RELAXED);
		usleep(100);
	}
	assert_int_equal(__atomic_load_n(want, __ATOMIC_RELAXED), 0);
}

static const struct CMUnitTest tests[] = {
	PROG_TEST(helper_posts),
	PROG_TEST(helper_ends),
	PROG_TEST(helper_waits),
	PROG_TEST(helper_naps),
	PROG_TEST(naps_until_armed),
	PROG_TEST(wants_ahead_no_more),
	PROG_TEST(sleeps_without_kernel),
	PROG_TEST(helper_each),
	PROG_TEST(helper_of_real_time),
	PROG_TEST(helper_of_pinned),
	PROG_TEST_EMPTY(helper_spins),
	PROG_TEST_EMPTY(spin_wrong),
};

const struct prog_tests prog_helper_tests = { tests, ARRAY_SIZE(tests) };
