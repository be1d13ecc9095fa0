// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * What the program opens, creates, changes and destroys.
 *
 * Owns the maps from contexts, queue pairs and CQs of the program to what is known of
 * them, and the pointers that are swapped in struct ibv_context: posting and polling
 * are inline functions over these, so nothing else sees them. What the program asked
 * for is what it is told, in sizes, flags and queries.
 *
 * An object is added to its map before the program knows it and taken out before it is
 * destroyed, so the maps are read without a lock.
 *
 * Governed are RC queue pairs of a device that takes part. What is not in the maps, as
 * queue pairs that a vendor's library made, goes to the provider as it is. The kernel is
 * told why an RC queue pair is not governed, as soon as one is seen.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "shim.h"

struct shim_map shim_ctxs = SHIM_MAP_INIT;
struct shim_map shim_qps = SHIM_MAP_INIT;
struct shim_map shim_cqs = SHIM_MAP_INIT;

/* Queue pairs that are not governed, and of which the kernel knows why. */
static struct shim_map told = SHIM_MAP_INIT;

/* Serialises who asks the kernel: the last answer is the one in force. */
pthread_mutex_t shim_class_lock = PTHREAD_MUTEX_INITIALIZER;
/* What is known of the sizes of CQs; who holds it waits for no session. */
pthread_mutex_t shim_size_lock = PTHREAD_MUTEX_INITIALIZER;

/* What ibv_wr_* functions there are here: all up to ibv_wr_send_tso() */
enum { KNOWN_SEND_OPS = 2 * IBV_QP_EX_WITH_TSO - 1 };

enum {
	/* Entries that a CQ is made larger by, so that it seldom has to be resized. */
	CQ_EXTRA = 4 * SHIM_SLOTS,
	/* And that it is made larger by at most. */
	CQ_EXTRA_MAX = 8 * SHIM_SLOTS,
};

static bool is_active(const struct shim_cq *c)
{
	return __atomic_load_n(&c->active, __ATOMIC_ACQUIRE);
}

static int poll_cq(struct ibv_cq *cq, int num, struct ibv_wc *wc)
{
	struct shim_cq *c = shim_map_find(&shim_cqs, cq);
	int n;

	if (!c)
		return shim_find_ctx(cq->context)->ops.poll_cq(cq, num, wc);
	if (is_active(c) || c->ex || !shim_poll_begin())
		return shim_comp_poll(c, num, wc);
	if (is_active(c)) {
		shim_poll_end();
		return shim_comp_poll(c, num, wc);
	}
	n = c->ctx->ops.poll_cq(cq, num, wc);
	shim_poll_end();
	return n;
}

static int req_notify_cq(struct ibv_cq *cq, int solicited_only)
{
	struct shim_cq *c = shim_map_find(&shim_cqs, cq);

	if (!c)
		return shim_find_ctx(cq->context)->ops.req_notify_cq(cq, solicited_only);
	return shim_comp_arm(c, solicited_only);
}

static struct shim_cq *new_cq(struct shim_ctx *ctx, int asked)
{
	struct shim_cq *c = calloc(1, sizeof(*c));

	if (!c)
		return NULL;
	c->ctx = ctx;
	c->asked = asked;
	c->spare = SHIM_SPARE;
	LIST_INIT(&c->zombies);
	pthread_mutex_init(&c->session, NULL);
	pthread_mutex_init(&c->resize, NULL);
	return c;
}

static void free_cq(struct shim_cq *c)
{
	if (!c)
		return;
	pthread_mutex_destroy(&c->resize);
	pthread_mutex_destroy(&c->session);
	free(c->soft);
	free(c);
}

/* Without memory it is a CQ like those that we do not know. */
static void add_cq(struct shim_ctx *ctx, struct ibv_cq *cq, int asked, bool ex)
{
	struct shim_cq *c = new_cq(ctx, asked);

	if (!c)
		return;
	c->cq = cq;
	if (shim_map_add(&shim_cqs, cq, c)) {
		free_cq(c);
		return;
	}
	if (ex)
		shim_cqex_swap(c, (struct ibv_cq_ex *)cq);
}

/* With @more on top, or as many of them as there may be. */
static int larger(int asked, int more, int max)
{
	if (asked <= 0 || asked > max)
		return asked;
	return max - asked < more ? max : asked + more;
}

/* As many more as do not double a CQ of a provider that makes powers of two, if some do. */
static int extra_entries(int asked)
{
	int full = 1;

	if (asked <= 0 || asked > INT32_MAX / 2)
		return 0;
	/* They keep one free. */
	while (full <= asked)
		full *= 2;
	full -= asked + 1;
	return full < SHIM_SLOTS || full > CQ_EXTRA ? CQ_EXTRA : full;
}

/**
 * shim_create_cq - ibv_create_cq()
 * @context: see there
 * @cqe: see there
 * @cq_context: see there
 * @channel: see there
 * @comp_vector: see there
 *
 * Return: see there.
 */
