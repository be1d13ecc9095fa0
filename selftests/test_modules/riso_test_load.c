// SPDX-License-Identifier: GPL-2.0
/*
 * A kernel ULP that loads an adapter, and measures it.
 *
 * It keeps large messages of some queue pairs in the air, and sends a small one every now and
 * then. It tells how much of the large ones was delivered in each of some windows of time, how
 * long the CPU was idle, and how long the small ones took. A signal to the process that writes
 * ends a run. Or it tells what a post and a poll cost. On a machine that counts instructions, a
 * nanosecond is one.
 *
 * The protection domains of large messages are called riso_load0 and riso_load1, that of
 * small ones riso_load_small, so that rules tell them apart.
 *
 *	echo "load|cost [KEY=VALUE]..." > /sys/kernel/debug/riso_test_load/run
 *	cat /sys/kernel/debug/riso_test_load/result
 *
 * run_lock lets one run at a time be, in the process that writes, and protects the result.
 * Large messages are posted by that process at first, and then by the handlers of their
 * completions, in softirq. Small ones are posted by a timer and end in a handler, both in
 * hard interrupt context on CPUs of their own: @began tells one of the other.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/debugfs.h>
#include <linux/delay.h>
#include <linux/err.h>
#include <linux/hrtimer.h>
#include <linux/ktime.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/sched/signal.h>
#include <linux/seq_file.h>
#include <linux/slab.h>
#include <linux/sort.h>
#include <linux/tick.h>
#include <net/ipv6.h>
#include <rdma/ib_cache.h>
#include <rdma/ib_verbs.h>

#include "compat.h"

/* bytes of the largest message: what memory has in one piece */
#define LOAD_LEN_MAX	SZ_4M
/* queue pairs: what the largest case of the bench has */
#define LOAD_MAX_QPS	256
/* large messages of a queue pair that are out */
#define LOAD_MAX_DEPTH	64
#define LOAD_MAX_WINDOWS 64
/* A sample is 4 bytes. */
#define LOAD_MAX_SAMPLES SZ_64K
/* posts that are measured: their median is told */
#define LOAD_COSTS	256
/* The module looks twice, at most a quarter of a second apart, before it lets a CQ go. */
#define LOAD_REST_MS	1000
/* what was posted ends within this time */
#define LOAD_END_MS	20000

/**
 * struct load_args - what is asked for
 * @dev: device that posts
 * @peer: device at the other end
 * @read: large messages are READs
 * @len: bytes of a large message
 * @qps: queue pairs of each group
 * @depth: large messages that each queue pair has out
 * @groups: 1, or 2 that are two ULPs
 * @depth2: the same as @depth of the second group
 * @rdatomic: READs that each queue pair may have out
 * @small: bytes of a small message
 * @every_us: time between two small messages, 0 for none
 * @wait_ms: time before the first window
 * @window_ms: length of a window
 * @windows: how many
 * @shared: another queue pair uses the CQ, of large messages, or with @managed of small ones
 * @managed: measure the cost of large messages' queue pair
 * @chain: work requests of a post
 */
struct load_args {
	char dev[IB_DEVICE_NAME_MAX];
	char peer[IB_DEVICE_NAME_MAX];
	u32 read;
	u32 len;
	u32 qps;
	u32 depth;
	u32 groups;
	u32 depth2;
	u32 rdatomic;
	u32 small;
	u32 every_us;
	u32 wait_ms;
	u32 window_ms;
	u32 windows;
	u32 shared;
	u32 managed;
	u32 chain;
};

/**
 * struct load_end - one side
 * @dev: device
 * @port: its port
 * @gid_index: index of its address
 * @gid: its address
 * @mtu: of its port
 * @pd: protection domains: of both groups, and of small messages
 * @size: bytes of the buffer: the largest message
 * @va: buffer
 * @dma: address of the buffer
 */
struct load_end {
	struct ib_device *dev;
	u32 port;
	int gid_index;
	union ib_gid gid;
	enum ib_mtu mtu;
	struct ib_pd *pd[3];
	u32 size;
	void *va;
	u64 dma;
};

enum { LOAD_SMALL = 2 };

/**
 * struct load_qp - a queue pair and its peer
 * @load: what it belongs to
 * @cqe: for its completions
 * @qp: the queue pair that posts
 * @peer: the other one
 * @cq: of @qp
 * @own_cq: nobody but us polls @cq
 * @peer_cq: of @peer, where nothing ends
 * @bytes: that were delivered
 */
