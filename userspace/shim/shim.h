/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What the files of the shim share. The words are those of the kernel module: a flow
 * is a queue pair, a record is a held work request, a slot is a posted one.
 *
 * Locks, in the order in which they are taken:
 *
 *	shim_qp.build		from ibv_wr_start() to ibv_wr_complete() or _abort()
 *	shim_cq.session		from ibv_start_poll() to ibv_end_poll()
 *	shim_cq.resize		while the provider resizes a CQ
 *	shim_class_lock		what the kernel is asked for, until that is in force
 *	shim_size_lock		what is known of the sizes of CQs
 *	pollers.lock		poller.c: threads that poll without a lock
 *	shim_members.lock	member.c: the list of members, and their helper threads
 *	shim_member.lock	a member with its flows, records, slots and CQs
 *	shim_map.lock		see map.c
 *
 * The program holds the first two while it runs its own code. Under shim_member.lock
 * the provider posts and polls, but nobody waits: neither for the kernel nor for the
 * first two locks. Nor does anybody under shim_size_lock wait for a session, or for a
 * provider that does, as its ibv_resize_cq() may: who has the session may want to create
 * a queue pair or to fork. What is not held while the program runs its own code is taken
 * by shim_lock(), so that a thread that is cancelled leaves nothing locked.
 */
#ifndef SHIM_SHIM_H
#define SHIM_SHIM_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>
#include <sys/types.h>
#include <infiniband/verbs.h>

#include "core/chunk.h"
#include "grant.h"
#include "map.h"
#include "rdma_isolate.h"

#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))

enum {
	/* Chunks of a flow that may be out, and completions that nobody sees. */
	SHIM_SLOTS = 32,
	/* Work requests given to the provider at once. */
	SHIM_BATCH = 8,
	/* Completions taken from the provider at once. */
	SHIM_POLL = 16,
	/* Entries of a CQ for completions that nobody sees, at least. */
	SHIM_SPARE = 8,
};

/**
 * struct shim_real - what the shim stands in front of
 *
 * The functions of libibverbs, by their names.
 */
struct shim_real {
	struct ibv_context *(*open_device)(struct ibv_device *device);
	struct ibv_context *(*import_device)(int cmd_fd);
	int (*close_device)(struct ibv_context *context);
	const char *(*get_device_name)(struct ibv_device *device);
	int (*query_device)(struct ibv_context *context,
			    struct ibv_device_attr *attr);
	struct ibv_qp *(*create_qp)(struct ibv_pd *pd,
				    struct ibv_qp_init_attr *attr);
	int (*destroy_qp)(struct ibv_qp *qp);
	int (*modify_qp)(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask);
	int (*query_qp)(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask,
			struct ibv_qp_init_attr *init_attr);
	struct ibv_qp_ex *(*qp_to_qp_ex)(struct ibv_qp *qp);
	struct ibv_cq *(*create_cq)(struct ibv_context *context, int cqe,
				    void *cq_context,
				    struct ibv_comp_channel *channel,
				    int comp_vector);
	int (*resize_cq)(struct ibv_cq *cq, int cqe);
	int (*destroy_cq)(struct ibv_cq *cq);
	int (*get_cq_event)(struct ibv_comp_channel *channel, struct ibv_cq **cq,
			    void **cq_context);
	void (*ack_cq_events)(struct ibv_cq *cq, unsigned int num);
};

extern struct shim_real shim_real;

/**
 * struct shim_sys - what is asked of the system
 */
struct shim_sys {
	int (*open)(const char *path, int flags, ...);
	ssize_t (*read)(int fd, void *buf, size_t count);
	int (*ioctl)(int fd, unsigned long request, ...);
	void *(*mmap)(void *addr, size_t len, int prot, int flags, int fd,
		      off_t off);
	int (*munmap)(void *addr, size_t len);
	int (*close)(int fd);
	uint64_t (*now)(void);
	int (*create_thread)(pthread_t *thread, const pthread_attr_t *attr,
			     void *(*fn)(void *arg), void *arg);
	int (*membarrier)(int cmd);
};

