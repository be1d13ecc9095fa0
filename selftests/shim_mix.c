// SPDX-License-Identifier: GPL-2.0
/*
 * Queue pairs between rxe0 and rxe1, both ends in this process, and random work
 * requests on them. Every byte is checked once its completion says that it is there,
 * and so is all that must not change; every completion is checked and counted.
 *
 * What is posted follows from the seed alone. Each work request has a place of its own
 * in the areas of its pair, where all else is FILL. Some need what the one before them
 * brings: a READ of what was written, or a fenced WRITE of what was read.
 */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include "shim_stress.h"
#include "verbs.h"

enum {
	FILL = 0xa5,
	STALL_SECONDS = 30,
	MAX_POLL = 16,
	INLINE = 96,
};

static const char *const devices[] = { "rxe0", "rxe1" };
static const unsigned int group_of[MAX_THREADS] = { 0, 0, 1, 2 };

/*
 * The builders and the extended CQs of rxe's provider are not all right: they take
 * the first element of a list for all others, do not count inline data of more than
 * one piece, and lose an entry where ibv_next_poll() finds none. The shim uses none of
 * these, so they are used if that is there.
 */
#pragma weak rdma_isolate_set_class
int rdma_isolate_set_class(struct ibv_qp *qp, int class_id);

/* What the watchdog looks at. */
static unsigned long beats;
static unsigned int alarm_us;
static struct world *watched;

/* --- ends --- */

static void report(void)
{
	unsigned int i;

	for (i = 0; watched && i < watched->num_pairs; i++) {
		const struct pair *p = &watched->pair[i];
		const struct op *op = &p->op[p->retired % p->shape.depth];

		if (p->posted == p->retired)
			continue;
		printf("# pair %u: %llu of %llu, %llu of %llu receives;", i,
		       p->retired, p->posted, p->received, p->recvs);
		printf(" opcode %d, %u bytes, flags %x, sent %d received %d\n",
		       op->opcode, op->len, op->flags, op->sent, op->received);
	}
}

void fail(const char *fmt, ...)
{
	va_list ap;

	printf("# %d: ", getpid());
	va_start(ap, fmt);
	vprintf(fmt, ap);
	va_end(ap);
	printf("\n");
	fflush(stdout);
	_exit(1);
}

/* It also interrupts whoever waits. */
static void on_alarm(int sig)
{
	static unsigned long seen;
	static __u64 idle_us;

	(void)sig;
	idle_us = beats == seen ? idle_us + alarm_us : 0;
	seen = beats;
	if (idle_us < STALL_SECONDS * 1000000ull)
		return;
	report();
	fail("nothing has completed for %d s", STALL_SECONDS);
}

/* Look from time to time whether something happens; 0 for no more. */
void watch(unsigned int interval_us)
{
	struct itimerval each = { { 0, interval_us }, { 0, interval_us } };
	struct sigaction sa = { .sa_handler = on_alarm };

	alarm_us = interval_us;
	beats++;
	sigaction(SIGALRM, &sa, NULL);
	setitimer(ITIMER_REAL, &each, NULL);
}

__u64 now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000ull + t.tv_nsec;
}

/* A counter, hashed: the whole state is one number. */
__u64 draw_from(__u64 *state)
{
	__u64 x = *state += 0x9e3779b97f4a7c15ull;

	x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
	x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
	return x ^ (x >> 31);
}

static unsigned int below(__u64 *rng, unsigned int n)
{
	return draw_from(rng) % n;
}

static bool once_in(__u64 *rng, unsigned int n)
{
	return !below(rng, n);
}

/* A domain of one thread, where the provider has them. */
static void alloc_domain(struct end *e)
{
	struct ibv_td_init_attr td = {};
	struct ibv_parent_domain_init_attr attr = { .pd = e->pd };

	e->domain = NULL;
	e->td = ibv_alloc_td(e->ctx, &td);
	attr.td = e->td;
	if (e->td)
		e->domain = ibv_alloc_parent_domain(e->ctx, &attr);
}

static void open_end(struct end *e, const char *name)
{
	struct ibv_device_attr attr;

	e->ctx = open_device(name);
	if (ibv_query_device(e->ctx, &attr) ||
	    ibv_query_port(e->ctx, 1, &e->port))
		fail("%s: %s", name, strerror(errno));
	e->rd_atomic = attr.max_qp_rd_atom < attr.max_qp_init_rd_atom ?
		       attr.max_qp_rd_atom : attr.max_qp_init_rd_atom;
	e->gid_index = ipv4_gid(e->ctx, e->port.gid_tbl_len);
	if (e->gid_index < 0)
		fail("no GID of an IPv4 address");
	e->pd = ibv_alloc_pd(e->ctx);
	if (!e->pd || ibv_query_gid(e->ctx, 1, e->gid_index, &e->gid))
		fail("%s: %s", name, strerror(errno));
	alloc_domain(e);
}

/* --- CQs --- */

static void create_cq(struct queue *q, struct end *e, bool ex, bool events)
{
	struct ibv_cq_init_attr_ex attr = {
		.cqe = q->depth,
		.wc_flags = IBV_WC_STANDARD_FLAGS,
	};

	q->chan = events ? ibv_create_comp_channel(e->ctx) : NULL;
	if (events && !q->chan)
		fail("channel: %s", strerror(errno));
	attr.channel = q->chan;
	q->ex = ex ? ibv_create_cq_ex(e->ctx, &attr) : NULL;
	q->cq = q->ex ? ibv_cq_ex_to_cq(q->ex) :
			ibv_create_cq(e->ctx, q->depth, NULL, q->chan, 0);
	if (!q->cq || q->cq->cqe < (int)q->depth)
		fail("CQ of %u: %s", q->depth, strerror(errno));
}

