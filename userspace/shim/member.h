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

#endif /* SHIM_MEMBER_H */
