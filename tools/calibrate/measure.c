// SPDX-License-Identifier: GPL-2.0
/*
 * Latency without load, and load without pace.
 *
 * Whoever waits sleeps on completion events. A load is counted from its first post to
 * its last completion, with all that completes: so it does not matter in which order
 * connections that share the device complete.
 */
#include <errno.h>
#include <poll.h>
#include <string.h>
#include <time.h>

#include "measure.h"
#include "core/cost.h"
#include "cm.h"
#include "loop.h"
#include "percentile.h"

#define PERIOD_NS (500 * UINT64_C(1000))
/* A load of each size */
#define SIZE_NS (300 * MS)

enum {
	WARM_UP = 100,
	SAMPLES = 2000,
	/* Of the load for MaxOps: a batch is posted in one call, and completes once. */
	SMALL = 16,
	BATCH = 16,
	BATCHES = 4 * LINKS,
};

/**
 * struct job - a load
 * @size: of each message
 * @batch: messages in one call, at most BATCH
 * @depth: calls that are out at a time, over all connections
 * @ns: for how long calls follow
 */
struct job {
	uint32_t size;
	unsigned int batch;
	unsigned int depth;
	uint64_t ns;
};

/* Messages go to the memory of the peer one behind the other, and begin anew. */
static void post(struct link *l, unsigned int i, const struct job *job)
{
	static uint32_t next;
	struct ibv_send_wr wr[BATCH];
	struct ibv_sge sge[BATCH];
	struct ibv_send_wr *bad;
	unsigned int n;
	int err;

	for (n = 0; n < job->batch; n++) {
		if (next % job->size || next + job->size > CM_MEMORY)
			next = 0;
		sge[n] = (struct ibv_sge) {
			.addr = (uintptr_t)l->mr->addr + next,
			.length = job->size, .lkey = l->mr->lkey,
		};
		wr[n] = (struct ibv_send_wr) {
			.wr_id = i, .next = &wr[n + 1],
			.sg_list = &sge[n], .num_sge = 1,
			.opcode = IBV_WR_RDMA_WRITE,
			.wr.rdma = { .remote_addr = l->addr + next, .rkey = l->rkey },
		};
		next += job->size;
	}
	wr[n - 1].next = NULL;
	wr[n - 1].send_flags = IBV_SEND_SIGNALED;
	err = ibv_post_send(l->qp[i], wr, &bad);
	if (err)
		die("dev %s: cannot post: %s", l->dev, strerror(err));
}

static void sleep_for_event(struct link *l)
{
	struct pollfd wait = { .fd = l->chan->fd, .events = POLLIN };
	struct ibv_cq *cq;
	void *context;

	if (poll(&wait, 1, GIVE_UP_S * 1000) < 1)
		die("peer %s: no answer for %d s", l->name, GIVE_UP_S);
	if (ibv_get_cq_event(l->chan, &cq, &context))
		die("dev %s: no completion event: %s", l->dev, strerror(errno));
	ibv_ack_cq_events(cq, 1);
	if (ibv_req_notify_cq(cq, 0))
		die("dev %s: cannot wait for completions", l->dev);
}

static bool poll_one(struct link *l, struct ibv_wc *wc)
{
	int n = ibv_poll_cq(l->cq, 1, wc);

	if (n < 0)
		die("dev %s: cannot poll", l->dev);
	if (n && wc->status != IBV_WC_SUCCESS)
		die("dev %s: a message to %s failed: %s", l->dev, l->name,
		    ibv_wc_status_str(wc->status));
	return n;
}

/* What a second of it has */
static uint64_t per_second(uint64_t num, uint64_t ns)
{
	unsigned __int128 in_all = num;

	return in_all * SEC / ns;
}

/* Messages per second, and bytes of the wire */
static uint64_t load(struct link *l, const struct job *job, uint64_t *rate)
{
	uint64_t begin = now_ns(), messages = 0, ns;
	unsigned int out;
	struct ibv_wc wc;

	for (out = 0; out < job->depth; out++)
		post(l, out % LINKS, job);
	while (out) {
		sleep_for_event(l);
		while (poll_one(l, &wc)) {
			messages += job->batch;
			if (now_ns() - begin < job->ns)
				post(l, wc.wr_id, job);
			else
				out--;
		}
	}
	ns = now_ns() - begin;
	*rate = per_second(messages * riso_piece_wire(job->size, l->mtu), ns);
	return per_second(messages, ns);
}

static void sleep_until(uint64_t ns)
{
	struct timespec at = { .tv_sec = ns / SEC, .tv_nsec = ns % SEC };

	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL) == EINTR)
		;
}

static void measure_latency(struct link *l, struct calibrate_seen *seen)
{
	static const struct job reference = { .size = CM_BYTES, .batch = 1 };
	static struct percentile window;
	uint64_t due = now_ns(), posted, ns;
	struct ibv_wc wc;
	unsigned int i;

	if (percentile_init(&window, SAMPLES))
		die("out of memory");
	seen->rtt_min_ns = UINT64_MAX;
	for (i = 0; i < WARM_UP + SAMPLES; i++) {
		posted = now_ns();
		post(l, 0, &reference);
		do
			sleep_for_event(l);
		while (!poll_one(l, &wc));
		ns = now_ns() - posted;
		if (i >= WARM_UP) {
			percentile_add(&window, ns);
			if (ns < seen->rtt_min_ns)
				seen->rtt_min_ns = ns;
		}
		due += PERIOD_NS;
		if (due < now_ns())
			due = now_ns();
		sleep_until(due);
	}
	seen->p50_ns = percentile_get(&window, PERCENTILE_P50);
	seen->p99_ns = percentile_get(&window, PERCENTILE_P99);
	percentile_free(&window);
}

/* The module rounds a chunk up to packets, so a smaller one says nothing. */
static void measure_sizes(struct link *l, struct calibrate_seen *seen)
{
	struct job job = { .batch = 1, .ns = SIZE_NS };
	unsigned int i = 0;

	for (job.size = 1024; job.size <= CM_MEMORY; job.size *= 2) {
		if (job.size < l->mtu)
			continue;
		job.depth = calibrate_depth(riso_piece_wire(job.size, l->mtu),
					    seen->rate, seen->rtt_min_ns);
		seen->size[i].bytes = job.size;
		load(l, &job, &seen->size[i++].rate);
	}
	seen->num = i;
}

void measure(struct link *l, struct calibrate_seen *seen)
{
	static const struct job large = {
		.size = CM_MEMORY, .batch = 1, .depth = LINKS, .ns = SEC,
	};
	static const struct job small = {
		.size = SMALL, .batch = BATCH, .depth = BATCHES, .ns = SEC,
	};
	uint64_t rate;

	begin("latency without load", (WARM_UP + SAMPLES) * PERIOD_NS / SEC + 1);
	measure_latency(l, seen);
	begin("max-rate", large.ns / SEC);
	load(l, &large, &seen->rate);
	begin("max-ops", small.ns / SEC);
	seen->ops = load(l, &small, &rate);
	begin("chunk-bytes", CALIBRATE_SIZES * SIZE_NS / SEC);
	measure_sizes(l, seen);
}