static void destroy_cq(struct queue *q)
{
	if (!q->cq)
		return;
	if (q->events)
		ibv_ack_cq_events(q->cq, q->events);
	if (ibv_destroy_cq(q->cq) || (q->chan && ibv_destroy_comp_channel(q->chan)))
		fail("destroy a CQ: %s", strerror(errno));
}

static int poll_ex(struct ibv_cq_ex *ex, int num, struct ibv_wc *wc)
{
	struct ibv_poll_cq_attr attr = {};
	int err = ibv_start_poll(ex, &attr);
	int n = 0;

	if (err)
		return err == ENOENT ? 0 : -err;
	do {
		wc[n] = (struct ibv_wc) {
			.wr_id = ex->wr_id,
			.status = ex->status,
			.qp_num = ibv_wc_read_qp_num(ex),
		};
		if (!ex->status) {
			wc[n].opcode = ibv_wc_read_opcode(ex);
			wc[n].wc_flags = ibv_wc_read_wc_flags(ex);
			wc[n].byte_len = ibv_wc_read_byte_len(ex);
			wc[n].imm_data = ibv_wc_read_imm_data(ex);
		}
		/* See above. */
		if (!rdma_isolate_set_class)
			num = 1;
	} while (++n < num && !(err = ibv_next_poll(ex)));
	ibv_end_poll(ex);
	return err && err != ENOENT ? -err : n;
}

/* --- data --- */

static __u64 word_of(__u64 key, __u64 off)
{
	return (key + off / 8) * 0x9e3779b97f4a7c15ull;
}

static __u8 byte_of(__u64 key, __u64 off)
{
	return word_of(key, off) >> (off % 8 * 8);
}

/* The bytes of @key from @off on. */
static void fill(__u8 *to, size_t len, __u64 key, __u64 off)
{
	__u64 word;

	for (; len && off % 8; len--)
		*to++ = byte_of(key, off++);
	for (; len >= 8; len -= 8, off += 8, to += 8) {
		word = word_of(key, off);
		memcpy(to, &word, 8);
	}
	for (; len; len--)
		*to++ = byte_of(key, off++);
}

static bool is_filled(const __u8 *at, size_t len, __u64 key, __u64 off)
{
	__u64 word;

	for (; len && off % 8; len--)
		if (*at++ != byte_of(key, off++))
			return false;
	for (; len >= 8; len -= 8, off += 8, at += 8) {
		memcpy(&word, at, 8);
		if (word != word_of(key, off))
			return false;
	}
	for (; len; len--)
		if (*at++ != byte_of(key, off++))
			return false;
	return true;
}

static bool is_clean(const __u8 *at, size_t len)
{
	return !len || (*at == FILL && !memcmp(at, at + 1, len - 1));
}

static void check_gaps(const struct op *op, const __u8 *at, size_t len,
		       const char *where)
{
	if (!is_clean(at - GAP, GAP) || !is_clean(at + len, GAP))
		fail("opcode %d: something around %zu bytes %s was changed",
		     op->opcode, len, where);
}

static __u8 *addr_of(const struct ibv_sge *sge)
{
	return (__u8 *)(uintptr_t)sge->addr;
}

static void fill_local(const struct op *op)
{
	__u64 off = 0;
	int i;

	for (i = 0; i < op->num_sge; off += op->sge[i++].length)
		fill(addr_of(&op->sge[i]), op->sge[i].length, op->key, off);
}

static void clean_local(const struct op *op)
{
	int i;

	for (i = 0; i < op->num_sge; i++)
		memset(addr_of(&op->sge[i]), FILL, op->sge[i].length);
}

/* Is the message there, and nothing else changed? */
static void check_sges(const struct op *op, const struct ibv_sge *sge, int num,
		       const char *where)
{
	__u64 off = 0;
	size_t len;
	int i;

	for (i = 0; i < num; i++, off += len) {
		len = sge[i].length;
		if (len > op->len - off)
			len = op->len - off;
		if (!is_filled(addr_of(&sge[i]), len, op->key, off))
			fail("opcode %d: wrong data %s, %u bytes, %d elements",
			     op->opcode, where, op->len, num);
		check_gaps(op, addr_of(&sge[i]), len, where);
	}
}

static bool is_write(const struct op *op)
{
	return op->opcode == IBV_WR_RDMA_WRITE ||
	       op->opcode == IBV_WR_RDMA_WRITE_WITH_IMM;
}

static bool is_atomic(const struct op *op)
{
	return op->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD ||
	       op->opcode == IBV_WR_ATOMIC_CMP_AND_SWP;
}

static bool is_send(const struct op *op)
{
	return op->opcode == IBV_WR_SEND || op->opcode == IBV_WR_SEND_WITH_IMM;
}

static bool takes_recv(const struct op *op)
{
	return is_send(op) || op->opcode == IBV_WR_RDMA_WRITE_WITH_IMM;
}

static bool has_imm(const struct op *op)
{
	return op->opcode == IBV_WR_SEND_WITH_IMM ||
	       op->opcode == IBV_WR_RDMA_WRITE_WITH_IMM;
}

static __u64 *word_at(const void *at)
{
	return (__u64 *)(uintptr_t)at;
}

static void check_atomic(const struct op *op)
{
	__u64 want = op->key;

	if (op->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD)
		want += op->compare;
	else if (op->compare == op->key)
		want = op->swap;
	if (*word_at(addr_of(op->sge)) != op->key || *word_at(op->remote) != want)
		fail("opcode %d: wrong value", op->opcode);
	check_gaps(op, addr_of(op->sge), 8, "here");
	check_gaps(op, op->remote, 8, "there");
}

