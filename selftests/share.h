/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Processes that take part in a device by /dev/rdma_isolate, honest ones and others.
 */
#ifndef SHARE_H
#define SHARE_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include <infiniband/verbs.h>

#include <linux/rdma_isolate_user.h>

/* A process that takes part, with a queue pair that posts nothing. */
struct share {
	int fd;
	const struct riso_kpage *k;
	struct riso_upage *u;
	struct ibv_context *context;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_qp *qp;
};

/* Shared with children: they go on until @enough, and some count what they are given. */
struct share_end {
	bool enough;
	__u64 bytes;
};

extern const char *share_device;
extern size_t share_page;
extern struct share_end *share_end;

/* To be called first */
void share_init(const char *device);
__u64 share_now(void);

/* The calls of the file; an errno or 0 */
int share_open_file(void);
int share_attach(int fd, const char *dev, __u32 version, __u32 qpn);
int share_register(int fd, __u32 qpn, __u32 *class);
int share_wait(const struct share *s, __u32 timeout_us);
void *share_map(int fd, int prot, int flags, size_t size, off_t offset);

/* A queue pair, connected to itself, with which the process takes part */
void share_make_qp(struct share *s);
void share_connect_qp(struct share *s);
void share_take_part(struct share *s);
struct share share_open_qp(void);
struct share share_join(void);
void share_close_qp(struct share *s);
void share_leave(struct share *s);

/* Take all that is given for @ns, post none of it or all; the bytes. */
__u64 share_take(struct share *s, __u64 ns, bool post);

/* What a child does until there is enough; its exit status */
int share_rival(struct share *unused);
int share_claim(struct share *unused);
int share_grasp(struct share *unused);
int share_grasp_mute(struct share *unused);
int share_keep(struct share *unused);

#endif /* SHARE_H */
