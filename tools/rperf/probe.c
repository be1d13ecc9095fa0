// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The probe: how long a small message takes.
 *
 * A ping-pong of RC SENDs between two queue pairs. Both ends sleep on
 * completion events and never poll for time to pass, so that on a single CPU
 * a probe measures the network and not its own scheduler quanta. Each sample
 * is half of a round trip, and all of them are kept: the percentiles are
 * exact (nearest rank).
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "rperf.h"

enum {
	/*
	 * Receives that are posted ahead, and sends between two signaled
	 * ones. The send queue holds several such intervals: an ACK that is
	 * late never stops the ping-pong.
	 */
	RECV_DEPTH = 64,
	SEND_SIGNAL = 32,
	SEND_DEPTH = 4 * SEND_SIGNAL,
	WATCH_LEN = 512,
	/* Seconds without one sample before the run is given up. */
	STALL_SECONDS = 30,
};

/* The first byte of a message. */
enum msg { MSG_PING = 'p', MSG_LAST = 'l' };

struct probe {
	struct end end;
	struct ibv_comp_channel *send_chan;
	struct ibv_comp_channel *recv_chan;
	struct ibv_cq *send_cq;
	struct ibv_cq *recv_cq;
	struct ibv_qp *qp;
	struct ibv_mr *mr;
	/* RECV_DEPTH places to receive into, and one to send from */
	unsigned char *buf;
	unsigned int size;
	uint64_t sent;
	unsigned int unreaped;
};

struct sample {
	uint64_t ns;
	uint64_t end;
};

struct samples {
	struct sample *list;
	size_t n;
	size_t room;
};

static struct samples result;

static void post_recv(struct probe *e, uint64_t place)
{
	struct ibv_sge sge = {
		.addr = (uintptr_t)(e->buf + place * MAX_PROBE_SIZE),
		.length = MAX_PROBE_SIZE,
		.lkey = e->mr->lkey,
	};
	struct ibv_recv_wr wr = { .wr_id = place, .sg_list = &sge, .num_sge = 1 };
	struct ibv_recv_wr *bad;
	int err = ibv_post_recv(e->qp, &wr, &bad);

	if (err)
		die("cannot post a receive: %s", strerror(err));
}

static void setup(struct probe *e, const struct params *p, int fd)
{
	struct ibv_qp_init_attr init = {
		.cap = {
			.max_send_wr = SEND_DEPTH,
			.max_recv_wr = RECV_DEPTH,
			.max_send_sge = 1,
			.max_recv_sge = 1,
		},
		.qp_type = IBV_QPT_RC,
	};
	size_t len = (RECV_DEPTH + 1) * MAX_PROBE_SIZE;
	struct end *end = &e->end;
	uint64_t i;

	open_end(end, p->dev, p->gid);
	e->size = p->size;
	e->send_chan = ibv_create_comp_channel(end->ctx);
	e->recv_chan = ibv_create_comp_channel(end->ctx);
	if (!e->send_chan || !e->recv_chan)
		die("%s: cannot allocate: %s", p->dev, strerror(errno));
	e->send_cq = ibv_create_cq(end->ctx, SEND_DEPTH, NULL, e->send_chan, 0);
	e->recv_cq = ibv_create_cq(end->ctx, RECV_DEPTH, NULL, e->recv_chan, 0);
	if (!e->send_cq || !e->recv_cq)
		die("%s: cannot create a CQ: %s", p->dev, strerror(errno));
	e->buf = aligned_alloc(MAX_PROBE_SIZE, len);
	if (!e->buf)
		die("out of memory");
	memset(e->buf, 0, len);
	e->mr = ibv_reg_mr(end->pd, e->buf, len, IBV_ACCESS_LOCAL_WRITE);
	if (!e->mr)
		die("%s: cannot register memory: %s", p->dev, strerror(errno));

	init.send_cq = e->send_cq;
	init.recv_cq = e->recv_cq;
	e->qp = ibv_create_qp(end->pd, &init);
	if (!e->qp)
		die("%s: cannot create a QP: %s", p->dev, strerror(errno));
	init_qp(e->qp, 0);
	for (i = 0; i < RECV_DEPTH; i++)
		post_recv(e, i);
	connect_qp(end, e->qp, fd);
	start_watchdog(STALL_SECONDS);
}