struct load_qp {
	struct load *load;
	struct ib_cqe cqe;
	struct ib_qp *qp;
	struct ib_qp *peer;
	struct ib_cq *cq;
	bool own_cq;
	struct ib_cq *peer_cq;
	u64 bytes;
};

/**
 * struct load - a run
 * @arg: what is asked for
 * @a: side that posts
 * @b: the other side
 * @bulk: queue pairs of large messages, those of the first group first
 * @nbulk: how many
 * @small: queue pair of small messages
 * @out: large messages that are out
 * @stop: no more are posted
 * @failed: status of a message that failed
 * @timer: posts the next small message
 * @began: when the small message that is out was posted, 0 for none
 * @samples: ns that small messages took
 * @nsamples: how many
 * @record: samples are kept
 * @skipped: small messages that were not sent since the last one was out
 */
struct load {
	struct load_args arg;
	struct load_end a;
	struct load_end b;
	struct load_qp *bulk;
	u32 nbulk;
	struct load_qp small;
	atomic_t out;
	bool stop;
	int failed;
	struct hrtimer timer;
	u64 began;
	u32 *samples;
	u32 nsamples;
	bool record;
	u32 skipped;
};

static ktime_t us_of(u32 us)
{
	return ns_to_ktime((u64)us * NSEC_PER_USEC);
}

static DEFINE_MUTEX(run_lock);
static char result[SZ_16K];
static struct dentry *dir;

/* --- what runs in interrupts ------------------------------------------------ */

static int post(struct load *l, struct load_qp *q, bool read, u32 len)
{
	struct ib_sge sge = {
		.addr = l->a.dma,
		.length = len,
		.lkey = q->qp->pd->local_dma_lkey,
	};
	struct ib_rdma_wr wr = {
		.wr = {
			.wr_cqe = &q->cqe,
			.opcode = read ? IB_WR_RDMA_READ : IB_WR_RDMA_WRITE,
			.send_flags = IB_SEND_SIGNALED,
			.sg_list = &sge,
			.num_sge = 1,
		},
		.remote_addr = l->b.dma,
		.rkey = q->peer->pd->unsafe_global_rkey,
	};

	return ib_post_send(q->qp, &wr.wr, NULL);
}

static void post_large(struct load *l, struct load_qp *q)
{
	int err;

	atomic_inc(&l->out);
	err = post(l, q, l->arg.read, l->arg.len);
	if (err) {
		atomic_dec(&l->out);
		WRITE_ONCE(l->failed, err);
	}
}

static void large_done(struct ib_cq *cq, struct ib_wc *wc)
{
	struct load_qp *q = container_of(wc->wr_cqe, struct load_qp, cqe);
	struct load *l = q->load;

	if (wc->status != IB_WC_SUCCESS)
		WRITE_ONCE(l->failed, wc->status);
	else
		WRITE_ONCE(q->bytes, q->bytes + l->arg.len);
	if (!READ_ONCE(l->stop) && !READ_ONCE(l->failed))
		post_large(l, q);
	atomic_dec(&l->out);
}

/* In hard interrupt context: how late softirqs are is not measured. */
static void small_done(struct ib_cq *cq, void *context)
{
	struct load *l = context;
	struct ib_wc wc;

	ib_req_notify_cq(cq, IB_CQ_NEXT_COMP);
	while (ib_poll_cq(cq, 1, &wc) > 0) {
		if (wc.status != IB_WC_SUCCESS)
			WRITE_ONCE(l->failed, wc.status);
		else if (READ_ONCE(l->record) && l->nsamples < LOAD_MAX_SAMPLES)
			l->samples[l->nsamples++] = ktime_get_ns() - l->began;
		/* Pairs with the acquire in send_small(). */
		smp_store_release(&l->began, 0);
	}
}

static enum hrtimer_restart send_small(struct hrtimer *timer)
{
	struct load *l = container_of(timer, struct load, timer);

	/* Pairs with the release in small_done(). */
	if (smp_load_acquire(&l->began)) {
		l->skipped++;
	} else {
		l->began = ktime_get_ns();
		if (post(l, &l->small, false, l->arg.small)) {
			WRITE_ONCE(l->failed, -EIO);
			WRITE_ONCE(l->began, 0);
		}
	}
	hrtimer_forward_now(timer, us_of(l->arg.every_us));
	return READ_ONCE(l->stop) ? HRTIMER_NORESTART : HRTIMER_RESTART;
}

