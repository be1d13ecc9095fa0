// SPDX-License-Identifier: GPL-2.0
/*
 * Connects to the agent of another host, as an agent does.
 *
 * All connections share one completion queue and the memory. They stay until the
 * program ends.
 */
#include <arpa/inet.h>
#include <endian.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "measure.h"
#include "cm.h"

enum { RESOLVE_MS = 2000 };

static char no_answer[128];

static void on_alarm(int sig)
{
	(void)sig;
	if (write(STDERR_FILENO, no_answer, strlen(no_answer)) < 0)
		_exit(1);
	_exit(1);
}

__attribute__((noreturn))
static void refused(const struct link *l, const char *why)
{
	die("peer %s port %u: %s", l->name, ntohs(l->peer.v4.sin_port), why);
}

static void find_source(const struct link *l, union conf_addr *src)
{
	sa_family_t family = l->peer.sa.sa_family;

	if (!cm_device(l->dev))
		die("dev %s: no RDMA device of this name can be opened here", l->dev);
	if (!cm_source(l->dev, &l->peer, src))
		die("dev %s has no address of the kind of peer %s, %s", l->dev, l->name,
		    family == AF_INET ? "IPv4" : "IPv6");
}

/* What there is one of, made on the device that the first connection has found */
static void share(struct link *l, struct rdma_cm_id *id)
{
	char *memory = calloc(1, CM_MEMORY);

	l->chan = ibv_create_comp_channel(id->verbs);
	l->cq = l->chan ? ibv_create_cq(id->verbs, CALIBRATE_DEPTH + LINKS, NULL,
					l->chan, 0) : NULL;
	if (!memory || !l->cq)
		die("dev %s: cannot make a completion queue: %s", l->dev,
		    strerror(errno));
	l->mr = ibv_reg_mr(id->pd, memory, CM_MEMORY, IBV_ACCESS_LOCAL_WRITE);
	if (!l->mr)
		die("dev %s: cannot register 1 MB of memory: %s", l->dev,
		    strerror(errno));
	if (ibv_req_notify_cq(l->cq, 0))
		die("dev %s: cannot wait for completions", l->dev);
}

static void make_qp(struct link *l, struct rdma_cm_id *id)
{
	struct ibv_qp_init_attr attr = {
		.cap = {
			.max_send_wr = LINK_WRS, .max_recv_wr = 1,
			.max_send_sge = 1, .max_recv_sge = 1,
		},
		.qp_type = IBV_QPT_RC,
	};

	attr.send_cq = l->cq;
	attr.recv_cq = l->cq;
	if (rdma_create_qp(id, id->pd, &attr))
		die("dev %s: cannot make a queue pair: %s", l->dev, strerror(errno));
}

static const char *why_not(struct rdma_cm_id *id)
{
	struct cm_event e;

	if (!id->event)
		return strerror(errno);
	cm_hear(&e, id->event);
	return cm_why(&e);
}

/* rdma_cm without a channel: each call waits for its event, which stays in the id. */
static struct rdma_cm_id *dial(struct link *l, union conf_addr *src)
{
	struct cm_hello hello;
	struct rdma_conn_param param = {
		.private_data = &hello,
		.private_data_len = sizeof(hello),
		.retry_count = 7,
		.rnr_retry_count = 7,
	};
	struct rdma_cm_id *id;
	const char *wrong;
	struct cm_event e;

	cm_say(&hello, 0, 0, NULL);
	if (rdma_create_id(NULL, &id, NULL, RDMA_PS_TCP))
		die("no connection manager, is rdma_ucm loaded: %s", strerror(errno));
	if (rdma_resolve_addr(id, &src->sa, &l->peer.sa, RESOLVE_MS) ||
	    rdma_resolve_route(id, RESOLVE_MS))
		refused(l, "no route to it, or no host there");
	if (strcmp(ibv_get_device_name(id->verbs->device), l->dev))
		refused(l, "the route to it does not leave by the device");
	if (!l->cq)
		share(l, id);
	make_qp(l, id);
	if (rdma_connect(id, &param))
		refused(l, why_not(id));
	cm_hear(&e, id->event);
	wrong = cm_wrong(&e);
	if (wrong)
		refused(l, wrong);
	if (ntohl(e.hello.size) < CM_MEMORY)
		refused(l, "an agent from before \"rdma-isolate calibrate\"; update it");
	l->addr = be64toh(e.hello.addr);
	l->rkey = ntohl(e.hello.rkey);
	return id;
}

void link_open(struct link *l)
{
	struct ibv_qp_init_attr init;
	union conf_addr src = { };
	struct ibv_qp_attr attr;
	unsigned int i;

	fprintf(stderr, "rdma-isolate: connecting to %s\n", l->name);
	snprintf(no_answer, sizeof(no_answer),
		 "rdma-isolate: peer %s port %u: no answer for %u s\n", l->name,
		 ntohs(l->peer.v4.sin_port), GIVE_UP_S);
	signal(SIGALRM, on_alarm);
	alarm(GIVE_UP_S);
	find_source(l, &src);
	for (i = 0; i < LINKS; i++)
		l->qp[i] = dial(l, &src)->qp;
	alarm(0);
	if (ibv_query_qp(l->qp[0], &attr, IBV_QP_PATH_MTU, &init))
		die("dev %s: no path MTU", l->dev);
	l->mtu = 128 << attr.path_mtu;
}