/* It is complete, or what was posted behind it is. */
static void check_data(struct op *op)
{
	if (op->checked)
		return;
	op->checked = true;
	if (is_atomic(op)) {
		check_atomic(op);
	} else if (is_write(op)) {
		if (!is_filled(op->remote, op->len, op->key, 0))
			fail("opcode %d: wrong data there, %u bytes in %d elements%s",
			     op->opcode, op->len, op->num_sge,
			     op->own_local ? "" : ", not its own");
		check_gaps(op, op->remote, op->len, "there");
	} else if (op->opcode == IBV_WR_RDMA_READ) {
		check_sges(op, op->sge, op->num_sge, "here");
	}
}

/* --- work requests --- */

/* There is one place more than needed, for what goes beyond its end. */
static size_t area_size(const struct pair *p)
{
	return (p->shape.depth + 1) * p->stride;
}

static struct op *op_at(const struct pair *p, __u64 seq)
{
	return &p->op[seq % p->shape.depth];
}

/* Cut @len bytes into at most @max pieces of some place, in any order. */
static int cut(__u64 *rng, struct ibv_sge *sge, __u8 *at, __u32 len, int max,
	       __u32 lkey)
{
	int num = 1 + below(rng, max);
	bool back = once_in(rng, 3);
	__u32 left = len;
	int i, k;

	if (num > (int)len)
		num = len;
	for (i = 0; i < num; i++) {
		sge[i].length = left;
		if (i < num - 1)
			sge[i].length = 1 + below(rng, left - (num - 1 - i));
		left -= sge[i].length;
	}
	for (k = 0; k < num; k++) {
		i = back ? num - 1 - k : k;
		sge[i].addr = (uintptr_t)at;
		sge[i].lkey = lkey;
		at += sge[i].length + GAP;
	}
	return num;
}

static __u32 draw_len(struct pair *p)
{
	__u32 max = 1u << p->shape.bits;
	__u32 size = 1u << below(&p->rng, p->shape.bits + 1);

	if (p->large)
		return max - below(&p->rng, 64);
	return once_in(&p->rng, 5) ? size : below(&p->rng, size + 1);
}

/*
 * After a reset the first one is a READ. rxe keeps over a reset that it was taking the
 * answer to a READ. Of 6.1 it then takes the first acknowledgment of a WRITE for an error,
 * completes that with success and moves the queue pair to ERR (rxe_completer() warns of
 * it, check_ack() is where). The answer to a READ ends that.
 */
static enum ibv_wr_opcode draw_opcode(struct pair *p)
{
	static const enum ibv_wr_opcode opcodes[] = {
		IBV_WR_RDMA_WRITE, IBV_WR_RDMA_READ, IBV_WR_RDMA_WRITE,
		IBV_WR_RDMA_READ, IBV_WR_RDMA_WRITE_WITH_IMM, IBV_WR_SEND,
		IBV_WR_SEND_WITH_IMM, IBV_WR_ATOMIC_FETCH_AND_ADD,
		IBV_WR_ATOMIC_CMP_AND_SWP,
	};

	if (p->large && !p->posted)
		return IBV_WR_RDMA_READ;
	return opcodes[below(&p->rng, p->large ? 2 : sizeof(opcodes) / sizeof(*opcodes))];
}

/* Does it take the data of the one before it? */
static bool borrow(struct pair *p, struct op *op, struct op *prev)
{
	if (!prev || !prev->len || once_in(&p->rng, 2))
		return false;
	op->own_remote = !(op->opcode == IBV_WR_RDMA_READ && is_write(prev));
	op->own_local = !(op->opcode == IBV_WR_RDMA_WRITE &&
			  prev->opcode == IBV_WR_RDMA_READ);
	if (op->own_remote && op->own_local)
		return false;
	prev->feeds = true;
	op->key = prev->key;
	op->len = prev->len;
	if (!op->own_remote) {
		op->remote = prev->remote;
		return true;
	}
	op->flags |= IBV_SEND_FENCE;
	op->num_sge = prev->num_sge;
	memcpy(op->sge, prev->sge, sizeof(op->sge));
	return true;
}

static void draw_atomic(struct pair *p, struct op *op)
{
	op->len = 8;
	op->remote = (__u8 *)(((uintptr_t)op->remote + 7) & ~7ul);
	op->compare = once_in(&p->rng, 2) ? op->key : draw_from(&p->rng);
	op->swap = draw_from(&p->rng);
}

/* Make the next work request; @prev is the one before it in the same list. */
static struct op *draw_op(struct pair *p, struct op *prev, bool last)
{
	struct op *op = op_at(p, p->posted);
	size_t place = p->posted % p->shape.depth * p->stride + GAP;
	__u8 *local = p->local + place + below(&p->rng, 64);
	bool one_sge = p->shape.builders && !rdma_isolate_set_class;
	bool borrowed;