extern struct shim_sys shim_sys;

TAILQ_HEAD(shim_qp_list, shim_qp);

/**
 * struct shim_book - what a member has done in one direction
 * @posted: as riso_udir.posted
 * @done: as riso_udir.done
 * @debt: as riso_udir.debt
 * @held: cost bytes that are held and not paid for
 * @stuck: those of them whose flow waits for room, and could not use a grant
 * @budget: grants
 */
struct shim_book {
	uint64_t posted;
	uint64_t done;
	uint64_t debt;
	uint64_t held;
	uint64_t stuck;
	struct shim_budget budget;
};

/**
 * struct shim_member - this process on one device
 * @list: in the list of members, under the lock of that
 * @lock: protects what follows unless it says otherwise
 * @refs: contexts; likewise
 * @wake: wakes the helper; likewise
 * @started: there is a helper; likewise
 * @failed: there could be none, nothing has to wait; read without the lock
 * @dev: the device's file, as uverbs0, which stays while the device may be renamed; empty in
 *	a child
 * @name: of the device when it was opened first
 * @fd: the open file, -1 if there is none; under shim_class_lock
 * @attached: the process takes part; changes under shim_class_lock, too
 * @refused: a flow is not governed, and may be later; without the lock
 * @gone: nothing has to wait any more; read without the lock
 * @spin_ns: how long the helper looks at the page before it sleeps
 * @kpage: the kernel's page, or an empty one; read without the lock
 * @upage: the page for the kernel, or an empty one
 * @book: by direction
 * @slice: debt of sparse work requests
 * @held: records held; read without the lock
 * @hidden: posted, with a completion that the program did not ask for; likewise
 * @busy: flows with something held, the next in turn first
 * @num_busy: how many
 * @waiting: something was held when it was unlocked last
 * @classes: riso_kpage.classes when flows that hold something were asked for last; read
 *	without the lock
 * @retired: something has completed since it was last seen what may be posted
 * @asked: the kernel knows that grants are wanted, by direction
 * @seq: riso_kdir.seq as seen last
 * @mode: riso_kpage.mode as seen last
 * @round: of the helper
 */
struct shim_member {
	TAILQ_ENTRY(shim_member) list;
	pthread_mutex_t lock;
	unsigned int refs;
	pthread_cond_t wake;
	bool started;
	bool failed;
	char dev[IBV_SYSFS_NAME_MAX];
	char name[IBV_SYSFS_NAME_MAX];
	int fd;
	bool attached;
	bool refused;
	bool gone;
	uint64_t spin_ns;
	const struct riso_kpage *kpage;
	struct riso_upage *upage;
	struct shim_book book[RISO_USER_DIRS];
	struct shim_slice slice;
	uint32_t held;
	uint32_t hidden;
	struct shim_qp_list busy;
	uint32_t num_busy;
	bool waiting;
	uint32_t classes;
	bool retired;
	bool asked[RISO_USER_DIRS];
	uint32_t seq[RISO_USER_DIRS];
	uint32_t mode;
	uint32_t round;
};

/**
 * struct shim_ctx - an open device of the program
 * @m: this process on it
 * @context: the program's context
 * @plain: nothing of it is governed
 * @ops: the provider's functions
 * @create_qp_ex: of struct verbs_context
 * @create_cq_ex: of struct verbs_context
 * @alloc_parent_domain: of struct verbs_context
 * @max_qp_wr: limit of the device
 * @max_cqe: limit of the device
 * @tagged: the sum of shim_cq.tagged; read without the lock
 */
struct shim_ctx {
	struct shim_member *m;
	struct ibv_context *context;
	bool plain;
	struct ibv_context_ops ops;
	struct ibv_qp *(*create_qp_ex)(struct ibv_context *context,
				       struct ibv_qp_init_attr_ex *attr);
	struct ibv_cq_ex *(*create_cq_ex)(struct ibv_context *context,
					  struct ibv_cq_init_attr_ex *attr);
	struct ibv_pd *
	(*alloc_parent_domain)(struct ibv_context *context,
			       struct ibv_parent_domain_init_attr *attr);
	int max_qp_wr;
	int max_cqe;
	uint32_t tagged;
};