struct ibv_cq *shim_create_cq(struct ibv_context *context, int cqe,
			      void *cq_context,
			      struct ibv_comp_channel *channel,
			      int comp_vector)
{
	struct shim_ctx *ctx = shim_find_ctx(context);
	struct ibv_cq *cq;
	int real = cqe;

	if (ctx && ctx->plain)
		ctx = NULL;
	if (ctx)
		real = larger(cqe, extra_entries(cqe), ctx->max_cqe);
	cq = shim_real.create_cq(context, real, cq_context, channel, comp_vector);
	if (!cq && real != cqe)
		cq = shim_real.create_cq(context, cqe, cq_context, channel,
					 comp_vector);
	if (cq && ctx)
		add_cq(ctx, cq, cqe, false);
	return cq;
}

/*
 * The helper polls a CQ besides the program, so it cannot be one of a single thread; and
 * what it has polled the program may ask for by ibv_poll_cq(), which tells all of these.
 */
static struct ibv_cq_ex *create_cq_ex(struct ibv_context *context,
				      struct ibv_cq_init_attr_ex *attr)
{
	struct shim_ctx *ctx = shim_find_ctx(context);
	uint64_t wc_flags = attr->wc_flags;
	uint32_t flags = attr->flags;
	uint32_t cqe = attr->cqe;
	struct ibv_cq_ex *cq;

	if (attr->comp_mask & IBV_CQ_INIT_ATTR_MASK_FLAGS)
		attr->flags &= ~IBV_CREATE_CQ_ATTR_SINGLE_THREADED;
	if (cqe <= INT32_MAX)
		attr->cqe = larger(cqe, extra_entries(cqe), ctx->max_cqe);
	attr->wc_flags |= IBV_WC_STANDARD_FLAGS;
	cq = ctx->create_cq_ex(context, attr);
	if (!cq && attr->cqe != cqe) {
		attr->cqe = cqe;
		cq = ctx->create_cq_ex(context, attr);
	}
	if (!cq && attr->wc_flags != wc_flags) {
		attr->wc_flags = wc_flags;
		cq = ctx->create_cq_ex(context, attr);
	}
	attr->wc_flags = wc_flags;
	attr->cqe = cqe;
	attr->flags = flags;
	if (cq)
		add_cq(ctx, ibv_cq_ex_to_cq(cq), cqe, true);
	return cq;
}

/* What its flows would like, with the size locked */
static int wanted_extra(const struct shim_cq *c)
{
	return c->reserved < CQ_EXTRA_MAX ? c->reserved : CQ_EXTRA_MAX;
}

/* Its size has changed; it is locked. Who has asked for all of it has overcommitted it. */
static void update_spare(struct shim_cq *c)
{
	int spare = c->cq->cqe - c->asked;

	__atomic_store_n(&c->spare, spare < SHIM_SPARE ? SHIM_SPARE : spare,
			 __ATOMIC_RELAXED);
}

/*
 * Let the provider resize a CQ. It may wait for a session of another thread, which may wait
 * for the lock of the sizes: that is released meanwhile.
 */
static int resize_unlocked(struct shim_cq *c, int cqe)
{
	int err;

	shim_unlock(&shim_size_lock);
	err = shim_real.resize_cq(c->cq, cqe);
	shim_lock(&shim_size_lock);
	return err;
}

/* With entries for chunks on top, also of flows that come meanwhile; the sizes are locked. */
static int resize_with_extra(struct shim_cq *c, int cqe)
{
	int max = c->ctx->max_cqe;
	int extra = wanted_extra(c);
	int err = resize_unlocked(c, larger(cqe, extra, max));
	int asked = err ? c->asked : cqe;

	while (wanted_extra(c) > extra) {
		extra = wanted_extra(c);
		if (asked + extra > c->cq->cqe)
			resize_unlocked(c, larger(asked, extra, max));
	}
	c->asked = asked;
	update_spare(c);
	return err;
}

/**
 * shim_resize_cq - ibv_resize_cq()
 * @cq: see there
 * @cqe: see there
 *
 * The entries for chunks come on top, as far as the device goes. Near its limit the program
 * gets what it asks for all the same: its flows keep posting, so that all but SHIM_SPARE
 * entries are safe to be filled, and no other flow finds room.
 *
 * Return: see there.
 */
int shim_resize_cq(struct ibv_cq *cq, int cqe)
{
	struct shim_cq *c = shim_map_find(&shim_cqs, cq);
	int err = 0;

	if (!c)
		return shim_real.resize_cq(cq, cqe);
	shim_lock(&c->resize);
	shim_lock(&shim_size_lock);
	/*
	 * Before anything has changed, and for a flow that comes meanwhile, too; what is
	 * too large is the provider's to refuse.
	 */
	if (cqe > 0 && cqe <= c->ctx->max_cqe)
		err = shim_comp_grow(c, cqe);
	if (!err)
		err = resize_with_extra(c, cqe);
	shim_unlock(&shim_size_lock);
	shim_unlock(&c->resize);
	return err;
}

/**
 * shim_destroy_cq - ibv_destroy_cq()
 * @cq: see there
 *
 * Return: see there.
 */