	*op = (struct op) {
		.wr_id = draw_from(&p->rng),
		.key = draw_from(&p->rng),
		.opcode = draw_opcode(p),
		.imm = draw_from(&p->rng),
		.remote = p->remote + place + below(&p->rng, 64),
		.rkey = p->mr_b->rkey,
		.len = draw_len(p),
		.own_local = true,
		.own_remote = true,
		.bad = p->posted == p->bad_seq,
	};
	op->received = !takes_recv(op);
	if (!op->received)
		op->recv_no = p->sends++;
	if (once_in(&p->rng, 8))
		op->flags |= IBV_SEND_FENCE;
	if (takes_recv(op) && once_in(&p->rng, 3))
		op->flags |= IBV_SEND_SOLICITED;
	borrowed = borrow(p, op, prev);
	if (is_atomic(op)) {
		draw_atomic(p, op);
		local = (__u8 *)(((uintptr_t)local + 7) & ~7ul);
	}
	if (op->own_local)
		op->num_sge = cut(&p->rng, op->sge, local, op->len,
				  one_sge || is_atomic(op) ? 1 : MAX_SGE,
				  p->mr_a->lkey);
	if (!borrowed && op->len && op->len <= p->cap.max_inline_data &&
	    (is_write(op) || is_send(op)) && once_in(&p->rng, 2))
		op->flags |= IBV_SEND_INLINE;
	if (op->bad && once_in(&p->rng, 2))
		op->rkey ^= 0x5500;
	else if (op->bad)
		op->remote = p->remote + area_size(p) - op->len / 2;
	/* Another list must find room when all that will complete has. */
	if (last || once_in(&p->rng, 3) || p->silent + 1 > p->shape.depth - p->shape.list)
		op->flags |= IBV_SEND_SIGNALED;
	p->silent = op->flags & IBV_SEND_SIGNALED ? 0 : p->silent + 1;
	p->posted++;

	if (op->bad)
		return op;
	if (is_atomic(op))
		*word_at(op->remote) = op->key;
	else if (op->opcode == IBV_WR_RDMA_READ && op->own_remote)
		fill(op->remote, op->len, op->key, 0);
	else if (op->opcode != IBV_WR_RDMA_READ && op->own_local)
		fill_local(op);
	return op;
}

static void build_data(struct ibv_qp_ex *qp, struct op *op)
{
	struct ibv_data_buf buf[MAX_SGE];
	int i;

	if (!(op->flags & IBV_SEND_INLINE)) {
		if (op->num_sge == 1)
			ibv_wr_set_sge(qp, op->sge[0].lkey, op->sge[0].addr,
				       op->sge[0].length);
		else
			ibv_wr_set_sge_list(qp, op->num_sge, op->sge);
		return;
	}
	for (i = 0; i < op->num_sge; i++) {
		buf[i].addr = addr_of(&op->sge[i]);
		buf[i].length = op->sge[i].length;
	}
	if (op->num_sge == 1)
		ibv_wr_set_inline_data(qp, buf[0].addr, buf[0].length);
	else
		ibv_wr_set_inline_data_list(qp, op->num_sge, buf);
}

static void build(struct ibv_qp_ex *qp, struct op *op)
{
	__u64 remote = (uintptr_t)op->remote;

	qp->wr_id = op->wr_id;
	qp->wr_flags = op->flags;
	switch (op->opcode) {
	case IBV_WR_RDMA_WRITE:
		ibv_wr_rdma_write(qp, op->rkey, remote);
		break;
	case IBV_WR_RDMA_WRITE_WITH_IMM:
		ibv_wr_rdma_write_imm(qp, op->rkey, remote, op->imm);
		break;
	case IBV_WR_RDMA_READ:
		ibv_wr_rdma_read(qp, op->rkey, remote);
		break;
	case IBV_WR_SEND:
		ibv_wr_send(qp);
		break;
	case IBV_WR_SEND_WITH_IMM:
		ibv_wr_send_imm(qp, op->imm);
		break;
	case IBV_WR_ATOMIC_FETCH_AND_ADD:
		ibv_wr_atomic_fetch_add(qp, op->rkey, remote, op->compare);
		break;
	default:
		ibv_wr_atomic_cmp_swp(qp, op->rkey, remote, op->compare, op->swap);
	}
	build_data(qp, op);
}

static void copy_out(const struct op *op, struct ibv_send_wr *wr, struct ibv_sge *sge)
{
	memcpy(sge, op->sge, sizeof(op->sge));
	*wr = (struct ibv_send_wr) {
		.wr_id = op->wr_id,
		.sg_list = sge,
		.num_sge = op->num_sge,
		.opcode = op->opcode,
		.send_flags = op->flags,
		.imm_data = op->imm,
	};
	if (is_atomic(op)) {
		wr->wr.atomic.remote_addr = (uintptr_t)op->remote;
		wr->wr.atomic.compare_add = op->compare;
		wr->wr.atomic.swap = op->swap;
		wr->wr.atomic.rkey = op->rkey;
	} else {
		wr->wr.rdma.remote_addr = (uintptr_t)op->remote;
		wr->wr.rdma.rkey = op->rkey;
	}
}

/* Post so many at once; @last gets a completion. Nobody else has the pair. */
void pair_post(struct pair *p, unsigned int num, bool last)
{
	struct ibv_sge sge[MAX_LIST][MAX_SGE];
	struct ibv_send_wr wr[MAX_LIST], *bad;
	struct op *op[MAX_LIST];
	unsigned int i;
	int err;

	for (i = 0; i < num; i++)
		op[i] = draw_op(p, i ? op[i - 1] : NULL, last && i == num - 1);
	if (p->shape.builders) {
		if (once_in(&p->rng, 16)) {
			ibv_wr_start(p->ax);
			build(p->ax, op[0]);
			ibv_wr_abort(p->ax);
		}
		ibv_wr_start(p->ax);
		for (i = 0; i < num; i++)
			build(p->ax, op[i]);
		err = ibv_wr_complete(p->ax);
	} else {
		for (i = 0; i < num; i++) {
			copy_out(op[i], &wr[i], sge[i]);
			if (i)
				wr[i - 1].next = &wr[i];
		}
		err = ibv_post_send(p->a, wr, &bad);
		memset(wr, FILL, sizeof(wr));
		memset(sge, FILL, sizeof(sge));
	}
	if (err)
		fail("posting %u: %s", num, strerror(err));
	/* These may be used anew at once. */
	for (i = 0; i < num; i++) {
		if (!(op[i]->flags & IBV_SEND_INLINE))
			continue;
		clean_local(op[i]);
		op[i]->own_local = false;
	}
}

