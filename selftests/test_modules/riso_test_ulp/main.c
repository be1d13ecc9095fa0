// SPDX-License-Identifier: GPL-2.0
/*
 * A kernel ULP that checks every byte and every completion.
 *
 * It connects kernel RC queue pairs of two RDMA devices in one host, moves
 * position-dependent patterns between them, and compares:
 *
 *  - the whole of both destination buffers, guard areas included, with a
 *    model that replays the work requests in the order they were posted;
 *  - the completions with a ledger that holds one record per work request:
 *    exactly one completion for each signaled one, in order, none for an
 *    unsignaled one, and after the first error one for every one.
 *
 * The protection domains carry the name of this module, those of the idle
 * pair made by "lat-on" are called riso_test_lat.
 *
 *	echo "CASE [KEY=VALUE]..." > /sys/kernel/debug/riso_test_ulp/run
 *	cat /sys/kernel/debug/riso_test_ulp/result
 *
 * The write returns when the case has ended, with an error if it failed.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/completion.h>
#include <linux/debugfs.h>
#include <linux/delay.h>
#include <linux/in.h>
#include <linux/interrupt.h>
#include <linux/irq_work.h>
#include <linux/kthread.h>
#include <linux/module.h>
#include <linux/scatterlist.h>
#include <linux/seq_file.h>
#include <linux/sizes.h>
#include <linux/slab.h>
#include <linux/vmalloc.h>
#include <rdma/ib_cache.h>
#include <rdma/ib_verbs.h>
#include <rdma/rdma_cm.h>

#include "../riso_test_layer.h"

#define RT_LAT_NAME	"riso_test_lat"

#define RT_BUF_SIZE	SZ_4M
#define RT_MR_PAGE	SZ_64K
#define RT_MR_PAGES	(RT_BUF_SIZE / RT_MR_PAGE)
/* where the messages begin: unaligned, a guard area in front */
#define RT_BASE		(SZ_64K + 9)
/* between the pieces of a scattered local buffer */
#define RT_GAP		17
/* After that no packet is on its way any more. */
#define RT_ON_THE_WIRE_MS 50
#define RT_MAX_SGE	32
#define RT_MAX_QPS	8
#define RT_MAX_LANES	32
#define RT_MAX_CQS	(RT_MAX_QPS * 4)
#define RT_MAX_RECS	8192
#define RT_MAX_BATCH	16
#define RT_LOG_SIZE	4096
#define RT_INLINE	200

/* SENDs that a queue pair may have waiting when it ends */
#define RT_ENDING	40
#define RT_CM_PORT	7471
#define RT_CM_MS	10000
#define RT_HELD_MS	5000

#define RT_REMOTE	(IB_ACCESS_REMOTE_READ | IB_ACCESS_REMOTE_WRITE | \
			 IB_ACCESS_REMOTE_ATOMIC)

static char *dev_a = "rxe0";
module_param(dev_a, charp, 0444);
MODULE_PARM_DESC(dev_a, "device of the active side (default rxe0)");

static char *dev_b = "rxe1";
module_param(dev_b, charp, 0444);
MODULE_PARM_DESC(dev_b, "device of the passive side (default rxe1)");

/* where completions are polled from, and by whom */
enum rt_cqmode {
	RT_CQ_WQ,		/* ib_alloc_cq, wr_cqe */
	RT_CQ_UNBOUND,
	RT_CQ_SOFTIRQ,
	RT_CQ_WORK,		/* ib_create_cq, wr_id, a work item */
	RT_CQ_TASKLET,
};

static const char * const rt_cqmode_name[] = {
	[RT_CQ_WQ]	= "wq",
	[RT_CQ_UNBOUND]	= "unbound",
	[RT_CQ_SOFTIRQ]	= "softirq",
	[RT_CQ_WORK]	= "work",
	[RT_CQ_TASKLET]	= "tasklet",
};

/* errors that the checker must find: it proves itself with them */
enum rt_mutation {
	RT_MUT_NONE,
	RT_MUT_BYTE,		/* one byte of the destination differs */
	RT_MUT_GUARD,		/* one byte behind the destination */
	RT_MUT_SWALLOW,		/* a completion never comes */
	RT_MUT_DUP,		/* a completion comes twice */
	RT_MUT_STATUS,		/* a completion has another status */
	RT_MUT_OPCODE,
	RT_MUT_LEN,
	RT_MUT_ORDER,		/* two completions change places */
};

static const char * const rt_mutation_name[] = {
	[RT_MUT_NONE]		= "none",
	[RT_MUT_BYTE]		= "byte",
	[RT_MUT_GUARD]		= "guard",
	[RT_MUT_SWALLOW]	= "swallow",
	[RT_MUT_DUP]		= "dup",
	[RT_MUT_STATUS]		= "status",
	[RT_MUT_OPCODE]		= "opcode",
	[RT_MUT_LEN]		= "len",
	[RT_MUT_ORDER]		= "order",
};

enum rt_expect {
	RT_EXP_OK,		/* success */
	RT_EXP_STATUS,		/* op->status */
	RT_EXP_FLUSH,		/* flushed */
	RT_EXP_ANY,		/* success, else op->status, or flushed if 0 */
	RT_EXP_ERROR,		/* any error */
	RT_EXP_END,		/* once, in its place, somehow */
};

/* one work request as a case describes it */
struct rt_op {
	enum ib_wr_opcode opcode;
	int flags;
	u32 len;
	u32 loff;		/* in the local buffer */
	u32 roff;		/* in the peer's buffer */
	unsigned int nsge;
	bool skew;		/* pieces of 1, 3, 5, ... bytes and the rest */
	bool from_dst;		/* the local source is the destination buffer */
	bool bad_lkey;		/* the last SGE has a key that nobody owns */
	bool hidden;		/* unsignaled, with a NULL wr_cqe */
	struct ib_mr *lmr;	/* its key instead of the DMA key */
	struct ib_mr *rmr;	/* its key instead of the whole buffer's */
	u32 reach;		/* bytes of len that rmr covers */
	struct ib_mr *mr;	/* of REG_MR and LOCAL_INV */
	u32 imm;
	u64 add;
	u64 swap;
	enum rt_expect expect;
	enum ib_wc_status status;
};

#define RT_PENDING	((enum ib_wc_status)~0)

/* the ledger's record of one work request */
struct rt_rec {
	struct ib_cqe cqe;
	struct list_head node;
	struct rt_lane *lane;
	struct rt_op op;
	u64 wr_id;
	u32 idx;
	bool recv;
	bool signaled;
	bool dropped;
	enum ib_wc_status status;
	enum ib_wc_opcode opcode;
	u32 byte_len;
	int wc_flags;
	u32 wc_ex;
};

struct rt_buf {
	void *va;
	u64 dma;
};

struct rt_ep {
	struct ib_device *dev;
	u32 port;
	int gid_index;
	union ib_gid gid;
	enum ib_mtu mtu;
	struct ib_pd *pd;
	struct rt_buf src;
	struct rt_buf dst;
	void *model;
	struct ib_mr *mr_src;
	struct ib_mr *mr_dst;
	struct rt_ep *peer;
	struct rt_dev *rdev;
};

struct rt_ctx;

struct rt_cq {
	struct ib_cq *cq;
	struct rt_ctx *ctx;
	enum rt_cqmode mode;
	int batch;
	bool closing;
	bool held;		/* leave the entries there for now */
	struct work_struct work;
	struct tasklet_struct tasklet;
	spinlock_t lock;	/* polls: a case may, and the handler's work meanwhile */
	struct ib_wc wc[RT_MAX_BATCH];
	bool has_saved;
	struct ib_wc saved;
	struct rt_rec *saved_rec;
};

struct rt_qp {
	struct ib_qp *qp;
	const struct ib_qp *gone;	/* for wc->qp after destroy */
	struct rt_ep *ep;
	struct rt_qp *peer;
	struct rt_cq *scq;
	struct rt_cq *rcq;
	struct ib_srq *srq;
	struct rt_lane *send;
	struct rt_lane *recv;
	enum ib_qp_state state;
	u32 psn;
	u32 depth;
	u32 max_sge;
};

/* the work requests that one context posts to one queue */
struct rt_lane {
	struct rt_ctx *ctx;
	struct rt_qp *qp;
	u32 id;
	bool recv;
	spinlock_t lock;	/* the ledger below */
	struct list_head recs;
	struct list_head *cursor;
	u32 posted;
	u32 matched;
	u32 nsig;
	u32 nsig_done;
	bool flushing;
	bool closed;
	struct list_head *replay;
	void (*next)(struct rt_lane *lane);
	u32 left;
	u32 step;
};

struct rt_args {
	char name[32];
	char op[16];
	u32 len;
	u32 count;
	u32 depth;
	u32 sge;
	u32 qps;
	u32 threads;
	u32 rdatomic;
	u32 batch;
	u32 signal;		/* every n-th work request */
	u32 after;		/* completions, before something happens */
	u32 timeout;
	bool odd;		/* odd and repeated wr_ids */
	bool sigall;		/* the QPs signal every work request */
	enum rt_cqmode cq;
	enum rt_mutation mutate;
};

struct rt_conf {
	u32 pairs;
	u32 scqe;		/* entries of the send CQ, 0: what fits */
	bool one_cq;		/* for all queues of one side */
	bool srq;
	u8 timeout;
	u8 retry;
	u8 rnr_retry;
	enum ib_qp_state state;
};

enum rt_verify {
	RT_VERIFY_ALL,		/* every request was carried out */
	RT_VERIFY_PREFIX,	/* those that succeeded and some way beyond */
	RT_VERIFY_NONE,		/* nobody can tell */
};

struct rt_ctx {
	struct rt_args arg;
	struct rt_ep a;
	struct rt_ep b;
	struct rt_qp qa[RT_MAX_QPS];
	struct rt_qp qb[RT_MAX_QPS];
	struct rt_conf conf;
	struct rt_cq *cqs[RT_MAX_CQS];
	u32 ncqs;
	struct rt_lane *lanes[RT_MAX_LANES];
	u32 nlanes;
	struct ib_srq *srq_a;
	struct ib_srq *srq_b;
	struct ib_mr *mrs[4];
	u32 nmrs;
	struct rt_rec *recs;
	atomic_t nrecs;
	atomic_t ncomp;
	atomic_t nmut;
	atomic64_t bytes;
	unsigned long timeout;
	bool failed;
	bool quiet;		/* being torn down: nobody posts */
	enum rt_verify verify;
	bool fails_here;	/* the peer does not see the request that fails */
	spinlock_t log_lock;	/* the log below */
	u32 log_len;
	char log[RT_LOG_SIZE];
};

struct rt_case {
	const char *name;
	int (*fn)(struct rt_ctx *ctx);
	const char *help;
};

struct rt_dev {
	struct list_head node;
	struct ib_device *dev;
	u32 users;
};

/* The devices, and who uses them. Inside rt_lock. */
static DEFINE_MUTEX(rt_devs_lock);
static LIST_HEAD(rt_devs);

/* protects everything below; a case runs under it */
static DEFINE_MUTEX(rt_lock);
/* the sources and destinations of both sides, and what they hold at first */
static void *rt_bufs[4];
static void *rt_patterns[4];
static void *rt_models[2];
static struct rt_ctx *rt_lat;
static char *rt_result;
static struct dentry *rt_dir;

/* set without rt_lock: a running case gives up */
static bool rt_stop;
static struct ib_device *rt_leaving;
static DECLARE_WAIT_QUEUE_HEAD(rt_wq);

static __printf(2, 3) void rt_fail(struct rt_ctx *ctx, const char *fmt, ...)
{
	unsigned long flags;
	va_list args;

	spin_lock_irqsave(&ctx->log_lock, flags);
	va_start(args, fmt);
	ctx->log_len += vscnprintf(ctx->log + ctx->log_len,
				   RT_LOG_SIZE - ctx->log_len, fmt, args);
	va_end(args);
	ctx->log_len += scnprintf(ctx->log + ctx->log_len,
				  RT_LOG_SIZE - ctx->log_len, "\n");
	WRITE_ONCE(ctx->failed, true);
	spin_unlock_irqrestore(&ctx->log_lock, flags);
	wake_up_all(&rt_wq);
}

static bool rt_gone(struct rt_ctx *ctx)
{
	struct ib_device *dev = READ_ONCE(rt_leaving);

	return READ_ONCE(rt_stop) || dev == ctx->a.dev || dev == ctx->b.dev;
}

/* Waiting makes no sense any more, except for the end of the teardown. */
static bool rt_hopeless(struct rt_ctx *ctx)
{
	return !READ_ONCE(ctx->quiet) &&
	       (READ_ONCE(ctx->failed) || rt_gone(ctx));
}

#define rt_wait(ctx, cond)						\
({									\
	struct rt_ctx *_c = (ctx);					\
	bool _ok;							\
									\
	wait_event_timeout(rt_wq, (_ok = (cond)) || rt_hopeless(_c),	\
			   _c->timeout);				\
	_ok;								\
})

/* Buffers */

static void rt_fill(void *p, size_t len, u64 seed)
{
	u64 *word = p;
	size_t i;

	for (i = 0; i < len / sizeof(*word); i++) {
		u64 x = (seed << 40 | i) * 0x9e3779b97f4a7c15ULL;

		word[i] = x ^ (x >> 29);
	}
}

static u32 rt_nsge(const struct rt_op *op)
{
	u32 n = clamp_t(u32, op->nsge, 1, RT_MAX_SGE);

	if (op->skew)
		return op->len > n * n ? n : 1;
	return clamp_t(u32, op->len / 2, 1, n);
}

/* where piece i of a message begins: anywhere but aligned */
static u32 rt_cut(const struct rt_op *op, u32 i)
{
	u32 n = rt_nsge(op);

	if (i == 0 || i >= n)
		return i ? op->len : 0;
	return op->skew ? i * i : (u32)((u64)op->len * i / n) | 1;
}

static bool rt_is_atomic(const struct rt_op *op)
{
	return op->opcode == IB_WR_ATOMIC_CMP_AND_SWP ||
	       op->opcode == IB_WR_ATOMIC_FETCH_AND_ADD;
}

static bool rt_is_local(const struct rt_op *op)
{
	return op->opcode == IB_WR_REG_MR || op->opcode == IB_WR_LOCAL_INV;
}

static bool rt_is_send(const struct rt_op *op)
{
	return op->opcode == IB_WR_SEND || op->opcode == IB_WR_SEND_WITH_IMM ||
	       op->opcode == IB_WR_SEND_WITH_INV;
}

static bool rt_to_local(const struct rt_rec *rec)
{
	return rec->recv || rec->op.opcode == IB_WR_RDMA_READ ||
	       rt_is_atomic(&rec->op);
}

static struct rt_buf *rt_local(struct rt_ep *ep, const struct rt_rec *rec)
{
	return rt_to_local(rec) || rec->op.from_dst ? &ep->dst : &ep->src;
}

static enum ib_wc_opcode rt_wc_opcode(enum ib_wr_opcode opcode)
{
	switch (opcode) {
	case IB_WR_RDMA_WRITE:
	case IB_WR_RDMA_WRITE_WITH_IMM:
	case IB_WR_RESERVED1:
		return IB_WC_RDMA_WRITE;
	case IB_WR_RDMA_READ:
		return IB_WC_RDMA_READ;
	case IB_WR_ATOMIC_CMP_AND_SWP:
		return IB_WC_COMP_SWAP;
	case IB_WR_ATOMIC_FETCH_AND_ADD:
		return IB_WC_FETCH_ADD;
	case IB_WR_REG_MR:
		return IB_WC_REG_MR;
	case IB_WR_LOCAL_INV:
		return IB_WC_LOCAL_INV;
	default:
		return IB_WC_SEND;
	}
}

/* The ledger */

/*
 * The request that a completion belongs to. One that is too early is looked
 * for behind those that should have come first.
 */
static struct rt_rec *rt_match(struct rt_lane *lane, struct rt_rec *rec,
			       const struct ib_wc *wc)
{
	struct rt_rec *missing = NULL;
	struct list_head *p;

	for (p = lane->cursor->next; p != &lane->recs; p = p->next) {
		struct rt_rec *r = list_entry(p, struct rt_rec, node);

		if (rec ? r == rec :
		    r->wr_id == wc->wr_id &&
		    (r->signaled || wc->status != IB_WC_SUCCESS)) {
			if (missing)
				rt_fail(lane->ctx, "lane %u: request %u completed, but %u is next",
					lane->id, r->idx, missing->idx);
			return r;
		}
		if (!missing && !r->op.hidden &&
		    (r->signaled || lane->flushing))
			missing = r;
	}
	rt_fail(lane->ctx,
		"lane %u: completion of wr_id %#llx (%s) that nothing waits for, %u of %u were seen",
		lane->id, wc->wr_id, ib_wc_status_msg(wc->status),
		lane->matched, lane->posted);
	return NULL;
}

static void rt_check_status(struct rt_lane *lane, struct rt_rec *rec,
			    const struct ib_wc *wc)
{
	enum ib_wc_status want = IB_WC_SUCCESS;

	switch (rec->op.expect) {
	case RT_EXP_OK:
		break;
	case RT_EXP_STATUS:
		want = rec->op.status;
		break;
	case RT_EXP_FLUSH:
		want = IB_WC_WR_FLUSH_ERR;
		break;
	case RT_EXP_ANY:
		if (lane->flushing)
			want = IB_WC_WR_FLUSH_ERR;
		else if (wc->status != IB_WC_SUCCESS)
			want = rec->op.status ? : IB_WC_WR_FLUSH_ERR;
		break;
	case RT_EXP_ERROR:
		if (wc->status != IB_WC_SUCCESS)
			want = wc->status;
		else
			want = IB_WC_GENERAL_ERR;
		break;
	case RT_EXP_END:
		want = wc->status;
		break;
	}
	if (wc->status != want)
		rt_fail(lane->ctx, "lane %u: request %u ended with '%s', not with '%s'",
			lane->id, rec->idx, ib_wc_status_msg(wc->status),
			ib_wc_status_msg(want));
}

