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

#include "line.h"
#include "registry.h"
#include "slot.h"

struct shim_ctx;
struct shim_qp;

enum {
	/*
	 * Entries that a CQ must have on top of those that the program asked for. With less, a
	 * new queue pair is not governed: the pieces of its messages would have no room.
	 */
	SHIM_SPARE = 8,
};

/**
 * struct shim_soft - a completion that waits for the program
 * @wc: the completion, as the program will see it
 * @flow: the flow whose work request has completed; NULL if none of ours has
 * @seq: number of the program's work request
 * @ts: ibv_wc_read_completion_ts(), only from an extended CQ
 * @wallclock: ibv_wc_read_completion_wallclock_ns(), only from an extended CQ
 * @tm: ibv_wc_read_tm_info(), only from an extended CQ
 * @flow_tag: ibv_wc_read_flow_tag(), only from an extended CQ
 * @cvlan: ibv_wc_read_cvlan(), only from an extended CQ
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

/* In place of a thread: more than one, or an unknown one. No thread has this value. */
#define SHIM_SEVERAL ((pthread_t)1)

/**
 * struct shim_cq - what is known of a CQ
 * @ctx: context of the CQ
 * @cq: the CQ
 * @active: completions may have to be translated; read without the lock
 * @ex: the CQ is an extended one
 * @raw: the program may poll the CQ without libibverbs; read without a lock
 * @zombies: slots of queue pairs that are gone
 * @asked: entries that the program asked for; under shim_size_lock
 * @reserved: entries that the flows would like for the pieces of messages; under
 *	shim_size_lock
 * @spare: entries that all flows together have for the pieces; changes under shim_size_lock,
 *	read without it
 * @joining: threads may still poll without the lock, though @active is set
 * @awaits: the program has armed the CQ since it was told of an event last
 * @due: how often the program has then polled a completion that came after arming: so many events
 *	are on their way that it may wait for
 * @older: completions in @soft that were there when the CQ was armed
 * @unknown: an event may be for what the program polled before the CQ became active, or for what
 *	has gone with its queue pair, as it was told of none since
 * @awaited: number of flows here with &shim_qp.awaited
 * @hurried: the program has waited in vain for the end of this message, and found events of
 *	chunks only
 * @spare_now: @spare when a batch was begun, so that it does not change meanwhile
 * @woken: the program polls now, and has armed the CQ before
 * @looked_ns: when the CQ was looked at last
 * @used: what of @spare is taken, also by queue pairs that are gone
 * @crowd: flows that hold something and wait for room, until something of theirs completes
 * @queue: flows that hold something and wait for an entry that another flow has
 * @flows: number of flows that complete here
 * @tagged: number of flows here whose state is tagged, see shim_state_is_tagged()
 * @armed: the program has armed the CQ and has not polled since, and the CQ was active all the
 *	time
 * @owes: the program has armed the CQ with a completion in @soft, and nothing has raised an
 *	event since
 * @solicited: the program waits for an event of solicited completions only; read without the
 *	lock, and written without it while the CQ is not active
 * @shown: the thread that got a completion since the program was told of an event, 0 if none
 *	did, or %SHIM_SEVERAL
 * @unseen: how often the helper has looked since the program polled
 * @calm_until: until then, in nanoseconds, a poll that finds nothing changes nothing; read without
 *	the lock
 * @round: number of the helper's last round that looked here, as shim_member.round
 * @soft: ring of completions that wait; NULL until there is a flow or the program resizes the
 *	CQ; changes under shim_size_lock and the lock of the member
 * @soft_num: entries of @soft; changes under shim_size_lock and the lock of the member
 * @soft_head: position in @soft of the next completion for the program
 * @soft_tail: position in @soft of the next free entry
 * @session: held while the program polls; from start_poll to end_poll, if the CQ is an extended one
 * @resize: held while the provider resizes the CQ; who has shim_size_lock only tries it
 * @snap: the program is shown @cur, not the completion of the provider; under @session
 * @cur: the completion that the program is shown; under @session
 * @real: functions of the provider, if the CQ is an extended one
 *
 * Without another word a member is under shim_member.lock, or never changes.
 * What a poll of a CQ that is not active needs is in the first 64 bytes.
 */