static void post_recv(struct pair *p, struct recv *r)
{
	__u8 *at = p->inbox + (r - p->recv) * p->stride + GAP;
	struct ibv_recv_wr *bad, wr = { .sg_list = r->sge };

	r->wr_id = draw_from(&p->inbox_rng);
	r->no = p->recvs++;
	r->num_sge = cut(&p->inbox_rng, r->sge, at, 1u << p->shape.bits, MAX_SGE,
			 p->mr_b->lkey);
	wr.wr_id = r->wr_id;
	wr.num_sge = r->num_sge;
	if (ibv_post_recv(p->b, &wr, &bad))
		fail("post a receive: %s", strerror(errno));
}

/* --- completions --- */

/* Done with all that nobody needs any more. */
static void retire(struct pair *p)
{
	while (p->retired != p->posted) {
		struct op *op = op_at(p, p->retired);

		if (!op->flushed && (!op->sent || !op->received))
			return;
		if (op->feeds && p->retired + 1 != p->posted) {
			const struct op *next = op_at(p, p->retired + 1);

			if (!next->sent && !next->flushed)
				return;
		}
		if (!op->flushed) {
			check_data(op);
			if (op->own_local)
				clean_local(op);
			if (op->own_remote)
				memset(op->remote, FILL, is_send(op) ? 0 : op->len);
			__atomic_fetch_add(&p->w->bytes, op->len, __ATOMIC_RELAXED);
		}
		p->retired++;
	}
}

static bool is_signaled(const struct pair *p, const struct op *op)
{
	return p->shape.sig_all || (op->flags & IBV_SEND_SIGNALED);
}

static enum ibv_wc_opcode completes_as(const struct op *op)
{
	switch (op->opcode) {
	case IBV_WR_RDMA_READ:
		return IBV_WC_RDMA_READ;
	case IBV_WR_SEND:
	case IBV_WR_SEND_WITH_IMM:
		return IBV_WC_SEND;
	case IBV_WR_ATOMIC_FETCH_AND_ADD:
		return IBV_WC_FETCH_ADD;
	case IBV_WR_ATOMIC_CMP_AND_SWP:
		return IBV_WC_COMP_SWAP;
	default:
		return IBV_WC_RDMA_WRITE;
	}
}

/* Errors begin somewhere, and then everything has one. */
static void check_error(struct pair *p, const struct op *op, __u64 seq,
			enum ibv_wc_status status)
{
	if (!p->may_fail)
		fail("pair %u: opcode %d, %u bytes, flags %x: %s", p->index,
		     op->opcode, op->len, op->flags, ibv_wc_status_str(status));
	if (p->failed && seq != p->fail_seq + 1)
		fail("flushed is %llu after %llu", seq,
		     p->fail_seq);
	if (!p->failed && p->bad_seq < p->posted && !op->bad)
		fail("%llu has failed, not %llu: %s", seq,
		     p->bad_seq, ibv_wc_status_str(status));
	if (status != (op->bad ? IBV_WC_REM_ACCESS_ERR : IBV_WC_WR_FLUSH_ERR))
		fail("%llu: %s", seq, ibv_wc_status_str(status));
	p->failed++;
	p->fail_seq = seq;
}

static void check_success(const struct pair *p, const struct op *op,
			  const struct ibv_wc *wc)
{
	if (p->failed || op->bad)
		fail("success after an error");
	if (!is_signaled(p, op))
		fail("a completion that nobody asked for");
	if (wc->opcode != completes_as(op))
		fail("opcode %d completes as %d", op->opcode, wc->opcode);
	if ((op->opcode == IBV_WR_RDMA_READ || is_atomic(op)) &&
	    wc->byte_len != op->len)
		fail("opcode %d of %u bytes completes with %u", op->opcode, op->len,
		     wc->byte_len);
}

static void on_send(struct pair *p, const struct ibv_wc *wc, bool ordered)
{
	struct op *op = NULL;
	__u64 seq, t;

	for (seq = p->retired; seq != p->posted; seq++) {
		op = op_at(p, seq);
		if (op->wr_id == wc->wr_id)
			break;
		if (ordered && is_signaled(p, op) && !op->seen)
			fail("a completion (%s) has overtaken one of opcode %d, %u bytes",
			     ibv_wc_status_str(wc->status), op->opcode, op->len);
	}
	if (seq == p->posted || op->seen)
		fail("a completion too many: %s",
		     ibv_wc_status_str(wc->status));
	if (wc->status)
		check_error(p, op, seq, wc->status);
	else
		check_success(p, op, wc);
	op->seen = true;
	op->flushed = wc->status;
	for (t = p->retired; t != seq; t++) {
		if (!is_signaled(p, op_at(p, t)))
			op_at(p, t)->sent = true;
	}
	op->sent = !op->flushed;
	retire(p);
}

static struct op *find_sent_to(struct pair *p, __u64 recv_no)
{
	__u64 seq;

	for (seq = p->retired; seq != p->posted; seq++) {
		struct op *op = op_at(p, seq);

		if (takes_recv(op) && op->recv_no == recv_no)
			return op;
		/* What was written before a message is there when that is. */
		if (is_write(op))
			check_data(op);
	}
	fail("a receive of nothing");
}