static void send_msg(struct probe *e, enum msg kind)
{
	unsigned char *data = e->buf + RECV_DEPTH * MAX_PROBE_SIZE;
	struct ibv_sge sge = {
		.addr = (uintptr_t)data,
		.length = e->size,
		.lkey = e->mr->lkey,
	};
	struct ibv_send_wr wr = {
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = IBV_WR_SEND,
	};
	struct ibv_send_wr *bad;
	struct ibv_wc wc;
	int err;

	/* Half of the signaled sends' completions must have come back. */
	while (e->unreaped > SEND_DEPTH / SEND_SIGNAL / 2) {
		if (poll_one(e->send_cq, &wc)) {
			e->unreaped--;
			continue;
		}
		arm(e->send_cq);
		if (poll_one(e->send_cq, &wc))
			e->unreaped--;
		else
			wait_event(e->send_chan);
	}
	data[0] = kind;
	if (++e->sent % SEND_SIGNAL == 0) {
		wr.send_flags = IBV_SEND_SIGNALED;
		e->unreaped++;
	}
	err = ibv_post_send(e->qp, &wr, &bad);
	if (err)
		die("cannot send: %s", strerror(err));
}

/*
 * The CQ was armed, and empty, before the message could come: each message
 * gives its event. An event may still be one that an earlier arming owed.
 */
static enum msg wait_msg(struct probe *e)
{
	struct ibv_wc wc;
	enum msg kind;

	wait_event(e->recv_chan);
	while (!poll_one(e->recv_cq, &wc)) {
		arm(e->recv_cq);
		if (poll_one(e->recv_cq, &wc))
			break;
		wait_event(e->recv_chan);
	}
	kind = e->buf[wc.wr_id * MAX_PROBE_SIZE];
	post_recv(e, wc.wr_id);
	beats++;
	return kind;
}

void probe_serve(const struct params *p, int fd)
{
	struct probe e = { 0 };
	enum msg kind;

	setup(&e, p, fd);
	arm(e.recv_cq);
	put_line(fd, "ready\n");
	do {
		kind = wait_msg(&e);
		arm(e.recv_cq);
		send_msg(&e, kind);
	} while (kind != MSG_LAST);
	/* Stay until the answer to the last message has been received. */
	if (read(fd, &kind, 1) < 0)
		exit(1);
}

static void keep(struct samples *s, struct sample sample)
{
	if (s->n == s->room) {
		s->room = s->room ? 2 * s->room : 65536;
		s->list = realloc(s->list, s->room * sizeof(*s->list));
		if (!s->list)
			die("out of memory");
	}
	s->list[s->n++] = sample;
}

static struct sample round_trip(struct probe *e, enum msg kind)
{
	uint64_t start, end;

	arm(e->recv_cq);
	start = now_ns();
	send_msg(e, kind);
	wait_msg(e);
	end = now_ns();
	return (struct sample) { .ns = (end - start) / 2, .end = end };
}

static void read_watch(const struct params *p, char text[][WATCH_LEN])
{
	int i, j, fd;
	ssize_t n;

	for (i = 0; i < p->nwatch; i++) {
		fd = open(p->watch[i], O_RDONLY);
		n = fd < 0 ? -1 : read(fd, text[i], WATCH_LEN - 1);
		if (n < 0)
			die("%s: %s", p->watch[i], strerror(errno));
		close(fd);
		text[i][n] = 0;
		for (j = 0; j < n; j++)
			if ((unsigned char)text[i][j] < ' ' ||
			    strchr("\"\\", text[i][j]))
				text[i][j] = ' ';
	}
}

