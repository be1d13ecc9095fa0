// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * rperf: how long a small message takes.
 *
 * A ping-pong of RC SENDs between two queue pairs. Both ends sleep on
 * completion events and never poll for time to pass, so that on a single CPU
 * a probe measures the network and not its own scheduler quanta. Each sample
 * is half of a round trip, and all of them are kept: the percentiles are
 * exact (nearest rank).
 *
 * The ends are two processes, of two hosts (server and client, parameters come
 * from the client), or forked here with --peer for two devices of one host.
 * They exchange what the queue pairs need, one line of text each, over a
 * stream socket.
 */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <inttypes.h>
#include <netdb.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <infiniband/verbs.h>

#define ARRAY_SIZE(a)	(sizeof(a) / sizeof((a)[0]))

enum {
	/*
	 * Receives that are posted ahead, and sends between two signaled
	 * ones. The send queue holds several such intervals: an ACK that is
	 * late never stops the ping-pong.
	 */
	RECV_DEPTH = 64,
	SEND_SIGNAL = 32,
	SEND_DEPTH = 4 * SEND_SIGNAL,
	MAX_SIZE = 4096,
	MAX_WATCH = 8,
	WATCH_LEN = 512,
	/* Seconds without one sample before the run is given up. */
	STALL_SECONDS = 30,
	DEFAULT_PORT = 18600,
};

/* The first byte of a message. */
enum msg { MSG_PING = 'p', MSG_LAST = 'l' };

struct params {
	const char *dev;
	const char *peer;
	const char *host;
	int gid;
	int peer_gid;
	int port;
	unsigned int size;
	uint64_t samples;
	double seconds;
	uint64_t warmup;
	uint64_t interval_us;
	bool json;
	const char *watch[MAX_WATCH];
	int nwatch;
};

struct end {
	struct ibv_context *ctx;
	struct ibv_pd *pd;
	struct ibv_comp_channel *send_chan;
	struct ibv_comp_channel *recv_chan;
	struct ibv_cq *send_cq;
	struct ibv_cq *recv_cq;
	struct ibv_qp *qp;
	struct ibv_mr *mr;
	struct ibv_port_attr port;
	union ibv_gid gid;
	int gid_index;
	/* RECV_DEPTH places to receive into, and one to send from */
	unsigned char *buf;
	unsigned int size;
	uint64_t sent;
	unsigned int unreaped;
};

struct samples {
	uint64_t *ns;
	size_t n;
	size_t room;
};

static const char *whoami = "";
static volatile sig_atomic_t beats;
static struct samples result;

static void __attribute__((noreturn, format(printf, 1, 2)))
die(const char *fmt, ...)
{
	va_list ap;

	fprintf(stderr, "rperf: %s", whoami);
	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	fputc('\n', stderr);
	exit(1);
}

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * UINT64_C(1000000000) + ts.tv_nsec;
}

/*
 * A lost completion must end in an error and not in a hang; looking at the
 * clock for it once per second costs the samples nothing.
 */
static void on_alarm(int sig)
{
	static const char text[] = "rperf: no answer for 30 s\n";
	static sig_atomic_t seen;
	static int idle;

	(void)sig;
	idle = beats == seen ? idle + 1 : 0;
	seen = beats;
	if (idle < STALL_SECONDS)
		return;
	if (write(STDERR_FILENO, text, sizeof(text) - 1) < 0)
		_exit(2);
	_exit(1);
}

static void start_watchdog(void)
{
	struct itimerval each = { { 1, 0 }, { 1, 0 } };
	struct sigaction sa = { .sa_handler = on_alarm, .sa_flags = SA_RESTART };

	sigaction(SIGALRM, &sa, NULL);
	setitimer(ITIMER_REAL, &each, NULL);
}

static struct ibv_context *open_device(const char *name)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_context *ctx = NULL;
	int i;

	if (!list)
		die("no RDMA devices: %s", strerror(errno));
	for (i = 0; list[i]; i++) {
		if (strcmp(ibv_get_device_name(list[i]), name))
			continue;
		ctx = ibv_open_device(list[i]);
		if (!ctx)
			die("cannot open %s: %s", name, strerror(errno));
	}
	ibv_free_device_list(list);
	if (!ctx)
		die("no RDMA device named %s; \"rdma link\" shows what there is",
		    name);
	return ctx;
}

static bool gid_is_ipv4(const union ibv_gid *gid)
{
	static const unsigned char prefix[12] = { [10] = 0xff, [11] = 0xff };

	return !memcmp(gid->raw, prefix, sizeof(prefix));
}

