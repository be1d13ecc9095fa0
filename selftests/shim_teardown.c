// SPDX-License-Identifier: GPL-2.0
/*
 * shim_teardown ADDRESS PEER DEVICE ROUNDS
 *
 * Posts some SENDs on a queue pair of DEVICE, and ends it at once: destroys it, moves it to
 * ERR, or closes its connection to PEER by rdma_disconnect(), in turn. With the verbs shim,
 * and sends_given.so behind it: each SEND that was accepted is the provider's before the
 * queue pair ends. Prints for each way how many were.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <rdma/rdma_cma.h>

#include "sends_given.h"
#include "verbs.h"

enum { DEPTH = 16, SIZE = 32 * 1024, PORT = 7600, TIMEOUT_MS = 10000 };

enum ending { DESTROY, TO_ERR, DISCONNECT, KINDS };

static const char *const names[KINDS] = { "destroy", "ERR", "rdma_disconnect" };

#pragma weak sends_given

/* What is at one end, and what its queue pairs share */
struct end {
	struct ibv_context *context;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_mr *mr;
	struct sockaddr_in addr;
};

static struct {
	unsigned int rounds;
	unsigned long accepted;
	unsigned long held;
	unsigned long given;
} sum[KINDS];

static char buf[SIZE];
static unsigned int drawn = 1;

static unsigned int draw(unsigned int num)
{
	drawn = drawn * 1664525 + 1013904223;
	return (drawn >> 8) % num;
}

static void check(int failed, const char *what)
{
	if (failed)
		err(1, "%s", what);
}

/* Once its device is known */
static void open_end(struct end *e, struct ibv_context *context)
{
	if (e->context)
		return;
	e->context = context;
	e->pd = make_pd(context);
	e->cq = make_cq(context, 1024);
	e->mr = ibv_reg_mr(e->pd, buf, sizeof(buf), IBV_ACCESS_LOCAL_WRITE);
	check(!e->mr, "memory");
}

static void set_addr(struct end *e, const char *text, int port)
{
	e->addr.sin_family = AF_INET;
	e->addr.sin_port = htons(port);
	check(inet_pton(AF_INET, text, &e->addr.sin_addr) != 1, text);
}

/* --- the peer of those that are connected --- */

static struct end server;

static void on_event(struct rdma_cm_id *id, enum rdma_cm_event_type type)
{
	struct ibv_qp_init_attr attr;

	switch (type) {
	case RDMA_CM_EVENT_CONNECT_REQUEST:
		open_end(&server, id->verbs);
		attr = qp_init(server.cq, 1);
		check(rdma_create_qp(id, server.pd, &attr) || rdma_accept(id, NULL),
		      "accept");
		break;
	case RDMA_CM_EVENT_DISCONNECTED:
		rdma_disconnect(id);
		rdma_destroy_qp(id);
		check(rdma_destroy_id(id), "end of a peer");
		break;
	default:
		break;
	}
}

static void *serve(void *arg)
{
	struct rdma_event_channel *channel = arg;
	struct rdma_cm_event *event;

	while (!rdma_get_cm_event(channel, &event)) {
		enum rdma_cm_event_type type = event->event;
		struct rdma_cm_id *id = event->id;

		rdma_ack_cm_event(event);
		on_event(id, type);
	}
	return NULL;
}

static void start_server(void)
{
	struct rdma_event_channel *channel = rdma_create_event_channel();
	struct rdma_cm_id *id;
	pthread_t thread;

	check(!channel || rdma_create_id(channel, &id, NULL, RDMA_PS_TCP) ||
	      rdma_bind_addr(id, (struct sockaddr *)&server.addr) || rdma_listen(id, 16),
	      "listen");
	errno = pthread_create(&thread, NULL, serve, channel);
	check(errno, "thread");
}

static struct rdma_cm_id *connect_to_server(struct end *e)
{
	struct rdma_conn_param param = { .retry_count = 7, .rnr_retry_count = 7 };
	struct ibv_qp_init_attr attr;
	struct rdma_cm_id *id;

	check(rdma_create_id(NULL, &id, NULL, RDMA_PS_TCP), "create an id");
	check(rdma_resolve_addr(id, (struct sockaddr *)&e->addr,
				(struct sockaddr *)&server.addr, TIMEOUT_MS), "address");
	check(rdma_resolve_route(id, TIMEOUT_MS), "route");
	open_end(e, id->verbs);
	attr = qp_init(e->cq, DEPTH);
	check(rdma_create_qp(id, e->pd, &attr), "queue pair");
	check(rdma_connect(id, &param), "connect");
	return id;
}

/* --- those that nobody answers --- */