static void on_recv(struct pair *p, const struct ibv_wc *wc, bool ordered)
{
	struct recv *r = NULL;
	struct op *op;
	unsigned int i;
	bool send;

	for (i = 0; i < p->shape.depth; i++) {
		r = &p->recv[i];
		if (r->wr_id == wc->wr_id)
			break;
	}
	if (i == p->shape.depth || wc->status)
		fail("a receive: %s", ibv_wc_status_str(wc->status));
	if (ordered && r->no != p->received)
		fail("a receive has overtaken others");
	op = find_sent_to(p, r->no);
	send = is_send(op);
	if (op->received || wc->byte_len != op->len ||
	    wc->opcode != (send ? IBV_WC_RECV : IBV_WC_RECV_RDMA_WITH_IMM) ||
	    !!(wc->wc_flags & IBV_WC_WITH_IMM) != has_imm(op) ||
	    (has_imm(op) && wc->imm_data != op->imm))
		fail("pair %u: opcode %d of %u bytes, flags %x, is received as %d of %u",
		     p->index, op->opcode, op->len, op->flags, wc->opcode,
		     wc->byte_len);
	if (send)
		check_sges(op, r->sge, r->num_sge, "received");
	else
		check_data(op);
	for (i = 0; send && i < (unsigned int)r->num_sge; i++)
		memset(addr_of(&r->sge[i]), FILL, r->sge[i].length);
	op->received = true;
	p->received++;
	post_recv(p, r);
	retire(p);
}

static void on_completion(struct world *w, unsigned int dev, const struct ibv_wc *wc,
			  bool ordered)
{
	unsigned int i;

	for (i = 0; i < w->num_pairs; i++) {
		struct pair *p = &w->pair[i];
		bool sent = p->shape.from == dev && p->qpn_a == wc->qp_num;

		if (!sent && (p->shape.from == dev || p->qpn_b != wc->qp_num))
			continue;
		pthread_mutex_lock(&p->lock);
		if (sent)
			on_send(p, wc, ordered);
		else
			on_recv(p, wc, ordered);
		pthread_mutex_unlock(&p->lock);
		__atomic_fetch_add(&beats, 1, __ATOMIC_RELAXED);
		return;
	}
	fail("a completion of no queue pair: %u, %s, opcode %d", wc->qp_num,
	     ibv_wc_status_str(wc->status), wc->opcode);
}

/* How many have come. */
unsigned int poll_group(struct world *w, unsigned int group)
{
	static __thread __u64 state;
	struct ibv_wc wc[MAX_POLL];
	unsigned int dev, sum = 0;
	int i, n, num;

	for (dev = 0; dev < 2; dev++) {
		struct queue *q = &w->queue[group][dev];

		if (!q->cq)
			continue;
		num = 1 + draw_from(&state) % MAX_POLL;
		n = q->ex ? poll_ex(q->ex, num, wc) : ibv_poll_cq(q->cq, num, wc);
		if (n < 0 || n > num)
			fail("poll: %d of %d", n, num);
		for (i = 0; i < n; i++)
			on_completion(w, dev, &wc[i], group || w->num_threads < 2);
		sum += n;
	}
	return sum;
}

unsigned int poll_all(struct world *w)
{
	unsigned int group, sum = 0;

	for (group = 0; group < MAX_GROUPS; group++)
		sum += poll_group(w, group);
	return sum;
}

/* Nothing may come any more, not even late. */
void must_be_empty(struct world *w)
{
	int i;

	for (i = 0; i < 20; i++) {
		if (poll_all(w))
			fail("a completion too many");
		usleep(1000);
	}
}

/* --- pairs --- */

/* At the device @dev; @cap is what it has then. */
static struct ibv_qp *create_qp(struct pair *p, unsigned int dev,
				struct ibv_qp_cap *cap, bool builders, bool sig_all)
{
	struct queue *q = &p->w->queue[group_of[p->shape.thread]][dev];
	struct end *e = &p->w->end[dev];
	struct ibv_qp_init_attr_ex attr = {
		.send_cq = q->cq,
		.recv_cq = q->cq,
		.cap = *cap,
		.qp_type = IBV_QPT_RC,
		.sq_sig_all = sig_all,
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
		.pd = group_of[p->shape.thread] && e->domain ? e->domain : e->pd,
		.send_ops_flags = IBV_QP_EX_WITH_RDMA_WRITE |
				  IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM |
				  IBV_QP_EX_WITH_RDMA_READ | IBV_QP_EX_WITH_SEND |
				  IBV_QP_EX_WITH_SEND_WITH_IMM |
				  IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD |
				  IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP,
	};
	struct ibv_qp_attr qp_attr = { .qp_state = IBV_QPS_INIT, .port_num = 1 };
	struct ibv_qp_init_attr init;
	struct ibv_qp *qp;

	if (builders)
		qp = ibv_create_qp_ex(e->ctx, &attr);
	else
		qp = ibv_create_qp(attr.pd, (struct ibv_qp_init_attr *)&attr);
	if (!qp)
		fail("queue pair: %s", strerror(errno));
	if (ibv_query_qp(qp, &qp_attr, IBV_QP_CAP, &init))
		fail("query a queue pair: %s", strerror(errno));
	/* Some kernels round the depths up for who asks later. */
	if (init.cap.max_send_wr < attr.cap.max_send_wr ||
	    init.cap.max_recv_wr < attr.cap.max_recv_wr ||
	    init.cap.max_send_sge != attr.cap.max_send_sge ||
	    init.cap.max_recv_sge != attr.cap.max_recv_sge ||
	    init.cap.max_inline_data != attr.cap.max_inline_data ||
	    init.sq_sig_all != sig_all)
		fail("a queue pair of %u is one of %u, with %u inline bytes %u",
		     attr.cap.max_send_wr, init.cap.max_send_wr,
		     attr.cap.max_inline_data, init.cap.max_inline_data);
	if (attr.cap.max_send_wr < cap->max_send_wr ||
	    attr.cap.max_recv_wr < cap->max_recv_wr ||
	    attr.cap.max_send_sge < cap->max_send_sge ||
	    attr.cap.max_inline_data < cap->max_inline_data)
		fail("the queue pair has less than it should");
	*cap = attr.cap;
	return qp;
}

