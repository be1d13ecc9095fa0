// SPDX-License-Identifier: GPL-2.0
/*
 * shim_stress mix SEED SECONDS
 * shim_stress error SEED
 * shim_stress fork SEED SECONDS
 * shim_stress kill SEED TIMES
 *
 * What a program may do with verbs, and what happens to programs, while its work
 * requests wait or are on their way: see the functions with these names. It passes
 * without the shim, too. The exit status is 0 if all was right.
 */
#include <err.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "shim_mix/mix.h"

enum { ALARM_US = 100000, MANY = 16 };

static const char *program;

static const struct mix_shape many[] = {
	{ .depth = 4, .bits = 18, .list = 1, .thread = 0, .from = 0 },
	{ .depth = 16, .bits = 16, .list = 8, .thread = 0, .from = 1, .builders = true },
	{ .depth = 64, .bits = 14, .list = 8, .thread = 1, .from = 1 },
	{ .depth = 5, .bits = 18, .list = 4, .thread = 1, .from = 0, .builders = true,
	  .sig_all = true },
	{ .depth = 16, .bits = 16, .list = 8, .thread = 2, .from = 0, .sig_all = true },
	{ .depth = 4, .bits = 18, .list = 2, .thread = 2, .from = 1, .builders = true },
	{ .depth = 32, .bits = 15, .list = 8, .thread = 3, .from = 1 },
	{ .depth = 1, .bits = 18, .list = 1, .thread = 3, .from = 0, .builders = true },
};

static const struct mix_shape few[] = {
	{ .depth = 16, .bits = 13, .list = 4, .thread = 0, .from = 0 },
	{ .depth = 4, .bits = 16, .list = 4, .thread = 1, .from = 1, .builders = true },
};

static const struct mix_shape large[] = {
	{ .depth = MANY, .bits = 18, .list = 8, .from = 0 },
	{ .depth = MANY, .bits = 18, .list = 8, .from = 1, .builders = true },
};

static void wait_ns(__u64 ns)
{
	__u64 end = mix_now_ns() + ns;
	__u64 now;

	while ((now = mix_now_ns()) < end)
		usleep((end - now) / 1000 + 1);
}

/* Random work requests for some time. */
static __u64 traffic(__u64 seed, const struct mix_shape *shape, unsigned int num,
		     __u64 ns)
{
	struct mix_world w;

	mix_world_open(&w, seed, shape, num, false);
	mix_world_start(&w);
	wait_ns(ns);
	mix_world_end(&w);
	mix_world_close(&w);
	return w.bytes;
}

/* --- error --- */

static void post(struct mix_world *w, unsigned int num)
{
	unsigned int i, n;

	for (i = 0; i < w->num_pairs; i++)
		for (n = MIX_MAX_LIST; n <= num; n += MIX_MAX_LIST)
			mix_pair_post(&w->pair[i], MIX_MAX_LIST, n == num);
}

static void poll_some(struct mix_world *w)
{
	unsigned int n = 0;

	while (n < 3)
		n += mix_poll_all(w);
}

static void poll_rest(struct mix_world *w)
{
	unsigned int i;

	for (i = 0; i < w->num_pairs; i++)
		while (w->pair[i].retired != w->pair[i].posted)
			if (!mix_poll_all(w))
				usleep(100);
	mix_must_be_empty(w);
}

static void works(struct mix_world *w)
{
	post(w, MIX_MAX_LIST);
	poll_rest(w);
}

static void may_fail(struct mix_world *w)
{
	unsigned int i;

	for (i = 0; i < w->num_pairs; i++)
		w->pair[i].may_fail = true;
}

/* After errors: from RESET on, the queue pairs are as new ones. */
static void works_again(struct mix_world *w, const char *what)
{
	unsigned int i;

	for (i = 0; i < w->num_pairs; i++) {
		printf("# %s: %u of %llu failed\n", what, w->pair[i].failed,
		       w->pair[i].posted);
		mix_pair_reset(&w->pair[i]);
		mix_pair_connect(&w->pair[i]);
	}
	works(w);
}

static void to_error(struct mix_world *w)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_ERR };
	unsigned int i;

	post(w, MANY);
	poll_some(w);
	may_fail(w);
	for (i = 0; i < w->num_pairs; i++)
		if (ibv_modify_qp(w->pair[i].a, &attr, IBV_QP_STATE))
			mix_fail("to state ERR: %s", strerror(errno));
	poll_rest(w);
	works_again(w, "to state ERR");
}

static void bad_key(struct mix_world *w)
{
	unsigned int i;

	may_fail(w);
	for (i = 0; i < w->num_pairs; i++)
		w->pair[i].bad_seq = w->pair[i].posted + 5 +
				     mix_draw_from(&w->seed) % (MANY - 6);
	post(w, MANY);
	poll_rest(w);
	for (i = 0; i < w->num_pairs; i++)
		if (!w->pair[i].failed)
			mix_fail("nothing has failed");
	works_again(w, "bad key or address");
}

static void to_reset(struct mix_world *w)
{
	post(w, MANY);
	poll_some(w);
	works_again(w, "to state RESET");
}

/* What completed before may be there still, nothing else. */
static void destroy(struct mix_world *w)
{
	unsigned int i;

	post(w, MANY);
	poll_some(w);
	may_fail(w);
	for (i = 0; i < w->num_pairs; i++)
		mix_pair_destroy(&w->pair[i]);
	while (mix_poll_all(w))
		;
	for (i = 0; i < w->num_pairs; i++)
		mix_pair_create(&w->pair[i]);
	works_again(w, "destroyed");
}

