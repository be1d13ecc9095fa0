/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * This process on its devices. See member.c.
 */
#ifndef SHIM_MEMBER_H
#define SHIM_MEMBER_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>
#include <infiniband/verbs.h>
#include <linux/rdma_isolate_user.h>

#include "grant.h"
#include "line.h"

TAILQ_HEAD(shim_qp_list, shim_qp);

enum {
	/* Nanoseconds: a program that polls all the time does so in most of these. */
	SHIM_POLL_NS = 100000,
};

/**
 * struct shim_book - what a member has done on one path
 * @posted: cost bytes posted so far, for riso_upath.posted
 * @done: cost bytes known to be complete, for riso_upath.done
 * @debt: cost bytes posted without a grant, for riso_upath.debt
 * @held: cost bytes that are held and not paid for
 * @stuck: cost bytes of @held whose flow waits for room, and could not use a grant
 * @ahead: cost bytes that are wanted beyond what is held, while the program polls
 * @given_ns: when a grant was taken over last
 * @budget: grants that are not spent
 */
struct shim_book {
	uint64_t posted;
	uint64_t done;
	uint64_t debt;
	uint64_t held;
	uint64_t stuck;
	uint64_t ahead;
	uint64_t given_ns;
	struct shim_budget budget;
};

/**
 * struct shim_terms - what the kernel's page said last of how to post
 * @paths: number of paths, riso_kpage.paths
 * @chunk: riso_kpath.chunk, by path
 * @header: riso_kpage.header
 * @op_bytes: riso_kpage.op_bytes
 * @slice_ns: riso_kpage.slice_ns
 * @sparse: riso_kpage.sparse
 * @window: riso_kpage.window
 * @rate: riso_kpage.rate
 *
 * The page may change at any time, these do not while a batch is made.
 */
struct shim_terms {
	uint32_t paths;
	uint32_t chunk[RISO_USER_PATHS];
	uint32_t header;
	uint32_t op_bytes;
	uint32_t slice_ns;
	uint64_t sparse;
	uint64_t window;
	uint64_t rate;
};