static void rt_check_success(struct rt_lane *lane, struct rt_rec *rec,
			     const struct ib_wc *wc)
{
	if (!rec->signaled)
		rt_fail(lane->ctx, "lane %u: completion of the unsignaled request %u",
			lane->id, rec->idx);
	if (rec->recv) {
		rec->opcode = wc->opcode;
		rec->byte_len = wc->byte_len;
		rec->wc_flags = wc->wc_flags;
		if (wc->wc_flags & IB_WC_WITH_IMM)
			rec->wc_ex = be32_to_cpu(wc->ex.imm_data);
		else
			rec->wc_ex = wc->ex.invalidate_rkey;
		return;
	}
	if (wc->opcode != rt_wc_opcode(rec->op.opcode))
		rt_fail(lane->ctx, "lane %u: request %u has opcode %d, not %d",
			lane->id, rec->idx, wc->opcode,
			rt_wc_opcode(rec->op.opcode));
	if (rt_to_local(rec) && wc->byte_len != rec->op.len)
		rt_fail(lane->ctx, "lane %u: request %u has byte_len %u, not %u",
			lane->id, rec->idx, wc->byte_len, rec->op.len);
	atomic64_add(rec->op.len, &lane->ctx->bytes);
}

static void rt_account(struct rt_lane *lane, struct rt_rec *rec,
		       const struct ib_wc *wc)
{
	void (*next)(struct rt_lane *lane) = NULL;
	struct rt_ctx *ctx = lane->ctx;
	unsigned long flags;
	struct list_head *p;

	spin_lock_irqsave(&lane->lock, flags);
	if (lane->closed) {
		rt_fail(ctx, "lane %u: completion of wr_id %#llx (%s) after the end",
			lane->id, wc->wr_id, ib_wc_status_msg(wc->status));
		goto out;
	}
	rec = rt_match(lane, rec, wc);
	if (!rec)
		goto out;

	/* those passed over were unsignaled, and are done */
	for (p = lane->cursor->next; p != &rec->node; p = p->next)
		list_entry(p, struct rt_rec, node)->status =
			lane->flushing ? IB_WC_WR_FLUSH_ERR : IB_WC_SUCCESS;
	lane->cursor = &rec->node;
	rec->status = wc->status;

	if (wc->qp != lane->qp->gone)
		rt_fail(ctx, "lane %u: request %u completed for another QP",
			lane->id, rec->idx);
	rt_check_status(lane, rec, wc);
	if (wc->status == IB_WC_SUCCESS)
		rt_check_success(lane, rec, wc);
	else
		lane->flushing = true;

	if (rec->signaled)
		WRITE_ONCE(lane->nsig_done, lane->nsig_done + 1);
	WRITE_ONCE(lane->matched, rec->idx + 1);
	if (wc->status == IB_WC_SUCCESS && !ctx->quiet)
		next = lane->next;
out:
	spin_unlock_irqrestore(&lane->lock, flags);
	if (next)
		next(lane);
	wake_up_all(&rt_wq);
}

static void rt_mutate(struct rt_cq *cq, struct rt_lane *lane,
		      struct rt_rec *rec, const struct ib_wc *orig)
{
	struct rt_ctx *ctx = lane->ctx;
	struct ib_wc wc = *orig;
	bool now;

	/* the first two belong to the registrations */
	now = atomic_inc_return(&ctx->nmut) == 3;
	if (!now && !cq->has_saved) {
		rt_account(lane, rec, &wc);
		return;
	}
	switch (ctx->arg.mutate) {
	case RT_MUT_SWALLOW:
		return;
	case RT_MUT_DUP:
		rt_account(lane, rec, &wc);
		break;
	case RT_MUT_STATUS:
		wc.status = IB_WC_LOC_LEN_ERR;
		break;
	case RT_MUT_OPCODE:
		wc.opcode = IB_WC_MASKED_FETCH_ADD;
		break;
	case RT_MUT_LEN:
		wc.byte_len++;
		break;
	case RT_MUT_ORDER:
		if (now) {
			cq->saved = wc;
			cq->saved_rec = rec;
			cq->has_saved = true;
			return;
		}
		rt_account(lane, rec, &wc);
		wc = cq->saved;
		rec = cq->saved_rec;
		cq->has_saved = false;
		break;
	default:
		break;
	}
	rt_account(lane, rec, &wc);
}

static void rt_complete(struct rt_cq *cq, struct rt_lane *lane,
			struct rt_rec *rec, const struct ib_wc *wc)
{
	atomic_inc(&lane->ctx->ncomp);
	if (lane->ctx->arg.mutate > RT_MUT_GUARD && !lane->recv &&
	    lane->qp->ep == &lane->ctx->a && !READ_ONCE(lane->ctx->quiet)) {
		rt_mutate(cq, lane, rec, wc);
		return;
	}
	rt_account(lane, rec, wc);
}

static void rt_done(struct ib_cq *ibcq, struct ib_wc *wc)
{
	struct rt_rec *rec = container_of(wc->wr_cqe, struct rt_rec, cqe);

	rt_complete(ibcq->cq_context, rec->lane, rec, wc);
}

/* The wr_id of a queue that is not alone says which lane it belongs to. */
static struct rt_lane *rt_find_lane(struct rt_cq *cq, const struct ib_wc *wc)
{
	struct rt_ctx *ctx = cq->ctx;
	struct rt_lane *only = NULL;
	u32 i, n = 0;

	for (i = 0; i < ctx->nlanes; i++) {
		struct rt_lane *lane = ctx->lanes[i];
		struct rt_cq *of = lane->recv ? lane->qp->rcq : lane->qp->scq;

		if (of != cq)
			continue;
		if (lane->id + 1 == wc->wr_id >> 32 && !ctx->arg.odd)
			return lane;
		only = lane;
		n++;
	}
	return n == 1 ? only : NULL;
}

/* One batch. Negative if the CQ is not to be polled, or cannot be. */
static int rt_poll_batch(struct rt_cq *cq)
{
	int n, i;

	lockdep_assert_held(&cq->lock);
	if (READ_ONCE(cq->closing) || READ_ONCE(cq->held))
		return -EBUSY;
	/* whatever is not written must be seen as wrong */
	memset(cq->wc, 0xa5, sizeof(cq->wc));
	n = ib_poll_cq(cq->cq, cq->batch, cq->wc);
	if (n < 0 || n > cq->batch) {
		rt_fail(cq->ctx, "ib_poll_cq returned %d of %d", n, cq->batch);
		return -EIO;
	}
	for (i = 0; i < n; i++) {
		struct rt_lane *lane;

		lane = rt_find_lane(cq, &cq->wc[i]);
		if (lane)
			rt_complete(cq, lane, NULL, &cq->wc[i]);
		else
			rt_fail(cq->ctx, "completion with a foreign wr_id %#llx",
				cq->wc[i].wr_id);
	}
	return n;
}

/* Until nothing is left. False if the CQ is not to be polled, or cannot be. */
static bool rt_poll_empty(struct rt_cq *cq)
{
	int n;

	do {
		spin_lock_bh(&cq->lock);
		n = rt_poll_batch(cq);
		spin_unlock_bh(&cq->lock);
	} while (n == cq->batch);
	return n >= 0;
}

static void rt_poll(struct rt_cq *cq)
{
	while (rt_poll_empty(cq) &&
	       ib_req_notify_cq(cq->cq, IB_CQ_NEXT_COMP |
				IB_CQ_REPORT_MISSED_EVENTS) > 0)
		;
}

static void rt_poll_work(struct work_struct *work)
{
	rt_poll(container_of(work, struct rt_cq, work));
}

static void rt_poll_tasklet(struct tasklet_struct *t)
{
	rt_poll(from_tasklet(((struct rt_cq *)NULL), t, tasklet));
}

static void rt_cq_kick(struct rt_cq *cq)
{
	if (cq->mode == RT_CQ_WORK)
		queue_work(system_highpri_wq, &cq->work);
	else
		tasklet_schedule(&cq->tasklet);
}

static void rt_comp_handler(struct ib_cq *ibcq, void *context)
{
	struct rt_cq *cq = context;

	if (!READ_ONCE(cq->closing))
		rt_cq_kick(cq);
}

static void rt_cq_event(struct ib_event *event, void *context)
{
	struct rt_cq *cq = context;

	rt_fail(cq->ctx, "the CQ raised '%s'", ib_event_msg(event->event));
}

static bool rt_by_wr_id(enum rt_cqmode mode)
{
	return mode == RT_CQ_WORK || mode == RT_CQ_TASKLET;
}

static struct rt_cq *rt_create_cq(struct rt_ctx *ctx, struct rt_ep *ep,
				  u32 nr_cqe)
{
	static const enum ib_poll_context poll_ctx[] = {
		[RT_CQ_WQ]	= IB_POLL_WORKQUEUE,
		[RT_CQ_UNBOUND]	= IB_POLL_UNBOUND_WORKQUEUE,
		[RT_CQ_SOFTIRQ]	= IB_POLL_SOFTIRQ,
	};
	struct ib_cq_init_attr attr = { .cqe = nr_cqe };
	struct rt_cq *cq;

	if (ctx->ncqs == RT_MAX_CQS)
		return ERR_PTR(-ENOSPC);
	cq = kzalloc(sizeof(*cq), GFP_KERNEL);
	if (!cq)
		return ERR_PTR(-ENOMEM);
	cq->ctx = ctx;
	cq->mode = ctx->arg.cq;
	cq->batch = clamp_t(u32, ctx->arg.batch, 1, RT_MAX_BATCH);
	spin_lock_init(&cq->lock);
	INIT_WORK(&cq->work, rt_poll_work);
	tasklet_setup(&cq->tasklet, rt_poll_tasklet);

	if (rt_by_wr_id(cq->mode))
		cq->cq = ib_create_cq(ep->dev, rt_comp_handler, rt_cq_event, cq,
				      &attr);
	else
		cq->cq = ib_alloc_cq(ep->dev, cq, nr_cqe, 0,
				     poll_ctx[cq->mode]);
	if (IS_ERR(cq->cq)) {
		long err = PTR_ERR(cq->cq);

		kfree(cq);
		return ERR_PTR(err);
	}
	ctx->cqs[ctx->ncqs++] = cq;
	if (rt_by_wr_id(cq->mode))
		ib_req_notify_cq(cq->cq, IB_CQ_NEXT_COMP);
	return cq;
}

/* No QP uses the CQ any more. What is left in it is nobody's. */
static void rt_destroy_cq(struct rt_cq *cq)
{
	struct ib_cq *ibcq = cq->cq;

	if (rt_by_wr_id(cq->mode)) {
		WRITE_ONCE(cq->closing, true);
		cancel_work_sync(&cq->work);
		tasklet_kill(&cq->tasklet);
		ib_destroy_cq(ibcq);
		/* the handler may have been called until now */
		cancel_work_sync(&cq->work);
		tasklet_kill(&cq->tasklet);
	} else {
		ib_free_cq(ibcq);
	}
	kfree(cq);
}

/* Posting */

static struct rt_lane *rt_add_lane(struct rt_ctx *ctx, struct rt_qp *qp,
				   bool recv)
{
	struct rt_lane *lane;

	if (ctx->nlanes == RT_MAX_LANES)
		return NULL;
	lane = kzalloc(sizeof(*lane), GFP_KERNEL);
	if (!lane)
		return NULL;
	lane->ctx = ctx;
	lane->qp = qp;
	lane->recv = recv;
	lane->id = ctx->nlanes;
	spin_lock_init(&lane->lock);
	INIT_LIST_HEAD(&lane->recs);
	lane->cursor = &lane->recs;
	lane->replay = &lane->recs;
	ctx->lanes[ctx->nlanes++] = lane;
	return lane;
}

static u64 rt_wr_id(struct rt_lane *lane, struct rt_rec *rec)
{
	static const u64 odd[] = {
		0, 1, 2, ~0ULL, 3, 0x8000000000000000ULL, ~0ULL, 0xffffffffULL,
	};

	if (!rt_by_wr_id(lane->ctx->arg.cq))
		return rec->op.hidden ? 0 : (uintptr_t)&rec->cqe;
	if (!lane->ctx->arg.odd)
		return (u64)(lane->id + 1) << 32 | rec->idx;
	/* every third one looks like a pointer */
	if (rec->idx % 3 == 2)
		return (uintptr_t)rec;
	return odd[rec->idx % ARRAY_SIZE(odd)];
}

static struct rt_rec *rt_append(struct rt_lane *lane, const struct rt_op *op,
				bool recv)
{
	struct rt_ctx *ctx = lane->ctx;
	struct rt_rec *rec;
	unsigned long flags;
	int i;

	i = atomic_inc_return(&ctx->nrecs) - 1;
	if (i >= RT_MAX_RECS) {
		rt_fail(ctx, "more than %d work requests", RT_MAX_RECS);
		return NULL;
	}
	rec = &ctx->recs[i];
	rec->cqe.done = rt_done;
	rec->lane = lane;
	rec->op = *op;
	rec->recv = recv;
	rec->signaled = recv || ctx->arg.sigall ||
			(op->flags & IB_SEND_SIGNALED);
	rec->status = RT_PENDING;

	spin_lock_irqsave(&lane->lock, flags);
	rec->idx = lane->posted;
	rec->wr_id = rt_wr_id(lane, rec);
	list_add_tail(&rec->node, &lane->recs);
	WRITE_ONCE(lane->posted, lane->posted + 1);
	WRITE_ONCE(lane->nsig, lane->nsig + rec->signaled);
	spin_unlock_irqrestore(&lane->lock, flags);
	return rec;
}

static void rt_drop(struct rt_rec *rec)
{
	struct rt_lane *lane = rec->lane;
	unsigned long flags;

	spin_lock_irqsave(&lane->lock, flags);
	if (rec->status != RT_PENDING || lane->cursor == &rec->node)
		rt_fail(lane->ctx, "lane %u: request %u was refused and completed",
			lane->id, rec->idx);
	list_del(&rec->node);
	rec->dropped = true;
	WRITE_ONCE(lane->posted, lane->posted - 1);
	WRITE_ONCE(lane->nsig, lane->nsig - rec->signaled);
	spin_unlock_irqrestore(&lane->lock, flags);
}

struct rt_wr {
	union {
		struct ib_send_wr wr;
		struct ib_rdma_wr rdma;
		struct ib_atomic_wr atomic;
		struct ib_reg_wr reg;
		struct ib_recv_wr recv;
	};
	struct ib_sge sge[RT_MAX_SGE];
	struct rt_rec *rec;
	u8 data[RT_INLINE];
};

static int rt_sges(struct rt_wr *w, struct rt_ep *ep, const struct rt_rec *rec)
{
	const struct rt_op *op = &rec->op;
	struct rt_buf *buf = rt_local(ep, rec);
	u32 lkey = op->lmr ? op->lmr->lkey : ep->pd->local_dma_lkey;
	u32 i, n = op->len ? rt_nsge(op) : 0;

	for (i = 0; i < n; i++) {
		u32 cut = rt_cut(op, i);
		u32 off = op->loff + cut + i * RT_GAP;

		w->sge[i].addr = buf->dma + off;
		w->sge[i].length = rt_cut(op, i + 1) - cut;
		w->sge[i].lkey = lkey;
		if (op->flags & IB_SEND_INLINE) {
			memcpy(w->data + cut, buf->va + off, w->sge[i].length);
			w->sge[i].addr = (uintptr_t)(w->data + cut);
		}
	}
	if (op->bad_lkey)
		w->sge[n - 1].lkey = ~lkey;
	return n;
}

static void rt_build(struct rt_wr *w, struct rt_rec *rec)
{
	const struct rt_op *op = &rec->op;
	struct rt_ep *ep = rec->lane->qp->ep;
	struct rt_ep *peer = ep->peer;
	bool read = op->opcode == IB_WR_RDMA_READ;
	struct ib_mr *mr = read ? peer->mr_src : peer->mr_dst;
	u64 raddr = (read ? peer->src.dma : peer->dst.dma) + op->roff;
	u32 rkey = op->rmr ? op->rmr->rkey : mr ? mr->rkey : 0;

	memset(w, 0, sizeof(*w));
	w->rec = rec;
	w->wr.opcode = op->opcode;
	w->wr.send_flags = op->flags;
	w->wr.sg_list = w->sge;
	if (rt_by_wr_id(rec->lane->ctx->arg.cq))
		w->wr.wr_id = rec->wr_id;
	else
		w->wr.wr_cqe = op->hidden ? NULL : &rec->cqe;

	switch (op->opcode) {
	case IB_WR_REG_MR:
		w->reg.mr = op->mr;
		w->reg.key = op->mr->rkey;
		w->reg.access = IB_ACCESS_LOCAL_WRITE | RT_REMOTE;
		return;
	case IB_WR_LOCAL_INV:
		w->wr.ex.invalidate_rkey = op->mr->rkey;
		return;
	case IB_WR_ATOMIC_CMP_AND_SWP:
	case IB_WR_ATOMIC_FETCH_AND_ADD:
		w->atomic.remote_addr = raddr;
		w->atomic.rkey = rkey;
		w->atomic.compare_add = op->add;
		w->atomic.swap = op->swap;
		break;
	case IB_WR_SEND_WITH_INV:
		w->wr.ex.invalidate_rkey = op->mr->rkey;
		break;
	case IB_WR_SEND_WITH_IMM:
		w->wr.ex.imm_data = cpu_to_be32(op->imm);
		break;
	case IB_WR_RDMA_WRITE_WITH_IMM:
		w->wr.ex.imm_data = cpu_to_be32(op->imm);
		fallthrough;
	case IB_WR_RDMA_WRITE:
	case IB_WR_RDMA_READ:
	case IB_WR_RESERVED1:
		w->rdma.remote_addr = raddr;
		w->rdma.rkey = rkey;
		break;
	default:
		break;
	}
	w->wr.num_sge = rt_sges(w, ep, rec);
}