static void to_state(struct ibv_qp *qp, enum ibv_qp_state state, int mask,
		     struct ibv_qp_attr attr)
{
	attr.qp_state = state;
	errno = ibv_modify_qp(qp, &attr, mask | IBV_QP_STATE);
	check(errno, "change of state");
}

static void to_rts(struct ibv_qp *qp, int gid_index)
{
	struct ibv_qp_attr attr = {
		.port_num = 1,
		.path_mtu = IBV_MTU_1024,
		.dest_qp_num = 0xfffff0,
		.min_rnr_timer = 12,
		.timeout = 20,
		.retry_cnt = 7,
		.rnr_retry = 7,
		.ah_attr = {
			.port_num = 1,
			.is_global = 1,
			.grh = { .sgid_index = gid_index, .hop_limit = 64 },
		},
	};

	check(ibv_query_gid(qp->context, 1, gid_index, &attr.ah_attr.grh.dgid), "GID");
	/* The peer is at the other end of the wire. */
	memcpy(attr.ah_attr.grh.dgid.raw + 12, &server.addr.sin_addr, 4);
	to_state(qp, IBV_QPS_INIT, IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS, attr);
	to_state(qp, IBV_QPS_RTR, IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
		 IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER, attr);
	to_state(qp, IBV_QPS_RTS, IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
		 IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC, attr);
}

/* --- rounds --- */

static unsigned int post_some(struct end *e, struct ibv_qp *qp)
{
	struct ibv_sge sge = { .addr = (uintptr_t)buf, .lkey = e->mr->lkey };
	struct ibv_send_wr *bad, wr = {
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = IBV_WR_SEND,
	};
	unsigned int i, num = 1 + draw(DEPTH);

	for (i = 0; i < num; i++) {
		sge.length = 1 + draw(SIZE);
		wr.send_flags = draw(2) ? IBV_SEND_SIGNALED : 0;
		errno = ibv_post_send(qp, &wr, &bad);
		check(errno, "post");
	}
	return num;
}

static void end(struct ibv_qp *qp, struct rdma_cm_id *id, enum ending kind)
{
	struct ibv_qp_attr none = {};

	if (kind == DISCONNECT)
		check(rdma_disconnect(id), "disconnect");
	else if (kind == TO_ERR)
		to_state(qp, IBV_QPS_ERR, 0, none);
	if (id)
		rdma_destroy_qp(id);
	else
		check(ibv_destroy_qp(qp), "destroy");
	if (id)
		check(rdma_destroy_id(id), "destroy an id");
}

static void run(struct end *e, enum ending kind, int gid_index)
{
	struct rdma_cm_id *id = kind == DISCONNECT ? connect_to_server(e) : NULL;
	struct ibv_qp *qp = id ? id->qp : make_qp(e->pd, e->cq, DEPTH);
	unsigned int qpn = qp->qp_num;
	unsigned int accepted, before, given;
	struct ibv_wc wc[DEPTH];

	if (!id)
		to_rts(qp, gid_index);
	accepted = post_some(e, qp);
	given = sends_given(qpn, NULL);
	end(qp, id, kind);
	sum[kind].rounds++;
	sum[kind].accepted += accepted;
	sum[kind].held += accepted - given;
	sends_given(qpn, &before);
	sum[kind].given += before;
	if (before != accepted)
		errx(1, "%s, round %u: %u of %u were given to the provider, %u at first",
		     names[kind], sum[kind].rounds, before, accepted, given);
	while (ibv_poll_cq(e->cq, DEPTH, wc) > 0)
		;
}

int main(int argc, char **argv)
{
	struct end client = {};
	unsigned int rounds, i;
	int gid_index;

	if (argc != 5)
		errx(2, "usage: shim_teardown ADDRESS PEER DEVICE ROUNDS");
	if (!sends_given)
		errx(2, "sends_given.so is not preloaded");
	set_addr(&client, argv[1], 0);
	set_addr(&server, argv[2], PORT);
	rounds = atoi(argv[4]);
	start_server();
	run(&client, DISCONNECT, 0);
	gid_index = ipv4_gid(client.context, 16);
	if (gid_index < 0 || strcmp(ibv_get_device_name(client.context->device), argv[3]))
		errx(1, "%s has no GID of %s", argv[3], argv[1]);
	for (i = 1; i < rounds; i++)
		run(&client, i % KINDS, gid_index);
	for (i = 0; i < KINDS; i++)
		printf("%s: %u rounds, %lu accepted, %lu held, %lu given\n", names[i],
		       sum[i].rounds, sum[i].accepted, sum[i].held, sum[i].given);
	for (i = 0; i < KINDS; i++)
		if (sum[i].held < sum[i].rounds)
			errx(1, "%s: too few were held", names[i]);
	return 0;
}