/* On Ethernet the first RoCE v2 GID of an IPv4 address, else the first GID. */
static int choose_gid(struct end *e)
{
	struct ibv_gid_entry entry;
	int i;

	if (e->port.link_layer != IBV_LINK_LAYER_ETHERNET)
		return 0;
	for (i = 0; i < e->port.gid_tbl_len; i++)
		if (!ibv_query_gid_ex(e->ctx, 1, i, &entry, 0) &&
		    entry.gid_type == IBV_GID_TYPE_ROCE_V2 &&
		    gid_is_ipv4(&entry.gid))
			return i;
	die("%s has no IPv4 RoCE v2 GID; give one with --gid",
	    ibv_get_device_name(e->ctx->device));
}

static void post_recv(struct end *e, uint64_t place)
{
	struct ibv_sge sge = {
		.addr = (uintptr_t)(e->buf + place * MAX_SIZE),
		.length = MAX_SIZE,
		.lkey = e->mr->lkey,
	};
	struct ibv_recv_wr wr = { .wr_id = place, .sg_list = &sge, .num_sge = 1 };
	struct ibv_recv_wr *bad;
	int err = ibv_post_recv(e->qp, &wr, &bad);

	if (err)
		die("cannot post a receive: %s", strerror(err));
}

static void open_end(struct end *e, const char *dev, int gid)
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
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_INIT,
		.port_num = 1,
	};
	size_t len = (RECV_DEPTH + 1) * MAX_SIZE;
	uint64_t i;
	int err;

	e->ctx = open_device(dev);
	err = ibv_query_port(e->ctx, 1, &e->port);
	if (err)
		die("%s: cannot query port 1: %s", dev, strerror(err));
	if (e->port.state != IBV_PORT_ACTIVE)
		die("%s: port 1 is %s, not active", dev,
		    ibv_port_state_str(e->port.state));
	e->gid_index = gid >= 0 ? gid : choose_gid(e);
	if (ibv_query_gid(e->ctx, 1, e->gid_index, &e->gid))
		die("%s: no GID %d", dev, e->gid_index);

	e->pd = ibv_alloc_pd(e->ctx);
	e->send_chan = ibv_create_comp_channel(e->ctx);
	e->recv_chan = ibv_create_comp_channel(e->ctx);
	if (!e->pd || !e->send_chan || !e->recv_chan)
		die("%s: cannot allocate: %s", dev, strerror(errno));
	e->send_cq = ibv_create_cq(e->ctx, SEND_DEPTH, NULL, e->send_chan, 0);
	e->recv_cq = ibv_create_cq(e->ctx, RECV_DEPTH, NULL, e->recv_chan, 0);
	if (!e->send_cq || !e->recv_cq)
		die("%s: cannot create a CQ: %s", dev, strerror(errno));
	e->buf = aligned_alloc(MAX_SIZE, len);
	if (!e->buf)
		die("out of memory");
	memset(e->buf, 0, len);
	e->mr = ibv_reg_mr(e->pd, e->buf, len, IBV_ACCESS_LOCAL_WRITE);
	if (!e->mr)
		die("%s: cannot register memory: %s", dev, strerror(errno));

	init.send_cq = e->send_cq;
	init.recv_cq = e->recv_cq;
	e->qp = ibv_create_qp(e->pd, &init);
	if (!e->qp)
		die("%s: cannot create a QP: %s", dev, strerror(errno));
	err = ibv_modify_qp(e->qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX |
			    IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
	if (err)
		die("%s: QP to INIT: %s", dev, strerror(err));
	for (i = 0; i < RECV_DEPTH; i++)
		post_recv(e, i);
}

/* One line of the exchange; short, so that one read or write takes it all. */
static void put_line(int fd, const char *fmt, ...)
{
	char line[256];
	va_list ap;
	int len;

	va_start(ap, fmt);
	len = vsnprintf(line, sizeof(line), fmt, ap);
	va_end(ap);
	if (write(fd, line, len) != len)
		die("the other end went away: %s", strerror(errno));
}

static void get_line(int fd, char *line, size_t size)
{
	size_t len = 0;

	for (;;) {
		ssize_t n = read(fd, line + len, 1);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			die("the other end went away");
		if (line[len] == '\n')
			break;
		if (++len == size)
			die("not an rperf at the other end");
	}
	line[len] = 0;
}

/*
 * Both ends tell what the other needs to know of them, and the client how
 * large the messages are.
 */