/*
 * Post a chain. Whatever the provider keeps it must have copied when it
 * returns, so everything is overwritten then. The number of those accepted
 * is told in @accepted, if the caller knows that not all of them may be.
 */
static int rt_post_chain(struct rt_lane *lane, const struct rt_op *ops, u32 n,
			 u32 *accepted)
{
	struct ib_send_wr *const nowhere = (void *)&lane->posted;
	const struct ib_send_wr *bad = nowhere;
	struct rt_ctx *ctx = lane->ctx;
	struct rt_wr *w;
	u32 i, good = n;
	int err;

	w = n == 1 ? kmalloc(sizeof(*w), GFP_ATOMIC) :
		     kvmalloc_array(n, sizeof(*w), GFP_KERNEL);
	if (!w) {
		rt_fail(ctx, "no memory for %u work requests", n);
		return -ENOMEM;
	}
	for (i = 0; i < n; i++) {
		struct rt_rec *rec = rt_append(lane, &ops[i], false);

		if (!rec) {
			kvfree(w);
			return -ENOSPC;
		}
		rt_build(&w[i], rec);
		if (i)
			w[i - 1].wr.next = &w[i].wr;
	}
	err = ib_post_send(lane->qp->qp, &w[0].wr, &bad);
	if (err) {
		for (good = 0; good < n; good++)
			if (bad == &w[good].wr)
				break;
		if (good == n)
			rt_fail(ctx, "lane %u: post failed with %d and %s bad_wr",
				lane->id, err, bad == nowhere ? "no" : "a foreign");
		for (i = n; i > good; i--)
			rt_drop(w[i - 1].rec);
	}
	if (accepted)
		*accepted = good;
	else if (err)
		rt_fail(ctx, "lane %u: post of %u failed at %u with %d",
			lane->id, n, good, err);
	memset(w, 0x5a, n * sizeof(*w));
	kvfree(w);
	return err;
}

static int rt_post(struct rt_lane *lane, const struct rt_op *op)
{
	return rt_post_chain(lane, op, 1, NULL);
}

static int rt_post_recv(struct rt_lane *lane, u32 off, u32 len, u32 nsge,
			enum rt_expect expect)
{
	const struct rt_op op = {
		.len = len, .loff = off, .nsge = nsge, .expect = expect,
	};
	struct rt_qp *qp = lane->qp;
	const struct ib_recv_wr *bad;
	struct rt_rec *rec;
	struct rt_wr *w;
	int err;

	w = kzalloc(sizeof(*w), GFP_KERNEL);
	rec = w ? rt_append(lane, &op, true) : NULL;
	if (!rec) {
		kfree(w);
		return -ENOMEM;
	}
	if (rt_by_wr_id(lane->ctx->arg.cq))
		w->recv.wr_id = rec->wr_id;
	else
		w->recv.wr_cqe = &rec->cqe;
	w->recv.sg_list = w->sge;
	w->recv.num_sge = rt_sges(w, qp->ep, rec);
	err = qp->srq ? ib_post_srq_recv(qp->srq, &w->recv, &bad) :
			ib_post_recv(qp->qp, &w->recv, &bad);
	if (err) {
		rt_drop(rec);
		rt_fail(lane->ctx, "lane %u: post of a receive failed with %d",
			lane->id, err);
	}
	memset(w, 0x5a, sizeof(*w));
	kfree(w);
	return err;
}

static bool rt_signaled_done(struct rt_lane *lane)
{
	return READ_ONCE(lane->nsig_done) == READ_ONCE(lane->nsig);
}

static bool rt_all_done(struct rt_lane *lane)
{
	return READ_ONCE(lane->matched) == READ_ONCE(lane->posted);
}

/* All signaled ones have completed. */
static int rt_wait_lane(struct rt_lane *lane)
{
	if (rt_wait(lane->ctx, rt_signaled_done(lane)))
		return 0;
	if (!rt_hopeless(lane->ctx))
		rt_fail(lane->ctx, "lane %u: %u of %u completions came",
			lane->id, lane->nsig_done, lane->nsig);
	return -ETIMEDOUT;
}

/* After an error every one has completed, signaled or not. */
static int rt_wait_flush(struct rt_lane *lane)
{
	if (rt_wait(lane->ctx, rt_all_done(lane)))
		return 0;
	if (!rt_hopeless(lane->ctx))
		rt_fail(lane->ctx, "lane %u: completions came up to request %u of %u",
			lane->id, lane->matched, lane->posted);
	return -ETIMEDOUT;
}

/* The model */

static u32 rt_at(const struct rt_op *op, u32 pos, u32 *run)
{
	u32 i, n = rt_nsge(op);

	for (i = 0; i + 1 < n; i++)
		if (pos < rt_cut(op, i + 1))
			break;
	*run = rt_cut(op, i + 1) - pos;
	return op->loff + pos + i * RT_GAP;
}

/*
 * Where the bytes of @rec from @pos on come from and where they go, in the
 * model or really. Returns how many of them lie in one piece at both ends.
 */
static u32 rt_span(const struct rt_rec *rec, const struct rt_rec *rcv, u32 pos,
		   bool real, void **dst, void **src)
{
	const struct rt_op *op = &rec->op;
	struct rt_ep *ep = rec->lane->qp->ep;
	struct rt_ep *peer = ep->peer;
	void *mine = real ? ep->dst.va : ep->model;
	void *theirs = real ? peer->dst.va : peer->model;
	u32 run, run_rcv;
	u32 loff = rt_at(op, pos, &run);

	if (rt_to_local(rec)) {
		*dst = mine + loff;
		*src = peer->src.va + op->roff + pos;
		return run;
	}
	*src = (op->from_dst ? ep->model : ep->src.va) + loff;
	if (rcv) {
		*dst = theirs + rt_at(&rcv->op, pos, &run_rcv);
		return min(run, run_rcv);
	}
	*dst = theirs + op->roff + pos;
	return run;
}

static void rt_replay_recv(const struct rt_rec *rec, const struct rt_rec *rcv)
{
	const struct rt_op *op = &rec->op;
	struct rt_ctx *ctx = rec->lane->ctx;
	enum ib_wc_opcode opcode = IB_WC_RECV;
	int flags = 0;
	u32 ex = 0;

	if (op->opcode == IB_WR_RDMA_WRITE_WITH_IMM)
		opcode = IB_WC_RECV_RDMA_WITH_IMM;
	if (op->opcode == IB_WR_RDMA_WRITE_WITH_IMM ||
	    op->opcode == IB_WR_SEND_WITH_IMM) {
		flags = IB_WC_WITH_IMM;
		ex = op->imm;
	}
	if (op->opcode == IB_WR_SEND_WITH_INV) {
		flags = IB_WC_WITH_INVALIDATE;
		ex = op->mr->rkey;
	}
	if (rcv->status != IB_WC_SUCCESS)
		rt_fail(ctx, "lane %u: receive %u did not complete",
			rcv->lane->id, rcv->idx);
	else if (rcv->byte_len != op->len || rcv->opcode != opcode)
		rt_fail(ctx, "lane %u: receive %u has byte_len %u, opcode %d, not %u, %d",
			rcv->lane->id, rcv->idx, rcv->byte_len, rcv->opcode,
			op->len, opcode);
	else if ((rcv->wc_flags & flags) != flags || (flags && rcv->wc_ex != ex))
		rt_fail(ctx, "lane %u: receive %u has flags %#x with %#x, not %#x with %#x",
			rcv->lane->id, rcv->idx, rcv->wc_flags, rcv->wc_ex,
			flags, ex);
}

static struct rt_rec *rt_next_recv(struct rt_rec *rec)
{
	struct rt_lane *lane = rec->lane->qp->peer->recv;

	if (!lane || lane->replay->next == &lane->recs) {
		rt_fail(rec->lane->ctx, "lane %u: request %u has no receive",
			rec->lane->id, rec->idx);
		return NULL;
	}
	lane->replay = lane->replay->next;
	return list_entry(lane->replay, struct rt_rec, node);
}

static void rt_replay(struct rt_rec *rec)
{
	const struct rt_op *op = &rec->op;
	struct rt_ep *ep = rec->lane->qp->ep;
	struct rt_rec *rcv = NULL;
	void *dst, *src;
	u32 pos, run;

	if (rt_is_atomic(op)) {
		u64 *word = ep->peer->model + op->roff;
		u64 old = *word;

		if (op->opcode == IB_WR_ATOMIC_FETCH_AND_ADD)
			*word += op->add;
		else if (*word == op->add)
			*word = op->swap;
		memcpy(ep->model + op->loff, &old, sizeof(old));
		return;
	}
	if (rt_is_send(op) || op->opcode == IB_WR_RDMA_WRITE_WITH_IMM) {
		rcv = rt_next_recv(rec);
		if (!rcv)
			return;
		rt_replay_recv(rec, rcv);
		if (!rt_is_send(op))
			rcv = NULL;
	}
	for (pos = 0; pos < op->len; pos += run) {
		run = rt_span(rec, rcv, pos, false, &dst, &src);
		memcpy(dst, src, run);
	}
}

static size_t rt_same(const u8 *a, const u8 *b, size_t len)
{
	size_t i = 0;

	while (len - i >= SZ_4K && !memcmp(a + i, b + i, SZ_4K))
		i += SZ_4K;
	while (i < len && a[i] == b[i])
		i++;
	return i;
}

/*
 * A request that did not succeed may have moved its first bytes, if all
 * before it moved all of theirs. Take what was moved over into the model.
 * @open tells whether that is still so, for data that come and that go.
 */
static void rt_replay_prefix(struct rt_rec *rec, bool open[2])
{
	bool in = rt_to_local(rec);
	const struct rt_op *op = &rec->op;
	u32 pos, run, same = 0, moved = 0;
	void *dst, *src, *was;

	for (pos = 0; pos < op->len; pos += run) {
		run = rt_span(rec, NULL, pos, true, &dst, &src);
		same = rt_same(dst, src, run);
		moved = pos + same;
		if (same < run)
			break;
	}
	if (!open[in])
		moved = 0;
	/* what lies behind the MR must not change */
	if (op->reach)
		moved = min(moved, op->reach);
	for (pos = 0; pos < moved; pos += run) {
		run = rt_span(rec, NULL, pos, false, &was, &src);
		run = min(run, moved - pos);
		memcpy(was, src, run);
	}
	if (moved == op->len)
		return;
	open[in] = false;
	if (!rec->lane->ctx->fails_here)
		open[!in] = false;
}

static void rt_compare(struct rt_ctx *ctx, const u8 *got, const u8 *want,
		       const char *name)
{
	size_t first, i, n = 0;

	first = rt_same(got, want, RT_BUF_SIZE);
	if (first == RT_BUF_SIZE)
		return;
	for (i = first; i < RT_BUF_SIZE; i++)
		n += got[i] != want[i];
	rt_fail(ctx, "%s: %zu bytes differ, the first at %#zx: %#x, not %#x",
		name, n, first, got[first], want[first]);
}

static void rt_verify(struct rt_ctx *ctx)
{
	int n = min(atomic_read(&ctx->nrecs), RT_MAX_RECS);
	bool open[2] = { true, true };
	int i;

	if (ctx->verify == RT_VERIFY_NONE)
		return;

	if (ctx->arg.mutate == RT_MUT_BYTE || ctx->arg.mutate == RT_MUT_GUARD) {
		u32 off = ctx->arg.mutate == RT_MUT_BYTE ? RT_BASE :
							   RT_BUF_SIZE - 1;

		((u8 *)ctx->a.dst.va)[off] ^= 1;
		((u8 *)ctx->b.dst.va)[off] ^= 1;
	}
	for (i = 0; i < n; i++) {
		struct rt_rec *rec = &ctx->recs[i];

		if (rec->dropped || rec->recv || rt_is_local(&rec->op))
			continue;
		if (ctx->verify == RT_VERIFY_ALL ||
		    rec->status == IB_WC_SUCCESS)
			rt_replay(rec);
		else
			rt_replay_prefix(rec, open);
	}
	rt_compare(ctx, ctx->a.dst.va, ctx->a.model, "destination a");
	rt_compare(ctx, ctx->b.dst.va, ctx->b.model, "destination b");
	rt_compare(ctx, ctx->a.src.va, rt_patterns[0], "source a");
	rt_compare(ctx, ctx->b.src.va, rt_patterns[2], "source b");
}

/* Connections */

static struct ib_mr *rt_alloc_mr(struct rt_ctx *ctx, struct rt_ep *ep,
				 struct rt_buf *buf, u32 off, u32 len)
{
	struct scatterlist sg;
	struct ib_mr *mr;
	int n;

	mr = ib_alloc_mr(ep->pd, IB_MR_TYPE_MEM_REG, RT_MR_PAGES);
	if (IS_ERR(mr)) {
		rt_fail(ctx, "ib_alloc_mr failed with %ld", PTR_ERR(mr));
		return NULL;
	}
	sg_init_one(&sg, buf->va + off, len);
	n = ib_dma_map_sg(ep->dev, &sg, 1, DMA_BIDIRECTIONAL) == 1 ?
		ib_map_mr_sg(mr, &sg, 1, NULL, RT_MR_PAGE) : 0;
	ib_dma_unmap_sg(ep->dev, &sg, 1, DMA_BIDIRECTIONAL);
	if (n != 1) {
		rt_fail(ctx, "ib_map_mr_sg returned %d", n);
		ib_dereg_mr(mr);
		return NULL;
	}
	return mr;
}

/* An MR of a case, freed with the context. */
static struct ib_mr *rt_case_mr(struct rt_ctx *ctx, struct rt_ep *ep,
				struct rt_buf *buf, u32 off, u32 len)
{
	struct ib_mr *mr = NULL;

	if (ctx->nmrs < ARRAY_SIZE(ctx->mrs))
		mr = rt_alloc_mr(ctx, ep, buf, off, len);
	if (mr)
		ctx->mrs[ctx->nmrs++] = mr;
	return mr;
}

static int rt_reg(struct rt_lane *lane, struct ib_mr *mr)
{
	const struct rt_op op = {
		.opcode = IB_WR_REG_MR,
		.flags = IB_SEND_SIGNALED,
		.mr = mr,
	};

	if (!mr)
		return -ENOMEM;
	ib_update_fast_reg_key(mr, ib_inc_rkey(mr->rkey));
	return rt_post(lane, &op) ? : rt_wait_lane(lane);
}

static int rt_modify(struct rt_ctx *ctx, struct rt_qp *qp,
		     enum ib_qp_state state)
{
	struct ib_qp_attr attr = { .qp_state = state };
	struct rt_ep *ep = qp->ep;
	int mask = IB_QP_STATE;
	int err;

	switch (state) {
	case IB_QPS_INIT:
		attr.port_num = ep->port;
		attr.qp_access_flags = RT_REMOTE;
		mask |= IB_QP_PKEY_INDEX | IB_QP_PORT | IB_QP_ACCESS_FLAGS;
		break;
	case IB_QPS_RTR:
		attr.path_mtu = ep->mtu;
		attr.dest_qp_num = qp->peer->qp->qp_num;
		attr.rq_psn = qp->peer->psn;
		attr.max_dest_rd_atomic = ctx->arg.rdatomic;
		attr.min_rnr_timer = IB_RNR_TIMER_000_64;
		attr.ah_attr.type = rdma_ah_find_type(ep->dev, ep->port);
		rdma_ah_set_grh(&attr.ah_attr, &ep->peer->gid, 0, ep->gid_index,
				64, 0);
		rdma_ah_set_port_num(&attr.ah_attr, ep->port);
		mask |= IB_QP_AV | IB_QP_PATH_MTU | IB_QP_DEST_QPN |
			IB_QP_RQ_PSN | IB_QP_MAX_DEST_RD_ATOMIC |
			IB_QP_MIN_RNR_TIMER;
		break;
	case IB_QPS_RTS:
		attr.timeout = ctx->conf.timeout;
		attr.retry_cnt = ctx->conf.retry;
		attr.rnr_retry = ctx->conf.rnr_retry;
		attr.sq_psn = qp->psn;
		attr.max_rd_atomic = ctx->arg.rdatomic;
		mask |= IB_QP_TIMEOUT | IB_QP_RETRY_CNT | IB_QP_RNR_RETRY |
			IB_QP_SQ_PSN | IB_QP_MAX_QP_RD_ATOMIC;
		break;
	default:
		break;
	}
	err = ib_modify_qp(qp->qp, &attr, mask);
	if (err)
		rt_fail(ctx, "modify to state %d failed with %d", state, err);
	else
		qp->state = state;
	return err;
}

/* Both ends, one state after the other. */
static int rt_raise(struct rt_ctx *ctx, struct rt_qp *qa, struct rt_qp *qb,
		    enum ib_qp_state to)
{
	enum ib_qp_state state;
	int err;

	for (state = IB_QPS_INIT; state <= to; state++) {
		err = rt_modify(ctx, qa, state) ? : rt_modify(ctx, qb, state);
		if (err)
			return err;
	}
	return 0;
}

