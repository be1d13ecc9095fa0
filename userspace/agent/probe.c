// SPDX-License-Identifier: GPL-2.0
/*
 * The reference flow (paper, 4.2.1): one small RDMA WRITE at a time, from its post to
 * its completion. A device that stamps completions says when that was; with any other
 * it is when this program has seen it.
 *
 * Owns the connection to a peer: it is made, and made anew after it has failed, with
 * a pause that grows. Whoever paces it calls probe_send(). One message is out at a
 * time, so a slow one keeps others from being sent; what these would have seen is for
 * the caller to reckon. Records go over the same queue pair.
 */
#include <arpa/inet.h>
#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "minmax.h"
#include "probe.h"

/* The peer may come back at once, or be away for hours: from ten tries a second to one in 5 s */
#define BACK_OFF_MIN (100 * MS)
#define BACK_OFF_MAX (5 * SEC)

/* rdma_cm asks again several times in 2 s. */
enum { RESOLVE_MS = 2000 };

/* Work requests: a reference message and a record, each with one that is being retired */
enum { SENDS = 4 };

static void forget(struct probe *p)
{
	p->ready = false;
	p->lost += !!p->posted_ns;
	p->posted_ns = 0;
	loop_remove(&p->done);
	if (p->id && p->id->qp)
		rdma_destroy_qp(p->id);
	if (p->mr)
		ibv_dereg_mr(p->mr);
	talk_close(&p->talk);
	if (p->cq)
		ibv_destroy_cq(p->cq);
	if (p->chan)
		ibv_destroy_comp_channel(p->chan);
	if (p->id)
		rdma_destroy_id(p->id);
	p->mr = NULL;
	p->cq = NULL;
	p->chan = NULL;
	p->id = NULL;
}

/* Logged once for each cause in a row */
static void fail(struct probe *p, const char *why, int err)
{
	if (p->told != why)
		log_line("%s: peer %s: %s%s%s", p->dev, p->name, why,
			 err ? ": " : "", err ? strerror(err) : "");
	p->told = why;
	forget(p);
	timer_set(&p->retry, now_ns() + p->back_off);
	p->back_off = p->back_off * 2 < BACK_OFF_MAX ? p->back_off * 2 : BACK_OFF_MAX;
}

static void try(struct probe *p)
{
	union conf_addr src;

	if (!cm_source(p->dev, &p->peer, &src)) {
		fail(p, "the device has no address of this kind", 0);
		return;
	}
	p->id = cm_id(&p->user);
	if (!p->id || rdma_resolve_addr(p->id, &src.sa, &p->peer.sa, RESOLVE_MS))
		fail(p, "cannot resolve its address", errno);
}

static void on_retry(struct source *s)
{
	struct probe *p = container_of(s, struct probe, retry);

	if (timer_fired(s))
		try(p);
}

/* What the clock of the device shows, in ticks */
static bool read_clock(struct ibv_context *ctx, uint64_t *ticks)
{
	struct ibv_values_ex values = { .comp_mask = IBV_VALUES_MASK_RAW_CLOCK };

	if (ibv_query_rt_values_ex(ctx, &values) ||
	    !(values.comp_mask & IBV_VALUES_MASK_RAW_CLOCK))
		return false;
	*ticks = values.raw_clock.tv_nsec;
	return true;
}

/* With stamps if @stamps, and the device has a clock that can also be read at the post */
static void make_cq(struct probe *p, struct ibv_context *ctx, bool stamps)
{
	struct ibv_cq_init_attr_ex init = {
		.cqe = SENDS, .channel = p->chan,
		.wc_flags = IBV_WC_EX_WITH_COMPLETION_TIMESTAMP,
	};
	struct ibv_device_attr_ex attr = { 0 };
	uint64_t ticks;

	p->stamped = NULL;
	if (stamps && !ibv_query_device_ex(ctx, NULL, &attr) && attr.hca_core_clock &&
	    attr.completion_timestamp_mask && read_clock(ctx, &ticks))
		p->stamped = ibv_create_cq_ex(ctx, &init);
	p->clock_khz = attr.hca_core_clock;
	p->clock_mask = attr.completion_timestamp_mask;
	p->cq = p->stamped ? ibv_cq_ex_to_cq(p->stamped) :
			     ibv_create_cq(ctx, SENDS, NULL, p->chan, 0);
}