enum {
	SHIM_SLOT_POSTED = 1,	/* not completed yet */
	SHIM_SLOT_SIGNALED = 2,	/* the provider was asked for a completion */
	SHIM_SLOT_ASKED = 4,	/* the program asked for one */
	SHIM_SLOT_LAST = 8,	/* last piece of its message */
	SHIM_SLOT_CHUNK = 16,	/* piece of a message that was cut */
	SHIM_SLOT_FETCH = 32,	/* takes one of max_rd_atomic */
	SHIM_SLOT_EXTRA = 64,	/* takes a spare entry of the CQ, struct shim_used */
};

/**
 * struct shim_slot - a posted work request; its address is the wr_id
 * @wr_id: the program's own
 * @seq: number of the program's work request
 * @cost: cost bytes
 * @total: bytes of the whole message
 * @flags: SHIM_SLOT_*
 * @dir: direction
 */
struct shim_slot {
	uint64_t wr_id;
	uint64_t seq;
	uint64_t cost;
	uint32_t total;
	uint16_t flags;
	uint16_t dir;
};

/**
 * struct shim_used - what the flows of a CQ take of its spare entries
 * @hidden: pieces posted and not polled that have a completion which nobody sees
 * @extra: pieces with %SHIM_SLOT_EXTRA, posted and not known to be complete
 * @open: messages of which pieces are out, and others are still to be posted
 * @bare: open messages without a piece out that was asked a completion for
 *
 * When a queue pair fails, each piece that is out takes an entry of the CQ. The program has
 * one entry for each of its work requests. The oldest piece of a message that is out has
 * that, until the program is told of the message. The others are extra:
 *
 *	extra + bare <= spare entries
 *
 * So a bare message can always post one more piece, with a completion, and no flow has to
 * wait for another one. More is posted while extra + open is less than the spare entries,
 * so that the rest of a message goes out at once when its queue pair is torn down.
 */
struct shim_used {
	uint32_t hidden;
	uint32_t extra;
	uint32_t open;
	uint32_t bare;
};

/**
 * struct shim_slots - what a queue pair has posted
 * @zombie: in &shim_cq.zombies when the queue pair is gone or was reset
 * @flow: whose; NULL then
 * @num: as many as the provider's send queue has entries
 * @tail: the oldest that has not completed; the youngest is &shim_sq.slot
 * @used: of a zombie, what may be in the CQ
 * @err_seq: the program's work request that failed last
 * @failed_seq: the one that the provider did not take, and all behind is flushed
 * @cut_off: completions were lost with the queue pair, and so are the later ones
 * @slot: the slots, on pages of their own, which are in the map of tags
 */
struct shim_slots {
	LIST_ENTRY(shim_slots) zombie;
	struct shim_qp *flow;
	uint32_t num;
	uint64_t tail;
	struct shim_used used;
	uint64_t err_seq;
	uint64_t failed_seq;
	bool cut_off;
	struct shim_slot *slot;
};

LIST_HEAD(shim_zombies, shim_slots);

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

/**
 * struct shim_rec - a copied work request
 * @wr: the work request, with wr_id and flags of the program
 * @seq: its number
 * @queued_ns: when the program posted it
 * @cost: cost bytes that are not posted yet
 * @len: bytes of the message
 * @refused: the provider does not take it, it is empty now
 * @sge: its elements; inline data follow the first
 */
struct shim_rec {
	struct ibv_send_wr wr;
	uint64_t seq;
	uint64_t queued_ns;
	uint64_t cost;
	uint32_t len;
	bool refused;
	struct ibv_sge sge[];
};

