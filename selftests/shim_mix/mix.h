/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Queue pairs between rxe0 and rxe1, both ends in this process, and random work
 * requests on them. Every byte is checked once its completion says that it is there,
 * and so is all that must not change; every completion is checked and counted.
 *
 * What is posted follows from the seed alone. Each work request has a place of its own
 * in the areas of its pair, where all else is MIX_FILL. Some need what the one before them
 * brings: a READ of what was written, or a fenced WRITE of what was read.
 *
 * shim_stress.c calls the functions of the first part. The files of this directory call
 * those of both.
 */
#ifndef RISO_SHIM_MIX_H
#define RISO_SHIM_MIX_H

#include <pthread.h>
#include <stdbool.h>

#include <infiniband/verbs.h>
#include <linux/types.h>

#include "kselftest.h"

enum {
	MIX_MAX_SGE = 4,
	MIX_MAX_LIST = 8,
	MIX_MAX_PAIRS = 10,
	MIX_MAX_THREADS = 4,
	/* Threads 0 and 1 share their CQs, the others have their own. */
	MIX_MAX_GROUPS = 3,
	/* Bytes that must not change, around all that may. */
	MIX_GAP = 32,
	/* What these bytes and unused places hold. */
	MIX_FILL = 0xa5,
};

/**
 * struct mix_shape - how a pair differs from others
 * @depth: of its send queue
 * @bits: its largest message has 1 << @bits bytes
 * @list: work requests posted at once, at most
 * @thread: who posts
 * @from: the device that they are posted to
 * @builders: by ibv_wr_*
 * @sig_all: with a completion for each
 */
struct mix_shape {
	unsigned int depth;
	unsigned int bits;
	unsigned int list;
	unsigned int thread;
	unsigned int from;
	bool builders;
	bool sig_all;
};

struct mix_end {
	struct ibv_context *ctx;
	struct ibv_pd *pd;
	struct ibv_td *td;
	struct ibv_pd *domain;
	struct ibv_port_attr port;
	union ibv_gid gid;
	int gid_index;
	unsigned int rd_atomic;
};

struct mix_queue {
	struct ibv_cq *cq;
	struct ibv_cq_ex *ex;
	struct ibv_comp_channel *chan;
	unsigned int events;
	unsigned int depth;
};

/* A work request. */
struct mix_op {
	__u64 wr_id;
	__u64 key;		/* what the data are made of */
	enum ibv_wr_opcode opcode;
	unsigned int flags;
	__u32 len;
	__u32 imm;
	int num_sge;
	struct ibv_sge sge[MIX_MAX_SGE];
	__u8 *remote;
	__u32 rkey;
	__u64 compare;		/* or what is added */
	__u64 swap;
	__u64 recv_no;		/* the receive that it takes */
	bool own_local;		/* nobody else has the data at sge */
	bool own_remote;	/* nor at remote */
	bool bad;		/* it must fail */
	bool feeds;		/* the next one needs its data */
	bool sent;		/* known to be complete */
	bool seen;		/* has had its completion */
	bool received;		/* its receive is complete, or it has none */
	bool checked;		/* the data are right */
	bool flushed;		/* it has failed */
};

struct mix_recv {
	__u64 wr_id;
	__u64 no;
	int num_sge;
	struct ibv_sge sge[MIX_MAX_SGE];
};

/* Two queue pairs: a, at shape.from, posts and b receives. */
struct mix_pair {
	pthread_mutex_t lock;	/* where several threads poll */
	struct mix_world *w;
	struct mix_shape shape;
	struct ibv_qp *a;
	struct ibv_qp_ex *ax;
	struct ibv_qp *b;
	__u32 qpn_a;
	__u32 qpn_b;
	struct ibv_qp_cap cap;	/* of a */
	unsigned int index;
	__u64 rng;
	__u64 inbox_rng;
	size_t stride;		/* of one work request in each area */
	__u8 *local;		/* area of a */
	__u8 *remote;		/* area of b for WRITEs, READs and atomics */
	__u8 *inbox;		/* area of b for receives */
	struct ibv_mr *mr_a;
	struct ibv_mr *mr_b;
	struct mix_op *op;	/* a ring */
	struct mix_recv *recv;
	__u64 posted;
	__u64 retired;		/* nobody needs these any more */
	unsigned int next;	/* so many are posted next */
	unsigned int silent;	/* posted since the last one with a completion */
	__u64 sends;		/* those that take a receive */
	__u64 recvs;
	__u64 received;
	bool large;		/* only large WRITEs and READs, and no receives */
	bool may_fail;
	unsigned int failed;
	__u64 fail_seq;		/* the last one */
	__u64 bad_seq;		/* what shall fail, if below posted */
	bool closed;		/* nothing more is posted */
};