/*
 * Ticks of a clock in ns; @passed, by that of the host, where it would be more: the clock
 * was set meanwhile, or shows a time before the post.
 */
static uint64_t ticks_to_ns(uint64_t ticks, uint64_t khz, uint64_t passed)
{
	/* Or it may be more than 64 bits. */
	if (ticks / khz > passed / MS)
		return passed;
	return min_u64(ticks / khz * MS + ticks % khz * MS / khz, passed);
}

/* What has completed, if something has, and how long it has taken; @now counts without stamps. */
static bool completed(struct probe *p, uint64_t now, uint64_t *ns, struct ibv_wc *wc)
{
	struct ibv_poll_cq_attr none = { 0 };
	uint64_t ticks;

	if (!p->stamped) {
		if (ibv_poll_cq(p->cq, 1, wc) < 1)
			return false;
		*ns = now - p->posted_ns;
		return true;
	}
	if (ibv_start_poll(p->stamped, &none))
		return false;
	wc->status = p->stamped->status;
	wc->wr_id = p->stamped->wr_id;
	ticks = ibv_wc_read_completion_ts(p->stamped) - p->posted_ticks;
	ibv_end_poll(p->stamped);
	*ns = ticks_to_ns(ticks & p->clock_mask, p->clock_khz, now_ns() - p->posted_ns);
	return true;
}

/* The completions that are there */
static void take(struct probe *p, uint64_t now)
{
	struct ibv_wc wc;
	uint64_t ns;

	while (p->ready && completed(p, now, &ns, &wc)) {
		if (wc.status != IBV_WC_SUCCESS) {
			fail(p, ibv_wc_status_str(wc.status), 0);
		} else if (wc.wr_id == TALK_WR_ID) {
			talk_said(&p->talk);
		} else {
			p->posted_ns = 0;
			p->sample(p, ns);
		}
	}
}

static void on_done(struct source *s)
{
	struct probe *p = container_of(s, struct probe, done);
	uint64_t now = now_ns();
	struct ibv_cq *cq;
	void *context;

	if (ibv_get_cq_event(p->chan, &cq, &context))
		return;
	ibv_ack_cq_events(cq, 1);
	/* Who spins looks for what he waits for himself, but not for a record. */
	if ((p->spin_ns && !p->talk.is_out) || !ibv_req_notify_cq(cq, 0))
		take(p, now);
}

/* An event is asked for when there has been enough of that: most come before. */
static void spin(struct probe *p, uint64_t until)
{
	uint64_t now = 0;

	while (p->posted_ns && now < until) {
		now = now_ns();
		take(p, now);
	}
	if (p->posted_ns && !ibv_req_notify_cq(p->cq, 0))
		take(p, now_ns());
}

static const char *make_queues(struct probe *p, bool stamps)
{
	struct ibv_qp_init_attr attr = {
		.cap = {
			.max_send_wr = SENDS, .max_recv_wr = 1,
			.max_send_sge = 1, .max_recv_sge = 1,
		},
		.qp_type = IBV_QPT_RC,
	};

	make_cq(p, p->id->verbs, stamps);
	if (!p->cq)
		return "cannot make a completion queue";
	attr.send_cq = p->cq;
	attr.recv_cq = p->cq;
	if (!rdma_create_qp(p->id, NULL, &attr))
		return NULL;
	ibv_destroy_cq(p->cq);
	p->cq = NULL;
	return "cannot make a queue pair";
}

/* QP, CQ and memory, on the device that was found */
static const char *make_ready(struct probe *p)
{
	struct ibv_context *ctx = p->id->verbs;
	const char *why;

	if (!cm_is_called(ctx, p->dev))
		return "the route to it does not leave by the device";
	p->chan = ibv_create_comp_channel(ctx);
	if (!p->chan)
		return "cannot make a completion channel";
	why = make_queues(p, true);
	/* mlx5 refuses it where it can stamp by real time alone. */
	if (why && p->stamped)
		why = make_queues(p, false);
	if (why)
		return why;
	p->mr = ibv_reg_mr(p->id->pd, p->bytes, sizeof(p->bytes), IBV_ACCESS_LOCAL_WRITE);
	why = p->mr ? talk_open(&p->talk, p->id->pd) : "cannot register memory";
	if (why)
		return why;
	p->done.fd = p->chan->fd;
	p->done.ready = on_done;
	fcntl(p->done.fd, F_SETFL, fcntl(p->done.fd, F_GETFL) | O_NONBLOCK);
	if (ibv_req_notify_cq(p->cq, 0) || loop_add(&p->done))
		return "cannot wait for completions";
	return NULL;
}