/**
 * struct shim_sq - how far a flow has come; copied to undo what was not posted
 * @head: the record to go next
 * @cur: how much of it has gone
 * @paid: what was paid for its next piece already
 * @slot: the slot to be taken next
 * @parts: of the message at @head, the pieces that are out; the youngest of all
 * @direct: work requests went straight to the provider, and no completion was asked for since
 * @signaled: posted with a completion
 * @hidden: of those, the ones that the program did not ask for
 * @chunks: pieces of messages that were cut
 * @fetches: READs and atomics
 * @silent: posted since the last one with a completion
 * @quiet: cost bytes of these
 * @cost: cost bytes
 *
 * From @signaled on: of what is posted and not known to be complete.
 */
struct shim_sq {
	uint64_t head;
	struct riso_cursor cur;
	uint64_t paid;
	uint64_t slot;
	uint32_t parts;
	bool direct;
	uint32_t signaled;
	uint32_t hidden;
	uint32_t chunks;
	uint32_t fetches;
	uint32_t silent;
	uint64_t quiet;
	uint64_t cost;
};

/**
 * struct shim_build - work requests between ibv_wr_start() and ibv_wr_complete()
 * @lock: held in between
 * @direct: they go straight to the provider
 * @open: they do not, and are not complete; under the lock of the member
 * @num: how many, behind the records that are held
 * @err: the first that was wrong
 */
struct shim_build {
	pthread_mutex_t lock;
	bool direct;
	bool open;
	uint32_t num;
	int err;
};

/**
 * struct shim_qp - the traffic of a queue pair
 * @busy: in &shim_member.busy while something is held
 * @ctx: its context
 * @cq: its send CQ
 * @qp: the queue pair
 * @real: the provider's functions for ibv_wr_*, if it has them
 * @ex: it has them
 * @pass: calls go straight to the provider; read without the lock
 * @sig_all: the program wants a completion of everything
 * @tagged: counted in &shim_cq.tagged
 * @joins: is about to post with tags
 * @alone: the kernel does not govern the queue pair
 * @class_wish: what the program asks for, whether it is allowed or not, or
 *	RISO_CLASS_BY_RULE; under shim_class_lock
 * @class_id: the class in force
 * @classes: riso_kpage.classes when it was asked for; read without the lock
 * @holds: something is held; read without the lock
 * @stopped: nothing may be posted, the queue pair is being reset
 * @flush: the queue pair is in error, everything held goes out
 * @urge: likewise, as what cannot wait comes next
 * @depth: work requests that the program may have
 * @max_sge: elements of each
 * @max_inline: inline bytes of each
 * @mtu: path MTU
 * @max_rd_atomic: of the queue pair
 * @accepted: work requests of the program so far
 * @finished: of those, the ones whose completion it has seen
 * @fresh: number of the first one that can still be refused to its caller
 * @fresh_last: number of the last one that can
 * @full: what goes next waits for room, not for a grant
 * @cost: its part of shim_book.held, by direction
 * @refused: error of the provider for the record at the head
 * @progress_ns: when something was posted or paid for last
 * @sq: how far it has come
 * @tail: behind the last record
 * @stride: size of a record
 * @recs: ring of records
 * @sge: room for the elements of a batch
 * @slots: what is posted
 * @build: see there
 */
struct shim_qp {
	TAILQ_ENTRY(shim_qp) busy;
	struct shim_ctx *ctx;
	struct shim_cq *cq;
	struct ibv_qp *qp;
	struct ibv_qp_ex real;
	bool ex;
	bool pass;
	bool sig_all;
	bool tagged;
	bool joins;
	bool alone;
	uint32_t class_wish;
	uint32_t class_id;
	uint32_t classes;
	bool holds;
	bool stopped;
	bool flush;
	bool urge;
	uint32_t depth;
	uint32_t max_sge;
	uint32_t max_inline;
	uint32_t mtu;
	uint32_t max_rd_atomic;
	uint64_t accepted;
	uint64_t finished;
	uint64_t fresh;
	uint64_t fresh_last;
	bool full;
	uint64_t cost[RISO_USER_DIRS];
	int refused;
	uint64_t progress_ns;
	struct shim_sq sq;
	uint64_t tail;
	uint32_t stride;
	void *recs;
	struct ibv_sge *sge;
	struct shim_slots *slots;
	struct shim_build build;
};

