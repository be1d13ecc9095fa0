// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The load: messages, as many as go through.
 *
 * The client keeps each of its queue pairs filled with WRITEs to, READs from or
 * SENDs to the other end, and sleeps on completion events meanwhile. All messages
 * are of one size and use the same memory. What completes is counted from one
 * completion to another, so that a few large messages give an exact rate.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "rperf.h"

enum {
	/* Stay zero, before and after the memory of a message. */
	GUARD = 4096,
	/*
	 * Seconds without a completion before the run is given up; for each
	 * megabyte of a message there is one more.
	 */
	STALL_SECONDS = 30,
};

static const struct {
	enum ibv_wr_opcode wr;
	enum ibv_wc_opcode wc;
	uint64_t builder;
} ops[LOADS] = {
	[LOAD_WRITE] = {
		IBV_WR_RDMA_WRITE, IBV_WC_RDMA_WRITE, IBV_QP_EX_WITH_RDMA_WRITE
	},
	[LOAD_READ] = {
		IBV_WR_RDMA_READ, IBV_WC_RDMA_READ, IBV_QP_EX_WITH_RDMA_READ
	},
	[LOAD_SEND] = {
		IBV_WR_SEND, IBV_WC_SEND, IBV_QP_EX_WITH_SEND
	},
};

/* A queue pair, and the batches that it was given and has completed. */
struct queue {
	struct ibv_qp *qp;
	struct ibv_qp_ex *qpx;
	uint64_t posted;
	uint64_t done;
};

/* A point in time, and what had completed by then. */
struct mark {
	uint64_t ns;
	uint64_t cpu_us;
	uint64_t batches;
};

struct load_end {
	const struct params *p;
	struct end end;
	struct ibv_comp_channel *chan;
	struct ibv_cq *cq;
	struct ibv_mr *mr;
	/* a message between two guards */
	unsigned char *memory;
	struct ibv_sge sge;
	struct queue *queues;
	/* what is posted in one call; the builders do as it says */
	struct ibv_send_wr *batch;
	uint64_t batches;
	uint64_t outstanding;
	bool ending;
	/* what is being counted */
	struct mark since;
	struct mark until;
};

static volatile sig_atomic_t count_anew, end_now;

static void on_signal(int sig)
{
	if (sig == SIGUSR1)
		count_anew = 1;
	else
		end_now = 1;
}

/* --- both ends ------------------------------------------------------------ */