int shim_destroy_cq(struct ibv_cq *cq)
{
	struct shim_cq *c = shim_map_find(&shim_cqs, cq);
	int err;

	/* With a queue pair it stays; another one may get its address otherwise. */
	if (!c || c->flows)
		return shim_real.destroy_cq(cq);
	shim_map_del(&shim_cqs, cq);
	err = shim_real.destroy_cq(cq);
	if (err) {
		shim_map_add(&shim_cqs, cq, c);
		return err;
	}
	shim_comp_bury(c);
	free_cq(c);
	return 0;
}

/* Will ibv_get_cq_event() sleep? */
static bool sleeps(struct ibv_comp_channel *channel)
{
	struct pollfd p = { .fd = channel->fd, .events = POLLIN };
	int flags;

	if (poll(&p, 1, 0))
		return false;
	flags = fcntl(channel->fd, F_GETFL);
	return flags >= 0 && !(flags & O_NONBLOCK);
}

/* May an event be one that says nothing to the program? */
static bool may_hide(const struct shim_ctx *ctx)
{
	return __atomic_load_n(&ctx->tagged, __ATOMIC_RELAXED) &&
	       (__atomic_load_n(&ctx->m->held, __ATOMIC_RELAXED) ||
		__atomic_load_n(&ctx->m->hidden, __ATOMIC_RELAXED));
}

/* The next event that says something to the program; one that does not sleep has any. */
static __attribute__((noinline)) int get_news(struct ibv_comp_channel *channel,
					      struct ibv_cq **cq, void **cq_context)
{
	bool any = !sleeps(channel);
	struct shim_cq *c;
	int err;

	for (;;) {
		err = shim_real.get_cq_event(channel, cq, cq_context);
		if (err || any)
			return err;
		c = shim_map_find(&shim_cqs, *cq);
		if (!c || shim_comp_is_news(c))
			return 0;
		shim_real.ack_cq_events(*cq, 1);
	}
}

/**
 * shim_get_cq_event - ibv_get_cq_event()
 * @channel: see there
 * @cq: see there
 * @cq_context: see there
 *
 * Completions of chunks raise events, too. A call that sleeps here sleeps on. One that
 * finds an event may come from a program that was woken up elsewhere, as in poll(), and
 * may not be held here: it finds an empty CQ, as programs have to expect.
 *
 * Return: see there.
 */
int shim_get_cq_event(struct ibv_comp_channel *channel, struct ibv_cq **cq,
		      void **cq_context)
{
	struct shim_ctx *ctx = shim_find_ctx(channel->context);

	if (ctx && may_hide(ctx))
		return get_news(channel, cq, cq_context);
	return shim_real.get_cq_event(channel, cq, cq_context);
}

/* Unless the provider may have to wait for a session, which may be that of this thread. */
static void try_resize(struct shim_cq *c, int cqe)
{
	if (!shim_cqex_try(c))
		return;
	shim_real.resize_cq(c->cq, cqe);
	shim_cqex_leave(c);
}

/* Is there room for the chunks of one more flow? What the CQ has is locked. */
static bool find_room(struct shim_cq *c)
{
	int want = c->asked + wanted_extra(c);

	if (want > c->cq->cqe && want <= c->ctx->max_cqe)
		try_resize(c, want);
	return c->cq->cqe - c->asked >= SHIM_SPARE;
}

/*
 * Get entries for the chunks of one more flow, or have it share those of the others;
 * false if there are none. Who resizes the CQ just now, and may wait for a session, sees
 * the flow when that is done, and gets entries for it.
 */
static bool reserve(struct shim_cq *c)
{
	bool ok = true;

	shim_lock(&shim_size_lock);
	c->reserved += SHIM_SLOTS;
	if (!pthread_mutex_trylock(&c->resize)) {
		ok = find_room(c);
		if (!ok)
			c->reserved -= SHIM_SLOTS;
		update_spare(c);
		pthread_mutex_unlock(&c->resize);
	}
	shim_unlock(&shim_size_lock);
	return ok;
}

static void unreserve(struct shim_cq *c)
{
	shim_lock(&shim_size_lock);
	c->reserved -= SHIM_SLOTS;
	shim_unlock(&shim_size_lock);
}

/* The class of whoever says nothing else. */
static uint32_t default_wish(void)
{
	static const struct {
		const char *name;
		uint32_t class_id;
	} names[] = {
		{ "latency", RISO_CLASS_LATENCY },
		{ "throughput", RISO_CLASS_THROUGHPUT },
		{ "bandwidth", RISO_CLASS_BANDWIDTH },
	};
	const char *env = getenv("RDMA_ISOLATE_CLASS");
	size_t i;

	if (!env)
		return RISO_CLASS_BY_RULE;
	for (i = 0; i < ARRAY_SIZE(names); i++)
		if (!strcmp(env, names[i].name))
			return names[i].class_id;
	shim_debug("RDMA_ISOLATE_CLASS: there is no class '%s'", env);
	return RISO_CLASS_BY_RULE;
}

