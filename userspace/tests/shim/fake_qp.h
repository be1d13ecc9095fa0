/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Queue pairs of the fake provider. Their send queues are in memory. A queue pair
 * carries out what was posted when a test says so, in order. It is as strict as a device
 * about the depth of its send queue.
 */
#ifndef RISO_TEST_FAKE_QP_H
#define RISO_TEST_FAKE_QP_H

#include <stdbool.h>
#include <stdint.h>
#include <infiniband/verbs.h>

enum {
	/* Work requests that a queue pair remembers, also complete ones */
	FAKE_SQ = 4096,
	/* Scatter/gather elements and bytes of inline data of a work request */
	FAKE_SGES = 4,
	FAKE_INLINE = 128,
};

/* A work request in the send queue, with copies of what it points to */
struct fake_wr {
	struct ibv_send_wr wr;
	struct ibv_sge sge[FAKE_SGES];
	uint8_t data[FAKE_INLINE];
};

/* The program sees the first member. Tests set those from @fail_at to @chunk_then. */
struct fake_qp {
	struct ibv_qp_ex ex;
	struct ibv_qp_init_attr init;
	struct fake_wr sq[FAKE_SQ];
	uint32_t posted;	/* work requests that were posted */
	uint32_t run;		/* work requests that were carried out */
	uint32_t freed;		/* work requests that left the send queue */
	uint32_t depth;		/* entries of the send queue */
	uint32_t doorbells;	/* calls of ibv_post_send() */
	uint32_t fail_at;	/* number of the work request that fails */
	bool err;		/* the queue pair is in state ERR */
	int refuse;		/* error that a post returns, 0 for none */
	uint32_t refuse_from;	/* first work request that is refused */
	bool refuse_len;	/* only work requests with data are refused */
	uint32_t chunk_then;	/* chunk size of the kernel from a refusal on, 0 for the same */
	struct ibv_send_wr built[FAKE_SQ]; /* the batch since ibv_wr_start() */
	uint32_t num_built;	/* work requests in the batch */
};

/* The functions of libibverbs for queue pairs */
struct ibv_qp *fake_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *attr);
int fake_destroy_qp(struct ibv_qp *qp);
int fake_modify_qp(struct ibv_qp *ibqp, struct ibv_qp_attr *attr, int mask);
int fake_query_qp(struct ibv_qp *ibqp, struct ibv_qp_attr *attr, int mask,
		  struct ibv_qp_init_attr *init);
struct ibv_qp_ex *fake_qp_to_qp_ex(struct ibv_qp *qp);

/* The operations of a context for queue pairs */
int fake_post_send(struct ibv_qp *ibqp, struct ibv_send_wr *wr,
		   struct ibv_send_wr **bad_wr);
int fake_bind_mw(struct ibv_qp *ibqp, struct ibv_mw *mw, struct ibv_mw_bind *bind);

/**
 * fake_new_qp - create a queue pair that the shim does not hear of
 * @attr: as that of ibv_create_qp()
 *
 * Returns: the queue pair, or NULL where the device has no send queue of that depth.
 */
struct fake_qp *fake_new_qp(struct ibv_qp_init_attr *attr);

/**
 * fake_post_one - put one work request into the send queue
 * @qp: the queue pair
 * @wr: the work request
 *
 * Returns: 0, or the error that the queue pair refuses it with.
 */
int fake_post_one(struct fake_qp *qp, const struct ibv_send_wr *wr);

/**
 * fake_run - carry out work requests
 * @qp: the queue pair
 * @num: how many, at most
 *
 * Returns: how many there were.
 */
uint32_t fake_run(struct fake_qp *qp, uint32_t num);

/**
 * fake_len - add up the lengths of all elements of a work request
 * @wr: the work request
 *
 * Returns: the sum, in bytes.
 */
uint32_t fake_len(const struct ibv_send_wr *wr);

#endif /* RISO_TEST_FAKE_QP_H */