/* Also who destroys nothing may close the device. */
static void close_all(struct mix_world *w)
{
	post(w, MANY);
	poll_some(w);
	if (ibv_close_device(w->end[0].ctx) || ibv_close_device(w->end[1].ctx))
		mix_fail("close: %s", strerror(errno));
}

static int error_mode(__u64 seed)
{
	struct mix_world w;
	int i;

	mix_world_open(&w, seed, large, ARRAY_SIZE(large), true);
	works(&w);
	for (i = 0; i < 2; i++) {
		to_error(&w);
		bad_key(&w);
		to_reset(&w);
		destroy(&w);
	}
	mix_world_close(&w);

	mix_world_open(&w, seed + 1, large, ARRAY_SIZE(large), true);
	close_all(&w);
	traffic(seed, few, ARRAY_SIZE(few), 100000000);
	return 0;
}

/* --- fork and exec --- */

static void be_another(__u64 seed)
{
	char text[24];

	mix_watch(0);
	snprintf(text, sizeof(text), "%llu", seed);
	execl(program, program, "mix", text, "0.3", NULL);
	mix_fail("exec: %s", strerror(errno));
}

/* Of a process that has work requests out. */
static void child(int kind, __u64 seed)
{
	struct mix_world w;

	if (kind == 0)
		_exit(0);
	if (kind == 1)
		be_another(seed);
	mix_watch(ALARM_US);
	if (kind == 2) {
		traffic(seed, few, ARRAY_SIZE(few), 300000000);
		exit(0);
	}
	/* In the middle of exec() no thread can start. */
	mix_goes_straight = true;
	mix_world_open(&w, seed, few, ARRAY_SIZE(few), false);
	mix_world_start(&w);
	wait_ns(100000000 + seed % 100000000);
	be_another(seed);
}

static int wait_child(pid_t pid)
{
	int status;

	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			mix_fail("wait: %s", strerror(errno));
	return status;
}

static pid_t start(void (*fn)(int kind, __u64 seed), int kind, __u64 seed)
{
	pid_t pid;

	fflush(stdout);
	pid = fork();
	if (!pid)
		fn(kind, seed);
	if (pid < 0)
		mix_fail("fork: %s", strerror(errno));
	return pid;
}

/* Meanwhile signals keep coming. */
static int fork_mode(__u64 seed, __u64 ns)
{
	__u64 end = mix_now_ns() + ns;
	int kind, status, n = 0;
	struct mix_world w;

	mix_watch(5000);
	mix_world_open(&w, seed, few, ARRAY_SIZE(few), false);
	mix_world_start(&w);
	do {
		for (kind = 0; kind < 4; kind++, n++) {
			status = wait_child(start(child, kind, seed + n));
			if (status)
				mix_fail("child %d ends with %x", kind, status);
		}
	} while (mix_now_ns() < end);
	mix_world_end(&w);
	mix_world_close(&w);
	printf("# %d children\n", n);
	return 0;
}

/* --- kill --- */

static void live(int once, __u64 seed)
{
	mix_watch(ALARM_US);
	do
		traffic(seed++, few, ARRAY_SIZE(few), 50000000);
	while (!once);
	exit(0);
}

static int kill_mode(__u64 seed, unsigned int times)
{
	unsigned int i, k, n;
	__u64 began, life, rng = seed;
	pid_t pid[8];
	int status;

	mix_watch(0);
	began = mix_now_ns();
	status = wait_child(start(live, 1, seed));
	life = mix_now_ns() - began;
	if (status)
		mix_fail("a life ends with %x", status);
	printf("# a life has %llu ms\n", life / 1000000);
	for (i = 0; i < times; i += n) {
		n = times - i < ARRAY_SIZE(pid) ? times - i : ARRAY_SIZE(pid);
		for (k = 0; k < n; k++)
			pid[k] = start(live, 0, seed + i + k);
		for (k = 0; k < n; k++) {
			wait_ns(mix_draw_from(&rng) % (life / 5));
			kill(pid[k], SIGKILL);
			status = wait_child(pid[k]);
			if (!WIFSIGNALED(status) || WTERMSIG(status) != SIGKILL)
				mix_fail("a life ends with %x", status);
		}
	}
	printf("# %u killed\n", i);
	return 0;
}

int main(int argc, char **argv)
{
	__u64 seed;
	double num;

	program = argv[0];
	if (argc < 3)
		errx(2, "usage: shim_stress mix|cut-imm|error|fork|kill SEED [NUMBER]");
	seed = strtoull(argv[2], NULL, 0);
	num = argc > 3 ? strtod(argv[3], NULL) : 1;
	mix_watch(ALARM_US);
	mix_cuts_imm = !strcmp(argv[1], "cut-imm");
	if (mix_cuts_imm || !strcmp(argv[1], "mix"))
		printf("# seed %llu: %llu KB\n", seed,
		       traffic(seed, many, ARRAY_SIZE(many), num * 1e9) / 1024);
	else if (!strcmp(argv[1], "error"))
		return error_mode(seed);
	else if (!strcmp(argv[1], "fork"))
		return fork_mode(seed, num * 1e9);
	else if (!strcmp(argv[1], "kill"))
		return kill_mode(seed, num);
	if (mix_cuts_imm && !mix_pieces)
		mix_fail("no WRITE with an immediate was cut");
	return 0;
}