/**
 * struct shim_member - this process on one device
 * @list: entry of shim_members.list, under shim_members.lock
 * @lock: protects the member, its flows, their records and slots, and their CQs
 * @refs: number of contexts; under shim_members.lock
 * @wake: wakes the helper; used with shim_members.lock
 * @started: the helper runs; under shim_members.lock
 * @failed: no helper could be started, so nothing has to wait; changes under
 *	shim_members.lock, read without it
 * @dev: name of the device's file, such as uverbs0, which stays when the device is renamed;
 *	empty in a child
 * @name: name that the device had when the program opened it first
 * @fd: the open file, -1 if there is none; under shim_class_lock. The program may have closed it,
 *	and may have another file of that number.
 * @file_device: which device the file is, for shim_member_close_file()
 * @attached: the process takes part in the device; changes under shim_class_lock and @lock
 * @refused: a flow is not governed, and may be later; read and written without a lock
 * @gone: the device is gone, so nothing has to wait any more; read and written without a lock
 * @spin_ns: nanoseconds for which the helper looks at the kernel's page before it sleeps
 * @kpage: the kernel's page, or an empty one; read without @lock
 * @upage: the page for the kernel, or an empty one
 * @terms: how to post
 * @book: what was held, posted and owed, by path
 * @slice: debt of sparse work requests
 * @held: number of records held; read without @lock
 * @hidden: number of pieces that are out with a completion that the program did not ask for;
 *	read without @lock
 * @busy: flows that hold something
 * @num_busy: number of flows in @busy
 * @line: those of them that stand in line for grants, by path, the next in turn first
 * @waiting: something was held when the member was unlocked last
 * @classes: riso_kpage.classes when the kernel was asked last for the classes of flows that
 *	hold something; read without @lock
 * @retired: something has completed since shim_queue_drive() ran last
 * @asked: the kernel knows that grants are wanted, by path
 * @grants: riso_kpage.grants as seen last; read without @lock
 * @mode: riso_kpage.mode as seen last; read without @lock
 * @round: number of the helper's present round, which counts from 0
 * @polls: number of times of %SHIM_POLL_NS in which the program has polled an active CQ
 * @polled_ns: when the last of these began
 * @polls_seen: @polls when the helper looked last
 * @looked_ns: when the helper looked last
 * @polls_since: when the program began to poll all the time, 0 if it does not
 * @naps: it polls all the time, so the helper need not wake up for grants; read without @lock
 * @asked_ns: when a program that polls has asked the kernel last
 * @lanes: number of flows so far, which take the elements of riso_upage.passed in turn; read and
 *	written without a lock
 *
 * Without another word a member of the structure is under @lock, or never changes.
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
	uint64_t file_device;
	bool attached;
	bool refused;
	bool gone;
	uint64_t spin_ns;
	const struct riso_kpage *kpage;
	struct riso_upage *upage;
	struct shim_terms terms;
	struct shim_book book[RISO_USER_PATHS];
	struct shim_slice slice;
	uint32_t held;
	uint32_t hidden;
	struct shim_qp_list busy;
	uint32_t num_busy;
	struct shim_line line[RISO_USER_PATHS];
	bool waiting;
	uint32_t classes;
	bool retired;
	bool asked[RISO_USER_PATHS];
	uint32_t grants;
	uint32_t mode;
	uint32_t round;
	uint32_t polls;
	uint64_t polled_ns;
	uint32_t polls_seen;
	uint64_t looked_ns;
	uint64_t polls_since;
	bool naps;
	uint64_t asked_ns;
	uint32_t lanes;
};

/**
 * struct shim_members - the members
 * @list: all members
 * @lock: protects @list, @told, and what struct shim_member says is under it
 * @told: stderr has a line about the file that cannot be opened
 */
struct shim_members {
	TAILQ_HEAD(, shim_member) list;
	pthread_mutex_t lock;
	bool told;
};

extern struct shim_members shim_members;
extern struct riso_kpage shim_no_kpage;
extern struct riso_upage shim_no_upage;

bool shim_member_is_open(const struct shim_member *m);
bool shim_has_news(const struct riso_kpage *k, uint32_t grants, uint32_t mode);
uint64_t shim_member_sum_posted(const struct shim_member *m);
bool shim_member_holds_none(const struct shim_member *m);
bool shim_member_has_grants(const struct shim_member *m);
bool shim_member_news(const struct shim_member *m);
void shim_member_read_terms(struct shim_member *m);
void shim_member_take(struct shim_member *m, uint64_t now);
void shim_member_publish(struct shim_member *m);
void shim_member_set_naps(struct shim_member *m, bool naps);
int shim_member_register(struct shim_member *m, struct riso_ioc_register *reg);
void shim_wait_kernel(struct shim_member *m, const struct riso_ioc_wait *w);
void shim_member_close_file(struct shim_member *m);
void shim_free_member(struct shim_member *m);
int shim_member_attach(struct shim_member *m, uint32_t qpn);
void shim_member_report(struct shim_member *m, uint32_t qpn, uint32_t reason);
void shim_init_wake(struct shim_member *m);
struct shim_member *shim_member_get(struct ibv_device *device);
void shim_member_put(struct shim_member *m);

/**
 * shim_member_kpage - get the kernel's page without the lock of the member
 * @m: the member
 *
 * Pairs with the release in map_pages().
 *
 * Return: the page.
 */
static inline const struct riso_kpage *
shim_member_kpage(const struct shim_member *m)
{
	return __atomic_load_n(&m->kpage, __ATOMIC_ACQUIRE);
}

/**
 * shim_member_stale - tell whether the class of a flow that holds something may have changed
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

#endif /* SHIM_MEMBER_H */