/* ctx.c: contexts. */
extern struct shim_map shim_ctxs;

struct ibv_context *shim_open_device(struct ibv_device *device);
struct ibv_context *shim_import_device(int cmd_fd);
int shim_close_device(struct ibv_context *context);

/* qp.c: queue pairs. */
extern struct shim_map shim_qps, shim_told;

struct ibv_qp *shim_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *attr);
struct ibv_qp *shim_create_qp_ex(struct ibv_context *context,
				 struct ibv_qp_init_attr_ex *attr_ex);
void shim_del_flow(struct shim_qp *f);
void shim_forget_flow(struct shim_qp *f, uint32_t qp_num);
int shim_destroy_qp(struct ibv_qp *qp);
int shim_modify_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask);
int shim_query_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask,
		  struct ibv_qp_init_attr *init_attr);

/* cq.c: CQs. */
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

/* event.c: events of CQs. */
int shim_req_notify_cq(struct ibv_cq *cq, int solicited_only);
bool shim_comp_is_news(struct shim_cq *c);
int shim_get_cq_event(struct ibv_comp_channel *channel, struct ibv_cq **cq,
		      void **cq_context);

/* class.c: classes. */
extern pthread_mutex_t shim_class_lock;

uint32_t shim_get_default_wish(void);
void shim_qp_ask(struct shim_qp *f);
void shim_qps_refresh(struct shim_member *m);
void shim_ask_refused(struct shim_member *m);
void shim_qps_no_thread(struct shim_member *m);
int shim_set_class(struct ibv_qp *qp, uint32_t class_id);
int shim_over_target(struct ibv_qp *qp);

/* record.c: records. */
int shim_queue_alloc(struct shim_qp *f, uint32_t sq_entries);
void shim_queue_free(struct shim_qp *f);
void shim_queue_rewind(struct shim_qp *f);
struct shim_rec *shim_queue_stage(struct shim_qp *f, uint32_t n);
void shim_queue_inline(struct shim_rec *rec);
int shim_queue_inline_add(const struct shim_qp *f, struct shim_rec *rec,
			  const void *data, size_t len);
int shim_queue_copy(struct shim_qp *f, struct shim_rec *rec,
		    const struct ibv_send_wr *wr);
bool shim_queue_passes(const struct shim_qp *f);
void shim_queue_pass(struct shim_qp *f);
void shim_add_staged(struct shim_qp *f, uint32_t num, uint64_t now);
void shim_set_idle(struct shim_qp *f);
void shim_unhold_rec(struct shim_qp *f, struct shim_rec *rec);
void shim_pop_head(struct shim_qp *f);
void shim_truncate_queue(struct shim_qp *f, uint64_t pos);
void shim_queue_drop(struct shim_qp *f);

/* pay.c: payment and room. */

/**
 * struct piece - the work request that goes out next
 * @rec: its record
 * @chunk: size that messages are cut to
 * @len: bytes
 * @cost: cost bytes
 * @last: the message ends with it
 * @cut: it is not the whole message
 */
struct piece {
	struct shim_rec *rec;
	uint32_t chunk;
	uint32_t len;
	uint64_t cost;
	bool last;
	bool cut;
};

enum pay {
	PAY_NOT,
	PAY_GRANT,
	PAY_DEBT,
	PAY_NOTHING,
};

uint64_t shim_sum_cost(const struct shim_qp *f, const struct shim_rec *rec);
void shim_add_cost(struct shim_qp *f, int dir, int64_t cost);
void shim_set_full(struct shim_qp *f, bool full);
void shim_forget_paid(struct shim_qp *f, const struct shim_rec *rec);
void shim_get_piece(const struct shim_qp *f, bool open, struct piece *p);
enum pay shim_choose_pay(struct shim_qp *f, const struct piece *p, bool open,
			 uint64_t now);