/* --- setting up ------------------------------------------------------------- */

static const char * const pd_names[] = { "riso_load0", "riso_load1", "riso_load_small" };

static int find_gid(struct load_end *e)
{
	struct ib_port_attr attr;
	int i, err;

	e->port = rdma_start_port(e->dev);
	err = ib_query_port(e->dev, e->port, &attr);
	if (err)
		return err;
	e->mtu = attr.active_mtu;
	for (i = 0; i < attr.gid_tbl_len; i++) {
		const struct ib_gid_attr *gid = rdma_get_gid_attr(e->dev, e->port, i);
		bool found;

		if (IS_ERR(gid))
			continue;
		found = gid->gid_type == IB_GID_TYPE_ROCE_UDP_ENCAP &&
			ipv6_addr_v4mapped((struct in6_addr *)&gid->gid);
		e->gid = gid->gid;
		rdma_put_gid_attr(gid);
		if (found) {
			e->gid_index = i;
			return 0;
		}
	}
	return -EADDRNOTAVAIL;
}

static int setup_end(struct load_end *e, const char *name, u32 size)
{
	int i, err;

	e->size = size;
	e->dev = ib_device_get_by_name(name, RDMA_DRIVER_UNKNOWN);
	if (!e->dev)
		return -ENODEV;
	err = find_gid(e);
	if (err)
		return err;
	for (i = 0; i < ARRAY_SIZE(e->pd); i++) {
		struct ib_pd *pd = __ib_alloc_pd(e->dev, IB_PD_UNSAFE_GLOBAL_RKEY, pd_names[i]);

		if (IS_ERR(pd))
			return PTR_ERR(pd);
		e->pd[i] = pd;
	}
	e->va = (void *)__get_free_pages(GFP_KERNEL | __GFP_ZERO, get_order(e->size));
	if (!e->va)
		return -ENOMEM;
	e->dma = ib_dma_map_single(e->dev, e->va, e->size, DMA_BIDIRECTIONAL);
	return ib_dma_mapping_error(e->dev, e->dma) ? -EIO : 0;
}

static void free_end(struct load_end *e)
{
	int i;

	if (!e->dev)
		return;
	if (e->dma && !ib_dma_mapping_error(e->dev, e->dma))
		ib_dma_unmap_single(e->dev, e->dma, e->size, DMA_BIDIRECTIONAL);
	free_pages((unsigned long)e->va, get_order(e->size));
	for (i = 0; i < ARRAY_SIZE(e->pd); i++)
		if (e->pd[i])
			ib_dealloc_pd(e->pd[i]);
	ib_device_put(e->dev);
}

static struct ib_qp *create_qp(struct load *l, struct ib_pd *pd, struct ib_cq *cq)
{
	struct ib_qp_init_attr attr = {
		.cap = {
			.max_send_wr = max3(l->arg.depth, l->arg.depth2, (u32)LOAD_COSTS) + 1,
			.max_recv_wr = 1,
			.max_send_sge = 1,
			.max_recv_sge = 1,
		},
		.sq_sig_type = IB_SIGNAL_REQ_WR,
		.qp_type = IB_QPT_RC,
		.send_cq = cq,
		.recv_cq = cq,
	};

	return ib_create_qp(pd, &attr);
}