static int rt_create_qp(struct rt_ctx *ctx, struct rt_ep *ep, struct rt_qp *qp,
			struct rt_qp *peer, struct ib_srq *srq)
{
	struct ib_qp_init_attr attr = {
		.cap = {
			.max_send_wr = ctx->arg.depth + 1,
			.max_recv_wr = ctx->arg.depth + 1,
			.max_send_sge = min_t(u32, ctx->arg.sge,
					      ep->dev->attrs.max_send_sge),
			.max_recv_sge = min_t(u32, ctx->arg.sge,
					      ep->dev->attrs.max_recv_sge),
			.max_inline_data = RT_INLINE,
		},
		.sq_sig_type = ctx->arg.sigall ? IB_SIGNAL_ALL_WR :
						 IB_SIGNAL_REQ_WR,
		.qp_type = IB_QPT_RC,
		.send_cq = qp->scq->cq,
		.recv_cq = qp->rcq->cq,
		.srq = srq,
	};

	if (srq) {
		attr.cap.max_recv_wr = 0;
		attr.cap.max_recv_sge = 0;
	}
	qp->qp = ib_create_qp(ep->pd, &attr);
	if (IS_ERR(qp->qp)) {
		long err = PTR_ERR(qp->qp);

		qp->qp = NULL;
		rt_fail(ctx, "ib_create_qp failed with %ld", err);
		return err;
	}
	qp->gone = qp->qp;
	qp->ep = ep;
	qp->peer = peer;
	qp->srq = srq;
	qp->psn = 0x1000 + qp->qp->qp_num;
	qp->depth = attr.cap.max_send_wr - 1;
	qp->max_sge = attr.cap.max_send_sge;
	qp->state = IB_QPS_RESET;
	qp->send = rt_add_lane(ctx, qp, false);
	qp->recv = rt_add_lane(ctx, qp, true);
	return qp->send && qp->recv ? 0 : -ENOMEM;
}

static int rt_create_side(struct rt_ctx *ctx, struct rt_ep *ep,
			  struct rt_qp *qps, struct rt_qp *peers,
			  struct ib_srq **srqp)
{
	u32 queue = ctx->arg.depth + 1;
	struct rt_cq *all = NULL;
	u32 i;
	int err;

	if (ctx->conf.one_cq) {
		all = rt_create_cq(ctx, ep, 2 * queue * ctx->conf.pairs);
		if (IS_ERR(all))
			return PTR_ERR(all);
	}
	if (ctx->conf.srq) {
		struct ib_srq_init_attr attr = {
			.attr = { .max_wr = queue, .max_sge = ctx->arg.sge },
			.srq_type = IB_SRQT_BASIC,
		};
		struct ib_srq *srq = ib_create_srq(ep->pd, &attr);

		if (IS_ERR(srq))
			return PTR_ERR(srq);
		*srqp = srq;
	}
	for (i = 0; i < ctx->conf.pairs; i++) {
		qps[i].scq = all ? : rt_create_cq(ctx, ep,
						  ctx->conf.scqe ? : queue);
		if (IS_ERR(qps[i].scq))
			return PTR_ERR(qps[i].scq);
		qps[i].rcq = all ? : rt_create_cq(ctx, ep, queue);
		if (IS_ERR(qps[i].rcq))
			return PTR_ERR(qps[i].rcq);
		err = rt_create_qp(ctx, ep, &qps[i], &peers[i], *srqp);
		if (err)
			return err;
	}
	return 0;
}

static int rt_query_ep(struct rt_ep *ep)
{
	struct ib_port_attr attr;
	int i, err;

	ep->port = rdma_start_port(ep->dev);
	err = ib_query_port(ep->dev, ep->port, &attr);
	if (err)
		return err;
	ep->mtu = attr.active_mtu;
	for (i = 0; i < attr.gid_tbl_len; i++) {
		const struct ib_gid_attr *gid;
		bool found;

		gid = rdma_get_gid_attr(ep->dev, ep->port, i);
		if (IS_ERR(gid))
			continue;
		found = gid->gid_type == IB_GID_TYPE_ROCE_UDP_ENCAP &&
			ipv6_addr_v4mapped((struct in6_addr *)&gid->gid);
		ep->gid = gid->gid;
		rdma_put_gid_attr(gid);
		if (found) {
			ep->gid_index = i;
			return 0;
		}
	}
	return -EADDRNOTAVAIL;
}

static int rt_setup_ep(struct rt_ep *ep, struct rt_ep *peer, const char *name,
		       const char *pd_name)
{
	struct rt_dev *rdev;
	struct ib_pd *pd;
	int err;

	ep->peer = peer;
	mutex_lock(&rt_devs_lock);
	list_for_each_entry(rdev, &rt_devs, node)
		if (!strcmp(dev_name(&rdev->dev->dev), name))
			ep->rdev = rdev;
	if (ep->rdev)
		ep->rdev->users++;
	mutex_unlock(&rt_devs_lock);
	if (!ep->rdev)
		return -ENODEV;
	ep->dev = ep->rdev->dev;
	err = rt_query_ep(ep);
	if (err)
		return err;
	pd = __ib_alloc_pd(ep->dev, 0, pd_name);
	if (IS_ERR(pd))
		return PTR_ERR(pd);
	ep->pd = pd;
	return 0;
}

static int rt_map(struct rt_ep *ep, struct rt_buf *buf, u32 i)
{
	void *va = rt_bufs[i];

	memcpy(va, rt_patterns[i], RT_BUF_SIZE);
	buf->dma = ib_dma_map_single(ep->dev, va, RT_BUF_SIZE,
				     DMA_BIDIRECTIONAL);
	if (ib_dma_mapping_error(ep->dev, buf->dma))
		return -EIO;
	buf->va = va;
	return 0;
}

static void rt_unmap(struct rt_ep *ep, struct rt_buf *buf)
{
	if (buf->va)
		ib_dma_unmap_single(ep->dev, buf->dma, RT_BUF_SIZE,
				    DMA_BIDIRECTIONAL);
}

/* Patterns in all buffers, and the model of what is to become of them. */
static int rt_setup_bufs(struct rt_ctx *ctx)
{
	int err;

	err = rt_map(&ctx->a, &ctx->a.src, 0) ? :
	      rt_map(&ctx->a, &ctx->a.dst, 1) ? :
	      rt_map(&ctx->b, &ctx->b.src, 2) ? :
	      rt_map(&ctx->b, &ctx->b.dst, 3);
	ctx->a.model = rt_models[0];
	ctx->b.model = rt_models[1];
	memcpy(ctx->a.model, rt_patterns[1], RT_BUF_SIZE);
	memcpy(ctx->b.model, rt_patterns[3], RT_BUF_SIZE);
	return err;
}

static int rt_connect(struct rt_ctx *ctx)
{
	u32 i;
	int err;

	err = rt_create_side(ctx, &ctx->a, ctx->qa, ctx->qb, &ctx->srq_a) ? :
	      rt_create_side(ctx, &ctx->b, ctx->qb, ctx->qa, &ctx->srq_b);
	for (i = 0; !err && i < ctx->conf.pairs; i++)
		err = rt_raise(ctx, &ctx->qa[i], &ctx->qb[i],
			       ctx->conf.state);
	if (err || ctx->conf.state != IB_QPS_RTS)
		return err;

	ctx->a.mr_src = rt_alloc_mr(ctx, &ctx->a, &ctx->a.src, 0, RT_BUF_SIZE);
	ctx->a.mr_dst = rt_alloc_mr(ctx, &ctx->a, &ctx->a.dst, 0, RT_BUF_SIZE);
	ctx->b.mr_src = rt_alloc_mr(ctx, &ctx->b, &ctx->b.src, 0, RT_BUF_SIZE);
	ctx->b.mr_dst = rt_alloc_mr(ctx, &ctx->b, &ctx->b.dst, 0, RT_BUF_SIZE);
	return rt_reg(ctx->qa[0].send, ctx->a.mr_src) ? :
	       rt_reg(ctx->qa[0].send, ctx->a.mr_dst) ? :
	       rt_reg(ctx->qb[0].send, ctx->b.mr_src) ? :
	       rt_reg(ctx->qb[0].send, ctx->b.mr_dst);
}

/*
 * The last request of a queue must be flushed, and nothing but the ledger's
 * may come before it.
 */
static void rt_drain(struct rt_ctx *ctx, struct rt_qp *qp)
{
	const struct rt_op op = {
		.opcode = IB_WR_RDMA_WRITE,
		.flags = IB_SEND_SIGNALED,
		.expect = RT_EXP_FLUSH,
	};

	if (!qp->qp || qp->state < IB_QPS_RTS)
		return;
	if (rt_modify(ctx, qp, IB_QPS_ERR))
		return;
	if (!rt_post(qp->send, &op))
		rt_wait_flush(qp->send);
	/* a message that was on its way may still have come to this one */
	if (!qp->srq && !rt_post_recv(qp->recv, 0, 0, 0, RT_EXP_ERROR))
		rt_wait_flush(qp->recv);
}

/*
 * Both ends are drained: soon nothing comes in any more. rxe queues a packet, with which
 * its hold on the queue pair may be gone, and then still touches that: if another CPU
 * has handled the packet and the queue pair is destroyed meanwhile, the kernel crashes.
 */
static void rt_silence(void)
{
	msleep(RT_ON_THE_WIRE_MS);
	synchronize_rcu_expedited();
}

static void rt_destroy_qp(struct rt_ctx *ctx, struct rt_qp *qp)
{
	int err;

	if (!qp->qp)
		return;
	err = ib_destroy_qp(qp->qp);
	if (err)
		rt_fail(ctx, "ib_destroy_qp failed with %d", err);
	else
		qp->qp = NULL;
}

/* What is left in a CQ goes to the ledger, which knows whether it may be. */
static void rt_reap(struct rt_cq *cq)
{
	struct ib_wc wc;

	if (rt_by_wr_id(cq->mode)) {
		cancel_work_sync(&cq->work);
		tasklet_kill(&cq->tasklet);
		WRITE_ONCE(cq->held, false);
		local_bh_disable();
		rt_poll(cq);
		local_bh_enable();
		return;
	}
	while (ib_poll_cq(cq->cq, 1, &wc) > 0) {
		if (wc.wr_cqe)
			wc.wr_cqe->done(cq->cq, &wc);
		else if (wc.status == IB_WC_SUCCESS)
			rt_fail(cq->ctx, "success without a wr_cqe");
	}
}

/* Ends all traffic and looks at what it left. */
static void rt_finish(struct rt_ctx *ctx)
{
	u32 i;

	/* what is missing already will hardly come */
	if (READ_ONCE(ctx->failed))
		ctx->timeout = min_t(unsigned long, ctx->timeout, 2 * HZ);
	WRITE_ONCE(ctx->quiet, true);
	for (i = 0; i < ctx->conf.pairs; i++) {
		rt_drain(ctx, &ctx->qa[i]);
		rt_drain(ctx, &ctx->qb[i]);
	}
	rt_silence();
	for (i = 0; i < ctx->conf.pairs; i++) {
		rt_destroy_qp(ctx, &ctx->qa[i]);
		rt_destroy_qp(ctx, &ctx->qb[i]);
	}
	for (i = 0; i < ctx->ncqs; i++)
		rt_reap(ctx->cqs[i]);
}

static void rt_dereg(struct ib_mr *mr)
{
	if (mr)
		WARN_ON(ib_dereg_mr(mr));
}

static void rt_free_ep(struct rt_ep *ep)
{
	rt_dereg(ep->mr_src);
	rt_dereg(ep->mr_dst);
	rt_unmap(ep, &ep->src);
	rt_unmap(ep, &ep->dst);
	if (ep->pd)
		ib_dealloc_pd(ep->pd);
	if (!ep->rdev)
		return;
	mutex_lock(&rt_devs_lock);
	ep->rdev->users--;
	mutex_unlock(&rt_devs_lock);
}

static void rt_free(struct rt_ctx *ctx)
{
	u32 i;

	for (i = 0; i < ctx->ncqs; i++)
		rt_destroy_cq(ctx->cqs[i]);
	if (ctx->srq_a)
		ib_destroy_srq(ctx->srq_a);
	if (ctx->srq_b)
		ib_destroy_srq(ctx->srq_b);
	for (i = 0; i < ctx->nmrs; i++)
		rt_dereg(ctx->mrs[i]);
	rt_free_ep(&ctx->a);
	rt_free_ep(&ctx->b);
	for (i = 0; i < ctx->nlanes; i++)
		kfree(ctx->lanes[i]);
	kvfree(ctx->recs);
	kvfree(ctx);
}

static struct rt_ctx *rt_new(const struct rt_args *arg, const char *pd_name)
{
	struct rt_ctx *ctx;
	int err;

	ctx = kvzalloc(sizeof(*ctx), GFP_KERNEL);
	if (!ctx)
		return ERR_PTR(-ENOMEM);
	ctx->arg = *arg;
	ctx->timeout = (unsigned long)arg->timeout * HZ;
	ctx->conf.pairs = 1;
	ctx->conf.timeout = 18;
	ctx->conf.retry = 7;
	ctx->conf.rnr_retry = 7;
	ctx->conf.state = IB_QPS_RTS;
	spin_lock_init(&ctx->log_lock);
	ctx->recs = kvcalloc(RT_MAX_RECS, sizeof(*ctx->recs), GFP_KERNEL);
	err = !ctx->recs ? -ENOMEM :
	      rt_setup_ep(&ctx->a, &ctx->b, dev_a, pd_name) ? :
	      rt_setup_ep(&ctx->b, &ctx->a, dev_b, pd_name) ? :
	      rt_setup_bufs(ctx);
	if (err) {
		rt_free(ctx);
		return ERR_PTR(err);
	}
	return ctx;
}

/* Cases */

static enum ib_wr_opcode rt_opcode(struct rt_ctx *ctx)
{
	static const struct {
		const char *name;
		enum ib_wr_opcode opcode;
	} op[] = {
		{ "write", IB_WR_RDMA_WRITE },
		{ "read", IB_WR_RDMA_READ },
		{ "send", IB_WR_SEND },
		{ "writeimm", IB_WR_RDMA_WRITE_WITH_IMM },
		{ "sendimm", IB_WR_SEND_WITH_IMM },
	};
	int i;

	for (i = 0; i < ARRAY_SIZE(op); i++)
		if (!strcmp(ctx->arg.op, op[i].name))
			return op[i].opcode;
	return IB_WR_RDMA_WRITE;
}

/* Places for @n messages, side by side as long as there is room. */
static u32 rt_place(u32 i, u32 n, u32 len)
{
	u32 room = RT_BUF_SIZE - 2 * RT_BASE - len - RT_MAX_SGE * RT_GAP;
	u32 step = len + RT_MAX_SGE * RT_GAP + 37;

	return RT_BASE + i * min(step, room / max(n, 1U));
}

static bool rt_overlap(u32 n, u32 len)
{
	return rt_place(1, n, len) - RT_BASE < len;
}

static bool rt_is_signaled(struct rt_ctx *ctx, u32 i, u32 n)
{
	return i == n - 1 || (ctx->arg.signal && i % ctx->arg.signal == 0);
}

/* message @i of @n */
static struct rt_op rt_message(struct rt_ctx *ctx, enum ib_wr_opcode opcode,
			       u32 i, u32 n, u32 len)
{
	struct rt_op op = {
		.opcode = opcode,
		.len = len,
		.loff = rt_place(n - 1 - i, n, len),
		.roff = rt_place(i, n, len),
		.imm = 0x12345600 + i,
	};

	if (rt_is_signaled(ctx, i, n))
		op.flags = IB_SEND_SIGNALED;
	return op;
}

static bool rt_takes_recv(enum ib_wr_opcode opcode)
{
	return opcode == IB_WR_SEND || opcode == IB_WR_SEND_WITH_IMM ||
	       opcode == IB_WR_SEND_WITH_INV ||
	       opcode == IB_WR_RDMA_WRITE_WITH_IMM;
}

/* The receive that message @i of @n needs, if it needs one. */
static int rt_recv_for(struct rt_qp *qp, const struct rt_op *op, u32 i, u32 n)
{
	u32 place = rt_place(i, n, op->len);

	if (!rt_takes_recv(op->opcode))
		return 0;
	if (!rt_is_send(op))
		return rt_post_recv(qp->recv, place, 0, 1, RT_EXP_OK);
	return rt_post_recv(qp->recv, place, op->len + 33, op->nsge, RT_EXP_OK);
}

/* Wait for everything of both ends that is expected to succeed. */
static int rt_wait_pair(struct rt_ctx *ctx, u32 i)
{
	return rt_wait_lane(ctx->qa[i].send) ? :
	       rt_wait_lane(ctx->qb[i].send) ? :
	       rt_wait_lane(ctx->qa[i].recv) ? :
	       rt_wait_lane(ctx->qb[i].recv);
}

/* @n messages of one size, posted one by one */
static int rt_run_messages(struct rt_ctx *ctx, enum ib_wr_opcode opcode, u32 n,
			   u32 len)
{
	u32 i;
	int err = rt_connect(ctx);

	for (i = 0; !err && i < n; i++) {
		struct rt_op op = rt_message(ctx, opcode, i, n, len);

		err = rt_recv_for(&ctx->qb[0], &op, i, n) ? :
		      rt_post(ctx->qa[0].send, &op);
	}
	return err ? : rt_wait_pair(ctx, 0);
}

static int rt_case_size(struct rt_ctx *ctx)
{
	u32 n = min(ctx->arg.count ? : 3, ctx->arg.depth);

	return rt_run_messages(ctx, rt_opcode(ctx), n, ctx->arg.len);
}

static int rt_case_depth(struct rt_ctx *ctx)
{
	u32 i, n;
	int err = rt_connect(ctx);

	n = ctx->qa[0].depth;
	for (i = 0; !err && i < n; i++) {
		struct rt_op op = rt_message(ctx, rt_opcode(ctx), i, n,
					     ctx->arg.len);

		err = rt_post(ctx->qa[0].send, &op);
	}
	return err ? : rt_wait_pair(ctx, 0);
}

