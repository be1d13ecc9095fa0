// SPDX-License-Identifier: GPL-2.0
/*
 * For LD_PRELOAD, behind the verbs shim: counts the SENDs that the provider takes of each
 * queue pair, until the queue pair is destroyed or moved to ERR.
 */
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>

#include <infiniband/verbs.h>

#include "sends_given.h"

enum { QPS = 1 << 17 };

static struct {
	unsigned int given;
	unsigned int before_end;
	unsigned int ended;
} count[QPS];
static int (*real_post)(struct ibv_qp *qp, struct ibv_send_wr *wr,
			struct ibv_send_wr **bad_wr);

static void *real(const char *name)
{
	return dlvsym(RTLD_NEXT, name, "IBVERBS_1.1");
}

static int post_send(struct ibv_qp *qp, struct ibv_send_wr *wr,
		     struct ibv_send_wr **bad_wr)
{
	struct ibv_send_wr *end = NULL;
	int err = real_post(qp, wr, bad_wr);

	if (err)
		end = *bad_wr;
	for (; wr && wr != end; wr = wr->next)
		if (wr->opcode == IBV_WR_SEND)
			__atomic_add_fetch(&count[qp->qp_num % QPS].given, 1,
					   __ATOMIC_RELAXED);
	return err;
}

/* Numbers of queue pairs are used again. */
unsigned int sends_given(unsigned int qpn, unsigned int *before_end)
{
	unsigned int given = __atomic_load_n(&count[qpn % QPS].given, __ATOMIC_RELAXED);

	if (before_end) {
		*before_end = count[qpn % QPS].ended ? count[qpn % QPS].before_end : 0;
		count[qpn % QPS].given = 0;
		count[qpn % QPS].ended = 0;
	}
	return given;
}

static void ends(unsigned int qpn)
{
	if (count[qpn % QPS].ended)
		return;
	count[qpn % QPS].ended = 1;
	count[qpn % QPS].before_end = sends_given(qpn, NULL);
}

struct ibv_context *ibv_open_device(struct ibv_device *device)
{
	typeof(ibv_open_device) *open_device = real("ibv_open_device");
	struct ibv_context *context = open_device ? open_device(device) : NULL;

	if (!context)
		return NULL;
	real_post = context->ops.post_send;
	context->ops.post_send = post_send;
	return context;
}

int ibv_modify_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask)
{
	typeof(ibv_modify_qp) *modify_qp = real("ibv_modify_qp");

	if ((mask & IBV_QP_STATE) && attr->qp_state == IBV_QPS_ERR)
		ends(qp->qp_num);
	return modify_qp ? modify_qp(qp, attr, mask) : EOPNOTSUPP;
}

int ibv_destroy_qp(struct ibv_qp *qp)
{
	typeof(ibv_destroy_qp) *destroy_qp = real("ibv_destroy_qp");

	ends(qp->qp_num);
	return destroy_qp ? destroy_qp(qp) : EOPNOTSUPP;
}