/* Ask the kernel for the class @wish; an error leaves things as they are. Locked. */
static int ask(struct shim_qp *f, uint32_t wish)
{
	struct shim_member *m = f->ctx->m;
	uint32_t class_id = wish;
	int err;

	err = shim_member_register(m, f->qp->qp_num, &class_id);
	if (err)
		return err;
	if (class_id != RISO_CLASS_LATENCY)
		shim_comp_join(f);
	shim_lock(&m->lock);
	f->alone = false;
	f->class_id = class_id;
	f->joins = false;
	shim_queue_pass(f);
	if (m->held)
		shim_queue_drive(m);
	shim_unlock_and_drive(m);
	return 0;
}

/* Take part in the device, and ask for the class that the flow would like. Locked. */
static int join(struct shim_qp *f)
{
	struct shim_member *m = f->ctx->m;
	uint32_t classes;
	int err;

	err = shim_member_attach(m, f->qp->qp_num);
	classes = __atomic_load_n(&m->kpage->classes, __ATOMIC_ACQUIRE);
	__atomic_store_n(&f->classes, classes, __ATOMIC_RELAXED);
	if (err)
		return err;
	err = ask(f, f->class_wish);
	if (err != EPERM || f->class_wish == RISO_CLASS_BY_RULE)
		return err;
	shim_debug("%s: no rule lets this program choose its class", m->name);
	return ask(f, RISO_CLASS_BY_RULE);
}

/* The kernel knows why it has no place for a process. */
static void report_refused(struct shim_qp *f, int err)
{
	struct shim_member *m = f->ctx->m;

	shim_debug("%s: QP %u takes no part: %s", m->name, f->qp->qp_num,
		   strerror(err));
	__atomic_store_n(&m->refused, true, __ATOMIC_RELAXED);
	switch (err) {
	case EUSERS:
	case EDQUOT:
		return;
	case ENOMEM:
		return shim_member_report(m, f->qp->qp_num, RISO_REASON_MEMORY);
	case EAGAIN:
		return shim_member_report(m, f->qp->qp_num, RISO_REASON_NO_THREAD);
	default:
		shim_member_report(m, f->qp->qp_num, RISO_REASON_SHIM_LIMIT);
	}
}

static void ask_kernel(struct shim_qp *f)
{
	struct shim_member *m = f->ctx->m;
	int err;

	err = join(f);
	if (!err)
		return;
	report_refused(f, err);
	shim_lock(&m->lock);
	f->alone = true;
	shim_queue_pass(f);
	if (m->held)
		shim_queue_drive(m);
	shim_unlock_and_drive(m);
}

/**
 * shim_qp_ask - have a flow governed, in a class
 * @f: the flow; nothing is locked
 *
 * A wish that no rule allows is kept: another rule may.
 */
void shim_qp_ask(struct shim_qp *f)
{
	shim_lock(&shim_class_lock);
	ask_kernel(f);
	shim_unlock(&shim_class_lock);
}

/* Does it hold something, and may its class have changed? */
static bool is_stale(void *value, void *arg)
{
	struct shim_qp *f = value;

	return f->ctx->m == arg && !shim_qp_fresh(f) &&
	       __atomic_load_n(&f->holds, __ATOMIC_RELAXED);
}

/**
 * shim_qps_refresh - ask for the classes of flows that hold something
 * @m: the member, not locked
 *
 * For those that the program does not post to. A flow leaves the map under
 * shim_class_lock, so those that are found stay.
 */
void shim_qps_refresh(struct shim_member *m)
{
	uint32_t classes = __atomic_load_n(&shim_member_kpage(m)->classes,
					   __ATOMIC_ACQUIRE);
	struct shim_qp *f;
	int saved = errno;

	shim_lock(&shim_class_lock);
	while ((f = shim_map_search(&shim_qps, is_stale, m)))
		ask_kernel(f);
	__atomic_store_n(&m->classes, classes, __ATOMIC_RELAXED);
	shim_unlock(&shim_class_lock);
	errno = saved;
}

static bool mark_stale(void *value, void *arg)
{
	struct shim_qp *f = value;
	struct shim_member *m = f->ctx->m;

	if (m == arg)
		__atomic_store_n(&f->classes, m->kpage->classes - 1, __ATOMIC_RELAXED);
	return false;
}

/* There may be a place, or a thread, by now: all flows ask again with their next post. */
static void ask_refused(struct shim_member *m)
{
	shim_lock(&shim_class_lock);
	if (__atomic_exchange_n(&m->refused, false, __ATOMIC_RELAXED))
		shim_map_search(&shim_qps, mark_stale, m);
	shim_unlock(&shim_class_lock);
}

static bool tell_no_thread(void *value, void *arg)
{
	struct shim_qp *f = value;

	if (f->ctx->m == arg)
		shim_member_report(arg, f->qp->qp_num, RISO_REASON_NO_THREAD);
	return false;
}

/**
 * shim_qps_no_thread - a member has no helper, so nothing of it is governed
 * @m: the member, attached and not locked
 */
void shim_qps_no_thread(struct shim_member *m)
{
	shim_map_search(&shim_qps, tell_no_thread, m);
}

/**
 * shim_set_class - rdma_isolate_set_class()
 * @qp: see there
 * @class_id: see there
 *
 * Return: see there.
 */
