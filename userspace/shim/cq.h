/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * CQs. See cq.c.
 */
#ifndef SHIM_CQ_H
#define SHIM_CQ_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <infiniband/verbs.h>

#include "map.h"
#include "slot.h"

struct shim_ctx;
struct shim_qp;

enum {
	/* Entries of a CQ for completions that nobody sees, at least. */
	SHIM_SPARE = 8,
};

/**
 * struct shim_soft - a completion that waits for the program
 * @wc: as the program will see it
 * @flow: the flow that it makes room in, if any
 * @seq: number of the program's work request
 * @ts: what only extended CQs tell
 * @wallclock: likewise
 * @tm: likewise
 * @flow_tag: likewise
 * @cvlan: likewise
 */
struct shim_soft {
	struct ibv_wc wc;
	struct shim_qp *flow;
	uint64_t seq;
	uint64_t ts;
	uint64_t wallclock;
	struct ibv_wc_tm_info tm;
	uint32_t flow_tag;
	uint16_t cvlan;
};

/* No thread: more than one, or nobody knows */
#define SHIM_SEVERAL ((pthread_t)1)

/**
 * struct shim_cq - what is known of a CQ
 * @zombies: slots of queue pairs that are gone
 * @ctx: its context
 * @cq: the CQ
 * @real: the provider's functions, if it is an extended one
 * @ex: it is an extended one
 * @asked: entries that the program asked for; under shim_size_lock
 * @reserved: entries that its flows would like for chunks; likewise
 * @spare: entries that they have, all together; read without the lock
 * @used: what is taken of these, also by what is gone and may be in the CQ
 * @flows: flows that complete here
 * @tagged: of those, the ones that may have posted with a tag
 * @active: completions may have to be translated; read without the lock
 * @armed: the program has armed it, and has not polled since, all that while @active
 * @owes: it did so with something in @soft, and nothing has raised an event since
 * @solicited: it armed it last for solicited ones only; without the lock
 * @shown: the thread that got a completion since an event was told last, 0 if none did,
 *	or %SHIM_SEVERAL
 * @unseen: how often the helper has looked since the program polled
 * @round: of the helper that looked last
 * @soft: ring of completions that wait, once there was a flow or the program has resized
 *	the CQ; changes under shim_size_lock, too
 * @soft_num: size of the ring; likewise
 * @soft_head: next one for the program
 * @soft_tail: next free one
 * @session: held from start_poll to end_poll
 * @resize: held while the provider resizes it; under shim_size_lock it is only tried
 * @snap: the completion shown is @cur, not the provider's; under @session
 * @cur: the completion shown; under @session
 */
struct shim_cq {
	struct shim_zombies zombies;
	struct shim_ctx *ctx;
	struct ibv_cq *cq;
	struct ibv_cq_ex real;
	bool ex;
	int asked;
	int reserved;
	uint32_t spare;
	struct shim_used used;
	uint32_t flows;
	uint32_t tagged;
	bool active;
	bool armed;
	bool owes;
	int solicited;
	pthread_t shown;
	uint32_t unseen;
	uint32_t round;
	struct shim_soft *soft;
	uint32_t soft_num;
	uint32_t soft_head;
	uint32_t soft_tail;
	pthread_mutex_t session;
	pthread_mutex_t resize;
	bool snap;
	struct shim_soft cur;
};

extern struct shim_map shim_cqs;
extern pthread_mutex_t shim_size_lock;

int shim_poll_cq(struct ibv_cq *cq, int num, struct ibv_wc *wc);
void shim_free_cq(struct shim_cq *c);
int shim_add_capped(int asked, int more, int max);
struct ibv_cq *shim_create_cq(struct ibv_context *context, int cqe,
			      void *cq_context,
			      struct ibv_comp_channel *channel,
			      int comp_vector);
struct ibv_cq_ex *shim_create_cq_ex(struct ibv_context *context,
				    struct ibv_cq_init_attr_ex *attr);
int shim_resize_cq(struct ibv_cq *cq, int cqe);
int shim_destroy_cq(struct ibv_cq *cq);
bool shim_reserve_entries(struct shim_cq *c);
void shim_unreserve_entries(struct shim_cq *c);

/**
 * shim_cq_is_active - tell whether completions of a CQ may have to be translated
 * @c: the CQ
 *
 * Pairs with the release in shim_comp_update().
 *
 * Return: true if so.
 */
static inline bool shim_cq_is_active(const struct shim_cq *c)
{
	return __atomic_load_n(&c->active, __ATOMIC_ACQUIRE);
}

#endif /* SHIM_CQ_H */