static int rt_case_sge(struct rt_ctx *ctx)
{
	u32 i, n;
	int err;

	ctx->arg.sge = RT_MAX_SGE;
	err = rt_connect(ctx);
	n = min(ctx->qa[0].max_sge, ctx->arg.depth);
	for (i = 0; !err && i < n; i++) {
		struct rt_op op = rt_message(ctx, rt_opcode(ctx), i, n,
					     ctx->arg.len + i);

		op.nsge = i + 1;
		op.skew = i & 1;
		err = rt_recv_for(&ctx->qb[0], &op, i, n) ? :
		      rt_post(ctx->qa[0].send, &op);
	}
	return err ? : rt_wait_pair(ctx, 0);
}

/* small and large ones, WRITE, READ and SEND, in one ib_post_send() */
static int rt_case_chain(struct rt_ctx *ctx)
{
	static const enum ib_wr_opcode opcode[] = {
		IB_WR_RDMA_WRITE, IB_WR_RDMA_WRITE, IB_WR_RDMA_READ,
		IB_WR_SEND, IB_WR_RDMA_WRITE, IB_WR_RDMA_READ,
	};
	u32 i, n = min(ctx->arg.count ? : 24, ctx->arg.depth);
	struct rt_op *ops;
	int err;

	err = rt_connect(ctx);
	if (err)
		return err;
	ops = kcalloc(n, sizeof(*ops), GFP_KERNEL);
	if (!ops)
		return -ENOMEM;
	for (i = 0; !err && i < n; i++) {
		u32 len = i % 3 ? ctx->arg.len : 64 + i;

		ops[i] = rt_message(ctx, opcode[i % ARRAY_SIZE(opcode)], i, n,
				    len);
		ops[i].roff = rt_place(i, n, ctx->arg.len);
		ops[i].loff = rt_place(n - 1 - i, n, ctx->arg.len);
		err = rt_recv_for(&ctx->qb[0], &ops[i], i, n);
	}
	err = err ? : rt_post_chain(ctx->qa[0].send, ops, n, NULL) ? :
	      rt_wait_pair(ctx, 0);
	kfree(ops);
	return err;
}

/* What a READ brought is sent on by a fenced request behind it. */
static int rt_case_fence(struct rt_ctx *ctx)
{
	u32 i, n = ctx->arg.count ? : 4;
	int err = rt_connect(ctx);

	for (i = 0; !err && i < n; i++) {
		struct rt_op ops[2] = {
			rt_message(ctx, IB_WR_RDMA_READ, i, n, ctx->arg.len),
			rt_message(ctx, rt_opcode(ctx), i, n, ctx->arg.len),
		};

		ops[0].flags = 0;
		ops[1].loff = ops[0].loff;
		ops[1].from_dst = true;
		ops[1].flags = IB_SEND_FENCE | IB_SEND_SIGNALED;
		err = rt_recv_for(&ctx->qb[0], &ops[1], i, n) ? :
		      rt_post_chain(ctx->qa[0].send, ops, 2, NULL);
	}
	return err ? : rt_wait_pair(ctx, 0);
}

/* inline data may be overwritten when the post returns */
static int rt_case_inline(struct rt_ctx *ctx)
{
	u32 i, n = min(ctx->arg.count ? : 16, ctx->arg.depth);
	int err = rt_connect(ctx);

	for (i = 0; !err && i < n; i++) {
		bool big = i % 4 == 0;
		struct rt_op op = rt_message(ctx, i % 2 ? IB_WR_SEND :
							  IB_WR_RDMA_WRITE,
					     i, n, big ? ctx->arg.len :
							 i * RT_INLINE / n);

		op.roff = rt_place(i, n, ctx->arg.len);
		op.nsge = 1 + i % 4;
		if (!big)
			op.flags |= IB_SEND_INLINE;
		err = rt_recv_for(&ctx->qb[0], &op, i, n) ? :
		      rt_post(ctx->qa[0].send, &op);
	}
	return err ? : rt_wait_pair(ctx, 0);
}

static int rt_regmr_chain(struct rt_ctx *ctx, struct ib_mr *src_mr,
			  struct ib_mr *dst_mr, u32 round)
{
	u32 len = ctx->arg.len, n = 4;
	struct rt_op ops[] = {
		rt_message(ctx, IB_WR_RDMA_WRITE, 0, n, len),
		{ .opcode = IB_WR_REG_MR, .mr = src_mr },
		rt_message(ctx, IB_WR_RDMA_WRITE, 1, n, len),
		{ .opcode = IB_WR_REG_MR, .mr = dst_mr,
		  .flags = IB_SEND_SIGNALED },
		rt_message(ctx, IB_WR_RDMA_READ, 2, n, len),
		{ .opcode = IB_WR_LOCAL_INV, .mr = src_mr },
		{ .opcode = IB_WR_LOCAL_INV, .mr = dst_mr,
		  .flags = IB_SEND_FENCE },
		rt_message(ctx, IB_WR_RDMA_WRITE, 3, n, len),
	};

	ops[2].lmr = src_mr;
	ops[4].lmr = dst_mr;
	ops[0].roff += round;
	ops[2].roff += round;
	ops[4].roff += round;
	ib_update_fast_reg_key(src_mr, ib_inc_rkey(src_mr->rkey));
	ib_update_fast_reg_key(dst_mr, ib_inc_rkey(dst_mr->rkey));
	return rt_post_chain(ctx->qa[0].send, ops, ARRAY_SIZE(ops), NULL) ? :
	       rt_wait_lane(ctx->qa[0].send);
}

/*
 * Registrations between data requests: first used on this side, then by the
 * peer, which is told by a SEND that stands behind the registration, and
 * which ends it with a SEND_WITH_INV.
 */
static int rt_case_regmr(struct rt_ctx *ctx)
{
	u32 len = ctx->arg.len;
	struct ib_mr *src_mr, *dst_mr;
	struct rt_op op;
	u32 round;
	int err;

	ctx->arg.signal = 0;
	err = rt_connect(ctx);
	if (err)
		return err;
	src_mr = rt_case_mr(ctx, &ctx->a, &ctx->a.src, 0, RT_BUF_SIZE);
	dst_mr = rt_case_mr(ctx, &ctx->a, &ctx->a.dst, 0, RT_BUF_SIZE);
	if (!src_mr || !dst_mr)
		return -ENOMEM;
	for (round = 0; !err && round < 3; round++)
		err = rt_regmr_chain(ctx, src_mr, dst_mr, round);
	if (err)
		return err;

	{
		struct rt_op ops[] = {
			rt_message(ctx, IB_WR_RDMA_WRITE, 0, 4, len),
			{ .opcode = IB_WR_REG_MR, .mr = src_mr },
			rt_message(ctx, IB_WR_SEND, 3, 4, 100),
		};

		ib_update_fast_reg_key(src_mr, ib_inc_rkey(src_mr->rkey));
		err = rt_recv_for(&ctx->qb[0], &ops[2], 1, 4) ? :
		      rt_post_recv(ctx->qa[0].recv, RT_BASE, 64, 1,
				   RT_EXP_OK) ? :
		      rt_post_chain(ctx->qa[0].send, ops, ARRAY_SIZE(ops),
				    NULL) ? :
		      rt_wait_lane(ctx->qb[0].recv);
	}
	if (err)
		return err;
	op = rt_message(ctx, IB_WR_RDMA_READ, 2, 4, len);
	op.rmr = src_mr;
	err = rt_post(ctx->qb[0].send, &op);
	if (err)
		return err;
	op = rt_message(ctx, IB_WR_SEND_WITH_INV, 3, 4, 40);
	op.flags = IB_SEND_FENCE | IB_SEND_SIGNALED;
	op.mr = src_mr;
	return rt_post(ctx->qb[0].send, &op) ? : rt_wait_pair(ctx, 0);
}

static int rt_case_atomic(struct rt_ctx *ctx)
{
	u32 len = ctx->arg.len;
	u32 roff = ALIGN(rt_place(2, 4, len), 8);
	u64 *word = ctx->b.model + roff;
	struct rt_op ops[] = {
		rt_message(ctx, IB_WR_RDMA_WRITE, 0, 4, len),
		{ .opcode = IB_WR_ATOMIC_FETCH_AND_ADD, .add = 0x1111 },
		rt_message(ctx, IB_WR_RDMA_WRITE, 1, 4, len),
		{ .opcode = IB_WR_ATOMIC_CMP_AND_SWP, .add = *word + 0x1111,
		  .swap = 0x2222 },
		rt_message(ctx, IB_WR_RDMA_READ, 0, 4, len),
		{ .opcode = IB_WR_ATOMIC_CMP_AND_SWP, .add = ~*word,
		  .swap = 0x3333 },
		rt_message(ctx, IB_WR_RDMA_WRITE, 3, 4, len),
	};
	u32 i;

	for (i = 1; i < ARRAY_SIZE(ops); i += 2) {
		ops[i].len = sizeof(u64);
		ops[i].loff = RT_BASE + 16 * i;
		ops[i].roff = roff;
		ops[i].flags = IB_SEND_SIGNALED;
	}
	return rt_connect(ctx) ? :
	       rt_post_chain(ctx->qa[0].send, ops, ARRAY_SIZE(ops), NULL) ? :
	       rt_wait_pair(ctx, 0);
}

/*
 * A send CQ with room for the signaled requests and not one more, filled
 * again and again.
 */
static int rt_case_exactcq(struct rt_ctx *ctx)
{
	u32 i, round, n = 30;
	int err;

	ctx->conf.scqe = 15;
	ctx->arg.depth = n;
	err = rt_connect(ctx);
	for (round = 0; !err && round < 3; round++) {
		for (i = 0; !err && i < n; i++) {
			struct rt_op op = rt_message(ctx, rt_opcode(ctx), i, n,
						     ctx->arg.len);

			op.flags = i & 1 ? IB_SEND_SIGNALED : 0;
			err = rt_post(ctx->qa[0].send, &op);
		}
		err = err ? : rt_wait_lane(ctx->qa[0].send);
	}
	return err;
}

/* The bytes written before a SEND are there when the SEND is received. */
static void rt_check_announced(struct rt_lane *lane)
{
	struct rt_ctx *ctx = lane->ctx;
	u32 n = ctx->arg.count, i = lane->step++;
	u32 len = ctx->arg.len;

	if (memcmp(ctx->b.dst.va + rt_place(i, n, len),
		   ctx->a.src.va + rt_place(n - 1 - i, n, len), len))
		rt_fail(ctx, "SEND %u was received before the data it announces",
			i);
}

static int rt_case_announce(struct rt_ctx *ctx)
{
	u32 i, n;
	int err;

	ctx->arg.count = min(ctx->arg.count ? : 8, ctx->arg.depth / 2);
	n = ctx->arg.count;
	/* the next message may come before the handler runs */
	if (rt_overlap(n, ctx->arg.len))
		return -EINVAL;
	err = rt_connect(ctx);
	ctx->qb[0].recv->next = rt_check_announced;
	for (i = 0; !err && i < n; i++) {
		struct rt_op write = rt_message(ctx, IB_WR_RDMA_WRITE, i, n,
						ctx->arg.len);
		struct rt_op send = rt_message(ctx, IB_WR_SEND, i, n, 16);

		write.flags = 0;
		err = rt_post_recv(ctx->qb[0].recv, 64 * i, 64, 1,
				   RT_EXP_OK) ? :
		      rt_post(ctx->qa[0].send, &write) ? :
		      rt_post(ctx->qa[0].send, &send);
	}
	return err ? : rt_wait_pair(ctx, 0);
}

/* The sender does not look at its CQ before the peer has received all. */
static int rt_case_lazy(struct rt_ctx *ctx)
{
	u32 i, n = min(ctx->arg.count ? : 8, ctx->arg.depth - 1);
	struct rt_op send = rt_message(ctx, IB_WR_SEND, 0, 1, 16);
	int err;

	if (!rt_by_wr_id(ctx->arg.cq))
		ctx->arg.cq = RT_CQ_WORK;
	err = rt_connect(ctx);
	if (err)
		return err;
	WRITE_ONCE(ctx->qa[0].scq->held, true);
	err = rt_post_recv(ctx->qb[0].recv, 0, 64, 1, RT_EXP_OK);
	for (i = 0; !err && i < n; i++) {
		struct rt_op op = rt_message(ctx, rt_opcode(ctx), i, n,
					     ctx->arg.len);

		err = rt_post(ctx->qa[0].send, &op);
	}
	send.flags |= IB_SEND_FENCE;
	err = err ? : rt_post(ctx->qa[0].send, &send) ? :
	      rt_wait_lane(ctx->qb[0].recv);
	WRITE_ONCE(ctx->qa[0].scq->held, false);
	rt_cq_kick(ctx->qa[0].scq);
	return err ? : rt_wait_pair(ctx, 0);
}

/* Errors */

/*
 * One good request, then one that fails, then more that must be flushed: each
 * of the latter completes, signaled or not.
 */
static int rt_run_failing(struct rt_ctx *ctx, struct rt_op *bad,
			  enum rt_expect before)
{
	u32 i, n = 8, len = ctx->arg.len;
	struct rt_op ops[8];

	ctx->verify = RT_VERIFY_PREFIX;
	for (i = 0; i < n; i++) {
		enum ib_wr_opcode opcode = i % 2 ? IB_WR_RDMA_READ :
						   IB_WR_RDMA_WRITE;

		ops[i] = rt_message(ctx, opcode, i, 2 * n, len);
		ops[i].flags = i % 3 == 2 ? 0 : IB_SEND_SIGNALED;
		ops[i].expect = RT_EXP_FLUSH;
	}
	ops[0] = rt_message(ctx, IB_WR_RDMA_WRITE, 0, 2 * n, len);
	ops[0].expect = before;
	ops[0].flags = IB_SEND_SIGNALED;
	ops[1] = *bad;
	ops[1].flags = ctx->arg.signal == 1 ? IB_SEND_SIGNALED : 0;
	if (!rt_by_wr_id(ctx->arg.cq))
		ops[5].hidden = !(ops[5].flags & IB_SEND_SIGNALED);
	return rt_post_chain(ctx->qa[0].send, ops, n, NULL);
}

/* The peer has registered only the first half of what is read or written. */
static int rt_case_remacc(struct rt_ctx *ctx)
{
	u32 len = ctx->arg.len;
	struct rt_op op = rt_message(ctx, rt_opcode(ctx), 1, 16, len);
	bool read = op.opcode == IB_WR_RDMA_READ;
	int err = rt_connect(ctx);

	if (err)
		return err;
	op.reach = len / 2;
	op.rmr = rt_case_mr(ctx, &ctx->b, read ? &ctx->b.src : &ctx->b.dst,
			    op.roff, op.reach);
	op.expect = RT_EXP_STATUS;
	op.status = IB_WC_REM_ACCESS_ERR;
	return rt_reg(ctx->qb[0].send, op.rmr) ? :
	       rt_run_failing(ctx, &op, RT_EXP_OK) ? :
	       rt_wait_flush(ctx->qa[0].send);
}

/* The last SGE has a key that does not exist. */
static int rt_case_locprot(struct rt_ctx *ctx)
{
	struct rt_op op = rt_message(ctx, rt_opcode(ctx), 1, 16, ctx->arg.len);
	int err = rt_connect(ctx);

	ctx->fails_here = true;
	op.nsge = 4;
	op.bad_lkey = true;
	op.expect = RT_EXP_ERROR;
	err = err ? : rt_run_failing(ctx, &op, RT_EXP_ANY);
	if (err)
		return err;
	/* rxe of Linux 6.1 flushes nothing before it is told to */
	wait_event_timeout(rt_wq, rt_all_done(ctx->qa[0].send), HZ);
	return rt_modify(ctx, &ctx->qa[0], IB_QPS_ERR) ? :
	       rt_wait_flush(ctx->qa[0].send);
}

/* A SEND that finds no receive, behind and before large requests. */
static int rt_case_rnr(struct rt_ctx *ctx)
{
	struct rt_op op = rt_message(ctx, IB_WR_SEND, 1, 16, 100);
	int err;

	ctx->conf.rnr_retry = 0;
	op.expect = RT_EXP_STATUS;
	op.status = IB_WC_RNR_RETRY_EXC_ERR;
	err = rt_connect(ctx);
	return err ? : rt_run_failing(ctx, &op, RT_EXP_OK) ? :
		       rt_wait_flush(ctx->qa[0].send);
}

/*
 * Large messages, many of which are still waiting when this returns: when as
 * many have completed as the caller wants.
 */
static int rt_post_many(struct rt_ctx *ctx, enum ib_wc_status status)
{
	u32 i, n = min(ctx->arg.count ? : 30, ctx->arg.depth);
	struct rt_lane *lane = ctx->qa[0].send;
	u32 enough = lane->nsig_done + ctx->arg.after;
	int err = 0;

	/* what came over can be told only if they do not overlap */
	if (rt_overlap(n, ctx->arg.len))
		return -EINVAL;
	ctx->verify = RT_VERIFY_PREFIX;
	for (i = 0; !err && i < n; i++) {
		struct rt_op op = rt_message(ctx, rt_opcode(ctx), i, n,
					     ctx->arg.len);

		op.expect = RT_EXP_ANY;
		op.status = status;
		err = rt_post(lane, &op);
	}
	if (!err && !rt_wait(ctx, READ_ONCE(lane->nsig_done) >= enough))
		return -ETIMEDOUT;
	return err;
}

static int rt_case_drain(struct rt_ctx *ctx)
{
	struct rt_lane *lane;
	int err;

	/* its own completion is found by a wr_cqe */
	if (rt_by_wr_id(ctx->arg.cq))
		return -EINVAL;
	err = rt_connect(ctx) ? : rt_post_many(ctx, 0);
	if (err)
		return err;
	ib_drain_qp(ctx->qa[0].qp);
	ctx->qa[0].state = IB_QPS_ERR;
	lane = ctx->qa[0].send;
	if (!rt_all_done(lane))
		rt_fail(ctx, "ib_drain_qp returned, but only %u of %u were completed",
			lane->matched, lane->posted);
	return 0;
}

