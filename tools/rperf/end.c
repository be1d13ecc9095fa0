// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * One end of a connection: its device, how its queue pairs meet those of the
 * other end, how it waits for completions, and how it comes to an end when it
 * waits in vain.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include "rperf.h"

/* READs at a time, where the device can do so many. */
enum { RD_ATOMIC = 16 };

const char *whoami = "";
volatile sig_atomic_t beats;

static int stall_seconds;
static char stall_text[64];

void die(const char *fmt, ...)
{
	va_list ap;

	fprintf(stderr, "rperf: %s", whoami);
	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	fputc('\n', stderr);
	exit(1);
}

uint64_t now_ns(void)
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
	static sig_atomic_t seen;
	static int idle;

	(void)sig;
	idle = beats == seen ? idle + 1 : 0;
	seen = beats;
	if (idle < stall_seconds)
		return;
	if (write(STDERR_FILENO, stall_text, strlen(stall_text)) < 0)
		_exit(2);
	_exit(1);
}

/* Gives the run up after so many seconds without a beat. */
void start_watchdog(unsigned int seconds)
{
	struct itimerval each = { { 1, 0 }, { 1, 0 } };
	struct sigaction sa = { .sa_handler = on_alarm, .sa_flags = SA_RESTART };

	stall_seconds = seconds;
	snprintf(stall_text, sizeof(stall_text), "rperf: no answer for %u s\n",
		 seconds);
	sigaction(SIGALRM, &sa, NULL);
	setitimer(ITIMER_REAL, &each, NULL);
}

/* One line of the exchange; short, so that one write takes it all. */
void put_line(int fd, const char *fmt, ...)
{
	char line[LINE_LEN];
	va_list ap;
	int len;

	va_start(ap, fmt);
	len = vsnprintf(line, sizeof(line), fmt, ap);
	va_end(ap);
	if (write(fd, line, len) != len)
		die("the other end went away: %s", strerror(errno));
}

void get_line(int fd, char line[LINE_LEN])
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
		if (++len == LINE_LEN)
			die("not an rperf at the other end");
	}
	line[len] = 0;
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

static unsigned int min(unsigned int a, unsigned int b)
{
	return a < b ? a : b;
}

void open_end(struct end *e, const char *dev, int gid)
{
	struct ibv_device_attr attr;
	int err;

	e->ctx = open_device(dev);
	err = ibv_query_device(e->ctx, &attr);
	if (err)
		die("%s: cannot query it: %s", dev, strerror(err));
	e->rd_atomic = min(min(attr.max_qp_rd_atom, attr.max_qp_init_rd_atom),
			   RD_ATOMIC);
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
	if (!e->pd)
		die("%s: cannot allocate: %s", dev, strerror(errno));
}

/* Receives may be posted from then on. */
void init_qp(struct ibv_qp *qp, unsigned int access)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_INIT,
		.port_num = 1,
		.qp_access_flags = access,
	};
	int err = ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX |
				IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);

	if (err)
		die("QP to INIT: %s", strerror(err));
}

/* Both ends tell what the other needs to know of them. */
void connect_qp(const struct end *e, struct ibv_qp *qp, int fd)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_RTR };
	unsigned int qpn, psn, lid, mtu, rd_atomic, my_psn;
	char line[LINE_LEN], gid[33], hex[3] = "";
	int i, err;

	my_psn = (now_ns() ^ getpid()) & 0xffffff;
	for (i = 0; i < 16; i++)
		sprintf(gid + 2 * i, "%02x", e->gid.raw[i]);
	put_line(fd, "qp %u %u %u %u %u %s\n", qp->qp_num, my_psn, e->port.lid,
		 e->port.active_mtu, e->rd_atomic, gid);
	get_line(fd, line);
	if (sscanf(line, "qp %u %u %u %u %u %32s", &qpn, &psn, &lid, &mtu,
		   &rd_atomic, gid) != 6 || strlen(gid) != 32)
		die("not an rperf at the other end");

	rd_atomic = min(rd_atomic, e->rd_atomic);
	attr.path_mtu = min(mtu, e->port.active_mtu);
	attr.dest_qp_num = qpn;
	attr.rq_psn = psn;
	attr.max_dest_rd_atomic = rd_atomic;
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
	err = ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_AV |
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
	attr.max_rd_atomic = rd_atomic;
	err = ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_TIMEOUT |
			    IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
			    IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC);
	if (err)
		die("QP to RTS: %s", strerror(err));
}

void arm(struct ibv_cq *cq)
{
	int err = ibv_req_notify_cq(cq, 0);

	if (err)
		die("cannot arm a CQ: %s", strerror(err));
}

void wait_event(struct ibv_comp_channel *chan)
{
	struct ibv_cq *cq;
	void *ctx;

	if (ibv_get_cq_event(chan, &cq, &ctx))
		die("no completion event: %s", strerror(errno));
	ibv_ack_cq_events(cq, 1);
}

bool poll_one(struct ibv_cq *cq, struct ibv_wc *wc)
{
	int n = ibv_poll_cq(cq, 1, wc);

	if (n < 0)
		die("cannot poll a CQ");
	if (n && wc->status != IBV_WC_SUCCESS)
		die("a message failed: %s", ibv_wc_status_str(wc->status));
	return n;
}