static void create_peer(struct pair *p)
{
	unsigned int to = !p->shape.from;
	struct ibv_qp_cap cap = {
		.max_send_wr = 1, .max_recv_wr = p->shape.depth,
		.max_send_sge = MAX_SGE, .max_recv_sge = MAX_SGE,
	};

	p->b = create_qp(p, to, &cap, false, false);
	p->qpn_b = p->b->qp_num;
}

void pair_create(struct pair *p)
{
	p->cap = (struct ibv_qp_cap) {
		.max_send_wr = p->shape.depth, .max_recv_wr = 1,
		.max_send_sge = MAX_SGE, .max_recv_sge = MAX_SGE,
		.max_inline_data = INLINE,
	};
	p->a = create_qp(p, p->shape.from, &p->cap, p->shape.builders,
			 p->shape.sig_all);
	p->ax = p->shape.builders ? ibv_qp_to_qp_ex(p->a) : NULL;
	p->qpn_a = p->a->qp_num;
	create_peer(p);
}

static void modify(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask)
{
	int err = ibv_modify_qp(qp, attr, mask | IBV_QP_STATE);

	if (err)
		fail("to state %d: %s", attr->qp_state, strerror(err));
}

static void to_init(struct ibv_qp *qp)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_INIT,
		.port_num = 1,
		.qp_access_flags = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
				   IBV_ACCESS_REMOTE_ATOMIC,
	};

	modify(qp, &attr, IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
}

static void to_rts(struct ibv_qp *qp, const struct end *e, const struct end *peer,
		   __u32 peer_qpn, __u32 psn, unsigned int rd_atomic)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_RTR,
		.path_mtu = e->port.active_mtu,
		.dest_qp_num = peer_qpn,
		.rq_psn = psn,
		.max_dest_rd_atomic = e->rd_atomic,
		.min_rnr_timer = 12,
		.ah_attr = {
			.port_num = 1,
			.is_global = 1,
			.grh = {
				.dgid = peer->gid,
				.sgid_index = e->gid_index,
				.hop_limit = 64,
			},
		},
	};

	modify(qp, &attr, IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
	       IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
	attr.qp_state = IBV_QPS_RTS;
	attr.sq_psn = psn;
	/* 4 s: an answer may take long on a slow machine without being lost. */
	attr.timeout = 20;
	attr.retry_cnt = 7;
	attr.rnr_retry = 7;
	attr.max_rd_atomic = rd_atomic;
	modify(qp, &attr, IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
	       IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC);
}

void pair_connect(struct pair *p)
{
	const struct end *e = &p->w->end[p->shape.from];
	const struct end *peer = &p->w->end[!p->shape.from];
	unsigned int rd_atomic = p->large ? 16 : 1 << below(&p->rng, 5);
	__u32 psn = below(&p->rng, 1 << 24);
	unsigned int i;

	if (rd_atomic > peer->rd_atomic)
		rd_atomic = peer->rd_atomic;
	to_init(p->a);
	to_init(p->b);
	for (i = 0; !p->large && i < p->shape.depth; i++)
		post_recv(p, &p->recv[i]);
	to_rts(p->b, peer, e, p->qpn_a, psn, rd_atomic);
	to_rts(p->a, e, peer, p->qpn_b, psn, rd_atomic);
}

static void begin(struct pair *p)
{
	memset(p->local, FILL, area_size(p));
	memset(p->remote, FILL, (p->large ? 1 : 2) * area_size(p));
	p->posted = 0;
	p->retired = 0;
	p->silent = 0;
	p->may_fail = false;
	p->failed = 0;
	p->bad_seq = UINT64_MAX;
}

/*
 * As after pair_create(). rxe takes what the old peer still sends for an answer to the
 * new one: it is another queue pair, and comes when that is over. And rxe may go on where
 * the queue stood before the reset; it knows that it is empty after another one.
 */
void pair_reset(struct pair *p)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_RESET };

	modify(p->a, &attr, 0);
	if (ibv_destroy_qp(p->b))
		fail("destroy a queue pair: %s", strerror(errno));
	usleep(200000);
	modify(p->a, &attr, 0);
	create_peer(p);
	/* Some providers leave what has completed. */
	while (poll_all(p->w))
		;
	begin(p);
}

void pair_destroy(struct pair *p)
{
	if (ibv_destroy_qp(p->a) || ibv_destroy_qp(p->b))
		fail("destroy a queue pair: %s", strerror(errno));
}

