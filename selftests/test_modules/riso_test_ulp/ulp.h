/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What all parts of riso_test_ulp share: limits and structures.
 *
 * A case runs in the process that writes to debugfs. The case_lock of main.c lets one
 * run at a time. The case fills its &struct ulp_ctx, which completion handlers and
 * threads of the case read. They change only:
 *
 *  - counters, which are atomic;
 *  - the ledger of a lane, which &ulp_lane.lock protects;
 *  - &ulp_lane.left and &ulp_lane.step, which the handler of that lane alone changes once
 *    it runs;
 *  - the completions in a CQ's structure, which &ulp_cq.lock protects;
 *  - the log and @failed, which &ulp_ctx.log_lock protects.
 */
#ifndef RISO_TEST_ULP_H
#define RISO_TEST_ULP_H

#include <linux/atomic.h>
#include <linux/interrupt.h>
#include <linux/list.h>
#include <linux/sizes.h>
#include <linux/spinlock.h>
#include <linux/types.h>
#include <linux/workqueue.h>
#include <rdma/ib_verbs.h>

#define ULP_BUF_SIZE	SZ_4M
/* where the messages begin: unaligned, a guard area in front */
#define ULP_BASE	(SZ_64K + 9)
/* between the pieces of a scattered local buffer */
#define ULP_GAP		17
/* After that no packet is on its way any more. */
#define ULP_ON_THE_WIRE_MS 50
#define ULP_MAX_SGE	32
#define ULP_MAX_QPS	8
#define ULP_MAX_LANES	32
#define ULP_MAX_CQS	(ULP_MAX_QPS * 4)
#define ULP_MAX_RECS	8192
#define ULP_MAX_BATCH	16
#define ULP_LOG_SIZE	4096
#define ULP_INLINE	200

#define ULP_REMOTE	(IB_ACCESS_REMOTE_READ | IB_ACCESS_REMOTE_WRITE | \
			 IB_ACCESS_REMOTE_ATOMIC)

/* where completions are polled from, and by whom */
enum ulp_cqmode {
	ULP_CQ_WQ,		/* ib_alloc_cq, wr_cqe */
	ULP_CQ_UNBOUND,
	ULP_CQ_SOFTIRQ,
	ULP_CQ_WORK,		/* ib_create_cq, wr_id, a work item */
	ULP_CQ_TASKLET,
};

/* errors that the checker must find: it proves itself with them */
enum ulp_mutation {
	ULP_MUT_NONE,
	ULP_MUT_BYTE,		/* one byte of the destination differs */
	ULP_MUT_GUARD,		/* one byte behind the destination */
	ULP_MUT_SWALLOW,	/* a completion never comes */
	ULP_MUT_DUP,		/* a completion comes twice */
	ULP_MUT_STATUS,		/* a completion has another status */
	ULP_MUT_OPCODE,
	ULP_MUT_LEN,
	ULP_MUT_ORDER,		/* two completions change places */
};

enum ulp_expect {
	ULP_EXP_OK,		/* success */
	ULP_EXP_STATUS,		/* op->status */
	ULP_EXP_FLUSH,		/* flushed */
	ULP_EXP_ANY,		/* success, else op->status, or flushed if 0 */
	ULP_EXP_ERROR,		/* any error */
	ULP_EXP_END,		/* once, in its place, somehow */
};

/* one work request as a case describes it */
struct ulp_op {
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
	enum ulp_expect expect;
	enum ib_wc_status status;
};

/* the ledger's record of one work request */
struct ulp_rec {
	struct ib_cqe cqe;
	struct list_head node;
	struct ulp_lane *lane;
	struct ulp_op op;
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

struct ulp_buf {
	void *va;
	u64 dma;
};

struct ulp_ep {
	struct ib_device *dev;
	u32 port;
	int gid_index;
	union ib_gid gid;
	enum ib_mtu mtu;
	struct ib_pd *pd;
	struct ulp_buf src;
	struct ulp_buf dst;
	void *model;
	struct ib_mr *mr_src;
	struct ib_mr *mr_dst;
	struct ulp_ep *peer;
	struct ulp_dev *rdev;
};

struct ulp_ctx;

struct ulp_cq {
	struct ib_cq *cq;
	struct ulp_ctx *ctx;
	enum ulp_cqmode mode;
	int batch;
	bool closing;
	bool held;		/* leave the entries there for now */
	struct work_struct work;
	struct tasklet_struct tasklet;
	spinlock_t lock;	/* polls: a case may, and the handler's work meanwhile */
	struct ib_wc wc[ULP_MAX_BATCH];
	bool has_saved;
	struct ib_wc saved;
	struct ulp_rec *saved_rec;
};

struct ulp_qp {
	struct ib_qp *qp;
	const struct ib_qp *gone;	/* for wc->qp after destroy */
	struct ulp_ep *ep;
	struct ulp_qp *peer;
	struct ulp_cq *scq;
	struct ulp_cq *rcq;
	struct ib_srq *srq;
	struct ulp_lane *send;
	struct ulp_lane *recv;
	enum ib_qp_state state;
	u32 psn;
	u32 depth;
	u32 max_sge;
};

/* the work requests that one context posts to one queue */
struct ulp_lane {
	struct ulp_ctx *ctx;
	struct ulp_qp *qp;
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
	void (*next)(struct ulp_lane *lane);
	u32 left;
	u32 step;
};

struct ulp_args {
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
	enum ulp_cqmode cq;
	enum ulp_mutation mutate;
};

struct ulp_conf {
	u32 pairs;
	u32 scqe;		/* entries of the send CQ, 0: what fits */
	bool one_cq;		/* for all queues of one side */
	bool srq;
	u8 timeout;
	u8 retry;
	u8 rnr_retry;
	enum ib_qp_state state;
};

enum ulp_verify {
	ULP_VERIFY_ALL,		/* every request was carried out */
	ULP_VERIFY_PREFIX,	/* those that succeeded and some way beyond */
	ULP_VERIFY_NONE,	/* nobody can tell */
};

struct ulp_ctx {
	struct ulp_args arg;
	struct ulp_ep a;
	struct ulp_ep b;
	struct ulp_qp qa[ULP_MAX_QPS];
	struct ulp_qp qb[ULP_MAX_QPS];
	struct ulp_conf conf;
	struct ulp_cq *cqs[ULP_MAX_CQS];
	u32 ncqs;
	struct ulp_lane *lanes[ULP_MAX_LANES];
	u32 nlanes;
	struct ib_srq *srq_a;
	struct ib_srq *srq_b;
	struct ib_mr *mrs[4];
	u32 nmrs;
	struct ulp_rec *recs;
	atomic_t nrecs;
	atomic_t ncomp;
	atomic_t nmut;
	atomic64_t bytes;
	unsigned long timeout;
	bool failed;
	bool quiet;		/* being torn down: nobody posts */
	enum ulp_verify verify;
	bool fails_here;	/* the peer does not see the request that fails */
	spinlock_t log_lock;	/* the log below */
	u32 log_len;
	char log[ULP_LOG_SIZE];
};

#endif /* RISO_TEST_ULP_H */