static void connect_to(struct probe *p)
{
	struct cm_hello hello;
	struct rdma_conn_param param = {
		.private_data = &hello,
		.private_data_len = sizeof(hello),
		/* 7 has no end on rxe, and whoever died would never be missed. */
		.retry_count = 6,
		.rnr_retry_count = 7,
	};
	const char *why = make_ready(p);
	struct talk_place place;

	if (!why) {
		talk_tell_place(&p->talk, &place);
		cm_say(&hello, 0, 0, &place);
	}
	if (why || rdma_connect(p->id, &param))
		fail(p, why ?: "cannot connect", why ? 0 : errno);
}

static void on_event(struct cm_user *user, const struct cm_event *e)
{
	struct probe *p = container_of(user, struct probe, user);
	struct talk_place place;
	const char *why;

	switch (e->type) {
	case RDMA_CM_EVENT_ADDR_RESOLVED:
		if (rdma_resolve_route(p->id, RESOLVE_MS))
			fail(p, "cannot resolve the route", errno);
		break;
	case RDMA_CM_EVENT_ROUTE_RESOLVED:
		connect_to(p);
		break;
	case RDMA_CM_EVENT_ESTABLISHED:
		why = cm_wrong(e);
		if (why) {
			fail(p, why, 0);
			break;
		}
		p->addr = be64toh(e->hello.addr);
		p->rkey = ntohl(e->hello.rkey);
		cm_place(&e->hello, &place);
		talk_learn_place(&p->talk, &place);
		p->back_off = BACK_OFF_MIN;
		p->told = NULL;
		p->ready = true;
		log_line("%s: peer %s: connected%s", p->dev, p->name,
			 p->stamped ? ", the device stamps completions" : "");
		break;
	case RDMA_CM_EVENT_TIMEWAIT_EXIT:
		break;
	default:
		fail(p, cm_why(e), 0);
	}
}

int probe_say(struct probe *p, const struct peer_record *r, const uint8_t *key)
{
	int err = p->ready ? talk_say(&p->talk, p->id->qp, r, key, now_ns()) : ENOTCONN;

	/* It is complete before long, and with a reference message in most cases. */
	if (!err && ibv_req_notify_cq(p->cq, 0))
		fail(p, "cannot wait for completions", 0);
	return err;
}

void probe_send(struct probe *p, uint64_t now)
{
	struct ibv_sge sge = {
		.addr = (uintptr_t)p->bytes, .length = sizeof(p->bytes),
	};
	struct ibv_send_wr *bad, wr = {
		.sg_list = &sge, .num_sge = 1,
		.opcode = IBV_WR_RDMA_WRITE, .send_flags = IBV_SEND_SIGNALED,
	};
	int err;

	if (!p->ready || p->posted_ns)
		return;
	sge.lkey = p->mr->lkey;
	wr.wr.rdma.remote_addr = p->addr;
	wr.wr.rdma.rkey = p->rkey;
	err = p->stamped && !read_clock(p->id->verbs, &p->posted_ticks) ? EIO :
	      ibv_post_send(p->id->qp, &wr, &bad);
	if (err) {
		fail(p, "cannot post", err);
		return;
	}
	p->posted_ns = now;
	p->sent++;
	if (p->spin_ns)
		spin(p, now + p->spin_ns);
}

int probe_open(struct probe *p)
{
	int err;

	p->user.event = on_event;
	p->back_off = BACK_OFF_MIN;
	inet_ntop(p->peer.sa.sa_family, p->peer.sa.sa_family == AF_INET ?
		  (void *)&p->peer.v4.sin_addr : (void *)&p->peer.v6.sin6_addr,
		  p->name, sizeof(p->name));
	err = timer_open(&p->retry, on_retry);
	if (!err)
		try(p);
	return err;
}

void probe_close(struct probe *p)
{
	timer_close(&p->retry);
	forget(p);
}