static int raise_qp(struct load *l, struct ib_qp *qp, const struct ib_qp *peer,
		    const struct load_end *e, const struct load_end *other)
{
	struct ib_qp_attr attr = {
		.qp_state = IB_QPS_INIT,
		.port_num = e->port,
		.qp_access_flags = IB_ACCESS_REMOTE_READ | IB_ACCESS_REMOTE_WRITE,
	};
	int err;

	err = ib_modify_qp(qp, &attr, IB_QP_STATE | IB_QP_PKEY_INDEX | IB_QP_PORT |
			   IB_QP_ACCESS_FLAGS);
	if (err)
		return err;
	attr.qp_state = IB_QPS_RTR;
	attr.path_mtu = e->mtu;
	attr.dest_qp_num = peer->qp_num;
	attr.max_dest_rd_atomic = l->arg.rdatomic;
	attr.min_rnr_timer = IB_RNR_TIMER_000_64;
	attr.ah_attr.type = rdma_ah_find_type(e->dev, e->port);
	rdma_ah_set_grh(&attr.ah_attr, (union ib_gid *)&other->gid, 0, e->gid_index, 64, 0);
	rdma_ah_set_port_num(&attr.ah_attr, e->port);
	err = ib_modify_qp(qp, &attr, IB_QP_STATE | IB_QP_AV | IB_QP_PATH_MTU |
			   IB_QP_DEST_QPN | IB_QP_RQ_PSN | IB_QP_MAX_DEST_RD_ATOMIC |
			   IB_QP_MIN_RNR_TIMER);
	if (err)
		return err;
	attr.qp_state = IB_QPS_RTS;
	attr.timeout = 18;
	attr.retry_cnt = 7;
	attr.rnr_retry = 7;
	attr.max_rd_atomic = l->arg.rdatomic;
	return ib_modify_qp(qp, &attr, IB_QP_STATE | IB_QP_TIMEOUT | IB_QP_RETRY_CNT |
			    IB_QP_RNR_RETRY | IB_QP_SQ_PSN | IB_QP_MAX_QP_RD_ATOMIC);
}

/* @cq is that of another queue pair, or NULL for one of its own that the core polls. */
static int setup_qp(struct load *l, struct load_qp *q, int pd, struct ib_cq *cq)
{
	struct ib_cq *own;
	int err;

	q->load = l;
	q->cqe.done = large_done;
	if (!cq) {
		own = ib_alloc_cq(l->a.dev, l, 2 * LOAD_MAX_DEPTH, 0, IB_POLL_SOFTIRQ);
		if (IS_ERR(own))
			return PTR_ERR(own);
		q->cq = own;
		cq = own;
	}
	own = ib_alloc_cq(l->b.dev, l, 4, 0, IB_POLL_SOFTIRQ);
	if (IS_ERR(own))
		return PTR_ERR(own);
	q->peer_cq = own;
	q->qp = create_qp(l, l->a.pd[pd], cq);
	if (IS_ERR(q->qp)) {
		err = PTR_ERR(q->qp);
		q->qp = NULL;
		return err;
	}
	q->peer = create_qp(l, l->b.pd[pd], q->peer_cq);
	if (IS_ERR(q->peer)) {
		err = PTR_ERR(q->peer);
		q->peer = NULL;
		return err;
	}
	err = raise_qp(l, q->qp, q->peer, &l->a, &l->b);
	return err ? : raise_qp(l, q->peer, q->qp, &l->b, &l->a);
}

static void free_qp(struct load_qp *q)
{
	if (q->qp)
		ib_destroy_qp(q->qp);
	if (q->peer)
		ib_destroy_qp(q->peer);
	if (q->cq && q->own_cq)
		ib_destroy_cq(q->cq);
	else if (q->cq)
		ib_free_cq(q->cq);
	if (q->peer_cq)
		ib_free_cq(q->peer_cq);
}

static void free_load(struct load *l)
{
	u32 i;

	for (i = 0; i < l->nbulk; i++)
		free_qp(&l->bulk[i]);
	/* Others may use its CQ. */
	free_qp(&l->small);
	kvfree(l->bulk);
	kvfree(l->samples);
	free_end(&l->a);
	free_end(&l->b);
	kfree(l);
}

static struct load *make_load(const struct load_args *arg)
{
	struct load *l = kzalloc(sizeof(*l), GFP_KERNEL);
	int err;

	if (!l)
		return ERR_PTR(-ENOMEM);
	l->arg = *arg;
	l->samples = kvcalloc(LOAD_MAX_SAMPLES, sizeof(*l->samples), GFP_KERNEL);
	l->bulk = kvcalloc(arg->groups * arg->qps, sizeof(*l->bulk), GFP_KERNEL);
	err = !l->samples || !l->bulk ? -ENOMEM :
	      setup_end(&l->a, arg->dev, max(arg->len, arg->small)) ? :
	      setup_end(&l->b, arg->peer, max(arg->len, arg->small));
	if (!err)
		return l;
	free_load(l);
	return ERR_PTR(err);
}

/* A CQ that nobody but us polls */
static struct ib_cq *create_own_cq(struct load *l, ib_comp_handler handler, u32 entries)
{
	const struct ib_cq_init_attr attr = { .cqe = entries };

	return ib_create_cq(l->a.dev, handler, NULL, l, &attr);
}

