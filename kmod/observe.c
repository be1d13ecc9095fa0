// SPDX-License-Identifier: GPL-2.0
/*
 * What is counted and measured while a device is observed.
 *
 * Owns the counters of traffic, of each flow and of the device, and the histograms
 * of times from post to completion. Only posts of kernel flows that are passed on
 * come here; those of managed flows are counted by their queues, those of programs
 * do not come to the kernel.
 *
 * Counters are per CPU: no store goes to memory that another CPU writes. Those of a
 * flow are there only while its device is observed, and are added to
 * &struct riso_flow when that ends. Measuring is different: a completion may be
 * polled by another CPU than that of the post, so there is a ring of posts with a
 * lock for each flow. It is there only while histograms are on.
 *
 * &riso_dev.observing and &riso_dev.timing let the hooks in here, under RCU, in any
 * context. They are set when all flows have their memory, and cleared a grace period
 * before they lose it; &riso_dev.mutex serialises who gives and takes memory.
 * &riso_watch.lock covers the ring, with interrupts off and nothing inside.
 */

#include <linux/log2.h>
#include <linux/mm.h>
#include <linux/percpu.h>
#include <linux/slab.h>
#include <linux/spinlock.h>

#include "core/wr.h"
#include "cq.h"
#include "dev.h"
#include "flow.h"

/* Signaled work requests of a flow that are remembered, at most. */
enum { RISO_POSTS_MAX = 1024 };

/**
 * struct riso_watch - posts of a flow whose completions will come
 * @lock: covers @posts
 * @cq: where they come
 * @all: all work requests are signaled
 * @posts: the ring
 * @ring: its memory
 */
struct riso_watch {
	spinlock_t lock; /* see above */
	const struct ib_cq *cq;
	bool all;
	struct riso_posts posts;
	struct riso_post ring[];
};

/* --- posts and completions, under RCU --- */

static void count(struct riso_traffic *t, const struct ib_send_wr *wr)
{
	for (; wr; wr = wr->next) {
		u64 len;

		t->n[RISO_SEEN_WRS]++;
		if (!riso_wr_has_data(wr->opcode))
			continue;
		len = riso_wr_bytes(wr);
		t->n[riso_wr_is_read(wr->opcode) ? RISO_SEEN_RX :
						   RISO_SEEN_TX] += len;
		t->n[RISO_SEEN_SIZE + riso_size_of(len)]++;
	}
}

static void add(struct riso_dev *rd, struct riso_flow *f,
		const struct riso_traffic *t, int sign)
{
	struct riso_traffic __percpu *seen = f ? READ_ONCE(f->seen) : NULL;
	int i;

	for (i = 0; i < RISO_SEEN_MAX; i++) {
		if (!t->n[i])
			continue;
		this_cpu_add(rd->observed->traffic.n[i], sign * t->n[i]);
		if (seen)
			this_cpu_add(seen->n[i], sign * t->n[i]);
	}
}

static void remember(struct riso_watch *w, const struct ib_send_wr *wr)
{
	u64 now = ktime_get_ns();
	unsigned long flags;

	spin_lock_irqsave(&w->lock, flags);
	for (; wr; wr = wr->next)
		if (w->all || (wr->send_flags & IB_SEND_SIGNALED))
			riso_posts_add(&w->posts, wr->wr_id,
				       riso_wr_has_data(wr->opcode) ? now : 0);
	spin_unlock_irqrestore(&w->lock, flags);
}

static void forget(struct riso_watch *w)
{
	unsigned long flags;

	spin_lock_irqsave(&w->lock, flags);
	riso_posts_drop(&w->posts);
	spin_unlock_irqrestore(&w->lock, flags);
}

/**
 * riso_observe_post - pass a post on and count it
 * @rd: a device that is observed
 * @f: the flow, NULL if it is not known
 * @qp: its QP
 * @wr: the work requests
 * @bad_wr: the first that the provider did not take, if it refuses
 *
 * The owner may reuse a work request once it has completed, which may be before the
 * provider returns: so they are counted first, and what was refused is taken off.
 *
 * Context: any, under RCU.
 * Return: what the provider does.
 */
int riso_observe_post(struct riso_dev *rd, struct riso_flow *f,
		      struct ib_qp *qp, const struct ib_send_wr *wr,
		      const struct ib_send_wr **bad_wr)
{
	struct riso_traffic traffic = {};
	struct riso_traffic refused = {};
	struct riso_watch *w = NULL;
	int err;

	if (f && READ_ONCE(rd->timing))
		w = rcu_dereference(f->watch);
	count(&traffic, wr);
	add(rd, f, &traffic, 1);
	if (w)
		remember(w, wr);
	/* Some providers refuse without saying where. */
	*bad_wr = wr;
	err = rd->orig.post_send(qp, wr, bad_wr);
	if (!err)
		return 0;
	count(&refused, *bad_wr);
	add(rd, f, &refused, -1);
	if (w)
		forget(w);
	return err;
}