static void map_memory(struct load_end *l)
{
	size_t len = 2 * GUARD + (size_t)l->p->size;

	l->memory = mmap(NULL, len, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (l->memory == MAP_FAILED)
		die("no memory for a message of %u bytes", l->p->size);
	l->mr = ibv_reg_mr(l->end.pd, l->memory, len, IBV_ACCESS_LOCAL_WRITE |
			   IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ);
	if (!l->mr)
		die("%s: cannot register memory: %s", l->p->dev,
		    strerror(errno));
	l->sge.addr = (uintptr_t)l->memory + GUARD;
	l->sge.length = l->p->size;
	l->sge.lkey = l->mr->lkey;
}

static struct ibv_qp *create_qp(struct load_end *l, unsigned int sends,
				unsigned int recvs)
{
	struct ibv_qp_init_attr_ex init = {
		.send_cq = l->cq,
		.recv_cq = l->cq,
		.cap = {
			.max_send_wr = sends,
			.max_recv_wr = recvs,
			.max_send_sge = 1,
			.max_recv_sge = 1,
		},
		.qp_type = IBV_QPT_RC,
		.comp_mask = IBV_QP_INIT_ATTR_PD,
		.pd = l->end.pd,
	};
	struct ibv_qp_init_attr plain = {
		.send_cq = init.send_cq,
		.recv_cq = init.recv_cq,
		.cap = init.cap,
		.qp_type = init.qp_type,
	};
	struct ibv_qp *qp;

	if (l->p->builders) {
		init.comp_mask |= IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
		init.send_ops_flags = ops[l->p->load].builder;
		qp = ibv_create_qp_ex(l->end.ctx, &init);
	} else {
		qp = ibv_create_qp(l->end.pd, &plain);
	}
	if (!qp)
		die("%s: cannot create a QP: %s", l->p->dev, strerror(errno));
	init_qp(qp, IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ);
	return qp;
}

static void post_recv(struct load_end *l, unsigned int i)
{
	struct ibv_recv_wr wr = { .wr_id = i, .sg_list = &l->sge, .num_sge = 1 };
	struct ibv_recv_wr *bad;
	int err = ibv_post_recv(l->queues[i].qp, &wr, &bad);

	if (err)
		die("cannot post a receive: %s", strerror(err));
}

/* Of one queue pair; an end that neither sends nor receives has room for one. */
static void open_load(struct load_end *l, const struct params *p,
		      unsigned int sends, unsigned int recvs, int fd)
{
	unsigned int i, n;

	l->p = p;
	open_end(&l->end, p->dev, p->gid);
	map_memory(l);
	l->chan = ibv_create_comp_channel(l->end.ctx);
	if (!l->chan)
		die("%s: cannot allocate: %s", p->dev, strerror(errno));
	l->cq = ibv_create_cq(l->end.ctx, p->qps * (sends + recvs), NULL,
			      l->chan, 0);
	if (!l->cq)
		die("%s: cannot create a CQ for %u messages: %s", p->dev,
		    p->qps * (sends + recvs), strerror(errno));
	l->queues = calloc(p->qps, sizeof(*l->queues));
	if (!l->queues)
		die("out of memory");
	for (i = 0; i < p->qps; i++) {
		l->queues[i].qp = create_qp(l, sends, recvs);
		for (n = 0; p->load == LOAD_SEND && n < recvs; n++)
			post_recv(l, i);
		connect_qp(&l->end, l->queues[i].qp, fd);
	}
}

/* --- the data ------------------------------------------------------------- */

/* The eight bytes from offset 8 * i on; no two of a message are the same. */
static uint64_t pattern(uint64_t i)
{
	return (i + 1) * UINT64_C(0x9e3779b97f4a7c15);
}

static void fill(struct load_end *l)
{
	unsigned char *data = l->memory + GUARD;
	size_t at, size = l->p->size;

	for (at = 0; at < size; at += sizeof(uint64_t)) {
		uint64_t word = pattern(at / sizeof(word));

		memcpy(data + at, &word,
		       size - at < sizeof(word) ? size - at : sizeof(word));
	}
}

static bool is_zero(const unsigned char *bytes)
{
	static const unsigned char zero[GUARD];

	return !memcmp(bytes, zero, GUARD);
}

/* Where it differs first; the size if it does not, one more for a guard. */
static size_t check(const struct load_end *l)
{
	const unsigned char *data = l->memory + GUARD;
	size_t at, size = l->p->size;

	for (at = 0; at < size; at += sizeof(uint64_t)) {
		uint64_t word = pattern(at / sizeof(word));

		if (memcmp(data + at, &word,
			   size - at < sizeof(word) ? size - at : sizeof(word)))
			return at;
	}
	return is_zero(l->memory) && is_zero(data + size) ? size : size + 1;
}

static void judge(const struct load_end *l, size_t at)
{
	if (at < l->p->size)
		die("the data is wrong, first in the 8 bytes from %zu on", at);
	if (at > l->p->size)
		die("something was written before or after the message");
}

/* --- the server ----------------------------------------------------------- */

/* Receives until the client says how many messages there were, and these. */
static void receive(struct load_end *l, int fd)
{
	struct pollfd fds[] = {
		{ .fd = l->chan->fd, .events = POLLIN },
		{ .fd = fd, .events = POLLIN },
	};
	uint64_t received = 0, all = UINT64_MAX;
	char line[LINE_LEN];
	struct ibv_wc wc;

	while (received < all) {
		if (poll(fds, ARRAY_SIZE(fds), -1) < 0)
			die("cannot wait: %s", strerror(errno));
		if (fds[1].revents) {
			get_line(fd, line);
			if (sscanf(line, "done %" SCNu64, &all) != 1)
				die("not an rperf at the other end");
		}
		if (fds[0].revents) {
			wait_event(l->chan);
			arm(l->cq);
		}
		while (poll_one(l->cq, &wc)) {
			if (wc.opcode != IBV_WC_RECV ||
			    wc.byte_len != l->p->size)
				die("received %u bytes, not %u", wc.byte_len,
				    l->p->size);
			received++;
			post_recv(l, wc.wr_id);
		}
	}
	if (received > all)
		die("received %" PRIu64 " messages, not %" PRIu64, received,
		    all);
}

void load_serve(const struct params *p, int fd)
{
	unsigned int recvs = p->load == LOAD_SEND ? 2 * p->depth : 1;
	struct load_end l = { 0 };
	char line[LINE_LEN];

	open_load(&l, p, 1, recvs, fd);
	if (p->verify && p->load == LOAD_READ)
		fill(&l);
	arm(l.cq);
	put_line(fd, "ready %" PRIu64 " %u\n", l.sge.addr, l.mr->rkey);
	if (p->load == LOAD_SEND)
		receive(&l, fd);
	else
		get_line(fd, line);
	put_line(fd, "checked %zu\n",
		 p->verify && p->load != LOAD_READ ? check(&l) : p->size);
}

/* --- the client ----------------------------------------------------------- */

static void make_batch(struct load_end *l, uint64_t addr, uint32_t rkey)
{
	unsigned int i, n = l->p->batch;

	l->batch = calloc(n, sizeof(*l->batch));
	if (!l->batch)
		die("out of memory");
	for (i = 0; i < n; i++) {
		struct ibv_send_wr *wr = &l->batch[i];

		wr->sg_list = &l->sge;
		wr->num_sge = 1;
		wr->opcode = ops[l->p->load].wr;
		wr->wr.rdma.remote_addr = addr;
		wr->wr.rdma.rkey = rkey;
		wr->next = i + 1 < n ? wr + 1 : NULL;
	}
	l->batch[n - 1].send_flags = IBV_SEND_SIGNALED;
}

static int build(struct load_end *l, struct ibv_qp_ex *qpx)
{
	const struct ibv_send_wr *wr;

	ibv_wr_start(qpx);
	for (wr = l->batch; wr; wr = wr->next) {
		qpx->wr_id = wr->wr_id;
		qpx->wr_flags = wr->send_flags;
		switch (wr->opcode) {
		case IBV_WR_RDMA_WRITE:
			ibv_wr_rdma_write(qpx, wr->wr.rdma.rkey,
					  wr->wr.rdma.remote_addr);
			break;
		case IBV_WR_RDMA_READ:
			ibv_wr_rdma_read(qpx, wr->wr.rdma.rkey,
					 wr->wr.rdma.remote_addr);
			break;
		default:
			ibv_wr_send(qpx);
		}
		ibv_wr_set_sge(qpx, l->sge.lkey, l->sge.addr, l->sge.length);
	}
	return ibv_wr_complete(qpx);
}

/* The id of a batch tells its queue, and which one of that it is. */
static void post(struct load_end *l, unsigned int i)
{
	struct queue *q = &l->queues[i];
	struct ibv_send_wr *bad;
	int err;

	l->batch[l->p->batch - 1].wr_id = q->posted++ * l->p->qps + i;
	l->outstanding++;
	err = q->qpx ? build(l, q->qpx) : ibv_post_send(q->qp, l->batch, &bad);
	if (err)
		die("cannot post: %s", strerror(err));
}

static void set_mark(const struct load_end *l, struct mark *m)
{
	struct rusage used;

	getrusage(RUSAGE_SELF, &used);
	m->cpu_us = (used.ru_utime.tv_sec + used.ru_stime.tv_sec) *
		    UINT64_C(1000000) +
		    used.ru_utime.tv_usec + used.ru_stime.tv_usec;
	m->batches = l->batches;
	m->ns = now_ns();
}

static void print_result(const struct load_end *l)
{
	const struct params *p = l->p;
	uint64_t ns = l->until.ns - l->since.ns;
	uint64_t cpu_us = l->until.cpu_us - l->since.cpu_us;
	uint64_t messages = (l->until.batches - l->since.batches) * p->batch;
	uint64_t bytes = messages * p->size;

	if (!p->json) {
		printf("%s of %u bytes: %" PRIu64 " messages, %" PRIu64
		       " bytes in %.3f s: %.1f messages/s, %.3f MB/s, CPU %.3f s, %.1f us/MB\n",
		       load_names[p->load], p->size, messages, bytes, ns / 1e9,
		       messages * 1e9 / ns, bytes * 1e3 / ns, cpu_us / 1e6,
		       cpu_us * 1e6 / bytes);
	} else {
		printf("{\"dev\": \"%s\", \"load\": \"%s\", \"api\": \"%s\"",
		       p->dev, load_names[p->load],
		       p->builders ? "wr" : "post");
		printf(", \"size\": %u, \"qps\": %u, \"depth\": %u, \"batch\": %u",
		       p->size, p->qps, p->depth, p->batch);
		printf(", \"elapsed_ns\": %" PRIu64 ", \"messages\": %" PRIu64
		       ", \"bytes\": %" PRIu64, ns, messages, bytes);
		printf(", \"messages_per_s\": %.3f, \"bytes_per_s\": %.0f, \"cpu_us\": %"
		       PRIu64 ", \"cpu_us_per_mb\": %.3f}\n",
		       messages * 1e9 / ns, bytes * 1e9 / ns, cpu_us,
		       cpu_us * 1e6 / bytes);
	}
	fflush(stdout);
}

static void tell_ready(const char *name)
{
	int fd = open(name, O_CREAT | O_WRONLY | O_CLOEXEC, 0666);

	if (fd < 0)
		die("%s: %s", name, strerror(errno));
	close(fd);
}

/*
 * Each batch comes back once, in order, as what it was posted. What completes
 * after the end was only outstanding.
 */
static void complete(struct load_end *l, const struct ibv_wc *wc, uint64_t end)
{
	const struct params *p = l->p;
	struct queue *q = &l->queues[wc->wr_id % p->qps];

	if (wc->wr_id / p->qps != q->done || wc->qp_num != q->qp->qp_num)
		die("a completion that was not to come now: id %" PRIu64
		    " of QP %u", wc->wr_id, wc->qp_num);
	if (wc->opcode != ops[p->load].wc ||
	    (p->load == LOAD_READ && wc->byte_len != p->size))
		die("a completion of another kind: opcode %d, %u bytes",
		    wc->opcode, wc->byte_len);
	q->done++;
	l->outstanding--;
	beats++;
	if (!l->batches++ && p->ready)
		tell_ready(p->ready);
	if (l->ending)
		return;
	if (end_now || (end != UINT64_MAX && now_ns() >= end)) {
		set_mark(l, &l->until);
		l->ending = true;
		return;
	}
	if (count_anew) {
		count_anew = 0;
		set_mark(l, &l->until);
		print_result(l);
		l->since = l->until;
	}
	post(l, q - l->queues);
}

static void run(struct load_end *l)
{
	const struct params *p = l->p;
	uint64_t end = UINT64_MAX;
	struct ibv_wc wc;
	unsigned int i, n;

	arm(l->cq);
	set_mark(l, &l->since);
	if (p->seconds > 0)
		end = l->since.ns + p->seconds * 1e9;
	for (n = 0; n < p->depth / p->batch; n++)
		for (i = 0; i < p->qps; i++)
			post(l, i);
	while (l->outstanding) {
		wait_event(l->chan);
		arm(l->cq);
		while (poll_one(l->cq, &wc))
			complete(l, &wc, end);
	}
}

void load_run(const struct params *p, int fd)
{
	struct sigaction sa = {
		.sa_handler = on_signal, .sa_flags = SA_RESTART
	};
	struct load_end l = { 0 };
	char line[LINE_LEN];
	uint64_t addr;
	uint32_t rkey;
	unsigned int i;
	size_t at;

	sigaction(SIGUSR1, &sa, NULL);
	sigaction(SIGTERM, &sa, NULL);
	open_load(&l, p, p->depth, 1, fd);
	for (i = 0; p->builders && i < p->qps; i++)
		l.queues[i].qpx = ibv_qp_to_qp_ex(l.queues[i].qp);
	if (p->verify && p->load != LOAD_READ)
		fill(&l);
	get_line(fd, line);
	if (sscanf(line, "ready %" SCNu64 " %" SCNu32, &addr, &rkey) != 2)
		die("not an rperf at the other end");
	make_batch(&l, addr, rkey);
	start_watchdog(STALL_SECONDS + p->size / (1 << 20));
	run(&l);

	put_line(fd, "done %" PRIu64 "\n", l.batches * p->batch);
	get_line(fd, line);
	if (sscanf(line, "checked %zu", &at) != 1)
		die("not an rperf at the other end");
	judge(&l, at);
	if (p->verify && p->load == LOAD_READ)
		judge(&l, check(&l));
	print_result(&l);
}