int shim_set_class(struct ibv_qp *qp, uint32_t class_id)
{
	struct shim_qp *f = shim_map_find(&shim_qps, qp);
	int err;

	if (class_id > RISO_CLASS_BANDWIDTH)
		return EINVAL;
	if (!f)
		return EOPNOTSUPP;
	shim_lock(&shim_class_lock);
	err = f->alone ? EOPNOTSUPP : ask(f, class_id);
	if (!err)
		f->class_wish = class_id;
	shim_unlock(&shim_class_lock);
	return err;
}

/**
 * shim_over_target - rdma_isolate_over_target()
 * @qp: see there
 *
 * Return: see there.
 */
int shim_over_target(struct ibv_qp *qp)
{
	struct shim_qp *f = shim_map_find(&shim_qps, qp);

	return f && !f->alone &&
	       __atomic_load_n(&shim_member_kpage(f->ctx->m)->over_target,
			       __ATOMIC_RELAXED);
}

/*
 * What a queue pair is created with, and what the program asked for; builders, only if it
 * asked for them. Without, a provider's queue pair may not even have the place for them.
 */
struct plan {
	struct shim_qp *f;
	struct ibv_qp_cap cap;
	int sq_sig_all;
	uint32_t extra;
	bool builders;
};

static void restore(const struct plan *p, struct ibv_qp_init_attr *attr)
{
	attr->cap = p->cap;
	attr->sq_sig_all = p->sq_sig_all;
}

static void free_flow(struct shim_qp *f)
{
	shim_queue_free(f);
	pthread_mutex_destroy(&f->build.lock);
	free(f);
}

/* Get what can be got before there is a queue pair; why not, if that fails. */
static enum riso_reason prepare(struct shim_ctx *ctx, struct ibv_qp_init_attr *attr,
				struct plan *p)
{
	struct shim_qp *f;
	struct shim_cq *c;

	p->cap = attr->cap;
	p->sq_sig_all = attr->sq_sig_all;
	c = attr->send_cq ? shim_map_find(&shim_cqs, attr->send_cq) : NULL;
	if (ctx->plain || !c || c->ctx != ctx || !attr->cap.max_send_wr)
		return RISO_REASON_SHIM_LIMIT;
	f = calloc(1, sizeof(*f));
	if (!f)
		return RISO_REASON_MEMORY;
	pthread_mutex_init(&f->build.lock, NULL);
	f->ctx = ctx;
	f->cq = c;
	f->sig_all = attr->sq_sig_all;
	f->class_wish = default_wish();
	f->class_id = RISO_CLASS_BANDWIDTH;
	if (!reserve(c)) {
		free_flow(f);
		return RISO_REASON_NO_CQ_ROOM;
	}
	p->f = f;
	p->extra = larger(p->cap.max_send_wr, SHIM_SLOTS, ctx->max_qp_wr) -
		   p->cap.max_send_wr;
	attr->cap.max_send_wr += p->extra;
	attr->sq_sig_all = 0;
	return RISO_REASON_NONE;
}

static void forget(struct plan *p)
{
	unreserve(p->f->cq);
	free_flow(p->f);
	p->f = NULL;
}

/* The queue pair is there: make it a flow; false if that fails. */
static bool adopt(struct plan *p, struct ibv_qp *qp, struct ibv_qp_init_attr *attr)
{
	struct ibv_qp_ex *ex = p->builders ? shim_real.qp_to_qp_ex(qp) : NULL;
	struct shim_qp *f = p->f;
	uint32_t real = attr->cap.max_send_wr;
	struct shim_member *m = f->ctx->m;
	int err;

	if (real < p->cap.max_send_wr + p->extra)
		real = p->cap.max_send_wr + p->extra;
	f->qp = qp;
	f->depth = real - p->extra;
	f->max_sge = attr->cap.max_send_sge;
	f->max_inline = attr->cap.max_inline_data;
	f->ex = ex && ex->wr_start;
	if (shim_queue_alloc(f, real))
		return false;
	shim_lock(&shim_size_lock);
	err = shim_comp_attach(f);
	shim_unlock(&shim_size_lock);
	if (err)
		return false;
	if (shim_map_add(&shim_qps, qp, f)) {
		shim_lock(&m->lock);
		shim_comp_detach(f);
		shim_unlock(&m->lock);
		return false;
	}
	attr->cap.max_send_wr = f->depth;
	attr->sq_sig_all = p->sq_sig_all;
	ask_refused(m);
	shim_qp_ask(f);
	if (f->ex)
		shim_wr_swap(f, ex);
	return true;
}

typedef struct ibv_qp *(*create_fn)(void *arg, struct ibv_qp_init_attr *attr);

/* A queue pair goes straight to the provider: tell the kernel why. */
static void leave_alone(struct shim_ctx *ctx, struct ibv_qp *qp, enum riso_reason why)
{
	struct shim_member *m = ctx->m;

	shim_debug("%s: QP %u takes no part: reason %d", m->name, qp->qp_num, why);
	shim_map_del(&told, qp);
	shim_map_add(&told, qp, ctx);
	shim_lock(&shim_class_lock);
	shim_member_report(m, qp->qp_num, why);
	shim_unlock(&shim_class_lock);
}