struct mix_world {
	__u64 seed;		/* all random numbers follow from it */
	struct mix_end end[2];
	struct mix_queue queue[MIX_MAX_GROUPS][2];	/* by group and device */
	struct mix_pair pair[MIX_MAX_PAIRS];
	unsigned int num_pairs;
	bool large;
	bool stop;
	__u64 bytes;		/* carried and checked */
	pthread_t thread[MIX_MAX_THREADS];
	unsigned int num_threads;
};

/* --- what shim_stress.c calls --- */

/* watch.c */
void __noreturn __printf(1, 2) mix_fail(const char *fmt, ...);
void mix_watch(unsigned int interval_us);
__u64 mix_now_ns(void);

/* random.c */
__u64 mix_draw_from(__u64 *state);

/* world.c */
void mix_world_open(struct mix_world *w, __u64 seed, const struct mix_shape *shape,
		    unsigned int num, bool large);
void mix_world_close(struct mix_world *w);

/* threads.c */
void mix_world_start(struct mix_world *w);
void mix_world_end(struct mix_world *w);

/* pair.c */
void mix_pair_create(struct mix_pair *p);
void mix_pair_connect(struct mix_pair *p);
void mix_pair_destroy(struct mix_pair *p);
void mix_pair_reset(struct mix_pair *p);

/* post.c */
void mix_pair_post(struct mix_pair *p, unsigned int num, bool last);

/* complete.c */
unsigned int mix_poll_group(struct mix_world *w, unsigned int group);
unsigned int mix_poll_all(struct mix_world *w);
void mix_must_be_empty(struct mix_world *w);

/* --- what the files here call of each other --- */

/*
 * The builders and the extended CQs of rxe's provider are not all right: they take
 * the first element of a list for all others, do not count inline data of more than
 * one piece, and lose an entry where ibv_next_poll() finds none. The shim uses none of
 * these while it holds what is posted, so they are used then.
 */
#pragma weak rdma_isolate_set_class
int rdma_isolate_set_class(struct ibv_qp *qp, int class_id);

/* complete.c: the shim may let queue pairs go straight, as where it can start no thread */
extern bool mix_goes_straight;

static inline bool mix_needs_care(void)
{
	return !rdma_isolate_set_class || mix_goes_straight;
}

/* complete.c: WRITEs with an immediate may be cut, and how many were */
extern bool mix_cuts_imm;
extern unsigned long mix_pieces;

/* watch.c: how many have completed, and whose pairs the watchdog shows */
extern unsigned long mix_beats;
extern struct mix_world *mix_watched;

/* random.c */
unsigned int mix_below(__u64 *rng, unsigned int n);
bool mix_once_in(__u64 *rng, unsigned int n);

/* world.c */
extern const unsigned int mix_group_of[MIX_MAX_THREADS];

/* end.c */
void mix_open_end(struct mix_end *e, const char *name);

/* cq.c */
void mix_create_cq(struct mix_queue *q, struct mix_end *e, bool ex, bool events);
void mix_destroy_cq(struct mix_queue *q);
int mix_poll_ex(struct ibv_cq_ex *ex, int num, struct ibv_wc *wc);

/* data.c */
void mix_fill(__u8 *to, size_t len, __u64 key, __u64 off);
void mix_fill_local(const struct mix_op *op);
void mix_clean_local(const struct mix_op *op);
bool mix_is_clean(const __u8 *at, size_t len);
void mix_check_data(struct mix_op *op);
void mix_check_sges(const struct mix_op *op, const struct ibv_sge *sge, int num,
		    const char *where);
__u8 *mix_addr_of(const struct ibv_sge *sge);
__u64 *mix_word_at(const void *at);
bool mix_is_write(const struct mix_op *op);
bool mix_is_atomic(const struct mix_op *op);
bool mix_is_send(const struct mix_op *op);
bool mix_takes_recv(const struct mix_op *op);
bool mix_has_imm(const struct mix_op *op);

/* draw.c */
size_t mix_area_size(const struct mix_pair *p);
struct mix_op *mix_op_at(const struct mix_pair *p, __u64 seq);
struct mix_op *mix_draw_op(struct mix_pair *p, struct mix_op *prev, bool last);
int mix_cut(__u64 *rng, struct ibv_sge *sge, __u8 *at, __u32 len, int max,
	    __u32 lkey);

/* post.c */
void mix_post_recv(struct mix_pair *p, struct mix_recv *r);

/* pair.c */
void mix_pair_open(struct mix_pair *p, struct mix_world *w, const struct mix_shape *shape,
		   unsigned int index);
void mix_pair_close(struct mix_pair *p);

#endif /* RISO_SHIM_MIX_H */