/**
 * riso_observe_polled - completions were polled
 * @rd: a device whose histograms are on
 * @cq: the CQ
 * @wc: what was polled
 * @num: how many
 *
 * After an error nobody knows what else completes, and all that was posted is
 * forgotten. So it is when the ring is full.
 *
 * Context: any, under RCU.
 */
void riso_observe_polled(struct riso_dev *rd, const struct ib_cq *cq,
			 const struct ib_wc *wc, int num)
{
	u64 now = ktime_get_ns();

	for (; num > 0; num--, wc++) {
		/* The QP may be gone: it is looked up, and not followed. */
		struct riso_flow *f = riso_flow_find(rd, wc->qp, false);
		struct riso_watch *w = f ? rcu_dereference(f->watch) : NULL;
		unsigned long flags;
		u64 posted;

		if (!w || w->cq != cq)
			continue;
		if (wc->status != IB_WC_SUCCESS) {
			forget(w);
			continue;
		}
		if (wc->opcode & IB_WC_RECV)
			continue;
		spin_lock_irqsave(&w->lock, flags);
		posted = riso_posts_take(&w->posts, wc->wr_id);
		spin_unlock_irqrestore(&w->lock, flags);
		if (posted)
			this_cpu_inc(rd->observed->times[READ_ONCE(f->class)]
				     [riso_bucket_of(now - posted)]);
	}
}

/* --- memory --- */

static struct riso_watch *new_watch(const struct riso_flow *f)
{
	u32 num = roundup_pow_of_two(min_t(u32, f->sq_depth, RISO_POSTS_MAX));
	struct riso_watch *w;

	w = kvzalloc(struct_size(w, ring, num), GFP_KERNEL);
	if (!w)
		return NULL;
	spin_lock_init(&w->lock);
	w->cq = f->qp->send_cq;
	w->all = f->signal_all;
	w->posts.ring = w->ring;
	w->posts.num = num;
	return w;
}

/* The device is not observed any more, and nobody counts; dumps may still read. */
static void fold(struct riso_flow *f)
{
	struct riso_traffic sum;
	int i;

	riso_observe_sum(f, &sum);
	spin_lock_irq(&f->rd->lock);
	write_seqcount_begin(&f->rd->cfg_seq);
	f->wrs += sum.n[RISO_SEEN_WRS];
	f->bytes[RISO_TX] += sum.n[RISO_SEEN_TX];
	f->bytes[RISO_RX] += sum.n[RISO_SEEN_RX];
	for (i = 0; i < RISO_SIZES; i++)
		f->sizes[i] += sum.n[RISO_SEEN_SIZE + i];
	f->spent = f->seen;
	WRITE_ONCE(f->seen, NULL);
	write_seqcount_end(&f->rd->cfg_seq);
	spin_unlock_irq(&f->rd->lock);
}

/**
 * riso_observe_flow - give a flow the memory that the state of its device wants
 * @f: the flow, a new one or one of riso_observe_update()
 * @spare: memory for its counters, or NULL
 *
 * One that there is no memory for is counted in the sums of the device alone. Memory of
 * each CPU is not waited for here: who allocates it may wait for another who does, and that
 * one for storage, whatever the first allows.
 *
 * Context: &riso_dev.mutex.
 * Return: @spare if it was not needed, or NULL.
 */
struct riso_traffic __percpu *riso_observe_flow(struct riso_flow *f,
						struct riso_traffic __percpu *spare)
{
	bool observing = READ_ONCE(f->rd->state) == RISO_DEV_OBSERVE;
	/* data_race(): whoever changes it goes through all flows after. */
	bool timing = observing && data_race(f->rd->cfg.histogram);
	struct riso_watch *w;

	lockdep_assert_held(&f->rd->mutex);
	/* Programs do not come by. */
	if (f->who.pid)
		return spare;
	if (!observing && f->seen) {
		fold(f);
	} else if (observing && !f->seen) {
		if (!spare)
			spare = alloc_percpu_gfp(struct riso_traffic,
						 GFP_NOWAIT | __GFP_NOWARN);
		/* Pairs with the acquire in riso_observe_sum(); the hooks read it once. */
		smp_store_release(&f->seen, spare);
		spare = NULL;
	}
	w = rcu_dereference_protected(f->watch,
				      lockdep_is_held(&f->rd->mutex));
	if (!timing && w) {
		RCU_INIT_POINTER(f->watch, NULL);
		kvfree(w);
	} else if (timing && !w) {
		rcu_assign_pointer(f->watch, new_watch(f));
	}
	return spare;
}

/* All flows of a device, one at a time where they need memory; control held. */
static void equip_flows(struct riso_dev *rd)
{
	struct riso_traffic __percpu *spare = NULL;
	unsigned long qpn, next = 0;
	struct riso_flow *f;
	u32 cost = 0;

	lockdep_assert_held(&rd->control);
	do {
		if (!spare && rd->state == RISO_DEV_OBSERVE)
			spare = alloc_percpu(struct riso_traffic);
		riso_dev_lock(rd);
		xa_for_each_start(&rd->qpns, qpn, f, next) {
			spare = riso_observe_flow(f, spare);
			if (!spare && rd->state == RISO_DEV_OBSERVE)
				break;
			riso_dev_pass(rd, &cost, 1);
		}
		riso_dev_unlock(rd);
		next = qpn + 1;
	} while (f);
	free_percpu(spare);
}

