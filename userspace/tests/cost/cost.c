// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * What the shim costs a program: nanoseconds on one pinned processor, on a provider that
 * completes at once what it is given, so that nothing hides the shim. Each figure is the median
 * of 11 rounds, and all cases take turns, so that what disturbs one disturbs all. Prints a
 * line for each, and what must hold, as "make bench-shim" shows it.
 */
#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <linux/rdma_isolate.h>

#include "null.h"

enum {
	ROUNDS = 11,
	/* Messages of a round: some milliseconds */
	MESSAGES = 200000,
	CHUNKS = 256,
	LARGE = 1024 * 1024,
	LARGES = 200,
	THREADS = 4,
	/* Turns of a thread each time that some of them are timed: tens of milliseconds */
	TURNS = 4,
	LOOKS = 200,
	/* Polls until nothing is to be hoped for: more than a second */
	PATIENCE = 100000000,
	/* Messages after which it is known that the program polls */
	SETTLES = 100,
};

static char memory[LARGE];

static double now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1e9 + t.tv_nsec;
}

static void die(const char *what)
{
	fprintf(stderr, "cost: %s\n", what);
	exit(1);
}

static void post(struct ibv_qp *qp, uint32_t len)
{
	struct ibv_sge sge = { .addr = (uintptr_t)memory, .length = len };
	struct ibv_send_wr wr = {
		.wr_id = 17,
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = IBV_WR_RDMA_WRITE,
		.send_flags = IBV_SEND_SIGNALED,
	};
	struct ibv_send_wr *bad;

	if (ibv_post_send(qp, &wr, &bad))
		die("a post is refused");
}

static void poll_one(struct ibv_cq *cq)
{
	struct ibv_wc wc;
	int i;

	for (i = 0; i < PATIENCE; i++) {
		if (!ibv_poll_cq(cq, 1, &wc))
			continue;
		if (wc.wr_id != 17 || wc.status != IBV_WC_SUCCESS)
			die("another completion");
		return;
	}
	die("no completion");
}

/* A post and the poll for it */
static double measure_messages(struct null_end *e)
{
	double from = now_ns();
	int i;

	for (i = 0; i < MESSAGES; i++) {
		post(e->qp, 64);
		poll_one(e->cq);
	}
	return (now_ns() - from) / MESSAGES;
}

/* A poll that finds nothing, of a CQ that was used */
static double measure_empty(struct null_end *e)
{
	struct ibv_wc wc;
	double from;
	int i;

	post(e->qp, 64);
	poll_one(e->cq);
	from = now_ns();
	for (i = 0; i < MESSAGES; i++)
		ibv_poll_cq(e->cq, 1, &wc);
	return (now_ns() - from) / MESSAGES;
}

static void send_large(struct null_end *e, int num)
{
	int i;

	for (i = 0; i < num; i++) {
		post(e->qp, LARGE);
		poll_one(e->cq);
	}
}

/* A chunk of a large message that is cut */
static double measure_chunks(struct null_end *e)
{
	double from = now_ns();

	send_large(e, LARGES);
	return (now_ns() - from) / LARGES / CHUNKS;
}

/* The same of work requests of a chunk each, which nobody cuts, in chains of 16 */
static double measure_small_chunks(struct null_end *e)
{
	struct ibv_sge sge = { .addr = (uintptr_t)memory, .length = LARGE / CHUNKS };
	struct ibv_send_wr wr[16], *bad;
	double from = now_ns();
	int i;

	for (i = 0; i < 16; i++)
		wr[i] = (struct ibv_send_wr) {
			.wr_id = 17,
			.next = i < 15 ? &wr[i + 1] : NULL,
			.sg_list = &sge,
			.num_sge = 1,
			.opcode = IBV_WR_RDMA_WRITE,
			.send_flags = i < 15 ? 0 : IBV_SEND_SIGNALED,
		};
	for (i = 0; i < LARGES * CHUNKS / 16; i++) {
		if (ibv_post_send(e->qp, wr, &bad))
			die("a chain is refused");
		poll_one(e->cq);
	}
	return (now_ns() - from) / LARGES / CHUNKS;
}

/* A poll that finds a grant for one chunk of one of many queue pairs that wait, us */
static double measure_grant(struct null_end *ends, int num)
{
	struct ibv_wc wc;
	double sum = 0;
	int i;

	null_set_mode(RISO_USER_PACED);
	null_keep_grants(true);
	/* Until no grant is good any more */
	usleep(20000);
	for (i = 0; i < num; i++)
		post(ends[i].qp, LARGE);
	for (i = 0; i < LOOKS; i++) {
		double from;

		null_grant(LARGE / CHUNKS + 512);
		from = now_ns();
		ibv_poll_cq(ends[0].cq, 1, &wc);
		sum += now_ns() - from;
	}
	null_keep_grants(false);
	null_set_mode(RISO_USER_OPEN);
	for (i = 0; i < num; i++)
		poll_one(ends[i].cq);
	return sum / LOOKS / 1000;
}

/* How often a program that polls all the time calls the kernel in 1,000 messages that are paced */
static double measure_calls(struct null_end *e)
{
	uint32_t num;

	null_set_mode(RISO_USER_PACED);
	null_pace(true);
	send_large(e, SETTLES);
	null_pace(true);
	send_large(e, 1000);
	num = null_pace(false);
	null_set_mode(RISO_USER_OPEN);
	return num;
}

/* What a thread measures, TURNS times */
struct job {
	double (*measure)(struct null_end *e);
	struct null_end *end;
};