static int rt_case_err(struct rt_ctx *ctx)
{
	return rt_connect(ctx) ? : rt_post_many(ctx, 0) ? :
	       rt_modify(ctx, &ctx->qa[0], IB_QPS_ERR) ? :
	       rt_wait_flush(ctx->qa[0].send);
}

/*
 * Reset with messages waiting, then connected to another QP and used. Some of
 * the old messages may still be on their way to the old one.
 */
static int rt_case_reset(struct rt_ctx *ctx)
{
	struct rt_qp *qa = &ctx->qa[0], *qb = &ctx->qb[1];
	struct rt_op op;
	int err;

	ctx->conf.pairs = 2;
	err = rt_connect(ctx) ? : rt_post_many(ctx, 0) ? :
	      rt_modify(ctx, qa, IB_QPS_RESET) ? :
	      rt_modify(ctx, qb, IB_QPS_RESET);
	if (err)
		return err;
	/*
	 * rxe takes what the old peer still sends for an answer to the new one, if
	 * that is reading: it comes to an end first.
	 */
	rt_destroy_qp(ctx, &ctx->qb[0]);
	msleep(100);
	/*
	 * And rxe may go on where the queue stood before the reset: it looks for its
	 * place before it empties the queue, and finds the end the second time.
	 */
	err = rt_modify(ctx, qa, IB_QPS_RESET);
	if (err)
		return err;
	qa->peer = qb;
	qb->peer = qa;
	qa->psn += SZ_1M;
	qa->send = rt_add_lane(ctx, qa, false);
	if (!qa->send)
		return -ENOMEM;
	op = rt_message(ctx, rt_opcode(ctx), 0, 1, ctx->arg.len);
	op.roff = RT_BUF_SIZE - RT_BASE - op.len;
	op.loff = op.roff;
	return rt_raise(ctx, qa, qb, IB_QPS_RTS) ? :
	       rt_post(qa->send, &op) ? : rt_wait_lane(qa->send);
}

static int rt_case_destroy(struct rt_ctx *ctx)
{
	int err;

	err = rt_connect(ctx) ? : rt_post_many(ctx, 0);
	if (!err)
		rt_destroy_qp(ctx, &ctx->qa[0]);
	return err;
}

/* The peer is reset in the middle: nobody acknowledges any more. */
static int rt_case_peergone(struct rt_ctx *ctx)
{
	int err;

	ctx->conf.timeout = 14;
	ctx->conf.retry = 2;
	err = rt_connect(ctx) ? : rt_post_many(ctx, IB_WC_RETRY_EXC_ERR);
	if (err)
		return err;
	rt_destroy_qp(ctx, &ctx->qb[0]);
	return rt_wait_flush(ctx->qa[0].send);
}

/* A QP that is not ready to send refuses; one in error flushes. */
static int rt_case_badstate(struct rt_ctx *ctx)
{
	static const enum ib_qp_state state[] = {
		IB_QPS_RESET, IB_QPS_INIT, IB_QPS_RTR,
	};
	struct rt_op ops[2] = {
		rt_message(ctx, IB_WR_RDMA_WRITE, 0, 2, ctx->arg.len),
		rt_message(ctx, IB_WR_RDMA_WRITE, 1, 2, ctx->arg.len),
	};
	u32 i, accepted;
	int err;

	ctx->conf.state = IB_QPS_RESET;
	ctx->verify = RT_VERIFY_PREFIX;
	err = rt_connect(ctx);
	for (i = 0; !err && i < ARRAY_SIZE(state); i++) {
		if (state[i] != IB_QPS_RESET)
			err = rt_modify(ctx, &ctx->qa[0], state[i]);
		if (err)
			break;
		if (!rt_post_chain(ctx->qa[0].send, ops, 2, &accepted) ||
		    accepted)
			rt_fail(ctx, "a QP in state %d accepted %u requests",
				state[i], accepted);
	}
	err = err ? : rt_modify(ctx, &ctx->qa[0], IB_QPS_RTS) ? :
	      rt_modify(ctx, &ctx->qa[0], IB_QPS_ERR);
	ops[0].expect = RT_EXP_FLUSH;
	ops[1].expect = RT_EXP_FLUSH;
	return err ? : rt_post_chain(ctx->qa[0].send, ops, 2, NULL) ? :
	       rt_wait_flush(ctx->qa[0].send);
}

/* More than fits, one by one or in a chain: what was accepted is done. */
static int rt_case_overpost(struct rt_ctx *ctx)
{
	bool chain = !strcmp(ctx->arg.op, "chain");
	u32 n, i, accepted, total = 0;
	struct rt_op *ops;
	int err;

	err = rt_connect(ctx);
	if (err)
		return err;
	n = ctx->qa[0].depth + 9;
	ops = kcalloc(n, sizeof(*ops), GFP_KERNEL);
	if (!ops)
		return -ENOMEM;
	ctx->arg.signal = 1;
	for (i = 0; i < n; i++)
		ops[i] = rt_message(ctx, IB_WR_RDMA_WRITE, i, n, ctx->arg.len);
	if (chain) {
		err = rt_post_chain(ctx->qa[0].send, ops, n, &total);
	} else {
		for (i = 0; !err && i < RT_MAX_RECS / 2; i++) {
			err = rt_post_chain(ctx->qa[0].send, &ops[i % n], 1,
					    &accepted);
			total += accepted;
		}
	}
	kfree(ops);
	if (!err)
		rt_fail(ctx, "%u requests fit a queue of %u", total,
			ctx->qa[0].depth + 1);
	else if (total <= ctx->qa[0].depth && !(chain && !total))
		rt_fail(ctx, "only %u requests fit a queue of %u", total,
			ctx->qa[0].depth + 1);
	return rt_wait_pair(ctx, 0);
}

/* Contexts */

struct rt_thread {
	struct rt_lane *lane;
	struct task_struct *task;
	struct completion *start;
	struct completion done;
	u32 first;
	u32 window;
};

/* the place of a lane in the buffers, and of its message @i in that */
static struct rt_op rt_lane_op(struct rt_lane *lane, u32 slot, u32 i)
{
	struct rt_ctx *ctx = lane->ctx;
	u32 n = max(ctx->arg.threads, 1U), len = ctx->arg.len;
	u32 room = (RT_BUF_SIZE - 2 * RT_BASE) / n - RT_GAP;
	struct rt_op op = {
		.opcode = rt_opcode(ctx),
		.len = min(len, room / 2),
		.flags = i % 4 == 3 ? IB_SEND_SIGNALED : 0,
	};

	op.roff = RT_BASE + slot * room + (i * 1021) % (room - op.len);
	op.loff = RT_BASE + slot * room + (i * 2039) % (room - op.len);
	/* READs of one lane must not overtake each other's bytes */
	if (op.opcode == IB_WR_RDMA_READ)
		op.loff = op.roff;
	return op;
}

static int rt_thread_fn(void *data)
{
	struct rt_thread *t = data;
	struct rt_lane *lane = t->lane;
	struct rt_ctx *ctx = lane->ctx;
	u32 i, n = ctx->arg.count;
	int err = 0;

	wait_for_completion(t->start);
	for (i = 0; !err && i < n; i++) {
		struct rt_op op = rt_lane_op(lane, t->first, i);

		if (i == n - 1)
			op.flags = IB_SEND_SIGNALED;
		if (!rt_wait(ctx, READ_ONCE(lane->posted) -
				  READ_ONCE(lane->matched) < t->window))
			break;
		err = rt_post(lane, &op);
	}
	if (!err)
		rt_wait_lane(lane);
	complete(&t->done);
	return 0;
}

/* Threads on different CPUs post to one QP, or to several. */
static int rt_case_cpus(struct rt_ctx *ctx)
{
	DECLARE_COMPLETION_ONSTACK(start);
	struct rt_thread *threads;
	u32 i, cpu, n, pairs;
	int err;

	ctx->conf.pairs = clamp_t(u32, ctx->arg.qps, 1, RT_MAX_QPS);
	ctx->arg.threads = clamp_t(u32, ctx->arg.threads, ctx->conf.pairs, 8);
	ctx->arg.count = ctx->arg.count ? : 64;
	pairs = ctx->conf.pairs;
	n = ctx->arg.threads;
	err = rt_connect(ctx);
	if (err)
		return err;
	threads = kcalloc(n, sizeof(*threads), GFP_KERNEL);
	if (!threads)
		return -ENOMEM;
	cpu = cpumask_first(cpu_online_mask);
	for (i = 0; i < n; i++) {
		struct rt_thread *t = &threads[i];

		t->start = &start;
		t->first = i;
		t->window = ctx->arg.depth / DIV_ROUND_UP(n, pairs);
		init_completion(&t->done);
		t->lane = i < pairs ? ctx->qa[i].send :
			  rt_add_lane(ctx, &ctx->qa[i % pairs], false);
		if (!t->lane) {
			err = -ENOSPC;
			break;
		}
		t->task = kthread_create(rt_thread_fn, t, "riso_ulp/%u", i);
		if (IS_ERR(t->task)) {
			err = PTR_ERR(t->task);
			break;
		}
		kthread_bind(t->task, cpu);
		cpu = cpumask_next(cpu, cpu_online_mask);
		if (cpu >= nr_cpu_ids)
			cpu = cpumask_first(cpu_online_mask);
		wake_up_process(t->task);
	}
	complete_all(&start);
	while (i--)
		wait_for_completion(&threads[i].done);
	kfree(threads);
	return err;
}

/* Each completion posts the next request. */
static void rt_repost(struct rt_lane *lane)
{
	struct rt_op op;

	if (!lane->left || rt_hopeless(lane->ctx))
		return;
	op = rt_lane_op(lane, lane->step, lane->left--);
	op.flags = IB_SEND_SIGNALED;
	op.expect = lane->ctx->verify == RT_VERIFY_NONE ? RT_EXP_ANY :
							   RT_EXP_OK;
	rt_post(lane, &op);
}

static int rt_start_repost(struct rt_ctx *ctx, u32 count)
{
	u32 i, n, first;
	int err;

	ctx->conf.pairs = clamp_t(u32, ctx->arg.qps, 1, RT_MAX_QPS);
	n = clamp_t(u32, ctx->arg.threads, ctx->conf.pairs, 8);
	ctx->arg.threads = n;
	err = rt_connect(ctx);
	first = ctx->nlanes;
	for (i = 0; !err && i < n; i++) {
		struct rt_qp *qp = &ctx->qa[i % ctx->conf.pairs];
		struct rt_lane *lane = rt_add_lane(ctx, qp, false);

		if (!lane)
			return -ENOMEM;
		lane->next = rt_repost;
		lane->step = i;
		lane->left = count;
	}
	for (i = first; !err && i < ctx->nlanes; i++)
		rt_repost(ctx->lanes[i]);
	return err;
}

static int rt_case_repost(struct rt_ctx *ctx)
{
	u32 i, count = ctx->arg.count ? : 64;
	int err = rt_start_repost(ctx, count);

	for (i = 0; !err && i < ctx->nlanes; i++) {
		struct rt_lane *lane = ctx->lanes[i];

		if (!lane->next ||
		    rt_wait(ctx, READ_ONCE(lane->nsig_done) == count))
			continue;
		err = -ETIMEDOUT;
		rt_fail(ctx, "lane %u: %u of %u completions came", lane->id,
			lane->nsig_done, count);
	}
	return err;
}

/* To ERR, while completion handlers go on posting. */
static int rt_case_errpost(struct rt_ctx *ctx)
{
	struct rt_lane *lane;
	u32 i;
	int err;

	ctx->verify = RT_VERIFY_NONE;
	err = rt_start_repost(ctx, RT_MAX_RECS / 16);
	if (err)
		return err;
	lane = ctx->lanes[ctx->nlanes - 1];
	if (!rt_wait(ctx, READ_ONCE(lane->nsig_done) > ctx->arg.after))
		return -ETIMEDOUT;
	for (i = 0; !err && i < ctx->conf.pairs; i++)
		err = rt_modify(ctx, &ctx->qa[i], IB_QPS_ERR);
	/* each lane ends with a request that was flushed */
	for (i = 0; !err && i < ctx->nlanes; i++) {
		lane = ctx->lanes[i];
		if (lane->next && !rt_wait(ctx, READ_ONCE(lane->flushing)))
			err = -ETIMEDOUT;
	}
	if (err)
		rt_fail(ctx, "lane %u: nothing was flushed", lane->id);
	return err;
}

struct rt_irq {
	struct irq_work work;
	struct rt_lane *lane;
	u32 i;
	u32 n;
};

static void rt_irq_post(struct irq_work *work)
{
	struct rt_irq *irq = container_of(work, struct rt_irq, work);
	struct rt_op op = rt_message(irq->lane->ctx, rt_opcode(irq->lane->ctx),
				     irq->i, irq->n, irq->lane->ctx->arg.len);

	rt_post(irq->lane, &op);
}

/* Posts from hard interrupts. */
static int rt_case_hardirq(struct rt_ctx *ctx)
{
	struct rt_irq irq = {
		.work = IRQ_WORK_INIT_HARD(rt_irq_post),
		.n = min(ctx->arg.count ? : 16, ctx->arg.depth),
	};
	int err = rt_connect(ctx);

	if (err)
		return err;
	irq.lane = ctx->qa[0].send;
	for (irq.i = 0; irq.i < irq.n; irq.i++) {
		irq_work_queue(&irq.work);
		irq_work_sync(&irq.work);
	}
	return rt_wait_pair(ctx, 0);
}

/*
 * Several QPs, all of whose queues complete to one CQ per side, with data
 * and messages in both directions.
 */
static int rt_case_onecq(struct rt_ctx *ctx)
{
	u32 i, p, n = ctx->arg.count ? : 6, all;
	int err;

	ctx->conf.one_cq = true;
	ctx->conf.pairs = clamp_t(u32, ctx->arg.qps, 2, 4);
	all = ctx->conf.pairs * n;
	err = rt_connect(ctx);
	for (i = 0; !err && i < n; i++) {
		for (p = 0; !err && p < ctx->conf.pairs; p++) {
			enum ib_wr_opcode opcode = i % 3 == 2 ? IB_WR_SEND :
						   rt_opcode(ctx);
			u32 k = i * ctx->conf.pairs + p;
			struct rt_op op = rt_message(ctx, opcode, k, all,
						     ctx->arg.len);

			op.flags |= IB_SEND_SIGNALED;
			err = rt_recv_for(&ctx->qb[p], &op, k, all) ? :
			      rt_recv_for(&ctx->qa[p], &op, k, all) ? :
			      rt_post(ctx->qa[p].send, &op) ? :
			      rt_post(ctx->qb[p].send, &op);
		}
	}
	for (p = 0; !err && p < ctx->conf.pairs; p++)
		err = rt_wait_pair(ctx, p);
	return err;
}

static int rt_case_srq(struct rt_ctx *ctx)
{
	u32 i, n = min(ctx->arg.count ? : 16, ctx->arg.depth);
	static const enum ib_wr_opcode opcode[] = {
		IB_WR_SEND, IB_WR_RDMA_WRITE, IB_WR_RDMA_WRITE_WITH_IMM,
		IB_WR_SEND_WITH_IMM,
	};
	int err;

	ctx->conf.srq = true;
	err = rt_connect(ctx);
	for (i = 0; !err && i < n; i++) {
		struct rt_op op = rt_message(ctx, opcode[i % 4], i, n,
					     ctx->arg.len);

		err = rt_recv_for(&ctx->qb[0], &op, i, n) ? :
		      rt_post(ctx->qa[0].send, &op);
	}
	return err ? : rt_wait_pair(ctx, 0);
}

/* Forget what is done, so that the ledger never gets full. */
static void rt_forget(struct rt_lane *lane, u32 keep)
{
	unsigned long flags;

	spin_lock_irqsave(&lane->lock, flags);
	INIT_LIST_HEAD(&lane->recs);
	lane->cursor = &lane->recs;
	atomic_set(&lane->ctx->nrecs, keep);
	spin_unlock_irqrestore(&lane->lock, flags);
}

/*
 * Rounds of the same messages until somebody writes "stop", or the device
 * leaves, or the writer gets a signal.
 */
static int rt_case_traffic(struct rt_ctx *ctx)
{
	u32 i, keep, n = min(ctx->arg.count ? : 24, ctx->arg.depth);
	struct rt_lane *lane;
	int err;

	err = rt_connect(ctx);
	if (err)
		return err;
	lane = ctx->qa[0].send;
	keep = atomic_read(&ctx->nrecs);
	do {
		rt_forget(lane, keep);
		for (i = 0; !err && i < n; i++) {
			struct rt_op op = rt_message(ctx, rt_opcode(ctx), i, n,
						     ctx->arg.len);

			err = rt_post(lane, &op);
		}
		/* this round is waited for, even if it is the last */
		rt_wait(ctx, rt_signaled_done(lane));
	} while (!err && rt_signaled_done(lane) && !rt_hopeless(ctx) &&
		 !signal_pending(current));
	WRITE_ONCE(ctx->quiet, true);
	return err ? : rt_wait_lane(lane);
}

/* With riso_test_layer under rdma_isolate */

static bool rt_layer_read(struct rt_ctx *ctx, struct riso_test_seen *seen)
{
	void (*read)(struct riso_test_seen *seen) = symbol_get(riso_test_layer_read);

	if (!read) {
		rt_fail(ctx, "riso_test_layer is not loaded");
		return false;
	}
	read(seen);
	symbol_put(riso_test_layer_read);
	return true;
}

