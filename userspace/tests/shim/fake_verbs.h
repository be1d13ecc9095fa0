/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * A provider that exists in memory only: its device, its limits, and what tests make it
 * do. fake_qp.h has its queue pairs, fake_cq.h its CQs.
 */
#ifndef RISO_TEST_FAKE_VERBS_H
#define RISO_TEST_FAKE_VERBS_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <infiniband/verbs.h>

struct fake_cq;
struct fake_qp;

struct fake_verbs {
	struct verbs_context v;		/* of the device that was opened first */
	struct verbs_context second;	/* of one that was opened besides */
	struct ibv_device device;
	struct ibv_pd domain;		/* the only parent domain */
	struct ibv_parent_domain_init_attr domain_asked;	/* the last request for it */
	struct ibv_cq_init_attr_ex cq_asked;	/* the last request for an extended CQ */
	pthread_mutex_t lock;		/* protects queue pairs and CQs */
	int max_qp_wr;			/* largest send queue */
	int max_cqe;			/* largest CQ */
	bool lacks_poll;		/* a new context has no poll_cq */
	int no_resize;			/* no CQ can be resized */
	uint32_t next_qpn;		/* number of the next queue pair */
	uint32_t inline_given;		/* inline data of new queue pairs, 0: as asked */
	uint32_t depth_given;		/* depth of new queue pairs, 0: as asked */
	struct fake_cq *from;		/* CQ of the next event */
	void (*at_sleep)(void);		/* called where there is no event to return */
	void (*at_call)(void);		/* called where a system call may be made */
	void (*at_resized)(void);	/* called when a CQ has its new size */
	int (*at_destroy)(struct ibv_cq *cq);	/* called in place of destroying a CQ */
	struct fake_cq *reused;		/* memory of the next CQ, NULL: new memory */
	bool keeps_lock;		/* a session locks its CQ, as with irdma */
	bool older;			/* CQs end where those of an old libibverbs do */
	bool deadlock;			/* a call has waited for a session in vain */
	int calls;			/* a counter for tests */
	bool names_none;		/* a refused post names no work request */
	uint32_t given;			/* SENDs of the queue pair torn down last */
	struct fake_qp *runs_on;	/* queue pair that runs when anybody polls */
};

extern struct fake_verbs fake_verbs;

/* The context of new queue pairs. NULL makes the next device the first one. */
extern struct ibv_context *fake_ctx;

/**
 * fake_verbs_install - put the provider in the place of libibverbs
 */
void fake_verbs_install(void);

/**
 * fake_verbs_reset - forget what the last test has set
 */
void fake_verbs_reset(void);

/**
 * fake_syscall - tell the test that a call may make a system call
 */
void fake_syscall(void);

#endif /* RISO_TEST_FAKE_VERBS_H */