/* --- the load --------------------------------------------------------------- */

static int compare(const void *a, const void *b)
{
	u32 x = *(const u32 *)a, y = *(const u32 *)b;

	return x < y ? -1 : x > y;
}

/* The sample that so many thousandths are at most as large as */
static u32 percentile(const u32 *sorted, u32 n, u32 thousandths)
{
	return n ? sorted[min((u64)n - 1, div_u64((u64)n * thousandths, 1000))] : 0;
}

static u64 sum_bytes(const struct load *l, u32 group)
{
	u64 sum = 0;
	u32 i;

	for (i = 0; i < l->nbulk; i++)
		if (i / l->arg.qps == group)
			sum += READ_ONCE(l->bulk[i].bytes);
	return sum;
}

static void sleep_ms(u32 ms)
{
	ktime_t t = ms_to_ktime(ms);

	set_current_state(TASK_INTERRUPTIBLE);
	schedule_hrtimeout(&t, HRTIMER_MODE_REL);
}

static u64 get_idle_us(void)
{
	u64 sum = 0;
	int cpu;

	for_each_online_cpu(cpu)
		sum += get_cpu_idle_time_us(cpu, NULL);
	return sum;
}

static int tell_windows(struct load *l, int len)
{
	u32 i, g;

	for (i = 0; i < l->arg.windows && !READ_ONCE(l->failed) && !signal_pending(current); i++) {
		u64 was[2] = { sum_bytes(l, 0), sum_bytes(l, 1) };
		u64 idle = get_idle_us();
		u64 began = ktime_get_ns(), ns;

		sleep_ms(l->arg.window_ms);
		ns = ktime_get_ns() - began;
		len += scnprintf(result + len, sizeof(result) - len, "%s{\"ns\": %llu",
				 i ? ", " : "", ns);
		for (g = 0; g < l->arg.groups; g++)
			len += scnprintf(result + len, sizeof(result) - len,
					 ", \"bytes%u\": %llu", g, sum_bytes(l, g) - was[g]);
		len += scnprintf(result + len, sizeof(result) - len, ", \"idle_us\": %llu}",
				 get_idle_us() - idle);
	}
	return len;
}

static int drain(struct load *l)
{
	u32 ms;

	WRITE_ONCE(l->stop, true);
	hrtimer_cancel(&l->timer);
	for (ms = 0; atomic_read(&l->out) || READ_ONCE(l->began); ms++) {
		if (ms == LOAD_END_MS)
			return -ETIMEDOUT;
		usleep_range(1000, 2000);
	}
	return READ_ONCE(l->failed) ? -EIO : 0;
}

static int run_load(struct load *l)
{
	u32 i, k;
	int err, len;

	if (l->arg.every_us) {
		struct ib_cq *cq = create_own_cq(l, small_done, 16);

		if (IS_ERR(cq))
			return PTR_ERR(cq);
		l->small.cq = cq;
		l->small.own_cq = true;
		err = setup_qp(l, &l->small, LOAD_SMALL, cq);
		if (err)
			return err;
		ib_req_notify_cq(cq, IB_CQ_NEXT_COMP);
	}
	for (; l->nbulk < l->arg.groups * l->arg.qps; l->nbulk++) {
		err = setup_qp(l, &l->bulk[l->nbulk], l->nbulk / l->arg.qps, NULL);
		if (err) {
			l->nbulk++;
			return err;
		}
	}
	if (l->arg.every_us)
		hrtimer_start(&l->timer, us_of(l->arg.every_us), HRTIMER_MODE_REL_HARD);
	for (k = 0; k < max(l->arg.depth, l->arg.depth2); k++)
		for (i = 0; i < l->nbulk; i++)
			if (k < (i < l->arg.qps ? l->arg.depth : l->arg.depth2))
				post_large(l, &l->bulk[i]);
	if (l->arg.wait_ms)
		sleep_ms(l->arg.wait_ms);
	WRITE_ONCE(l->record, true);
	len = scnprintf(result, sizeof(result), "{\"windows\": [");
	len = tell_windows(l, len);
	WRITE_ONCE(l->record, false);
	err = drain(l);
	sort(l->samples, l->nsamples, sizeof(*l->samples), compare, NULL);
	scnprintf(result + len, sizeof(result) - len,
		  "], \"samples\": %u, \"skipped\": %u, \"p50_ns\": %u, \"p99_ns\": %u, \"p99_9_ns\": %u}\n",
		  l->nsamples, l->skipped, percentile(l->samples, l->nsamples, 500),
		  percentile(l->samples, l->nsamples, 990),
		  percentile(l->samples, l->nsamples, 999));
	return err;
}