/* Have the hooks look at all that is posted, or at when it completes, or let it pass again. */
static void set_looking(struct riso_dev *rd, bool observing, bool timing)
{
	struct riso_flow *f;
	struct riso_cq *c;
	unsigned long qpn;
	u32 cost = 0;
	int bkt;

	if (rd->observing == observing && rd->timing == timing)
		return;
	riso_dev_lock(rd);
	WRITE_ONCE(rd->observing, observing);
	WRITE_ONCE(rd->timing, timing);
	xa_for_each(&rd->qpns, qpn, f) {
		spin_lock_irq(&rd->lock);
		riso_flow_update_post(f);
		spin_unlock_irq(&rd->lock);
		riso_dev_pass(rd, &cost, 1);
	}
	hash_for_each(rd->cqs, bkt, c, hash) {
		spin_lock_irq(&rd->lock);
		riso_cq_update_poll(c);
		spin_unlock_irq(&rd->lock);
	}
	riso_dev_unlock(rd);
}

/**
 * riso_observe_update - the state of a device, or whether it measures, has changed
 * @rd: the device
 *
 * Context: &riso_dev.control.
 */
void riso_observe_update(struct riso_dev *rd)
{
	bool observing = rd->state == RISO_DEV_OBSERVE;
	bool timing = observing && rd->cfg.histogram;
	bool ended = rd->observing && !observing;
	struct riso_flow *f;
	unsigned long qpn;
	u32 cost = 0;

	lockdep_assert_held(&rd->control);
	if ((rd->observing && !observing) || (rd->timing && !timing)) {
		set_looking(rd, observing, timing);
		synchronize_rcu();
	}
	equip_flows(rd);
	set_looking(rd, observing, timing);
	if (!ended)
		return;
	/* Nor does a dump read what fold() has left. */
	synchronize_rcu();
	riso_dev_lock(rd);
	xa_for_each(&rd->qpns, qpn, f) {
		free_percpu(f->spent);
		f->spent = NULL;
		riso_dev_pass(rd, &cost, 1);
	}
	riso_dev_unlock(rd);
}

/**
 * riso_observe_reset - what was posted will not complete
 * @f: the flow
 *
 * Context: &riso_dev.mutex.
 */
void riso_observe_reset(struct riso_flow *f)
{
	struct riso_watch *w;

	lockdep_assert_held(&f->rd->mutex);
	w = rcu_dereference_protected(f->watch,
				      lockdep_is_held(&f->rd->mutex));
	if (w)
		forget(w);
}

/**
 * riso_observe_free - give the memory of a flow back
 * @f: a flow that nobody finds any more
 *
 * Context: any.
 */
void riso_observe_free(struct riso_flow *f)
{
	free_percpu(f->seen);
	free_percpu(f->spent);
	kvfree(rcu_dereference_protected(f->watch, true));
}

/* --- sums --- */

/**
 * riso_observe_sum - what is counted of a flow since its device is observed
 * @f: the flow
 * @sum: filled in
 *
 * Context: under RCU, or &riso_dev.mutex.
 */
void riso_observe_sum(struct riso_flow *f, struct riso_traffic *sum)
{
	/* Pairs with the release in riso_observe_flow(). */
	struct riso_traffic __percpu *seen = smp_load_acquire(&f->seen);
	int cpu, i;

	memset(sum, 0, sizeof(*sum));
	if (!seen)
		return;
	for_each_possible_cpu(cpu)
		for (i = 0; i < RISO_SEEN_MAX; i++)
			sum->n[i] += READ_ONCE(per_cpu_ptr(seen, cpu)->n[i]);
}

/**
 * riso_observe_total - what was counted of a device
 * @rd: the device
 * @sum: filled in
 *
 * Context: any.
 */
void riso_observe_total(struct riso_dev *rd, struct riso_traffic *sum)
{
	int cpu, i;

	memset(sum, 0, sizeof(*sum));
	for_each_possible_cpu(cpu)
		for (i = 0; i < RISO_SEEN_MAX; i++)
			sum->n[i] += per_cpu_ptr(rd->observed, cpu)->traffic.n[i];
}

/**
 * riso_observe_times - the histogram of a class
 * @rd: the device
 * @class: the class
 * @times: RDMA_ISOLATE_BUCKETS counts, filled in
 *
 * Context: any.
 */
void riso_observe_times(struct riso_dev *rd, enum riso_class class, u64 *times)
{
	int cpu, i;

	memset(times, 0, RDMA_ISOLATE_BUCKETS * sizeof(*times));
	for_each_possible_cpu(cpu)
		for (i = 0; i < RDMA_ISOLATE_BUCKETS; i++)
			times[i] += per_cpu_ptr(rd->observed, cpu)->times[class][i];
}