static struct ibv_qp *create_alone(struct shim_ctx *ctx, create_fn fn, void *arg,
				   struct ibv_qp_init_attr *attr, enum riso_reason why)
{
	struct ibv_qp *qp = fn(arg, attr);

	if (qp)
		leave_alone(ctx, qp, why);
	return qp;
}

/* Create a queue pair with @fn, governed if that is possible. */
static struct ibv_qp *create(struct shim_ctx *ctx, create_fn fn, void *arg,
			     struct ibv_qp_init_attr *attr, bool builders)
{
	struct plan p = { .builders = builders };
	enum riso_reason why;
	struct ibv_qp *qp;

	if (!ctx || attr->qp_type != IBV_QPT_RC)
		return fn(arg, attr);
	why = prepare(ctx, attr, &p);
	if (why != RISO_REASON_NONE)
		return create_alone(ctx, fn, arg, attr, why);
	qp = fn(arg, attr);
	if (!qp && p.extra) {
		attr->cap = p.cap;
		p.extra = 0;
		qp = fn(arg, attr);
	}
	if (!qp) {
		restore(&p, attr);
		forget(&p);
		return NULL;
	}
	if (adopt(&p, qp, attr))
		return qp;
	shim_real.destroy_qp(qp);
	restore(&p, attr);
	forget(&p);
	return create_alone(ctx, fn, arg, attr, RISO_REASON_MEMORY);
}

static struct ibv_qp *create_plain(void *arg, struct ibv_qp_init_attr *attr)
{
	return shim_real.create_qp(arg, attr);
}

/**
 * shim_create_qp - ibv_create_qp()
 * @pd: see there
 * @attr: see there
 *
 * Return: see there.
 */
struct ibv_qp *shim_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *attr)
{
	return create(shim_find_ctx(pd->context), create_plain, pd, attr, false);
}

static struct ibv_qp *create_extended(void *arg, struct ibv_qp_init_attr *attr)
{
	struct shim_ctx *ctx = arg;

	return ctx->create_qp_ex(ctx->context, (struct ibv_qp_init_attr_ex *)attr);
}

/* The extended attributes begin with the plain ones. */
static struct ibv_qp *create_qp_ex(struct ibv_context *context,
				   struct ibv_qp_init_attr_ex *attr_ex)
{
	struct ibv_qp_init_attr *attr = (struct ibv_qp_init_attr *)attr_ex;
	struct shim_ctx *ctx = shim_find_ctx(context);
	bool builders = attr_ex->comp_mask & IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;

	/* What is newer, such as an atomic write, cannot be told to post_send. */
	if (attr->qp_type == IBV_QPT_RC && builders &&
	    (attr_ex->send_ops_flags & ~(uint64_t)KNOWN_SEND_OPS))
		return create_alone(ctx, create_extended, ctx, attr,
				    RISO_REASON_UNKNOWN_OPCODE);
	return create(ctx, create_extended, ctx, attr, builders);
}

/* The helper posts besides the program, so there is no domain of a single thread. */
static struct ibv_pd *
alloc_parent_domain(struct ibv_context *context,
		    struct ibv_parent_domain_init_attr *attr)
{
	struct shim_ctx *ctx = shim_find_ctx(context);
	struct ibv_td *td = attr->td;
	struct ibv_pd *pd;

	attr->td = NULL;
	pd = ctx->alloc_parent_domain(context, attr);
	attr->td = td;
	return pd;
}

/* Its queue pair is about to go or to be reset: post no more until it is known. */
static void set_stopped(struct shim_qp *f, bool stopped)
{
	struct shim_member *m = f->ctx->m;

	shim_lock(&m->lock);
	f->stopped = stopped;
	if (!stopped)
		shim_queue_drive(m);
	shim_unlock_and_drive(m);
}

/* Nobody asks for its class then. */
static void del_flow(struct shim_qp *f)
{
	shim_lock(&shim_class_lock);
	shim_map_del(&shim_qps, f->qp);
	shim_unlock(&shim_class_lock);
}

/* Its queue pair is gone, which had the number @qp_num. */
static void forget_flow(struct shim_qp *f, uint32_t qp_num)
{
	struct shim_member *m = f->ctx->m;

	shim_lock(&m->lock);
	shim_queue_drop(f);
	shim_comp_purge(f->cq, qp_num, f);
	shim_comp_detach(f);
	shim_member_publish(m);
	shim_unlock_and_drive(m);
	free_flow(f);
}

/* Take what is gone with a queue pair out of the soft ring, as providers do. */
static void purge(struct ibv_cq *cq, uint32_t qp_num, struct shim_qp *f)
{
	struct shim_cq *c = cq ? shim_map_find(&shim_cqs, cq) : NULL;

	if (!c)
		return;
	shim_lock(&c->ctx->m->lock);
	shim_comp_purge(c, qp_num, f);
	shim_unlock(&c->ctx->m->lock);
}

/**
 * shim_destroy_qp - ibv_destroy_qp()
 * @qp: see there
 *
 * Return: see there.
 */