/* --- the cost --------------------------------------------------------------- */

static int poll_own(struct ib_cq *cq, u32 want, u32 *costs)
{
	u64 end = ktime_get_ns() + LOAD_END_MS * (u64)NSEC_PER_MSEC;
	unsigned long flags;
	struct ib_wc wc;
	u32 got = 0;
	u64 began;
	int n;

	while (got < want) {
		local_irq_save(flags);
		began = ktime_get_ns();
		n = ib_poll_cq(cq, 1, &wc);
		began = ktime_get_ns() - began;
		local_irq_restore(flags);
		if (n < 0 || (n && wc.status != IB_WC_SUCCESS))
			return -EIO;
		if (n && costs)
			costs[got] = began;
		got += n;
		if (!n && ktime_get_ns() > end)
			return -ETIMEDOUT;
		if (!n)
			usleep_range(50, 100);
	}
	return 0;
}

/* Post one chain, and poll for it; what it costs is told by the adapter's clock. */
static int measure_cost(struct load *l, struct load_qp *q, struct ib_cq *cq, u32 at)
{
	struct ib_rdma_wr wr[16] = {};
	u32 n = l->arg.chain, i;
	struct ib_sge sge = {
		.addr = l->a.dma,
		.length = l->arg.small,
		.lkey = q->qp->pd->local_dma_lkey,
	};
	unsigned long flags;
	u64 began;
	int err;

	for (i = 0; i < n; i++) {
		wr[i].wr.wr_cqe = &q->cqe;
		wr[i].wr.opcode = IB_WR_RDMA_WRITE;
		wr[i].wr.send_flags = IB_SEND_SIGNALED;
		wr[i].wr.sg_list = &sge;
		wr[i].wr.num_sge = 1;
		wr[i].wr.next = i + 1 < n ? &wr[i + 1].wr : NULL;
		wr[i].remote_addr = l->b.dma;
		wr[i].rkey = q->peer->pd->unsafe_global_rkey;
	}
	local_irq_save(flags);
	began = ktime_get_ns();
	err = ib_post_send(q->qp, &wr[0].wr, NULL);
	l->samples[at] = div_u64(ktime_get_ns() - began, n);
	local_irq_restore(flags);
	if (err)
		return err;
	/* The adapter has all of it when it is polled for. */
	usleep_range(100, 200);
	return poll_own(cq, n, l->samples + LOAD_COSTS + at * n);
}

static int run_cost(struct load *l)
{
	struct load_qp *q = &l->small;
	u32 rounds = LOAD_COSTS, i;
	u32 *polls = l->samples + LOAD_COSTS;
	int err;

	q->cq = create_own_cq(l, NULL, 2 * LOAD_COSTS);
	if (IS_ERR(q->cq)) {
		err = PTR_ERR(q->cq);
		q->cq = NULL;
		return err;
	}
	q->own_cq = true;
	err = setup_qp(l, q, l->arg.managed ? 0 : LOAD_SMALL, q->cq);
	if (err)
		return err;
	if (l->arg.shared) {
		l->nbulk = 1;
		err = setup_qp(l, &l->bulk[0], l->arg.managed ? LOAD_SMALL : 0, q->cq) ? :
		      measure_cost(l, &l->bulk[0], q->cq, 0);
		if (err)
			return err;
		/* Nothing of that queue pair is in the CQ any more. */
		msleep(LOAD_REST_MS);
	}
	for (i = 0; i < rounds; i++) {
		err = measure_cost(l, q, q->cq, i);
		if (err)
			return err;
	}
	sort(l->samples, rounds, sizeof(*l->samples), compare, NULL);
	sort(polls, rounds * l->arg.chain, sizeof(*polls), compare, NULL);
	scnprintf(result, sizeof(result), "{\"post_ns\": %u, \"poll_ns\": %u}\n",
		  percentile(l->samples, rounds, 500),
		  percentile(polls, rounds * l->arg.chain, 500));
	return 0;
}

/* --- the files -------------------------------------------------------------- */