static void *run_thread(void *arg)
{
	struct job *job = arg;
	int i;

	for (i = 0; i < TURNS; i++)
		job->measure(job->end);
	return NULL;
}

/*
 * How fast some threads are, on two processors, each with a queue pair of its own: to be compared
 * with another number of them
 */
static double measure_threads(struct null_end *ends, int num,
			      double (*measure)(struct null_end *e))
{
	pthread_t thread[THREADS];
	struct job job[THREADS];
	double from = now_ns();
	int i;

	for (i = 0; i < num; i++) {
		job[i] = (struct job){ measure, &ends[i] };
		pthread_create(&thread[i], NULL, run_thread, &job[i]);
	}
	for (i = 0; i < num; i++)
		pthread_join(thread[i], NULL);
	return num / (now_ns() - from);
}

static int compare(const void *a, const void *b)
{
	const double *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

/* The speed of some threads over that of one */
static double compare_threads(struct null_end *ends, int num,
			      double (*measure)(struct null_end *e))
{
	double one = measure_threads(ends, 1, measure);

	return measure_threads(ends, num, measure) / one;
}

static double median(double *of)
{
	qsort(of, ROUNDS, sizeof(*of), compare);
	return of[ROUNDS / 2];
}

static void tell(const char *what, double value, const char *unit, double must)
{
	printf("%-58s %8.2f %-3s", what, value, unit);
	if (must)
		printf(" <= %-6.4g%s", must, value <= must ? "yes" : "NO");
	putchar('\n');
}

static double measure_grants(struct null_end *ends, int num)
{
	double of[ROUNDS];
	int i;

	for (i = 0; i < ROUNDS; i++)
		of[i] = measure_grant(ends, num);
	return median(of);
}

static void pin(int cpus)
{
	cpu_set_t set;
	int i;

	CPU_ZERO(&set);
	for (i = 0; i < cpus; i++)
		CPU_SET(i, &set);
	sched_setaffinity(0, sizeof(set), &set);
}

int main(void)
{
	static const int waiting[] = { 1, 512, 4096 };
	double plain[ROUNDS], open[ROUNDS], latency[ROUNDS], chunk[ROUNDS], whole[ROUNDS];
	double some_plain[ROUNDS], some_open[ROUNDS], some_shaped[ROUNDS];
	double empty_plain[ROUNDS], empty[ROUNDS], ratio;
	struct null_end direct, first, fast, plains[THREADS], others[THREADS];
	struct null_end *ends;
	char what[64];
	size_t n;
	int i;

	pin(1);
	null_start();
	null_make(&direct, false, RISO_CLASS_BANDWIDTH);
	null_make(&first, true, RISO_CLASS_BANDWIDTH);
	null_make(&fast, true, RISO_CLASS_LATENCY);
	for (i = 0; i < THREADS; i++) {
		null_make(&plains[i], false, RISO_CLASS_BANDWIDTH);
		null_make(&others[i], true, RISO_CLASS_BANDWIDTH);
	}
	for (i = 0; i < ROUNDS; i++) {
		plain[i] = measure_messages(&direct);
		open[i] = measure_messages(&first);
		latency[i] = measure_messages(&fast);
		empty_plain[i] = measure_empty(&direct);
		empty[i] = measure_empty(&first);
		whole[i] = measure_small_chunks(&direct);
		null_set_mode(RISO_USER_PACED);
		chunk[i] = measure_chunks(&first);
		null_set_mode(RISO_USER_OPEN);
	}
	printf("%-58s %8.2f ns\n", "post and poll without the shim", median(plain));
	tell("added, open", median(open) - median(plain), "ns", 15);
	tell("added, class latency", median(latency) - median(plain), "ns", 3);
	printf("%-58s %8.2f ns\n", "empty poll without the shim", median(empty_plain));
	tell("empty poll of a CQ that was used", median(empty), "ns", 9);
	tell("chunk of 4 KB, over that of the provider", median(chunk) - median(whole), "ns", 48);
	tell("calls of the kernel, 1,000 messages that poll", measure_calls(&first), "", 20);
	pin(2);
	for (i = 0; i < ROUNDS; i++) {
		some_plain[i] = compare_threads(plains, THREADS, measure_messages);
		some_open[i] = compare_threads(others, THREADS, measure_messages);
		null_set_mode(RISO_USER_PACED);
		some_shaped[i] = compare_threads(others, 2, measure_chunks);
		null_set_mode(RISO_USER_OPEN);
	}
	printf("%-58s %8.2f\n", "4 threads over one, on two processors, without the shim",
	       median(some_plain));
	printf("%-58s %8.2f\n", "the same with the shim, open", median(some_open));
	ratio = median(some_open) / median(some_plain);
	printf("%-58s %8.2f     >= 0.95 %s\n", "of that without the shim",
	       ratio, ratio >= 0.95 ? "yes" : "NO");
	printf("%-58s %8.2f\n", "2 threads over one, on two processors, shaped",
	       median(some_shaped));
	pin(1);
	ends = calloc(4096, sizeof(*ends));
	for (i = 0; i < 4096; i++)
		null_make(&ends[i], true, RISO_CLASS_BANDWIDTH);
	for (n = 0; n < sizeof(waiting) / sizeof(*waiting); n++) {
		snprintf(what, sizeof(what), "a poll that finds a grant, %d queue pairs waiting",
			 waiting[n]);
		tell(what, measure_grants(ends, waiting[n]), "us", 1);
	}
	return 0;
}