int shim_destroy_qp(struct ibv_qp *qp)
{
	struct shim_qp *f = shim_map_find(&shim_qps, qp);
	struct ibv_cq *send_cq = qp->send_cq;
	struct ibv_cq *recv_cq = qp->recv_cq;
	uint32_t qp_num = qp->qp_num;
	int err;

	if (f) {
		shim_queue_drain(f, true);
		set_stopped(f, true);
		/* Another one may get its address as soon as it is gone. */
		del_flow(f);
	}
	err = shim_real.destroy_qp(qp);
	if (err) {
		if (f) {
			shim_map_add(&shim_qps, qp, f);
			set_stopped(f, false);
		}
		return err;
	}
	purge(recv_cq, qp_num, f);
	if (!f) {
		shim_map_del(&told, qp);
		purge(send_cq, qp_num, NULL);
		return 0;
	}
	/* The CQ may go as soon as it has no flow. */
	unreserve(f->cq);
	forget_flow(f, qp_num);
	return 0;
}

/* What was posted before a reset is forgotten, and may complete nevertheless. */
static int reset(struct shim_qp *f, struct ibv_qp_attr *attr, int mask)
{
	struct shim_slots *s = shim_slots_alloc(f, f->slots->num);
	struct shim_member *m = f->ctx->m;
	int err;

	if (!s)
		return ENOMEM;
	shim_queue_drain(f, true);
	set_stopped(f, true);
	err = shim_real.modify_qp(f->qp, attr, mask);
	if (!err)
		purge(f->qp->recv_cq, f->qp->qp_num, f);
	shim_lock(&m->lock);
	f->stopped = false;
	if (!err) {
		shim_queue_drop(f);
		shim_comp_purge(f->cq, f->qp->qp_num, f);
		shim_comp_abandon(f->cq, f->slots);
		f->slots = s;
		memset(&f->sq, 0, sizeof(f->sq));
		f->tail = 0;
		f->flush = false;
		__atomic_store_n(&f->finished, f->accepted, __ATOMIC_RELEASE);
		shim_comp_update(f->cq);
	}
	shim_queue_drive(m);
	shim_unlock_and_drive(m);
	if (err)
		shim_slots_free(s);
	return err;
}

/* Also of a queue pair whose creation nobody has seen, as that by a vendor's library */
static int modify_alone(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask)
{
	struct shim_ctx *ctx = shim_find_ctx(qp->context);
	int err;

	err = shim_real.modify_qp(qp, attr, mask);
	if (!err && ctx && qp->qp_type == IBV_QPT_RC && (mask & IBV_QP_STATE) &&
	    attr->qp_state == IBV_QPS_RTS && !shim_map_find(&told, qp))
		leave_alone(ctx, qp, RISO_REASON_SHIM_LIMIT);
	return err;
}

/**
 * shim_modify_qp - ibv_modify_qp()
 * @qp: see there
 * @attr: see there
 * @mask: see there
 *
 * Return: see there.
 */
int shim_modify_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask)
{
	struct shim_qp *f = shim_map_find(&shim_qps, qp);
	struct shim_member *m;
	int err;

	if (!f)
		return modify_alone(qp, attr, mask);
	m = f->ctx->m;
	if ((mask & IBV_QP_STATE) && attr->qp_state == IBV_QPS_RESET)
		return reset(f, attr, mask);
	if ((mask & IBV_QP_STATE) && attr->qp_state == IBV_QPS_ERR)
		shim_queue_drain(f, false);
	err = shim_real.modify_qp(qp, attr, mask);
	if (err)
		return err;
	shim_lock(&m->lock);
	if (mask & IBV_QP_PATH_MTU)
		f->mtu = 128U << attr->path_mtu;
	if (mask & IBV_QP_MAX_QP_RD_ATOMIC)
		f->max_rd_atomic = attr->max_rd_atomic;
	if ((mask & IBV_QP_STATE) && attr->qp_state == IBV_QPS_ERR) {
		f->flush = true;
		shim_queue_drive(m);
	}
	shim_unlock_and_drive(m);
	return 0;
}

/**
 * shim_query_qp - ibv_query_qp()
 * @qp: see there
 * @attr: see there
 * @mask: see there
 * @init_attr: see there
 *
 * Return: see there.
 */
int shim_query_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask,
		  struct ibv_qp_init_attr *init_attr)
{
	struct shim_qp *f = shim_map_find(&shim_qps, qp);
	int err;

	err = shim_real.query_qp(qp, attr, mask, init_attr);
	if (err || !f)
		return err;
	attr->cap.max_send_wr = f->depth;
	init_attr->cap.max_send_wr = f->depth;
	init_attr->sq_sig_all = f->sig_all;
	return 0;
}

/* Swap the functions of a context that is not known to the program yet. */
static void swap(struct shim_ctx *ctx)
{
	struct ibv_context *context = ctx->context;
	struct verbs_context *v;

	ctx->ops = context->ops;
	v = verbs_get_ctx_op(context, create_qp_ex);
	if (v) {
		ctx->create_qp_ex = v->create_qp_ex;
		v->create_qp_ex = create_qp_ex;
	}
	if (ctx->plain)
		return;
	context->ops.post_send = shim_post_send;
	context->ops.poll_cq = poll_cq;
	context->ops.req_notify_cq = req_notify_cq;
	if (ctx->ops.bind_mw)
		context->ops.bind_mw = shim_bind_mw;
	v = verbs_get_ctx_op(context, create_cq_ex);
	if (v) {
		ctx->create_cq_ex = v->create_cq_ex;
		v->create_cq_ex = create_cq_ex;
	}
	v = verbs_get_ctx_op(context, alloc_parent_domain);
	if (v) {
		ctx->alloc_parent_domain = v->alloc_parent_domain;
		v->alloc_parent_domain = alloc_parent_domain;
	}
}