struct shim_cq {
	struct shim_ctx *ctx;
	struct ibv_cq *cq;
	bool active;
	bool ex;
	bool raw;
	bool joining;
	bool awaits;
	uint32_t due;
	uint32_t older;
	bool unknown;
	uint32_t awaited;
	bool hurried;
	struct shim_zombies zombies;
	int asked;
	int reserved;
	uint32_t spare;
	uint32_t spare_now;
	bool woken;
	uint64_t looked_ns;
	struct shim_used used;
	struct shim_line crowd;
	struct shim_line queue;
	uint32_t flows;
	uint32_t tagged;
	bool armed;
	bool owes;
	int solicited;
	pthread_t shown;
	uint32_t unseen;
	uint64_t calm_until;
	uint32_t round;
	struct shim_soft *soft;
	uint32_t soft_num;
	uint32_t soft_head;
	uint32_t soft_tail;
	pthread_mutex_t session;
	pthread_mutex_t resize;
	bool snap;
	struct shim_soft cur;
	struct ibv_cq_ex real;
};

extern pthread_mutex_t shim_size_lock;

typedef struct ibv_cq_ex *(*shim_create_cq_fn)(void *arg, struct ibv_cq_init_attr_ex *attr);

void shim_free_cq(struct shim_cq *c);
int shim_add_capped(int asked, int more, int max);
struct ibv_cq *shim_create_cq(struct ibv_context *context, int cqe,
			      void *cq_context,
			      struct ibv_comp_channel *channel,
			      int comp_vector);
struct ibv_cq_ex *shim_create_cq_ex(struct ibv_context *context,
				    struct ibv_cq_init_attr_ex *attr);
struct ibv_cq_ex *shim_create_cq_with(struct shim_ctx *ctx, shim_create_cq_fn fn, void *arg,
				      struct ibv_cq_init_attr_ex *attr);
int shim_resize_cq(struct ibv_cq *cq, int cqe);
int shim_destroy_cq(struct ibv_cq *cq);
bool shim_reserve_entries(struct shim_cq *c);
void shim_unreserve_entries(struct shim_cq *c);

/**
 * shim_cq_is_active - tell whether completions of a CQ may have to be translated
 * @c: the CQ
 *
 * Pairs with the release in shim_cq_update().
 *
 * Return: true if so.
 */
static inline bool shim_cq_is_active(const struct shim_cq *c)
{
	return __atomic_load_n(&c->active, __ATOMIC_ACQUIRE);
}

/**
 * shim_cq_set_calm - note for how long a poll that finds nothing changes nothing
 * @c: the CQ; its member is locked
 * @until: time, 0 if the next one has something to do
 */
static inline void shim_cq_set_calm(struct shim_cq *c, uint64_t until)
{
	__atomic_store_n(&c->calm_until, until, __ATOMIC_RELAXED);
}

/**
 * shim_cq_set_unseen - note that somebody looks at a CQ for the program
 * @c: the CQ; its member is locked
 * @unseen: how often, at least 1
 *
 * The next poll of the program notes that it has seen what there is.
 */
static inline void shim_cq_set_unseen(struct shim_cq *c, uint32_t unseen)
{
	c->unseen = unseen;
	shim_cq_set_calm(c, 0);
}

/**
 * shim_cq_is_raw - tell whether the program may poll a CQ without libibverbs
 * @c: the CQ
 *
 * Without a lock: a program asks for the memory of a CQ before it creates the queue pairs that
 * complete there.
 *
 * Return: true if so.
 */
static inline bool shim_cq_is_raw(const struct shim_cq *c)
{
	return __atomic_load_n(&c->raw, __ATOMIC_RELAXED);
}

#endif /* SHIM_CQ_H */
