/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The kernel that the shim asks: the device file with its two pages and its ioctls, the
 * clock, and threads. Tests write the kernel's page and read that of the process.
 */
#ifndef RISO_TEST_FAKE_KERNEL_H
#define RISO_TEST_FAKE_KERNEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <linux/rdma_isolate_user.h>

enum {
	KB = 1024,
	MB = 1024 * KB,
	MSEC = 1000000,		/* ns */
	FAKE_MTU = 1024,	/* path MTU of the queue pairs, in bytes */
	FAKE_CHUNK = 4 * KB,	/* size of a chunk, where tests set no other */
	FAKE_HEADER = 58,	/* bytes that each packet costs besides its payload */
};

struct fake_kernel {
	uint64_t now;			/* what the clock tells, in ns */
	int clocks;			/* times that the clock was read */
	union {
		struct riso_kpage k;	/* the kernel's page */
		char kroom[4096];
	};
	union {
		struct riso_upage u;	/* the page of the process */
		char uroom[4096];
	};
	uint32_t class_id;		/* class that REGISTER returns */
	uint32_t register_flags;	/* flags that it returns */
	uint8_t path[RISO_USER_DIRS];	/* paths that it returns */
	uint32_t wish;			/* class that the last REGISTER asked for */
	int open_err;			/* error of open(), 0 for none */
	int attach_err;			/* error of ATTACH */
	int map_err;			/* error of mmap() */
	int register_err;		/* error of REGISTER */
	int wait_err;			/* error of WAIT */
	int opened;			/* times that the file was opened */
	int next_file;			/* number that open() returns, 0 for a new one */
	uint64_t file_device;		/* which device all open files are */
	int closed;			/* times that the file was closed */
	int waits;			/* number of WAITs */
	int attached;			/* number of ATTACHes that succeeded */
	int registers;			/* number of REGISTERs */
	const char *now_called;		/* new name of uverbs0, NULL for none */
	const char *other_called;	/* name of uverbs1 */
	char attached_to[64];		/* device of the last ATTACH */
	uint32_t reported;		/* queue pair of the last REPORT */
	uint32_t reason;		/* reason of the last REPORT */
	uint64_t granted[RISO_USER_PATHS]; /* sum of all grants, in cost bytes */
	uint32_t timeout;		/* of the last WAIT with a timeout, in us */
	bool run_helper;		/* helper threads start */
	void *(*helper)(void *arg);	/* function of the helper threads */
	void *helps[4];			/* members whose helper thread did not start */
	uint32_t helpers;		/* number of members in @helps */
	int begun;			/* helper threads that were started */
	int ended;			/* helper threads that have ended */
	size_t least_stack;		/* smallest stack that a thread may have */
	int inherits;			/* inheritsched of the last thread */
	int thread_err;			/* error of pthread_create(), 0 for none */
	bool no_barrier;		/* membarrier() is refused */
	void (*at_barrier)(void);	/* called at each membarrier(), or NULL */
};

extern struct fake_kernel fake_kernel;

/**
 * fake_kernel_install - put the fake kernel in the place of the system's calls
 */
void fake_kernel_install(void);

/**
 * fake_kernel_reset - forget what the last test has set, and clear both pages
 */
void fake_kernel_reset(void);

/**
 * fake_cost - tell what the kernel charges for a piece
 * @len: bytes of payload
 *
 * Returns: cost bytes.
 */
uint64_t fake_cost(uint64_t len);

/**
 * fake_grant - grant for the next 10 ms
 * @dir: direction, one of RISO_USER_*
 * @bytes: cost bytes
 */
void fake_grant(int path, uint64_t bytes);

/**
 * fake_grant_until - grant until some time
 * @dir: direction, one of RISO_USER_*
 * @bytes: cost bytes
 * @not_after: time in ns from which on the grant is void
 */
void fake_grant_until(int path, uint64_t bytes, uint64_t not_after);

/**
 * fake_check_books - fail the test unless all that was posted is paid for
 */
void fake_check_books(void);

#endif /* RISO_TEST_FAKE_KERNEL_H */