static void connect_ends(struct end *e, int fd)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_RTR };
	unsigned int qpn, psn, lid, mtu, size, my_psn;
	char line[256], gid[33], hex[3] = "";
	int i, err;

	my_psn = (now_ns() ^ getpid()) & 0xffffff;
	for (i = 0; i < 16; i++)
		sprintf(gid + 2 * i, "%02x", e->gid.raw[i]);
	put_line(fd, "rperf1 %u %u %u %u %u %s\n", e->qp->qp_num, my_psn,
		 e->port.lid, e->port.active_mtu, e->size, gid);
	get_line(fd, line, sizeof(line));
	if (sscanf(line, "rperf1 %u %u %u %u %u %32s", &qpn, &psn, &lid, &mtu,
		   &size, gid) != 6 || strlen(gid) != 32 || size > MAX_SIZE)
		die("not an rperf at the other end");
	if (!e->size)
		e->size = size;

	attr.path_mtu = mtu < e->port.active_mtu ? mtu : e->port.active_mtu;
	attr.dest_qp_num = qpn;
	attr.rq_psn = psn;
	attr.max_dest_rd_atomic = 1;
	attr.min_rnr_timer = 12;
	attr.ah_attr.dlid = lid;
	attr.ah_attr.port_num = 1;
	attr.ah_attr.is_global = 1;
	attr.ah_attr.grh.sgid_index = e->gid_index;
	attr.ah_attr.grh.hop_limit = 64;
	for (i = 0; i < 16; i++) {
		memcpy(hex, gid + 2 * i, 2);
		attr.ah_attr.grh.dgid.raw[i] = strtoul(hex, NULL, 16);
	}
	err = ibv_modify_qp(e->qp, &attr, IBV_QP_STATE | IBV_QP_AV |
			    IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
			    IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
	if (err)
		die("QP to RTR: %s (is there a route to the peer's GID?)",
		    strerror(err));

	attr.qp_state = IBV_QPS_RTS;
	attr.sq_psn = my_psn;
	/* 1 s: behind bulk, an answer may take long without being lost */
	attr.timeout = 18;
	attr.retry_cnt = 7;
	attr.rnr_retry = 7;
	attr.max_rd_atomic = 1;
	err = ibv_modify_qp(e->qp, &attr, IBV_QP_STATE | IBV_QP_TIMEOUT |
			    IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
			    IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC);
	if (err)
		die("QP to RTS: %s", strerror(err));
}

static void arm(struct ibv_cq *cq)
{
	int err = ibv_req_notify_cq(cq, 0);

	if (err)
		die("cannot arm a CQ: %s", strerror(err));
}

static void wait_event(struct ibv_comp_channel *chan)
{
	struct ibv_cq *cq;
	void *ctx;

	if (ibv_get_cq_event(chan, &cq, &ctx))
		die("no completion event: %s", strerror(errno));
	ibv_ack_cq_events(cq, 1);
}

static bool poll_one(struct ibv_cq *cq, struct ibv_wc *wc)
{
	int n = ibv_poll_cq(cq, 1, wc);

	if (n < 0)
		die("cannot poll a CQ");
	if (n && wc->status != IBV_WC_SUCCESS)
		die("a message failed: %s", ibv_wc_status_str(wc->status));
	return n;
}

static void send_msg(struct end *e, enum msg kind)
{
	unsigned char *data = e->buf + RECV_DEPTH * MAX_SIZE;
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
static enum msg wait_msg(struct end *e)
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
	kind = e->buf[wc.wr_id * MAX_SIZE];
	post_recv(e, wc.wr_id);
	beats++;
	return kind;
}

static void run_server(struct end *e, int fd)
{
	enum msg kind;

	arm(e->recv_cq);
	put_line(fd, "ready\n");
	do {
		kind = wait_msg(e);
		arm(e->recv_cq);
		send_msg(e, kind);
	} while (kind != MSG_LAST);
}

static void keep(struct samples *s, uint64_t ns)
{
	if (s->n == s->room) {
		s->room = s->room ? 2 * s->room : 65536;
		s->ns = realloc(s->ns, s->room * sizeof(*s->ns));
		if (!s->ns)
			die("out of memory");
	}
	s->ns[s->n++] = ns;
}