/* The provider was told that there is one thread, and takes no locks. */
static bool single_threaded(void)
{
	const char *env = getenv("MLX5_SINGLE_THREADED");

	if (!env || strcmp(env, "1"))
		return false;
	shim_debug("not shared: MLX5_SINGLE_THREADED is set");
	return true;
}

/* Take part with a context; if that fails the program has it as it is. */
static struct ibv_context *govern(struct ibv_context *context)
{
	struct ibv_device_attr attr;
	struct shim_ctx *ctx;
	int saved = errno;

	if (!context)
		goto restore_errno;
	ctx = calloc(1, sizeof(*ctx));
	if (!ctx)
		goto restore_errno;
	ctx->context = context;
	ctx->plain = single_threaded();
	if (shim_real.query_device(context, &attr))
		goto free_ctx;
	ctx->max_qp_wr = attr.max_qp_wr;
	ctx->max_cqe = attr.max_cqe;
	ctx->m = shim_member_get(context->device);
	if (!ctx->m)
		goto free_ctx;
	if (shim_map_add(&shim_ctxs, context, ctx))
		goto put_member;
	swap(ctx);
	goto restore_errno;

put_member:
	shim_member_put(ctx->m);
free_ctx:
	free(ctx);
restore_errno:
	errno = saved;
	return context;
}

/**
 * shim_open_device - ibv_open_device()
 * @device: see there
 *
 * Return: see there.
 */
struct ibv_context *shim_open_device(struct ibv_device *device)
{
	return govern(shim_real.open_device(device));
}

/**
 * shim_import_device - ibv_import_device()
 * @cmd_fd: see there
 *
 * Return: see there.
 */
struct ibv_context *shim_import_device(int cmd_fd)
{
	return govern(shim_real.import_device(cmd_fd));
}

static bool flow_of_ctx(void *value, void *arg)
{
	return ((struct shim_qp *)value)->ctx == arg;
}

static bool cq_of_ctx(void *value, void *arg)
{
	return ((struct shim_cq *)value)->ctx == arg;
}

/* What the program has not destroyed goes with the context. */
static void forget_objects(struct shim_ctx *ctx)
{
	struct shim_qp *f;
	struct shim_cq *c;

	while ((f = shim_map_search(&shim_qps, flow_of_ctx, ctx))) {
		shim_queue_drain(f, true);
		del_flow(f);
		forget_flow(f, f->qp->qp_num);
	}
	while ((c = shim_map_search(&shim_cqs, cq_of_ctx, ctx))) {
		shim_map_del(&shim_cqs, c->cq);
		shim_comp_bury(c);
		free_cq(c);
	}
}

/**
 * shim_close_device - ibv_close_device()
 * @context: see there
 *
 * Return: see there.
 */
int shim_close_device(struct ibv_context *context)
{
	struct shim_ctx *ctx = shim_find_ctx(context);
	int err;

	if (!ctx)
		return shim_real.close_device(context);
	forget_objects(ctx);
	shim_map_del(&shim_ctxs, context);
	err = shim_real.close_device(context);
	if (err) {
		shim_map_add(&shim_ctxs, context, ctx);
		return err;
	}
	shim_member_put(ctx->m);
	free(ctx);
	return 0;
}

static struct shim_map *const maps[] = {
	&shim_ctxs, &shim_qps, &shim_cqs, &shim_tags, &told,
};

/**
 * shim_maps_lock - let nobody change a map
 *
 * For fork().
 */
void shim_maps_lock(void)
{
	size_t i;

	for (i = 0; i < ARRAY_SIZE(maps); i++)
		pthread_mutex_lock(&maps[i]->lock);
}

/**
 * shim_maps_unlock - the opposite of shim_maps_lock()
 */
void shim_maps_unlock(void)
{
	size_t i;

	for (i = 0; i < ARRAY_SIZE(maps); i++)
		pthread_mutex_unlock(&maps[i]->lock);
}

/**
 * shim_qps_forked - flows go straight to the provider from here on
 *
 * In a child. What is held is the parent's.
 */
void shim_qps_forked(void)
{
	struct shim_map_table *t = shim_qps.table;
	size_t i;

	for (i = 0; t && i <= t->mask; i++) {
		struct shim_qp *f = t->entry[i].value;

		if (t->entry[i].key <= SHIM_MAP_REMOVED)
			continue;
		f->alone = true;
		f->build.open = false;
		f->classes = f->ctx->m->kpage->classes;
		shim_queue_drop(f);
		shim_queue_pass(f);
		/* Whatever pieces are out. */
		f->pass = true;
	}
}