bool shim_has_room(const struct shim_qp *f, const struct piece *p, bool open);
uint16_t shim_get_slot_flags(const struct shim_qp *f, const struct piece *p, bool open);
bool shim_pay_part(struct shim_qp *f, const struct piece *p);

/* post.c: posting. */
void shim_make_piece(struct shim_qp *f, const struct piece *p, bool open,
		     struct ibv_send_wr *wr, struct ibv_sge *sge);
void shim_count_posted(struct shim_qp *f, uint64_t pos);
void shim_queue_drive(struct shim_member *m);
void shim_urge_flow(struct shim_qp *f);
void shim_queue_drain(struct shim_qp *f, bool goes);
int shim_queue_publish(struct shim_qp *f, uint32_t num, bool whole);

/* send.c: ibv_post_send() and ibv_bind_mw(). */
int shim_post_send(struct ibv_qp *qp, struct ibv_send_wr *wr,
		   struct ibv_send_wr **bad_wr);
int shim_bind_mw(struct ibv_qp *qp, struct ibv_mw *mw, struct ibv_mw_bind *bind);

/* slot.c: slots and tags. */
extern struct shim_map shim_tags;

struct shim_slots *shim_slots_alloc(struct shim_qp *f, uint32_t num);
void shim_slots_free(struct shim_slots *s);
struct shim_slots *shim_find_tag(uint64_t wr_id);
void shim_count_tag(struct shim_qp *f, bool tagged);
void shim_retire_slots(struct shim_slots *s, struct shim_slot *slot, bool failed);
void shim_comp_bury(struct shim_cq *c);
void shim_comp_abandon(struct shim_cq *c, struct shim_slots *s);

/* comp.c: completions. */
bool shim_comp_translate(struct shim_soft *e);
void shim_comp_update(struct shim_cq *c);
void shim_comp_tag(struct shim_qp *f, bool tagged);
void shim_comp_join(struct shim_qp *f);
bool shim_comp_push(struct shim_cq *c, const struct shim_soft *e);
void shim_comp_pop(struct shim_cq *c, struct shim_soft *e);
int shim_comp_poll(struct shim_cq *c, int num, struct ibv_wc *wc);
void shim_take_completions(struct shim_cq *c, uint32_t max);
bool shim_comp_may_reap(struct shim_cq *c);
void shim_comp_reap_most(struct shim_cq *c, uint32_t max);
void shim_comp_reap(struct shim_cq *c);
int shim_comp_grow(struct shim_cq *c, int asked);
int shim_comp_attach(struct shim_qp *f);
void shim_comp_detach(struct shim_qp *f);
void shim_comp_purge(struct shim_cq *c, uint32_t qp_num, struct shim_qp *f);

/* poller.c: polls without a lock. */

/**
 * struct shim_poller - a thread that polls without a lock
 * @list: in the list of all
 * @known: it is in the list; of the thread itself
 * @turn: odd while it polls so
 */
struct shim_poller {
	LIST_ENTRY(shim_poller) list;
	bool known;
	uint32_t turn;
};

extern __thread struct shim_poller shim_poller
	__attribute__((tls_model("initial-exec")));
/**
 * enum shim_polls - may a poll without a lock begin?
 * @SHIM_POLLS_FREE: it may
 * @SHIM_POLLS_END: not any more
 * @SHIM_POLLS_ENDED: and all threads know
 */
enum shim_polls {
	SHIM_POLLS_FREE,
	SHIM_POLLS_END,
	SHIM_POLLS_ENDED,
};

extern enum shim_polls shim_polls;

int shim_membarrier(int cmd);
bool shim_poller_add(void);
void shim_pollers_wait(void);
void shim_pollers_lock(void);
void shim_pollers_unlock(void);
void shim_pollers_forked(void);

/* cqex.c: extended CQs. */
int shim_cqex_fill(struct shim_cq *c, uint32_t max);
bool shim_cqex_try(struct shim_cq *c);
void shim_cqex_leave(struct shim_cq *c);
void shim_cqex_swap(struct shim_cq *c, struct ibv_cq_ex *cq);

