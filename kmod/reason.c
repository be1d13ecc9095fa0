// SPDX-License-Identifier: GPL-2.0
/*
 * Why a flow is managed, or not.
 *
 * A QP is managed only if everything about it is known to be safe: a kernel RC QP
 * that was created while we were loaded, of a ULP on the list below or named by a
 * rule, whose send CQ is polled by event and has room. All others are listed with
 * the reason and never touched.
 *
 * Owns nothing: it reads a flow and the state of its device, under &riso_dev.mutex or for
 * readers that may see a change late.
 */

#include <linux/string.h>

#include "reason.h"

/*
 * Owners of protection domains that are managed without a rule. Initiators are
 * among them though they hardly send bulk: their capsules must stay behind it.
 *
 * tools/boot/modprobe.conf and Documentation/admin-guide/settings.rst have the same list;
 * tools/boot/check.sh compares the three.
 */
static const char * const ulps[] = {
	"nvmet_rdma", "nvme_rdma", "ib_isert", "ib_srpt", "ib_iser", "ib_srp",
	"rpcrdma", "rds_rdma", "smc", "ksmbd", "cifs", "9pnet_rdma",
	"rtrs_core",
};

static bool is_listed(const char *ulp)
{
	size_t i;

	for (i = 0; i < ARRAY_SIZE(ulps); i++)
		if (!strcmp(ulps[i], ulp))
			return true;
	return false;
}

/**
 * riso_reason_judge - why a QP can never be managed
 * @qp: the QP
 * @attr: as it was created
 * @user: by a user-space program
 *
 * Return: the reason, or RISO_REASON_NONE.
 */
enum riso_reason riso_reason_judge(const struct ib_qp *qp, const struct ib_qp_init_attr *attr,
				   bool user)
{
	if (qp->qp_type == IB_QPT_SMI || qp->qp_type == IB_QPT_GSI)
		return RISO_REASON_SPECIAL_QP;
	/* A target side of XRC made by user space has no PD. */
	if (qp->qp_type != IB_QPT_RC || !qp->pd || qp->real_qp != qp ||
	    attr->xrcd)
		return RISO_REASON_QP_TYPE;
	if (user)
		return RISO_REASON_USER_QP;
	if (attr->create_flags || qp->integrity_en)
		return RISO_REASON_CREATE_FLAGS;
	if (attr->sq_sig_type == IB_SIGNAL_ALL_WR)
		return RISO_REASON_SIGNAL_ALL;
	if (attr->send_cq->poll_ctx == IB_POLL_DIRECT)
		return RISO_REASON_POLL_DIRECT;
	return RISO_REASON_NONE;
}

/**
 * riso_reason_wants - is a flow to be managed where that is enabled?
 * @f: the flow
 *
 * Return: true if it could be, its class is shaped, and its owner is listed or a rule names it.
 */
bool riso_reason_wants(const struct riso_flow *f)
{
	return f->unfit == RISO_REASON_NONE && f->class != RISO_CLASS_LATENCY &&
	       (f->rule_id || is_listed(f->who.ulp));
}

/**
 * riso_reason_is_reference - does a flow belong to the agent that steers the device?
 * @f: the flow
 *
 * What measures is not measured.
 *
 * Return: true if it does.
 */
bool riso_reason_is_reference(const struct riso_flow *f)
{
	/* data_race(): whoever changes it goes through all flows after. */
	return f->who.pid && f->who.pid == data_race(f->rd->steer.pid);
}

/**
 * riso_reason_of - why a flow is not managed just now
 * @f: the flow
 *
 * Context: &riso_dev.mutex. Readers that may see a change late need no lock.
 * Return: the reason, or RISO_REASON_NONE.
 */
enum riso_reason riso_reason_of(const struct riso_flow *f)
{
	/* Whoever changes it goes through all flows after. */
	enum riso_dev_state state = READ_ONCE(f->rd->state);

	if (riso_reason_is_reference(f))
		return RISO_REASON_REFERENCE;
	if (f->report != RISO_REASON_NONE && !f->shim)
		return f->report;
	if (f->unfit != RISO_REASON_NONE && !f->shim)
		return f->unfit;
	if (f->class == RISO_CLASS_LATENCY)
		return RISO_REASON_LATENCY_CLASS;
	if (!riso_reason_wants(f) && !f->shim)
		return RISO_REASON_ULP_NOT_LISTED;
	if (!f->cq_room && !f->shim)
		return RISO_REASON_NO_CQ_ROOM;
	if (state == RISO_DEV_OBSERVE)
		return RISO_REASON_OBSERVE_ONLY;
	if (state != RISO_DEV_ENABLE)
		return RISO_REASON_DISABLED;
	if (f->no_memory)
		return RISO_REASON_MEMORY;
	return RISO_REASON_NONE;
}
