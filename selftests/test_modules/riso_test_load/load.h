/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What all parts of riso_test_load share: limits and structures.
 *
 * main.c's run_lock lets one run at a time be, in the process that writes to debugfs.
 */
#ifndef RISO_TEST_LOAD_H
#define RISO_TEST_LOAD_H

#include <linux/atomic.h>
#include <linux/hrtimer.h>
#include <linux/irq_work.h>
#include <linux/sizes.h>
#include <linux/types.h>
#include <rdma/ib_verbs.h>

/* bytes of the largest message: what memory has in one piece */
#define LOAD_LEN_MAX	SZ_4M
/* queue pairs: what the largest case of the bench has */
#define LOAD_MAX_QPS	256
/* queue pairs that send nothing: what the bench has, with room for more */
#define LOAD_MAX_IDLE	4096
/* large messages of a queue pair that are out */
#define LOAD_MAX_DEPTH	64
#define LOAD_MAX_WINDOWS 64
/* A sample is 4 bytes. */
#define LOAD_MAX_SAMPLES SZ_64K
/* posts that are measured: their median is told */
#define LOAD_COSTS	256
/* bytes of what a run tells: 64 windows of 100 bytes, and more */
#define LOAD_RESULT	SZ_16K
/* what was posted ends within this time */
#define LOAD_END_MS	20000

/**
 * struct load_args - what is asked for
 * @dev: device that posts
 * @peer: device at the other end
 * @read: large messages are READs
 * @len: bytes of a large message
 * @qps: queue pairs of each group
 * @depth: large messages that each queue pair has out
 * @groups: 1, or 2 that are two ULPs
 * @depth2: the same as @depth of the second group
 * @rdatomic: READs that each queue pair may have out
 * @small: bytes of a small message
 * @every_us: time between two small messages, 0 for none
 * @wait_ms: time before the first window
 * @window_ms: length of a window
 * @windows: how many
 * @shared: another queue pair uses the CQ, of large messages, or with @managed of small ones
 * @managed: measure the cost of large messages' queue pair
 * @chain: work requests of a post
 * @size: bytes of a message whose whole cost is measured, 0 to measure a post and a poll
 * @count: such messages that are waited for at once
 * @idle: queue pairs of the first group that have sent one small message, and send no more
 * @mute: queue pairs of the first group that have a large message out, which nobody answers
 */
struct load_args {
	char dev[IB_DEVICE_NAME_MAX];
	char peer[IB_DEVICE_NAME_MAX];
	u32 read;
	u32 len;
	u32 qps;
	u32 depth;
	u32 groups;
	u32 depth2;
	u32 rdatomic;
	u32 small;
	u32 every_us;
	u32 wait_ms;
	u32 window_ms;
	u32 windows;
	u32 shared;
	u32 managed;
	u32 chain;
	u32 size;
	u32 count;
	u32 idle;
	u32 mute;
};

/**
 * struct load_end - one side
 * @dev: device
 * @port: its port
 * @gid_index: index of its address
 * @gid: its address
 * @mtu: of its port
 * @pd: protection domains: of both groups, and of small messages
 * @size: bytes of the buffer: the largest message
 * @va: buffer
 * @dma: address of the buffer
 */
struct load_end {
	struct ib_device *dev;
	u32 port;
	int gid_index;
	union ib_gid gid;
	enum ib_mtu mtu;
	struct ib_pd *pd[3];
	u32 size;
	void *va;
	u64 dma;
};

/* the domain of small messages in &load_end.pd */
enum { LOAD_SMALL = 2 };

/**
 * struct load_qp - a queue pair and its peer
 * @load: what it belongs to
 * @cqe: for its completions
 * @qp: the queue pair that posts
 * @peer: the other one
 * @cq: of @qp
 * @own_cq: nobody but us polls @cq
 * @mute: @peer does not answer
 * @depth: work requests that may be out, 0 for what the load or the measurement needs
 * @peer_cq: of @peer, where nothing ends
 * @bytes: that were delivered
 */
struct load_qp {
	struct load *load;
	struct ib_cqe cqe;
	struct ib_qp *qp;
	struct ib_qp *peer;
	struct ib_cq *cq;
	bool own_cq;
	bool mute;
	u32 depth;
	struct ib_cq *peer_cq;
	u64 bytes;
};

/**
 * struct load - a run
 * @arg: what is asked for
 * @a: side that posts
 * @b: the other side
 * @bulk: queue pairs of large messages, those of the first group first
 * @nbulk: how many
 * @small: queue pair of small messages
 * @idle: queue pairs that have sent one message, then those whose message nobody answers
 * @nidle: how many
 * @out: large messages that are out, and the first ones of @idle
 * @stop: no more are posted
 * @failed: status of a message that failed
 * @timer: posts the next small message
 * @poll: polls for its completion
 * @began: when the small message that is out was posted, 0 for none
 * @samples: ns that small messages took
 * @nsamples: how many
 * @record: samples are kept
 */
struct load {
	struct load_args arg;
	struct load_end a;
	struct load_end b;
	struct load_qp *bulk;
	u32 nbulk;
	struct load_qp small;
	struct load_qp *idle;
	u32 nidle;
	atomic_t out;
	bool stop;
	int failed;
	struct hrtimer timer;
	struct irq_work poll;
	u64 began;
	u32 *samples;
	u32 nsamples;
	bool record;
};

/* end.c */
int load_setup_end(struct load_end *e, const char *name, u32 size);
void load_free_end(struct load_end *e);
struct ib_cq *load_create_cq(struct load *l, ib_comp_handler handler, u32 entries);
int load_setup_qp(struct load *l, struct load_qp *q, int pd, struct ib_cq *cq);
void load_free_qp(struct load_qp *q);

/* result.c */
extern char load_result[LOAD_RESULT];
void load_tell(const char *fmt, ...) __printf(1, 2);
void load_sort(u32 *samples, u32 n);
u32 load_percentile(const u32 *sorted, u32 n, u32 thousandths);

/* idle.c */
int load_setup_idle(struct load *l);
int load_setup_mute(struct load *l);

/* traffic.c */
void load_init_traffic(struct load *l);
void load_init_wr(const struct load *l, struct load_qp *q, struct ib_sge *sge,
		  struct ib_rdma_wr *wr);
int load_post(struct load *l, struct load_qp *q, bool read, u32 len);
void load_large_done(struct ib_cq *cq, struct ib_wc *wc);
int load_run_traffic(struct load *l);

/* cost.c */
int load_run_cost(struct load *l);

/* busy.c */
int load_run_busy(struct load *l);

/* posts.c */
int load_run_posts(struct load *l);

#endif /* RISO_TEST_LOAD_H */