static bool rt_layer_refuse(struct rt_ctx *ctx, int error, unsigned int num)
{
	void (*set)(int error, unsigned int num) = symbol_get(riso_test_layer_refuse);

	if (!set) {
		rt_fail(ctx, "riso_test_layer is not loaded");
		return false;
	}
	set(error, num);
	symbol_put(riso_test_layer_refuse);
	return true;
}

/*
 * Messages that have all arrived while nobody polled: whatever looked for their
 * completions meanwhile has them.
 */
static int rt_post_unpolled(struct rt_ctx *ctx, u32 first, u32 n)
{
	struct rt_lane *lane = ctx->qa[0].send;
	struct rt_op send = rt_message(ctx, IB_WR_SEND, 0, 1, 16);
	u32 i;
	int err;

	err = rt_post_recv(ctx->qb[0].recv, 0, 64, 1, RT_EXP_OK);
	for (i = first; !err && i < first + n; i++) {
		struct rt_op op = rt_message(ctx, rt_opcode(ctx), i, 4 * n,
					     ctx->arg.len);

		op.flags = IB_SEND_SIGNALED;
		err = rt_post(lane, &op);
	}
	return err ? : rt_post(lane, &send) ? : rt_wait_lane(ctx->qb[0].recv);
}

/* One message more, and its completion. */
static int rt_run_one(struct rt_ctx *ctx, u32 i)
{
	struct rt_op op = rt_message(ctx, rt_opcode(ctx), i, 4 * i, ctx->arg.len);

	op.flags = IB_SEND_SIGNALED;
	return rt_post(ctx->qa[0].send, &op) ? : rt_wait_lane(ctx->qa[0].send);
}

/* A ULP that asks for an event and does not look at the answer gets it. */
static int rt_case_arm(struct rt_ctx *ctx)
{
	struct riso_test_seen before, after;
	u32 n = ctx->arg.count ? : 8;
	struct rt_cq *cq;
	int err, missed;

	ctx->arg.cq = RT_CQ_WORK;
	err = rt_connect(ctx);
	if (err)
		return err;
	cq = ctx->qa[0].scq;
	WRITE_ONCE(cq->held, true);
	err = rt_post_unpolled(ctx, 0, n);
	if (err || !rt_layer_read(ctx, &before))
		return -EIO;
	missed = ib_req_notify_cq(cq->cq, IB_CQ_NEXT_COMP |
				  IB_CQ_REPORT_MISSED_EVENTS);
	rt_layer_read(ctx, &after);
	if (missed <= 0)
		rt_fail(ctx, "ib_req_notify_cq returned %d", missed);
	if (after.notifies == before.notifies)
		rt_fail(ctx, "the provider was not asked for an event");
	cancel_work_sync(&cq->work);
	WRITE_ONCE(cq->held, false);
	rt_poll_empty(cq);
	err = rt_wait_lane(ctx->qa[0].send);
	if (err)
		return err;

	/* only the event of this one can tell of it */
	err = rt_run_one(ctx, n);
	if (err)
		return err;

	/* no answer was asked for: what was there before must raise an event */
	WRITE_ONCE(cq->held, true);
	err = rt_post_unpolled(ctx, n + 1, n);
	cancel_work_sync(&cq->work);
	WRITE_ONCE(cq->held, false);
	ib_req_notify_cq(cq->cq, IB_CQ_NEXT_COMP);
	return err ? : rt_wait_pair(ctx, 0);
}

/* What nobody has polled of a queue pair goes with it. */
static int rt_case_purge(struct rt_ctx *ctx)
{
	bool reset = !strcmp(ctx->arg.op, "reset");
	u32 n = ctx->arg.count ? : 8;
	struct rt_lane *lane;
	struct rt_cq *cq;
	int err;

	ctx->arg.cq = RT_CQ_WORK;
	err = rt_connect(ctx);
	if (err)
		return err;
	lane = ctx->qa[0].send;
	cq = ctx->qa[0].scq;
	WRITE_ONCE(cq->held, true);
	err = rt_post_unpolled(ctx, 0, n);
	if (err)
		return err;
	rt_silence();
	if (reset)
		err = rt_modify(ctx, &ctx->qa[0], IB_QPS_RESET);
	else
		rt_destroy_qp(ctx, &ctx->qa[0]);
	lane->closed = true;
	cancel_work_sync(&cq->work);
	WRITE_ONCE(cq->held, false);
	local_bh_disable();
	rt_poll(cq);
	local_bh_enable();
	return err;
}

/* A reply goes with the data that it is for. */
static int rt_case_reply(struct rt_ctx *ctx)
{
	u32 i, n = min(ctx->arg.count ? : 10, ctx->arg.depth / 2);
	struct riso_test_seen before, after;
	int err = rt_connect(ctx);

	for (i = 0; !err && i < n; i++) {
		struct rt_op ops[2] = {
			rt_message(ctx, IB_WR_RDMA_WRITE, i, n, ctx->arg.len),
			rt_message(ctx, IB_WR_SEND, i, n, 16),
		};

		ops[0].flags = 0;
		ops[1].flags = IB_SEND_SIGNALED;
		ops[1].loff = 64 * i;
		err = rt_post_recv(ctx->qb[0].recv, 64 * i, 64, 1, RT_EXP_OK);
		if (err || !rt_layer_read(ctx, &before))
			return -EIO;
		err = rt_post_chain(ctx->qa[0].send, ops, 2, NULL);
		rt_layer_read(ctx, &after);
		if (after.sends == before.sends)
			rt_fail(ctx, "reply %u had to wait", i);
		err = err ? : rt_wait_lane(ctx->qa[0].send);
		/* the next slice of its group */
		usleep_range(2000, 3000);
	}
	return err ? : rt_wait_pair(ctx, 0);
}

/* Drained by the device's own work request, while it takes no other. */
static int rt_case_fulldrain(struct rt_ctx *ctx)
{
	struct rt_lane *lane;
	int err;

	err = rt_connect(ctx) ? : rt_post_many(ctx, 0);
	if (err || !rt_layer_refuse(ctx, ENOMEM, 0))
		return err ? : -EIO;
	ib_drain_sq(ctx->qa[0].qp);
	ctx->qa[0].state = IB_QPS_ERR;
	lane = ctx->qa[0].send;
	if (!rt_all_done(lane))
		rt_fail(ctx, "ib_drain_sq returned, but only %u of %u were completed",
			lane->matched, lane->posted);
	rt_layer_refuse(ctx, 0, 0);
	return 0;
}

/* An operation that only the device knows, behind messages that wait. */
static int rt_case_unknown(struct rt_ctx *ctx)
{
	u32 i, n = min(ctx->arg.count ? : 12, ctx->arg.depth);
	int err = rt_connect(ctx);

	for (i = 0; !err && i < n; i++) {
		bool unknown = i % 4 == 2;
		struct rt_op op = rt_message(ctx, unknown ? IB_WR_RESERVED1 :
							    rt_opcode(ctx),
					     i, n, ctx->arg.len);

		if (unknown)
			op.len = 300;
		err = rt_post(ctx->qa[0].send, &op);
	}
	return err ? : rt_wait_pair(ctx, 0);
}

/*
 * As many work requests as there is room for, the first of which is out in pieces, when
 * the second is one that only the device knows.
 */
static int rt_case_surrender(struct rt_ctx *ctx)
{
	u32 i, n = ctx->arg.depth;
	int err = rt_connect(ctx);

	for (i = 0; !err && i < n; i++) {
		struct rt_op op = rt_message(ctx, i == 1 ? IB_WR_RESERVED1 : rt_opcode(ctx),
					     i, n, ctx->arg.len);

		if (i)
			op.len = 300;
		err = rt_post(ctx->qa[0].send, &op);
		/* on a wire on which they are under way for seconds */
		if (!i)
			msleep(300);
	}
	return err ? : rt_wait_pair(ctx, 0);
}

/*
 * The device takes a part of a chain and refuses the rest: what it took, and will not
 * tell of, ends before what it refused.
 */
static int rt_case_partial(struct rt_ctx *ctx)
{
	struct rt_lane *lane;
	struct rt_op ops[12];
	u32 i;
	int err;

	ctx->verify = RT_VERIFY_PREFIX;
	ctx->fails_here = true;
	err = rt_connect(ctx);
	if (err)
		return err;
	lane = ctx->qa[0].send;
	for (i = 0; i < ARRAY_SIZE(ops); i++) {
		ops[i] = rt_message(ctx, rt_opcode(ctx), i, ARRAY_SIZE(ops),
				    ctx->arg.len);
		ops[i].flags = i % 6 == 5 ? IB_SEND_SIGNALED : 0;
		ops[i].expect = RT_EXP_END;
	}
	/* so that the group counts as sparse, and all goes as one chain */
	usleep_range(2000, 3000);
	if (!rt_layer_refuse(ctx, EINVAL, ctx->arg.after))
		return -EIO;
	err = rt_post_chain(lane, ops, ARRAY_SIZE(ops), NULL);
	if (!err && !rt_wait(ctx, READ_ONCE(lane->flushing)))
		err = -ETIMEDOUT;
	rt_layer_refuse(ctx, 0, 0);
	/* all that is behind the first error, and all that was taken before it */
	return err ? : rt_wait_flush(lane);
}

/* Queue pairs that end while SENDs wait, in three ways */

struct rt_cm {
	struct rt_ctx *ctx;
	struct ib_cq *cq;
	struct rdma_cm_id *id;
	struct rdma_cm_id *peer;
	struct completion done;
	int status;
	u32 round;
};

static void rt_init_ending(struct ib_qp_init_attr *attr, struct ib_cq *cq)
{
	*attr = (struct ib_qp_init_attr) {
		.cap = {
			.max_send_wr = RT_ENDING,
			.max_recv_wr = 1,
			.max_send_sge = 1,
			.max_recv_sge = 1,
		},
		.sq_sig_type = IB_SIGNAL_REQ_WR,
		.qp_type = IB_QPT_RC,
		.send_cq = cq,
		.recv_cq = cq,
	};
}

/* A request that was sent twice may come once more, in a later round. */
static bool rt_cm_expects(const struct rt_cm *cm, const struct rdma_conn_param *param)
{
	u32 round;

	if (cm->peer || param->private_data_len < sizeof(round))
		return false;
	memcpy(&round, param->private_data, sizeof(round));
	return round == cm->round;
}

static int rt_cm_accept(struct rt_cm *cm, struct rdma_cm_id *id, struct ib_cq *cq)
{
	struct rdma_conn_param param = { .rnr_retry_count = 7, .retry_count = 7 };
	struct ib_qp_init_attr attr;
	int err;

	rt_init_ending(&attr, cq);
	err = rdma_create_qp(id, cm->ctx->b.pd, &attr) ? : rdma_accept(id, &param);
	if (!err)
		cm->peer = id;
	else if (id->qp)
		rdma_destroy_qp(id);
	return err;
}

static int rt_cm_event(struct rdma_cm_id *id, struct rdma_cm_event *event)
{
	struct rt_cm *cm = id->context;

	switch (event->event) {
	case RDMA_CM_EVENT_CONNECT_REQUEST:
		if (!rt_cm_expects(cm, &event->param.conn))
			return -ESTALE;
		return rt_cm_accept(cm, id, cm->ctx->qb[0].scq->cq);
	case RDMA_CM_EVENT_ADDR_RESOLVED:
	case RDMA_CM_EVENT_ROUTE_RESOLVED:
		break;
	case RDMA_CM_EVENT_ESTABLISHED:
		/* of the peer's own: only ours counts */
		if (id != cm->id)
			return 0;
		break;
	case RDMA_CM_EVENT_DISCONNECTED:
	case RDMA_CM_EVENT_TIMEWAIT_EXIT:
		return 0;
	default:
		cm->status = event->status ? : -ECONNABORTED;
	}
	complete(&cm->done);
	return 0;
}

static int rt_cm_wait(struct rt_cm *cm)
{
	if (!wait_for_completion_timeout(&cm->done, msecs_to_jiffies(RT_CM_MS)))
		return -ETIMEDOUT;
	return cm->status;
}

static void rt_cm_addr(struct sockaddr_in *sin, const union ib_gid *gid, u16 port)
{
	*sin = (struct sockaddr_in) {
		.sin_family = AF_INET,
		.sin_port = htons(port),
	};
	memcpy(&sin->sin_addr, gid->raw + 12, sizeof(sin->sin_addr));
}

static int rt_cm_connect(struct rt_cm *cm)
{
	struct rdma_conn_param param = {
		.private_data = &cm->round,
		.private_data_len = sizeof(cm->round),
		.rnr_retry_count = 7,
		.retry_count = 7,
	};
	struct sockaddr_in src, dst;
	struct ib_qp_init_attr attr;
	int err;

	rt_cm_addr(&src, &cm->ctx->a.gid, 0);
	rt_cm_addr(&dst, &cm->ctx->b.gid, RT_CM_PORT);
	rt_init_ending(&attr, cm->cq);
	init_completion(&cm->done);
	cm->status = 0;
	cm->peer = NULL;
	cm->id = rdma_create_id(&init_net, rt_cm_event, cm, RDMA_PS_TCP, IB_QPT_RC);
	if (IS_ERR(cm->id))
		return PTR_ERR(cm->id);
	err = rdma_resolve_addr(cm->id, (struct sockaddr *)&src,
				(struct sockaddr *)&dst, RT_CM_MS) ? :
	      rt_cm_wait(cm) ? :
	      rdma_resolve_route(cm->id, RT_CM_MS) ? : rt_cm_wait(cm) ? :
	      rdma_create_qp(cm->id, cm->ctx->a.pd, &attr) ? :
	      rdma_connect(cm->id, &param) ? : rt_cm_wait(cm);
	return err;
}

static void rt_cm_close(struct rt_cm *cm)
{
	if (cm->id->qp)
		rdma_destroy_qp(cm->id);
	rdma_destroy_id(cm->id);
	if (!cm->peer)
		return;
	rdma_destroy_qp(cm->peer);
	rdma_destroy_id(cm->peer);
}

static int rt_post_ending(struct rt_ctx *ctx, struct ib_qp *qp, u32 n)
{
	const struct ib_send_wr *bad;
	struct ib_sge sge = {
		.addr = ctx->a.src.dma + RT_BASE,
		.length = ctx->arg.len,
		.lkey = ctx->a.pd->local_dma_lkey,
	};
	struct ib_send_wr wr = {
		.opcode = IB_WR_SEND,
		.sg_list = &sge,
		.num_sge = 1,
	};
	int err = 0;

	while (!err && n--)
		err = ib_post_send(qp, &wr, &bad);
	return err;
}

/* Without a peer: what is sent goes nowhere. */
static int rt_open_ending(struct rt_ctx *ctx, struct rt_qp *qp, struct ib_cq *cq)
{
	struct ib_qp_init_attr attr;
	int err;

	rt_init_ending(&attr, cq);
	qp->ep = &ctx->a;
	qp->peer = &ctx->qb[0];
	qp->qp = ib_create_qp(ctx->a.pd, &attr);
	if (IS_ERR(qp->qp))
		return PTR_ERR(qp->qp);
	err = rt_modify(ctx, qp, IB_QPS_INIT) ? : rt_modify(ctx, qp, IB_QPS_RTR) ? :
	      rt_modify(ctx, qp, IB_QPS_RTS);
	if (err)
		ib_destroy_qp(qp->qp);
	return err;
}

/* One round. Says in @held whether something still waited when the queue pair ended. */
static int rt_end_one(struct rt_ctx *ctx, struct rt_cm *cm, u32 round, bool *held)
{
	struct riso_test_seen before, waiting, after;
	u32 n = 1 + round % RT_ENDING;
	u32 way = round % 3;
	struct rt_qp qp = {};
	int err;

	cm->round = round;
	err = way == 2 ? rt_cm_connect(cm) : rt_open_ending(ctx, &qp, cm->cq);
	if (err && way == 2)
		rt_cm_close(cm);
	if (err)
		return err;
	rt_layer_read(ctx, &before);
	err = rt_post_ending(ctx, way == 2 ? cm->id->qp : qp.qp, n);
	rt_layer_read(ctx, &waiting);
	if (way == 0)
		err = err ? : rt_modify(ctx, &qp, IB_QPS_ERR);
	else if (way == 2)
		err = err ? : rdma_disconnect(cm->id);
	if (way == 2)
		rt_cm_close(cm);
	else
		ib_destroy_qp(qp.qp);
	rt_layer_read(ctx, &after);
	*held = waiting.sends - before.sends < n;
	if (after.sends - before.sends != n || after.late_sends != before.late_sends)
		rt_fail(ctx, "round %u: of %u SENDs %llu were given before the end, %llu after",
			round, n, after.sends - before.sends,
			after.late_sends - before.late_sends);
	return err;
}

/* What was accepted is given to the device before a queue pair ends. */
static int rt_case_end(struct rt_ctx *ctx)
{
	struct riso_test_seen seen;
	struct rt_cm cm = { .ctx = ctx };
	struct rdma_cm_id *listener;
	struct sockaddr_in sin;
	u32 i, n = ctx->arg.count ? : 30, waited = 0;
	bool held;
	int err;

	ctx->verify = RT_VERIFY_NONE;
	err = rt_connect(ctx);
	if (err || !rt_layer_read(ctx, &seen))
		return err ? : -EIO;
	cm.cq = ib_alloc_cq(ctx->a.dev, ctx, 4 * RT_ENDING, 0, IB_POLL_WORKQUEUE);
	if (IS_ERR(cm.cq))
		return PTR_ERR(cm.cq);
	listener = rdma_create_id(&init_net, rt_cm_event, &cm, RDMA_PS_TCP, IB_QPT_RC);
	if (IS_ERR(listener)) {
		err = PTR_ERR(listener);
		goto free_cq;
	}
	rt_cm_addr(&sin, &ctx->b.gid, RT_CM_PORT);
	err = rdma_bind_addr(listener, (struct sockaddr *)&sin) ? :
	      rdma_listen(listener, 8);
	for (i = 0; !err && i < n && !rt_hopeless(ctx); i++) {
		err = rt_end_one(ctx, &cm, i, &held);
		waited += held;
		cond_resched();
	}
	if (err)
		rt_fail(ctx, "round %u failed with %d", i, err);
	else if (waited < n / 2)
		rt_fail(ctx, "something waited in %u of %u rounds only", waited, n);
	rdma_destroy_id(listener);
free_cq:
	ib_free_cq(cm.cq);
	return err;
}