static int parse(struct load_args *arg, char *line)
{
	const struct {
		const char *key;
		u32 *val;
		u32 max;
	} num[] = {
		{ "read", &arg->read, 1 },
		{ "len", &arg->len, LOAD_LEN_MAX },
		{ "qps", &arg->qps, LOAD_MAX_QPS },
		{ "depth", &arg->depth, LOAD_MAX_DEPTH },
		{ "depth2", &arg->depth2, LOAD_MAX_DEPTH },
		{ "groups", &arg->groups, 2 },
		{ "rdatomic", &arg->rdatomic, 255 },
		{ "small", &arg->small, SZ_4K },
		{ "every_us", &arg->every_us, USEC_PER_SEC },
		{ "wait_ms", &arg->wait_ms, 60000 },
		{ "window_ms", &arg->window_ms, 60000 },
		{ "windows", &arg->windows, LOAD_MAX_WINDOWS },
		{ "shared", &arg->shared, 1 },
		{ "managed", &arg->managed, 1 },
		{ "chain", &arg->chain, 16 },
	};
	char *word;
	int i, err;

	while ((word = strsep(&line, "\n "))) {
		char *key = strsep(&word, "=");

		if (!*key)
			continue;
		if (!word)
			return -EINVAL;
		if (!strcmp(key, "dev") || !strcmp(key, "peer")) {
			if (strscpy(*key == 'd' ? arg->dev : arg->peer, word,
				    sizeof(arg->dev)) < 0)
				return -EINVAL;
			continue;
		}
		for (i = 0; i < ARRAY_SIZE(num); i++)
			if (!strcmp(key, num[i].key))
				break;
		if (i == ARRAY_SIZE(num))
			return -EINVAL;
		err = kstrtou32(word, 0, num[i].val);
		if (err || *num[i].val > num[i].max)
			return -EINVAL;
	}
	if (!arg->len || !arg->qps || !arg->groups || !arg->chain || !arg->rdatomic ||
	    !arg->window_ms)
		return -EINVAL;
	return 0;
}

static int run_line(char *line)
{
	struct load_args arg = {
		.dev = "null0",
		.peer = "null1",
		.len = SZ_1M,
		.qps = 1,
		.depth = 8,
		.depth2 = 8,
		.groups = 1,
		.rdatomic = 16,
		.small = 64,
		.window_ms = 100,
		.windows = 1,
		.chain = 1,
	};
	char *what = strsep(&line, "\n ");
	bool cost = !strcmp(what, "cost");
	struct load *l;
	int err;

	if (!cost && strcmp(what, "load"))
		return -ENOENT;
	err = parse(&arg, line);
	if (err)
		return err;
	l = make_load(&arg);
	if (IS_ERR(l))
		return PTR_ERR(l);
	hrtimer_setup(&l->timer, send_small, CLOCK_MONOTONIC, HRTIMER_MODE_REL_HARD);
	err = cost ? run_cost(l) : run_load(l);
	if (err == -ETIMEDOUT)
		pr_err("%d messages have not ended\n", atomic_read(&l->out));
	free_load(l);
	return err;
}

static ssize_t run_write(struct file *file, const char __user *ubuf, size_t len, loff_t *ppos)
{
	char *line;
	int err;

	if (len > SZ_1K)
		return -EINVAL;
	line = memdup_user_nul(ubuf, len);
	if (IS_ERR(line))
		return PTR_ERR(line);
	mutex_lock(&run_lock);
	*result = 0;
	err = run_line(strim(line));
	mutex_unlock(&run_lock);
	kfree(line);
	return err ? : len;
}

static const struct file_operations run_fops = {
	.owner = THIS_MODULE,
	.open = simple_open,
	.write = run_write,
	.llseek = noop_llseek,
};

static int result_show(struct seq_file *s, void *unused)
{
	mutex_lock(&run_lock);
	seq_puts(s, result);
	mutex_unlock(&run_lock);
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(result);

static int __init load_init(void)
{
	dir = debugfs_create_dir(KBUILD_MODNAME, NULL);
	debugfs_create_file("run", 0200, dir, NULL, &run_fops);
	debugfs_create_file("result", 0400, dir, NULL, &result_fops);
	return 0;
}

static void __exit load_exit(void)
{
	debugfs_remove_recursive(dir);
}

module_init(load_init);
module_exit(load_exit);

MODULE_DESCRIPTION("RDMA kernel ULP that loads an adapter and measures it");
MODULE_LICENSE("GPL");