static void write_log(const char *name)
{
	FILE *file = fopen(name, "w");
	size_t i;

	if (!file)
		die("%s: %s", name, strerror(errno));
	for (i = 0; i < result.n; i++)
		fprintf(file, "%" PRIu64 " %" PRIu64 "\n", result.list[i].end,
			result.list[i].ns);
	if (fclose(file))
		die("%s: %s", name, strerror(errno));
}

static int compare(const void *a, const void *b)
{
	uint64_t x = ((const struct sample *)a)->ns;
	uint64_t y = ((const struct sample *)b)->ns;

	return (x > y) - (x < y);
}

/* Nearest rank, in tenths of a percent. */
static uint64_t permille(const struct samples *s, size_t p)
{
	size_t rank = (s->n * p + 999) / 1000;

	return s->list[rank ? rank - 1 : 0].ns;
}

static void print_result(const struct params *p, uint64_t elapsed,
			 char before[][WATCH_LEN], char after[][WATCH_LEN])
{
	static const struct {
		const char *key;
		const char *name;
		size_t permille;
	} rows[] = {
		{ "min", "min", 0 },
		{ "median", "median", 500 },
		{ "p90", "90%", 900 },
		{ "p99", "99%", 990 },
		{ "p99_9", "99.9%", 999 },
		{ "max", "max", 1000 },
	};
	size_t i;

	qsort(result.list, result.n, sizeof(*result.list), compare);
	if (!p->json) {
		printf("%zu samples of %u bytes, half round trip in us:",
		       result.n, p->size);
		for (i = 0; i < ARRAY_SIZE(rows); i++)
			printf(" %s %.1f", rows[i].name,
			       permille(&result, rows[i].permille) / 1000.0);
		putchar('\n');
		return;
	}
	printf("{\"dev\": \"%s\", \"size\": %u, \"samples\": %zu, \"elapsed_ns\": %"
	       PRIu64, p->dev, p->size, result.n, elapsed);
	for (i = 0; i < ARRAY_SIZE(rows); i++)
		printf(", \"%s_ns\": %" PRIu64, rows[i].key,
		       permille(&result, rows[i].permille));
	printf(", \"watch\": [");
	for (i = 0; i < (size_t)p->nwatch; i++)
		printf("%s{\"before\": \"%s\", \"after\": \"%s\"}",
		       i ? ", " : "", before[i], after[i]);
	printf("]}\n");
}

void probe_run(const struct params *p, int fd)
{
	char before[MAX_WATCH][WATCH_LEN], after[MAX_WATCH][WATCH_LEN];
	uint64_t i, start, end = UINT64_MAX, elapsed;
	struct probe e = { 0 };
	char line[LINE_LEN];

	setup(&e, p, fd);
	get_line(fd, line);
	/* Not one page fault of the array in the samples. */
	if (p->samples) {
		result.room = p->samples;
		result.list = malloc(result.room * sizeof(*result.list));
		if (!result.list)
			die("out of memory");
		memset(result.list, 0xff, result.room * sizeof(*result.list));
	}
	for (i = 0; i < p->warmup; i++)
		round_trip(&e, MSG_PING);

	read_watch(p, before);
	start = now_ns();
	if (p->seconds > 0)
		end = start + p->seconds * 1e9;
	while ((!p->samples || result.n < p->samples) && now_ns() < end) {
		keep(&result, round_trip(&e, MSG_PING));
		if (p->interval_us)
			usleep(p->interval_us);
	}
	elapsed = now_ns() - start;
	read_watch(p, after);
	round_trip(&e, MSG_LAST);

	if (!result.n)
		die("no sample in %g s", p->seconds);
	if (p->log)
		write_log(p->log);
	print_result(p, elapsed, before, after);
}
