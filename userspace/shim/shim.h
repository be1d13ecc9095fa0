/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What all files of the shim share. The words are those of the kernel module: a flow
 * is a queue pair, a record is a held work request, a slot is a posted one.
 *
 * Locks, in the order in which they are taken:
 *
 *	shim_build.lock		from ibv_wr_start() to ibv_wr_complete() or _abort()
 *	shim_cq.session		while the program polls: of an extended CQ from
 *				ibv_start_poll() to ibv_end_poll()
 *	shim_cq.resize		while the provider resizes a CQ
 *	shim_class_lock		what the kernel is asked for, until that is in force
 *	shim_size_lock		what is known of the sizes of CQs
 *	pollers.lock		poller.c: threads that poll without a lock
 *	shim_members.lock	the list of members, and their helper threads
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
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <infiniband/verbs.h>

#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))

/**
 * struct shim_real - the functions of libibverbs that the shim stands in front of
 * @open_device: ibv_open_device()
 * @import_device: ibv_import_device()
 * @close_device: ibv_close_device()
 * @get_device_name: ibv_get_device_name()
 * @query_device: ibv_query_device()
 * @create_qp: ibv_create_qp()
 * @destroy_qp: ibv_destroy_qp()
 * @modify_qp: ibv_modify_qp()
 * @query_qp: ibv_query_qp()
 * @qp_to_qp_ex: ibv_qp_to_qp_ex()
 * @create_cq: ibv_create_cq()
 * @resize_cq: ibv_resize_cq()
 * @destroy_cq: ibv_destroy_cq()
 * @get_cq_event: ibv_get_cq_event()
 * @ack_cq_events: ibv_ack_cq_events()
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
 * struct shim_sys - the functions of the system that unit tests replace
 * @open: open()
 * @read: read()
 * @ioctl: ioctl()
 * @mmap: mmap()
 * @munmap: munmap()
 * @close: close()
 * @device_of: st_rdev of an open file, 0 if it is none
 * @now: CLOCK_MONOTONIC in nanoseconds
 * @create_thread: pthread_create()
 * @membarrier: membarrier() without flags
 */
struct shim_sys {
	int (*open)(const char *path, int flags, ...);
	ssize_t (*read)(int fd, void *buf, size_t count);
	int (*ioctl)(int fd, unsigned long request, ...);
	void *(*mmap)(void *addr, size_t len, int prot, int flags, int fd,
		      off_t off);
	int (*munmap)(void *addr, size_t len);
	int (*close)(int fd);
	uint64_t (*device_of)(int fd);
	uint64_t (*now)(void);
	int (*create_thread)(pthread_t *thread, const pthread_attr_t *attr,
			     void *(*fn)(void *arg), void *arg);
	int (*membarrier)(int cmd);
};

extern struct shim_sys shim_sys;

int shim_membarrier(int cmd);
void shim_debug(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
void shim_warn(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

#endif /* SHIM_SHIM_H */