/* wr.c: the ibv_wr_* functions. */
void shim_wr_swap(struct shim_qp *f, struct ibv_qp_ex *qp);

/* member.c: members. */

/**
 * struct shim_members - the members
 * @list: all of them
 * @lock: protects @list and the rest, see struct shim_member
 * @handlers: fork() calls the handlers of fork.c
 * @told: stderr has a line about the file that cannot be opened
 */
struct shim_members {
	TAILQ_HEAD(, shim_member) list;
	pthread_mutex_t lock;
	bool handlers;
	bool told;
};

extern struct shim_members shim_members;
extern struct riso_kpage shim_no_kpage;
extern struct riso_upage shim_no_upage;

bool shim_member_open(const struct shim_member *m);
bool shim_has_news(const struct riso_kpage *k, const uint32_t *seq, uint32_t mode);
bool shim_member_news(const struct shim_member *m);
void shim_member_take(struct shim_member *m, uint64_t now);
void shim_member_publish(struct shim_member *m);
int shim_member_register(struct shim_member *m, uint32_t qpn, uint32_t *class_id);
void shim_wait_kernel(struct shim_member *m, const struct riso_ioc_wait *w);
void shim_free_member(struct shim_member *m);
int shim_member_attach(struct shim_member *m, uint32_t qpn);
void shim_member_report(struct shim_member *m, uint32_t qpn, uint32_t reason);
struct shim_member *shim_member_get(struct ibv_device *device);
void shim_member_put(struct shim_member *m);

/* helper.c: helper threads. */
void shim_init_wake(struct shim_member *m);
int shim_retry_helper(struct shim_member *m);
void shim_unlock_and_drive(struct shim_member *m);

/* fork.c: fork(), and threads that hold locks. */
void shim_enter(void);
void shim_leave(void);
void shim_prepare_fork(void);
void shim_unlock_all(void);
void shim_enter_child(void);

