/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * CQs of the fake provider, plain and extended, and their events.
 */
#ifndef RISO_TEST_FAKE_CQ_H
#define RISO_TEST_FAKE_CQ_H

#include <stdbool.h>
#include <stdint.h>
#include <infiniband/verbs.h>

struct fake_qp;

/* Completions that a CQ has memory for, whatever its size */
enum { FAKE_CQ = 4096 };

/* A completion frees the send queue of @qp up to @pos. A NULL @qp frees nothing. */
struct fake_cqe {
	struct ibv_wc wc;
	struct fake_qp *qp;
	uint32_t pos;
};

/* The program sees the first member. */
struct fake_cq {
	struct ibv_cq_ex cq;
	struct fake_cqe ring[FAKE_CQ];
	uint32_t head;		/* completions that were polled */
	uint32_t tail;		/* completions that were added */
	uint32_t most;		/* most completions that were there at once */
	bool open;		/* there is a session, since ibv_start_poll() */
	bool overflow;		/* there were more completions than entries */
	bool armed;		/* the next completion raises an event */
	int solicited;		/* it was armed so last */
	uint32_t events;	/* events that were raised */
	uint32_t taken;		/* events that ibv_get_cq_event() returned */
	uint32_t acked;		/* events that were acknowledged */
};

/* The functions of libibverbs for CQs */
struct ibv_cq *fake_create_cq(struct ibv_context *context, int cqe, void *cq_context,
			      struct ibv_comp_channel *channel, int vector);
struct ibv_cq_ex *fake_create_cq_ex(struct ibv_context *context,
				    struct ibv_cq_init_attr_ex *attr);
int fake_resize_cq(struct ibv_cq *cq, int cqe);
int fake_get_cq_event(struct ibv_comp_channel *channel, struct ibv_cq **cq,
		      void **cq_context);
void fake_ack_cq_events(struct ibv_cq *cq, unsigned int num);
int fake_destroy_cq(struct ibv_cq *cq);

/* The operations of a context for CQs */
int fake_poll_cq(struct ibv_cq *ibcq, int num, struct ibv_wc *wc);
int fake_req_notify_cq(struct ibv_cq *ibcq, int solicited_only);

/**
 * fake_cqe - add the completion of a work request
 * @qp: the queue pair
 * @pos: number of the work request
 * @status: how it ended
 *
 * Context: under fake_verbs.lock.
 */
void fake_cqe(struct fake_qp *qp, uint32_t pos, enum ibv_wc_status status);

/**
 * fake_receive - add the completion of a receive
 * @cq: the CQ
 */
void fake_receive(struct fake_cq *cq);

/**
 * fake_fill_newer - fill what an old libibverbs has no place for with the provider's own
 * @cq: the CQ
 */
void fake_fill_newer(struct ibv_cq_ex *cq);

#endif /* RISO_TEST_FAKE_CQ_H */