static void pair_open(struct pair *p, struct world *w, const struct shape *shape,
		      unsigned int index)
{
	const int access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
			   IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;
	struct end *e = &w->end[shape->from];
	struct end *peer = &w->end[!shape->from];
	size_t size;

	*p = (struct pair) {
		.w = w,
		.shape = *shape,
		.index = index,
		.rng = w->seed * 1000 + index,
		.inbox_rng = ~w->seed * 1000 + index,
		.stride = (1u << shape->bits) + 512,
		.large = w->large,
		.bad_seq = UINT64_MAX,
	};
	pthread_mutex_init(&p->lock, NULL);
	size = area_size(p);
	p->local = mmap(NULL, 3 * size, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	p->op = calloc(shape->depth, sizeof(*p->op));
	p->recv = calloc(shape->depth, sizeof(*p->recv));
	if (p->local == MAP_FAILED || !p->op || !p->recv)
		fail("no memory");
	p->remote = p->local + size;
	p->inbox = p->remote + size;
	begin(p);
	p->mr_a = ibv_reg_mr(e->pd, p->local, size, IBV_ACCESS_LOCAL_WRITE);
	p->mr_b = ibv_reg_mr(peer->pd, p->remote, (p->large ? 1 : 2) * size, access);
	if (!p->mr_a || !p->mr_b)
		fail("memory: %s", strerror(errno));
	pair_create(p);
	pair_connect(p);
}

static void pair_close(struct pair *p)
{
	pair_destroy(p);
	if (!is_clean(p->local, (p->large ? 2 : 3) * area_size(p)))
		fail("pair %u: something was changed elsewhere", p->index);
	if (ibv_dereg_mr(p->mr_a) || ibv_dereg_mr(p->mr_b))
		fail("memory: %s", strerror(errno));
	munmap(p->local, 3 * area_size(p));
	free(p->op);
	free(p->recv);
}

/* --- all of it --- */

void world_open(struct world *w, __u64 seed, const struct shape *shape,
		unsigned int num, bool large)
{
	unsigned int i, dev, group;

	memset(w, 0, sizeof(*w));
	w->seed = seed;
	w->large = large;
	for (i = 0; i < num; i++) {
		group = group_of[shape[i].thread];
		w->queue[group][0].depth += shape[i].depth;
		w->queue[group][1].depth += shape[i].depth;
		if (shape[i].thread >= w->num_threads)
			w->num_threads = shape[i].thread + 1;
	}
	for (dev = 0; dev < 2; dev++) {
		open_end(&w->end[dev], devices[dev]);
		for (group = 0; group < MAX_GROUPS; group++)
			if (w->queue[group][dev].depth)
				create_cq(&w->queue[group][dev], &w->end[dev],
					  (seed + group) % 2, group == 1);
	}
	for (i = 0; i < num; i++) {
		pair_open(&w->pair[i], w, &shape[i], i);
		w->num_pairs++;
	}
	watched = w;
}

void world_close(struct world *w)
{
	unsigned int i, dev, group;

	watched = NULL;
	for (i = 0; i < w->num_pairs; i++)
		pair_close(&w->pair[i]);
	for (dev = 0; dev < 2; dev++) {
		struct end *e = &w->end[dev];

		for (group = 0; group < MAX_GROUPS; group++)
			destroy_cq(&w->queue[group][dev]);
		if ((e->domain && ibv_dealloc_pd(e->domain)) ||
		    (e->td && ibv_dealloc_td(e->td)) ||
		    ibv_dealloc_pd(e->pd) || ibv_close_device(e->ctx))
			fail("close %s: %s", devices[dev], strerror(errno));
	}
}

/* Post the next list if there is room; whether the pair needs more. */
static bool serve(struct pair *p, bool *posted)
{
	bool stop = __atomic_load_n(&p->w->stop, __ATOMIC_RELAXED);
	bool busy;

	pthread_mutex_lock(&p->lock);
	if (!p->next)
		p->next = 1 + below(&p->rng, p->shape.list);
	if (stop)
		p->next = 1;
	if (!p->closed && p->posted - p->retired + p->next <= p->shape.depth) {
		pair_post(p, p->next, stop);
		p->closed = stop;
		p->next = 0;
		*posted = true;
	}
	busy = !p->closed || p->retired != p->posted;
	pthread_mutex_unlock(&p->lock);
	return busy;
}

static void wait_for_event(struct queue *q)
{
	struct pollfd fd[2] = {
		{ .fd = q[0].chan->fd, .events = POLLIN },
		{ .fd = q[1].chan->fd, .events = POLLIN },
	};
	struct ibv_cq *cq;
	void *context;
	int dev, n;

	do
		n = poll(fd, 2, -1);
	while (n < 0 && errno == EINTR);
	for (dev = 0; dev < 2; dev++) {
		if (!(fd[dev].revents & POLLIN))
			continue;
		if (ibv_get_cq_event(q[dev].chan, &cq, &context) || cq != q[dev].cq)
			fail("an event: %s", strerror(errno));
		q[dev].events++;
	}
}

static void idle(struct world *w, unsigned int group, unsigned int *turns)
{
	struct queue *q = w->queue[group];

	if (!q[0].chan) {
		if (++*turns % 16 == 0)
			usleep(200);
		return;
	}
	if (ibv_req_notify_cq(q[0].cq, 0) || ibv_req_notify_cq(q[1].cq, 0))
		fail("arm a CQ: %s", strerror(errno));
	if (!poll_group(w, group))
		wait_for_event(q);
}

struct worker {
	struct world *w;
	unsigned int thread;
};

static void *work(void *arg)
{
	struct worker me = *(struct worker *)arg;
	unsigned int group = group_of[me.thread];
	unsigned int i, turns = 0;
	bool busy, posted;

	free(arg);
	do {
		busy = false;
		posted = false;
		for (i = 0; i < me.w->num_pairs; i++)
			if (me.w->pair[i].shape.thread == me.thread)
				busy |= serve(&me.w->pair[i], &posted);
		if (busy && !poll_group(me.w, group) && !posted)
			idle(me.w, group, &turns);
	} while (busy);
	return NULL;
}

void world_start(struct world *w)
{
	unsigned int i;

	for (i = 0; i < w->num_threads; i++) {
		struct worker *me = malloc(sizeof(*me));

		*me = (struct worker) { w, i };
		if (pthread_create(&w->thread[i], NULL, work, me))
			fail("no thread");
	}
}

void world_end(struct world *w)
{
	unsigned int i;

	__atomic_store_n(&w->stop, true, __ATOMIC_RELAXED);
	for (i = 0; i < w->num_threads; i++)
		pthread_join(w->thread[i], NULL);
	must_be_empty(w);
}
