/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What shim_stress.c asks of shim_mix.c: queue pairs between two devices, both ends in
 * this process, and traffic on them that is checked.
 */
#ifndef RISO_SHIM_STRESS_H
#define RISO_SHIM_STRESS_H

#include <pthread.h>
#include <stdbool.h>

#include <infiniband/verbs.h>
#include <linux/types.h>

#include "kselftest.h"

enum {
	MAX_SGE = 4,
	MAX_LIST = 8,
	MAX_PAIRS = 10,
	MAX_THREADS = 4,
	/* Threads 0 and 1 share their CQs, the others have their own. */
	MAX_GROUPS = 3,
	/* Bytes that must not change, around all that may. */
	GAP = 32,
};

/**
 * struct shape - how a pair differs from others
 * @depth: of its send queue
 * @bits: its largest message has 1 << @bits bytes
 * @list: work requests posted at once, at most
 * @thread: who posts
 * @from: the device that they are posted to
 * @builders: by ibv_wr_*
 * @sig_all: with a completion for each
 */
struct shape {
	unsigned int depth;
	unsigned int bits;
	unsigned int list;
	unsigned int thread;
	unsigned int from;
	bool builders;
	bool sig_all;
};

struct end {
	struct ibv_context *ctx;
	struct ibv_pd *pd;
	struct ibv_td *td;
	struct ibv_pd *domain;
	struct ibv_port_attr port;
	union ibv_gid gid;
	int gid_index;
	unsigned int rd_atomic;
};

struct queue {
	struct ibv_cq *cq;
	struct ibv_cq_ex *ex;
	struct ibv_comp_channel *chan;
	unsigned int events;
	unsigned int depth;
};

/* A work request. */
struct op {
	__u64 wr_id;
	__u64 key;		/* what the data are made of */
	enum ibv_wr_opcode opcode;
	unsigned int flags;
	__u32 len;
	__u32 imm;
	int num_sge;
	struct ibv_sge sge[MAX_SGE];
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

struct recv {
	__u64 wr_id;
	__u64 no;
	int num_sge;
	struct ibv_sge sge[MAX_SGE];
};

/* Two queue pairs: a, at shape.from, posts and b receives. */
struct pair {
	pthread_mutex_t lock;	/* where several threads poll */
	struct world *w;
	struct shape shape;
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
	struct op *op;		/* a ring */
	struct recv *recv;
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

struct world {
	__u64 seed;		/* all random numbers follow from it */
	struct end end[2];
	struct queue queue[MAX_GROUPS][2];	/* by group and device */
	struct pair pair[MAX_PAIRS];
	unsigned int num_pairs;
	bool large;
	bool stop;
	__u64 bytes;		/* carried and checked */
	pthread_t thread[MAX_THREADS];
	unsigned int num_threads;
};

void __noreturn __printf(1, 2) fail(const char *fmt, ...);
void watch(unsigned int interval_us);
__u64 now_ns(void);
__u64 draw_from(__u64 *state);

void world_open(struct world *w, __u64 seed, const struct shape *shape,
		unsigned int num, bool large);
void world_start(struct world *w);
void world_end(struct world *w);
void world_close(struct world *w);

void pair_create(struct pair *p);
void pair_connect(struct pair *p);
void pair_destroy(struct pair *p);
void pair_reset(struct pair *p);
void pair_post(struct pair *p, unsigned int num, bool last);
unsigned int poll_group(struct world *w, unsigned int group);
unsigned int poll_all(struct world *w);
void must_be_empty(struct world *w);

#endif /* RISO_SHIM_STRESS_H */