/* shim.c: what the shim stands on. */
void shim_debug(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/**
 * shim_lock - lock, in a call that unlocks before it returns
 * @lock: the lock
 */
static inline void shim_lock(pthread_mutex_t *lock)
{
	shim_enter();
	pthread_mutex_lock(lock);
}

/**
 * shim_unlock - unlock; a member only where nothing has begun to be held
 * @lock: the lock
 */
static inline void shim_unlock(pthread_mutex_t *lock)
{
	pthread_mutex_unlock(lock);
	shim_leave();
}

/**
 * shim_poll_begin - begin to poll without a lock, if the CQ is not active after that
 *
 * Return: false if this thread cannot.
 */
static inline bool shim_poll_begin(void)
{
	struct shim_poller *p = &shim_poller;

	if (__atomic_load_n(&shim_polls, __ATOMIC_RELAXED) != SHIM_POLLS_FREE ||
	    (!p->known && !shim_poller_add()))
		return false;
	__atomic_store_n(&p->turn, p->turn + 1, __ATOMIC_RELAXED);
	/* Pairs with the membarrier() of shim_pollers_wait(). */
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	return true;
}

/**
 * shim_poll_end - the opposite of shim_poll_begin()
 */
static inline void shim_poll_end(void)
{
	struct shim_poller *p = &shim_poller;

	/* Pairs with the load of shim_pollers_wait(). */
	__atomic_store_n(&p->turn, p->turn + 1, __ATOMIC_RELEASE);
}

/**
 * shim_slot_hidden - does its completion say nothing to the program?
 * @slot: the slot
 *
 * Return: true if there is one that the program did not ask for.
 */
static inline bool shim_slot_hidden(const struct shim_slot *slot)
{
	const unsigned int own = SHIM_SLOT_LAST | SHIM_SLOT_ASKED;

	return (slot->flags & SHIM_SLOT_SIGNALED) && (slot->flags & own) != own;
}

/**
 * shim_qp_set_parts - change shim_sq.parts, and whether the message is open and bare
 * @f: the flow
 * @parts: how many
 * @silent: posted since the last one with a completion
 */
static inline void shim_qp_set_parts(struct shim_qp *f, uint32_t parts,
				     uint32_t silent)
{
	struct shim_used *used = &f->cq->used;
	struct shim_sq *sq = &f->sq;

	used->open += (parts > 0) - (sq->parts > 0);
	used->bare += (parts && silent >= parts) - (sq->parts && sq->silent >= sq->parts);
	sq->parts = parts;
	sq->silent = silent;
}

static inline uint64_t shim_queue_len(const struct shim_qp *f)
{
	return f->tail - f->sq.head;
}

/**
 * shim_comp_seen - the program has polled
 * @c: the CQ; its member is locked
 */
static inline void shim_comp_seen(struct shim_cq *c)
{
	c->armed = false;
	c->owes = false;
	c->unseen = 0;
}

/**
 * shim_comp_shown - the present thread of the program gets a completion
 * @c: the CQ; its member is locked
 */
static inline void shim_comp_shown(struct shim_cq *c)
{
	pthread_t me = pthread_self();

	c->shown = !c->shown || c->shown == me ? me : SHIM_SEVERAL;
}

/**
 * shim_member_kpage - the kernel's page, for who has not locked the member
 * @m: the member
 *
 * Return: the page.
 */
static inline const struct riso_kpage *
shim_member_kpage(const struct shim_member *m)
{
	return __atomic_load_n(&m->kpage, __ATOMIC_ACQUIRE);
}

/**
 * shim_qp_fresh - is the class that is known the present one?
 * @f: the flow
 *
 * Return: false if it may have changed.
 */
static inline bool shim_qp_fresh(const struct shim_qp *f)
{
	return __atomic_load_n(&shim_member_kpage(f->ctx->m)->classes,
			       __ATOMIC_RELAXED) ==
	       __atomic_load_n(&f->classes, __ATOMIC_RELAXED);
}

/**
 * shim_member_stale - may the class of a flow that holds something have changed?
 * @m: the member
 *
 * Return: true if so.
 */
static inline bool shim_member_stale(const struct shim_member *m)
{
	return __atomic_load_n(&m->held, __ATOMIC_RELAXED) &&
	       __atomic_load_n(&m->classes, __ATOMIC_RELAXED) !=
	       __atomic_load_n(&shim_member_kpage(m)->classes, __ATOMIC_RELAXED);
}

/**
 * shim_qp_refresh - ask for the class again if it may have changed
 * @f: the flow; nothing is locked
 */
static inline void shim_qp_refresh(struct shim_qp *f)
{
	if (!shim_qp_fresh(f))
		shim_qp_ask(f);
}

/**
 * shim_find_ctx - find what is known of a context
 * @context: the context
 *
 * Return: what is known, or NULL.
 */
static inline struct shim_ctx *shim_find_ctx(const struct ibv_context *context)
{
	return shim_map_find(&shim_ctxs, context);
}

/**
 * shim_count_slots - count the slots that are in use
 * @f: the flow; its member is locked
 *
 * Return: how many.
 */
static inline uint64_t shim_count_slots(const struct shim_qp *f)
{
	return f->sq.slot - f->slots->tail;
}

/**
 * shim_find_rec - find the record at a position
 * @f: the flow
 * @pos: the position in its queue
 *
 * Return: the record.
 */
static inline struct shim_rec *shim_find_rec(const struct shim_qp *f, uint64_t pos)
{
	return f->recs + (size_t)(pos % f->depth) * f->stride;
}

/**
 * shim_get_dir - get the direction of a record
 * @rec: the record
 *
 * Return: the direction in which its data go.
 */
static inline enum riso_user_dir shim_get_dir(const struct shim_rec *rec)
{
	return rec->wr.opcode == IBV_WR_RDMA_READ ? RISO_USER_RX : RISO_USER_TX;
}

#endif /* SHIM_SHIM_H */