static int rt_layer_hold(struct rt_ctx *ctx, const struct ib_cq *cq)
{
	int (*hold)(const struct ib_cq *cq) = symbol_get(riso_test_layer_hold);
	int ret;

	if (!hold) {
		rt_fail(ctx, "riso_test_layer is not loaded");
		return -ENOENT;
	}
	ret = hold(cq);
	symbol_put(riso_test_layer_hold);
	return ret;
}

/* Waits until the poll that is held up has come so far. */
static int rt_wait_held(struct rt_ctx *ctx, const struct ib_cq *cq, int far)
{
	unsigned long end = jiffies + msecs_to_jiffies(RT_HELD_MS);
	int come;

	while ((come = rt_layer_hold(ctx, cq)) < far && time_before(jiffies, end))
		usleep_range(1000, 2000);
	if (come >= far)
		return 0;
	rt_fail(ctx, "the poll that is held up has come as far as %d", come);
	return -ETIMEDOUT;
}

struct rt_poller {
	struct work_struct work;
	struct ib_cq *cq;
	struct ib_cqe cqe;
	struct ib_wc wc;
	int found;
};

static void rt_poll_once(struct work_struct *work)
{
	struct rt_poller *p = container_of(work, struct rt_poller, work);

	p->found = ib_poll_cq(p->cq, 1, &p->wc);
}

/* A governed queue pair comes, fails and goes, and the CQ is polled empty. */
static int rt_fail_one(struct rt_ctx *ctx, struct rt_poller *p)
{
	const struct ib_send_wr *bad;
	struct rt_qp qp = {};
	struct ib_sge sge = {
		.addr = ctx->a.src.dma + RT_BASE,
		.length = ctx->arg.len,
		.lkey = ctx->a.pd->local_dma_lkey,
	};
	struct ib_send_wr wr = {
		.wr_cqe = &p->cqe,
		.opcode = IB_WR_SEND,
		.send_flags = IB_SEND_SIGNALED,
		.sg_list = &sge,
		.num_sge = 1,
	};
	struct ib_wc wc;
	int err;

	err = rt_open_ending(ctx, &qp, p->cq);
	if (err)
		return err;
	/* in error before: nothing goes over the wire */
	err = rt_modify(ctx, &qp, IB_QPS_ERR) ? : ib_post_send(qp.qp, &wr, &bad) ? :
	      rt_wait_held(ctx, p->cq, 2);
	ib_destroy_qp(qp.qp);
	while (ib_poll_cq(p->cq, 1, &wc) > 0)
		rt_fail(ctx, "there was one more completion");
	return err;
}

/*
 * All this happens while somebody polls a CQ that nobody governed when he began. What he
 * has found meanwhile is still the completion that was asked for.
 */
static int rt_case_stale(struct rt_ctx *ctx)
{
	struct ib_cq_init_attr attr = { .cqe = 4 * RT_ENDING };
	struct rt_poller p = {};
	int err;

	ctx->verify = RT_VERIFY_NONE;
	err = rt_connect(ctx);
	if (err)
		return err;
	p.cq = ib_create_cq(ctx->a.dev, NULL, rt_cq_event, NULL, &attr);
	if (IS_ERR(p.cq))
		return PTR_ERR(p.cq);
	INIT_WORK_ONSTACK(&p.work, rt_poll_once);
	rt_layer_hold(ctx, p.cq);
	queue_work(system_unbound_wq, &p.work);
	err = rt_wait_held(ctx, p.cq, 1) ? : rt_fail_one(ctx, &p);
	/* longer than a grace period that waits for nobody */
	msleep(RT_ON_THE_WIRE_MS);
	rt_layer_hold(ctx, NULL);
	flush_work(&p.work);
	destroy_work_on_stack(&p.work);
	if (!err && (p.found != 1 || p.wc.wr_cqe != &p.cqe))
		rt_fail(ctx, "%d completions were found, not the one that was asked for",
			p.found);
	ib_destroy_cq(p.cq);
	return err;
}

static const struct rt_case rt_cases[] = {
	{ "size", rt_case_size, "messages of one size" },
	{ "sge", rt_case_sge, "1 to max SGEs of odd lengths" },
	{ "chain", rt_case_chain, "WRITE, READ and SEND in one chain" },
	{ "fence", rt_case_fence, "READ, then fenced WRITE or SEND of it" },
	{ "inline", rt_case_inline, "inline data between large requests" },
	{ "regmr", rt_case_regmr, "REG_MR and invalidation between data" },
	{ "atomic", rt_case_atomic, "atomics between data" },
	{ "exactcq", rt_case_exactcq, "a CQ of exactly the needed depth" },
	{ "announce", rt_case_announce, "data is there before its SEND" },
	{ "lazy", rt_case_lazy, "nobody polls before the peer has all" },
	{ "depth", rt_case_depth, "a queue full of large messages" },
	{ "remacc", rt_case_remacc, "remote access error in mid-message" },
	{ "locprot", rt_case_locprot, "bad key in the last SGE" },
	{ "rnr", rt_case_rnr, "SEND without a receive" },
	{ "drain", rt_case_drain, "ib_drain_qp with messages waiting" },
	{ "err", rt_case_err, "modify to ERR with messages waiting" },
	{ "reset", rt_case_reset, "modify to RESET and use again" },
	{ "destroy", rt_case_destroy, "destroy with messages waiting" },
	{ "peergone", rt_case_peergone, "the peer's QP goes away" },
	{ "badstate", rt_case_badstate, "post in states that refuse" },
	{ "overpost", rt_case_overpost, "more than the queue holds" },
	{ "cpus", rt_case_cpus, "threads on several CPUs, QPs" },
	{ "repost", rt_case_repost, "posts from completion handlers" },
	{ "errpost", rt_case_errpost, "modify to ERR meanwhile" },
	{ "hardirq", rt_case_hardirq, "posts from hard interrupts" },
	{ "onecq", rt_case_onecq, "several QPs on one CQ, both ways" },
	{ "srq", rt_case_srq, "a shared receive queue" },
	{ "traffic", rt_case_traffic, "traffic until \"stop\"" },
	{ "arm", rt_case_arm, "the answer to req_notify_cq is ignored" },
	{ "purge", rt_case_purge, "completions go with their QP" },
	{ "reply", rt_case_reply, "a WRITE and its SEND, one chunk" },
	{ "fulldrain", rt_case_fulldrain, "ib_drain_sq, the queue being full" },
	{ "unknown", rt_case_unknown, "an operation of the device's own" },
	{ "surrender", rt_case_surrender, "the same, while pieces are out" },
	{ "end", rt_case_end, "SENDs wait when their QP ends" },
	{ "partial", rt_case_partial, "a chain of which a part is refused" },
	{ "stale", rt_case_stale, "a completion outlives its QP in a poll" },
};

/* The idle pair of another owner, which a rule can make a latency flow. */
static int rt_lat_on(const struct rt_args *arg)
{
	struct rt_ctx *ctx;
	int err;

	if (rt_lat)
		return -EEXIST;
	ctx = rt_new(arg, RT_LAT_NAME);
	if (IS_ERR(ctx))
		return PTR_ERR(ctx);
	err = rt_connect(ctx);
	if (err) {
		rt_finish(ctx);
		rt_free(ctx);
		return err;
	}
	rt_lat = ctx;
	return 0;
}

static void rt_lat_off(void)
{
	if (!rt_lat)
		return;
	rt_finish(rt_lat);
	if (rt_lat->failed)
		pr_err("latency pair: %s", rt_lat->log);
	rt_free(rt_lat);
	rt_lat = NULL;
}

static int rt_run_case(const struct rt_case *tc, const struct rt_args *arg)
{
	struct rt_ctx *ctx;
	int err;

	ctx = rt_new(arg, KBUILD_MODNAME);
	if (IS_ERR(ctx)) {
		scnprintf(rt_result, RT_LOG_SIZE, "FAIL %s: setup failed\n",
			  tc->name);
		return PTR_ERR(ctx);
	}
	err = tc->fn(ctx);
	rt_finish(ctx);
	if (!ctx->failed && !err)
		rt_verify(ctx);
	if (ctx->failed)
		err = -EIO;
	scnprintf(rt_result, RT_LOG_SIZE,
		  "%s %s: %d, requests %d, completions %d, bytes %lld\n%s",
		  err ? "FAIL" : "PASS", tc->name, err,
		  atomic_read(&ctx->nrecs), atomic_read(&ctx->ncomp),
		  (long long)atomic64_read(&ctx->bytes), ctx->log);
	rt_free(ctx);
	return err;
}

static int rt_parse_arg(struct rt_args *arg, char *key, const char *val)
{
	const struct {
		const char *key;
		u32 *val;
	} num[] = {
		{ "after", &arg->after },
		{ "len", &arg->len },
		{ "count", &arg->count },
		{ "depth", &arg->depth },
		{ "sge", &arg->sge },
		{ "qps", &arg->qps },
		{ "threads", &arg->threads },
		{ "rdatomic", &arg->rdatomic },
		{ "batch", &arg->batch },
		{ "signal", &arg->signal },
		{ "timeout", &arg->timeout },
	};
	int i;

	if (!strcmp(key, "op"))
		return strscpy(arg->op, val, sizeof(arg->op)) < 0 ? -EINVAL : 0;
	if (!strcmp(key, "odd"))
		return kstrtobool(val, &arg->odd);
	if (!strcmp(key, "sigall"))
		return kstrtobool(val, &arg->sigall);
	if (!strcmp(key, "cq")) {
		i = match_string(rt_cqmode_name, ARRAY_SIZE(rt_cqmode_name),
				 val);
		if (i >= 0)
			arg->cq = i;
		return min(i, 0);
	}
	if (!strcmp(key, "mutate")) {
		i = match_string(rt_mutation_name,
				 ARRAY_SIZE(rt_mutation_name), val);
		if (i >= 0)
			arg->mutate = i;
		return min(i, 0);
	}
	for (i = 0; i < ARRAY_SIZE(num); i++)
		if (!strcmp(key, num[i].key))
			return kstrtou32(val, 0, num[i].val);
	return -EINVAL;
}

static int rt_parse(struct rt_args *arg, char *line)
{
	char *word;
	int err;

	word = strsep(&line, "\n ");
	if (strscpy(arg->name, word, sizeof(arg->name)) < 0)
		return -EINVAL;
	while ((word = strsep(&line, "\n "))) {
		char *key = strsep(&word, "=");

		if (!*key)
			continue;
		err = word ? rt_parse_arg(arg, key, word) : -EINVAL;
		if (err)
			return err;
	}
	if (arg->len > RT_BUF_SIZE - 4 * RT_BASE ||
	    arg->depth < 2 || arg->depth > 1023 ||
	    arg->count > arg->depth * 64 ||
	    !arg->timeout || arg->timeout > 600 || !arg->rdatomic)
		return -EINVAL;
	return 0;
}

static int rt_run(char *line)
{
	struct rt_args arg = {
		.op = "write",
		.len = 100003,
		.depth = 62,
		.sge = 4,
		.qps = 1,
		.threads = 4,
		.rdatomic = 16,
		.batch = RT_MAX_BATCH,
		.signal = 2,
		.timeout = 60,
	};
	int i, err;

	err = rt_parse(&arg, line);
	if (err) {
		scnprintf(rt_result, RT_LOG_SIZE, "FAIL: bad arguments\n");
		return err;
	}
	if (!strcmp(arg.name, "lat-on"))
		return rt_lat_on(&arg);
	if (!strcmp(arg.name, "lat-off")) {
		rt_lat_off();
		return 0;
	}
	for (i = 0; i < ARRAY_SIZE(rt_cases); i++)
		if (!strcmp(arg.name, rt_cases[i].name))
			return rt_run_case(&rt_cases[i], &arg);
	scnprintf(rt_result, RT_LOG_SIZE, "FAIL: no case %s\n", arg.name);
	return -ENOENT;
}

static ssize_t rt_run_write(struct file *file, const char __user *ubuf,
			    size_t len, loff_t *ppos)
{
	char *line;
	int err;

	if (len > SZ_4K)
		return -EINVAL;
	line = memdup_user_nul(ubuf, len);
	if (IS_ERR(line))
		return PTR_ERR(line);
	if (!strcmp(strim(line), "stop")) {
		WRITE_ONCE(rt_stop, true);
		wake_up_all(&rt_wq);
		mutex_lock(&rt_lock);
		WRITE_ONCE(rt_stop, false);
		mutex_unlock(&rt_lock);
		err = 0;
	} else {
		mutex_lock(&rt_lock);
		err = rt_run(strim(line));
		mutex_unlock(&rt_lock);
	}
	kfree(line);
	return err ? : len;
}

static const struct file_operations rt_run_fops = {
	.owner = THIS_MODULE,
	.open = simple_open,
	.write = rt_run_write,
	.llseek = noop_llseek,
};

static int result_show(struct seq_file *s, void *unused)
{
	mutex_lock(&rt_lock);
	seq_puts(s, rt_result);
	mutex_unlock(&rt_lock);
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(result);

static int cases_show(struct seq_file *s, void *unused)
{
	int i;

	for (i = 0; i < ARRAY_SIZE(rt_cases); i++)
		seq_printf(s, "%-10s %s\n", rt_cases[i].name,
			   rt_cases[i].help);
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(cases);

static struct ib_client rt_client;

static int rt_add_one(struct ib_device *dev)
{
	struct rt_dev *rdev;

	rdev = kzalloc(sizeof(*rdev), GFP_KERNEL);
	if (!rdev)
		return -ENOMEM;
	rdev->dev = dev;
	mutex_lock(&rt_devs_lock);
	list_add_tail(&rdev->node, &rt_devs);
	mutex_unlock(&rt_devs_lock);
	ib_set_client_data(dev, &rt_client, rdev);
	return 0;
}

/* The case that uses the device has to end before it goes. */
static void rt_remove_one(struct ib_device *dev, void *client_data)
{
	struct rt_dev *rdev = client_data;
	bool used;

	mutex_lock(&rt_devs_lock);
	list_del(&rdev->node);
	used = rdev->users;
	mutex_unlock(&rt_devs_lock);
	if (used) {
		WRITE_ONCE(rt_leaving, dev);
		wake_up_all(&rt_wq);
		mutex_lock(&rt_lock);
		if (rt_lat && (rt_lat->a.dev == dev || rt_lat->b.dev == dev))
			rt_lat_off();
		WRITE_ONCE(rt_leaving, NULL);
		mutex_unlock(&rt_lock);
	}
	kfree(rdev);
}

static struct ib_client rt_client = {
	.name = KBUILD_MODNAME,
	.add = rt_add_one,
	.remove = rt_remove_one,
};

static void rt_free_bufs(void)
{
	int i;

	for (i = 0; i < ARRAY_SIZE(rt_bufs); i++) {
		free_pages((unsigned long)rt_bufs[i], get_order(RT_BUF_SIZE));
		vfree(rt_patterns[i]);
	}
	for (i = 0; i < ARRAY_SIZE(rt_models); i++)
		vfree(rt_models[i]);
	kfree(rt_result);
}

static int rt_alloc_bufs(void)
{
	bool ok = true;
	int i;

	for (i = 0; i < ARRAY_SIZE(rt_bufs); i++) {
		rt_bufs[i] = (void *)__get_free_pages(GFP_KERNEL |
						      __GFP_RETRY_MAYFAIL,
						      get_order(RT_BUF_SIZE));
		rt_patterns[i] = vmalloc(RT_BUF_SIZE);
		if (rt_patterns[i])
			rt_fill(rt_patterns[i], RT_BUF_SIZE, i + 1);
		ok = ok && rt_bufs[i] && rt_patterns[i];
	}
	for (i = 0; i < ARRAY_SIZE(rt_models); i++) {
		rt_models[i] = vmalloc(RT_BUF_SIZE);
		ok = ok && rt_models[i];
	}
	rt_result = kzalloc(RT_LOG_SIZE, GFP_KERNEL);
	return ok && rt_result ? 0 : -ENOMEM;
}

static int __init rt_init(void)
{
	int err;

	err = rt_alloc_bufs();
	if (err)
		goto free;
	err = ib_register_client(&rt_client);
	if (err)
		goto free;
	rt_dir = debugfs_create_dir(KBUILD_MODNAME, NULL);
	debugfs_create_file("run", 0200, rt_dir, NULL, &rt_run_fops);
	debugfs_create_file("result", 0400, rt_dir, NULL, &result_fops);
	debugfs_create_file("cases", 0400, rt_dir, NULL, &cases_fops);
	return 0;
free:
	rt_free_bufs();
	return err;
}

static void __exit rt_exit(void)
{
	debugfs_remove_recursive(rt_dir);
	mutex_lock(&rt_lock);
	rt_lat_off();
	mutex_unlock(&rt_lock);
	ib_unregister_client(&rt_client);
	rt_free_bufs();
}

module_init(rt_init);
module_exit(rt_exit);

MODULE_DESCRIPTION("RDMA kernel ULP that checks every byte and completion");
MODULE_LICENSE("GPL");