static uint64_t round_trip(struct end *e, enum msg kind)
{
	uint64_t start;

	arm(e->recv_cq);
	start = now_ns();
	send_msg(e, kind);
	wait_msg(e);
	return now_ns() - start;
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

static int compare(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

/* Nearest rank, in tenths of a percent. */
static uint64_t permille(const struct samples *s, size_t p)
{
	size_t rank = (s->n * p + 999) / 1000;

	return s->ns[rank ? rank - 1 : 0];
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

	qsort(result.ns, result.n, sizeof(*result.ns), compare);
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

static void run_client(struct end *e, const struct params *p, int fd)
{
	char before[MAX_WATCH][WATCH_LEN], after[MAX_WATCH][WATCH_LEN];
	uint64_t i, start, end = UINT64_MAX, elapsed;
	char line[256];

	get_line(fd, line, sizeof(line));
	/* Not one page fault of the array in the samples. */
	if (p->samples) {
		result.room = p->samples;
		result.ns = malloc(result.room * sizeof(*result.ns));
		if (!result.ns)
			die("out of memory");
		memset(result.ns, 0xff, result.room * sizeof(*result.ns));
	}
	for (i = 0; i < p->warmup; i++)
		round_trip(e, MSG_PING);

	read_watch(p, before);
	start = now_ns();
	if (p->seconds > 0)
		end = start + p->seconds * 1e9;
	while ((!p->samples || result.n < p->samples) && now_ns() < end) {
		keep(&result, round_trip(e, MSG_PING) / 2);
		if (p->interval_us)
			usleep(p->interval_us);
	}
	elapsed = now_ns() - start;
	read_watch(p, after);
	round_trip(e, MSG_LAST);

	if (!result.n)
		die("no sample in %g s", p->seconds);
	print_result(p, elapsed, before, after);
}

static int dial(const struct params *p, bool listening)
{
	struct addrinfo hints = {
		.ai_family = AF_INET,
		.ai_socktype = SOCK_STREAM,
		.ai_flags = listening ? AI_PASSIVE : 0,
	};
	struct addrinfo *ai;
	char port[16];
	int fd, conn, one = 1, err;

	snprintf(port, sizeof(port), "%d", p->port);
	err = getaddrinfo(p->host, port, &hints, &ai);
	if (err)
		die("%s: %s", p->host, gai_strerror(err));
	fd = socket(ai->ai_family, ai->ai_socktype, 0);
	if (fd < 0)
		die("socket: %s", strerror(errno));
	if (!listening) {
		if (connect(fd, ai->ai_addr, ai->ai_addrlen))
			die("%s port %s: %s (is \"rperf --dev DEV\" running there?)",
			    p->host, port, strerror(errno));
		freeaddrinfo(ai);
		return fd;
	}
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (bind(fd, ai->ai_addr, ai->ai_addrlen) || listen(fd, 1))
		die("port %s: %s", port, strerror(errno));
	freeaddrinfo(ai);
	printf("listening on port %s\n", port);
	fflush(stdout);
	conn = accept(fd, NULL, NULL);
	if (conn < 0)
		die("accept: %s", strerror(errno));
	close(fd);
	return conn;
}

static void serve(const char *dev, int gid, int fd)
{
	struct end e = { 0 };

	whoami = "server: ";
	open_end(&e, dev, gid);
	connect_ends(&e, fd);
	start_watchdog();
	run_server(&e, fd);
	/* Stay until the answer to the last message has been received. */
	if (read(fd, &e, 1) < 0)
		exit(1);
	exit(0);
}

static void measure(const struct params *p, int fd)
{
	struct end e = { .size = p->size };

	open_end(&e, p->dev, p->gid);
	connect_ends(&e, fd);
	start_watchdog();
	run_client(&e, p, fd);
	close(fd);
}

static void usage(FILE *to)
{
	fprintf(to,
		"usage: rperf --dev DEV [--gid N] [--port PORT]			(server)\n"
		"       rperf --dev DEV [OPTION]... HOST			(client)\n"
		"       rperf --dev DEV --peer DEV [OPTION]...		(both ends here)\n"
		"\n"
		"  -d, --dev DEV        RDMA device\n"
		"  -g, --gid N          its GID index (default: the first IPv4 one of RoCE v2)\n"
		"  -P, --peer DEV       the device of the other end, in this host\n"
		"  -G, --peer-gid N     and its GID index\n"
		"  -p, --port PORT      TCP port to meet on (default %d)\n"
		"  -s, --size BYTES     of a message (default 16, up to %d)\n"
		"  -n, --samples N      round trips (default 1000; 0 with --seconds: no limit)\n"
		"  -t, --seconds SEC    or until that much time has gone by\n"
		"  -i, --interval USEC  pause between two round trips (default none)\n"
		"  -w, --warmup N       round trips before the first sample (default 100)\n"
		"  -W, --watch FILE     read at the first and after the last sample, for -j\n"
		"  -j, --json           times in nanoseconds, as JSON\n",
		DEFAULT_PORT, MAX_SIZE);
}

static uint64_t number(const char *what, const char *text, uint64_t min,
		       uint64_t max)
{
	char *end;
	uint64_t n;

	errno = 0;
	n = strtoull(text, &end, 10);
	if (errno || *end || end == text || *text == '-' || n < min || n > max) {
		fprintf(stderr, "rperf: %s: %s is not a number from %" PRIu64
			" to %" PRIu64 "\n", what, text, min, max);
		exit(2);
	}
	return n;
}

static void parse(int argc, char **argv, struct params *p)
{
	static const struct option options[] = {
		{ "dev", required_argument, NULL, 'd' },
		{ "gid", required_argument, NULL, 'g' },
		{ "peer", required_argument, NULL, 'P' },
		{ "peer-gid", required_argument, NULL, 'G' },
		{ "port", required_argument, NULL, 'p' },
		{ "size", required_argument, NULL, 's' },
		{ "samples", required_argument, NULL, 'n' },
		{ "seconds", required_argument, NULL, 't' },
		{ "interval", required_argument, NULL, 'i' },
		{ "warmup", required_argument, NULL, 'w' },
		{ "watch", required_argument, NULL, 'W' },
		{ "json", no_argument, NULL, 'j' },
		{ "help", no_argument, NULL, 'h' },
		{ 0 },
	};
	char *end;
	int opt;

	while ((opt = getopt_long(argc, argv, "d:g:P:G:p:s:n:t:i:w:W:jh", options,
				  NULL)) != -1) {
		switch (opt) {
		case 'd':
			p->dev = optarg;
			break;
		case 'g':
			p->gid = number("--gid", optarg, 0, 65535);
			break;
		case 'P':
			p->peer = optarg;
			break;
		case 'G':
			p->peer_gid = number("--peer-gid", optarg, 0, 65535);
			break;
		case 'p':
			p->port = number("--port", optarg, 1, 65535);
			break;
		case 's':
			p->size = number("--size", optarg, 1, MAX_SIZE);
			break;
		case 'n':
			p->samples = number("--samples", optarg, 0, 100000000);
			break;
		case 't':
			p->seconds = strtod(optarg, &end);
			if (*end || !(p->seconds > 0 && p->seconds < 1e6)) {
				fprintf(stderr, "rperf: --seconds: %s is not a time\n",
					optarg);
				exit(2);
			}
			break;
		case 'i':
			p->interval_us = number("--interval", optarg, 0, 999999);
			break;
		case 'w':
			p->warmup = number("--warmup", optarg, 0, 100000000);
			break;
		case 'W':
			if (p->nwatch == MAX_WATCH) {
				fprintf(stderr, "rperf: at most %d times --watch\n",
					MAX_WATCH);
				exit(2);
			}
			p->watch[p->nwatch++] = optarg;
			break;
		case 'j':
			p->json = true;
			break;
		case 'h':
			usage(stdout);
			exit(0);
		default:
			usage(stderr);
			exit(2);
		}
	}
	if (optind < argc)
		p->host = argv[optind++];
	if (optind < argc || !p->dev || (p->host && p->peer) ||
	    (!p->samples && !(p->seconds > 0))) {
		usage(stderr);
		exit(2);
	}
}

int main(int argc, char **argv)
{
	struct params p = {
		.gid = -1,
		.peer_gid = -1,
		.port = DEFAULT_PORT,
		.size = 16,
		.samples = 1000,
		.warmup = 100,
	};
	int sv[2], status;
	pid_t child;

	parse(argc, argv, &p);
	signal(SIGPIPE, SIG_IGN);
	if (!p.peer && !p.host)
		serve(p.dev, p.gid, dial(&p, true));
	if (!p.peer) {
		measure(&p, dial(&p, false));
		return 0;
	}

	if (socketpair(AF_UNIX, SOCK_STREAM, 0, sv))
		die("socketpair: %s", strerror(errno));
	child = fork();
	if (child < 0)
		die("fork: %s", strerror(errno));
	if (!child) {
		close(sv[0]);
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		serve(p.peer, p.peer_gid, sv[1]);
	}
	close(sv[1]);
	measure(&p, sv[0]);
	fflush(stdout);
	if (waitpid(child, &status, 0) != child || status)
		die("the other end failed");
	return 0;
}
