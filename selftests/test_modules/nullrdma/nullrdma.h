/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What all parts of nullrdma share: limits and structures.
 *
 * One engine moves all messages of all ends. It runs in hard interrupts of one CPU, as
 * its timer tells it. nr_engine.lock protects everything that has no other
 * note here: the wires, the states of queue pairs and messages, the tables of numbers,
 * and the memory regions. It is taken with interrupts off.
 *
 * Others protect:
 *
 *  - &nr_ring.lock what a poster writes, see &struct nr_ring;
 *  - &nr_cq.lock the side of a CQ that is polled.
 *
 * Both are taken inside nr_engine.lock, or without it.
 *
 * A handler of a ULP is called with none of them held.
 */
#ifndef NULLRDMA_H
#define NULLRDMA_H

#include <linux/atomic.h>
#include <linux/hrtimer.h>
#include <linux/list.h>
#include <linux/llist.h>
#include <linux/smp.h>
#include <linux/spinlock.h>
#include <linux/types.h>
#include <linux/workqueue.h>
#include <rdma/ib_verbs.h>

#include "../compat.h"

/* ends of one module: a test with more hosts would be of something else */
#define NR_MAX_ENDS	10
/* queue pairs of an end, a power of two; a table of pointers is 128 KB */
#define NR_MAX_QP	16384
/* the first number of a queue pair that is not special */
#define NR_FIRST_QP	16
/* memory regions of an end, a power of two: NVMe registers 128 for each queue */
#define NR_MAX_MR	16384
/* pages of a memory region: the test ULP needs 64 of 64 KB, NVMe 256 of 4 KB */
#define NR_MAX_PAGES	1024
/* work requests of one queue: what mlx5 allows */
#define NR_MAX_WR	32768
/* entries of a CQ: what SMC asks for */
#define NR_MAX_CQE	65536
/* SGEs of a work request: what rxe allows */
#define NR_MAX_SGE	32
/* bytes of inline data: what the test ULP asks for and a power of two */
#define NR_MAX_INLINE	256
/* READs and atomics of a queue pair in flight: what mlx5 allows */
#define NR_MAX_RD	16
/* bytes of a message: half of what the length of an SGE allows, as adapters do */
#define NR_MAX_MSG	BIT(30)
/* GIDs of a port: those of a netdev with a handful of addresses, twice each */
#define NR_GIDS		128
/* the key of all memory: no region has index 0 */
#define NR_ALL_LKEY	0x5e
/* never, in ns */
#define NR_NEVER	U64_MAX

/**
 * enum nr_state - where a message is
 * @NR_READY: it waits for its turn on the wire
 * @NR_SENT: it is on its way, or the acknowledgment is
 * @NR_ANSWER: a READ or an atomic was carried out, and the answer waits or is on its way
 * @NR_DONE: its end is known, and those in front of it may not have ended
 */
enum nr_state {
	NR_READY,
	NR_SENT,
	NR_ANSWER,
	NR_DONE,
};

/**
 * enum nr_gap - why a queue pair sends nothing
 * @NR_GAP_NONE: it sends
 * @NR_GAP_RNR: the peer had no receive, a timer runs
 * @NR_GAP_LOST: nobody answers, a timer runs
 * @NR_GAP_FATAL: a message failed, and the queue pair will be in error
 */
enum nr_gap {
	NR_GAP_NONE,
	NR_GAP_RNR,
	NR_GAP_LOST,
	NR_GAP_FATAL,
};

/* flags of &nr_wqe.flags */
#define NR_SIGNALED	BIT(0)
#define NR_SOLICITED	BIT(1)
#define NR_FENCED	BIT(2)
#define NR_INLINE	BIT(3)
/* nothing goes over the wire */
#define NR_LOCAL	BIT(4)
/* a READ or an atomic: the peer answers with data */
#define NR_FETCH	BIT(5)
/* It was carried out. It is not again when the answer was lost. */
#define NR_CARRIED_OUT	BIT(6)

struct nr_end;
struct nr_qp;
struct nr_mr;
struct nr_ah;

/**
 * struct nr_wqe - a work request of a send queue, and the message that it becomes
 * @link: in a list of a wire or of a flow, or empty
 * @bell: in &nr_end.bells, if it is the first of a post
 * @qp: queue pair of the requester
 * @when: time of the next thing that happens to it, ns
 * @posted: time of the post, ns
 * @wr_id: the ULP's name for it
 * @idx: position in the send queue
 * @batch: work requests of the post, if it is the first of it
 * @length: bytes of payload
 * @left: bytes that the wire has still to carry, headers included
 * @opcode: &enum ib_wr_opcode
 * @flags: NR_SIGNALED and others
 * @num_sge: SGEs, if there is no inline data
 * @state: where it is
 * @status: how it ended, if @state is NR_DONE or the acknowledgment is on its way
 * @ex: immediate data, or the key to invalidate
 * @rkey: key of the peer's memory
 * @raddr: address in the peer's memory
 * @reg: registration: the region, its new key and the rights of the peer
 * @atomic: operands of an atomic
 * @ud: address, number and key of the receiver of a datagram
 * @sge: SGEs
 * @data: inline data
 */
struct nr_wqe {
	struct list_head link;
	struct llist_node bell;
	struct nr_qp *qp;
	u64 when;
	u64 posted;
	u64 wr_id;
	u32 idx;
	u32 batch;
	u32 length;
	u32 left;
	u8 opcode;
	u8 flags;
	u8 num_sge;
	u8 state;
	u32 status;
	union {
		__be32 imm_data;
		u32 invalidate_rkey;
	} ex;
	u32 rkey;
	u64 raddr;
	union {
		struct {
			struct nr_mr *mr;
			u32 key;
			u32 access;
		} reg;
		struct {
			u64 compare_add;
			u64 swap;
		} atomic;
		struct {
			struct nr_ah *ah;
			u32 qpn;
			u32 qkey;
		} ud;
	};
	union {
		DECLARE_FLEX_ARRAY(struct ib_sge, sge);
		DECLARE_FLEX_ARRAY(u8, data);
	};
};

/**
 * struct nr_rwqe - a work request of a receive queue
 * @wr_id: the ULP's name for it
 * @num_sge: SGEs
 * @sge: SGEs
 */
struct nr_rwqe {
	u64 wr_id;
	u32 num_sge;
	struct ib_sge sge[];
};

/**
 * struct nr_ring - a send queue or a receive queue
 * @lock: protects @head, and what is written to entries between @tail and @head
 * @head: number of entries that were posted; the engine reads it without the lock
 * @tail: entries whose completion was polled; written by whoever polls
 * @done: entries that have ended, of the engine
 * @mask: number of entries, a power of two, less one
 * @stride: bytes of an entry
 * @max_sge: SGEs that an entry has room for
 * @buf: entries
 */
struct nr_ring {
	spinlock_t lock;	/* one poster at a time */
	u32 head;
	u32 tail;
	u32 done ____cacheline_aligned_in_smp;
	u32 mask;
	u32 stride;
	u32 max_sge;
	void *buf;
};

/**
 * struct nr_cqe - an entry of a CQ
 * @wc: what the ULP gets
 * @tail: &nr_ring.tail of the queue that the entry frees room in
 * @value: what @tail becomes
 */
struct nr_cqe {
	struct ib_wc wc;
	u32 *tail;
	u32 value;
};

/**
 * struct nr_cq - a completion queue
 * @ibcq: what the RDMA core knows
 * @lock: protects @tail, and @armed where it is set
 * @tail: entries that were polled
 * @armed: &enum ib_cq_notify_flags that the ULP waits for, 0 for none
 * @head: entries that were added, written by the engine
 * @mask: number of entries, a power of two, less one
 * @ring: entries
 * @link: in the engine's list of handlers to call, or in that of delayed events
 * @event_at: time of the delayed event, ns; NR_NEVER if none is due
 * @count: entries that the delayed event is for
 * @overrun: it was full, and said so
 */
struct nr_cq {
	struct ib_cq ibcq;
	spinlock_t lock;	/* one poller at a time */
	u32 tail;
	u32 armed;
	u32 head ____cacheline_aligned_in_smp;
	u32 mask;
	struct nr_cqe *ring;
	struct list_head link;
	u64 event_at;
	u32 count;
	bool overrun;
};

/**
 * struct nr_flow - messages of one queue pair that go over one wire in order
 * @queue: messages that wait, as the turn of the flow has not come or it may not send
 * @active: in &nr_end.active with sched=rr, while @cur is sent
 * @cur: message that is being sent with sched=rr
 * @offered: message that went from @queue to the front of the wire with sched=fifo
 * @picking: the next message is looked for
 * @busy: @cur is set; a poster reads it without a lock
 */
struct nr_flow {
	struct list_head queue;
	struct list_head active;
	struct nr_wqe *cur;
	struct nr_wqe *offered;
	bool picking;
	bool busy;
};

/**
 * struct nr_qp - a queue pair
 * @ibqp: what the RDMA core knows
 * @end: where it is
 * @sq: send queue
 * @rq: receive queue
 * @state: &enum ib_qp_state, written with both rings' locks held
 * @signal_all: every work request of the send queue is signaled
 * @number: number on the wire
 * @dest: number of the peer's queue pair
 * @peer: end of the peer, NULL if no end has the address
 * @mtu_shift: binary logarithm of the path's MTU
 * @seen: entries of the send queue that the engine knows
 * @requests: requests on the wire of @end
 * @answers: answers to them on the wire of @peer
 * @waiting: requests in &nr_flow.queue or on &nr_end.fifo
 * @reads: READs and atomics in flight
 * @gap: why nothing is sent
 * @gap_idx: entry of the send queue that is sent first after the gap
 * @gap_until: end of the gap, ns
 * @gap_link: in &nr_engine.gaps
 * @retries: times that nobody has answered in a row
 * @rnr: times that the peer had no receive in a row
 * @event: &enum ib_event_type to be told
 * @event_link: in &nr_engine.events
 * @attr: attributes that the ULP has set
 * @init: attributes that the ULP has created it with
 */
struct nr_qp {
	struct ib_qp ibqp;
	struct nr_end *end;
	struct nr_ring sq;
	struct nr_ring rq;
	u32 state;
	bool signal_all;
	u32 number;
	u32 dest;
	struct nr_end *peer;
	u32 mtu_shift;
	u32 seen;
	struct nr_flow requests;
	struct nr_flow answers;
	u32 waiting;
	u32 reads;
	enum nr_gap gap;
	u32 gap_idx;
	u64 gap_until;
	struct list_head gap_link;
	u32 retries;
	u32 rnr;
	enum ib_event_type event;
	struct list_head event_link;
	struct ib_qp_attr attr;
	struct ib_qp_init_attr init;
};

/**
 * struct nr_mr - a memory region
 * @ibmr: what the RDMA core knows
 * @pd: protection domain
 * @key: present key; its upper 24 bits are the index of the region
 * @valid: it may be used
 * @all: all of memory, at its own addresses
 * @access: &enum ib_access_flags
 * @iova: first address
 * @length: bytes
 * @page_shift: binary logarithm of the size of a page
 * @npages: pages that are set
 * @maxpages: pages that there is room for
 * @pages: addresses of the pages
 */
struct nr_mr {
	struct ib_mr ibmr;
	struct ib_pd *pd;
	u32 key;
	bool valid;
	bool all;
	int access;
	u64 iova;
	u64 length;
	u32 page_shift;
	u32 npages;
	u32 maxpages;
	u64 *pages;
};

/**
 * struct nr_pd - a protection domain
 * @ibpd: what the RDMA core knows
 */
struct nr_pd {
	struct ib_pd ibpd;
};

/**
 * struct nr_ah - an address
 * @ibah: what the RDMA core knows
 * @peer: end that has it, NULL if none has
 * @sgid: address of the sender
 * @dgid: address of the receiver
 * @ipv4: both are IPv4 addresses
 */
struct nr_ah {
	struct ib_ah ibah;
	struct nr_end *peer;
	union ib_gid sgid;
	union ib_gid dgid;
	bool ipv4;
};

/**
 * enum nr_kind - what is counted
 * @NR_KIND_WRITE: WRITEs, with immediate data or not
 * @NR_KIND_READ: READs
 * @NR_KIND_SEND: SENDs
 * @NR_KIND_OTHER: atomics, and what does not go over the wire
 * @NR_KINDS: how many kinds there are
 */
enum nr_kind {
	NR_KIND_WRITE,
	NR_KIND_READ,
	NR_KIND_SEND,
	NR_KIND_OTHER,
	NR_KINDS,
};

/**
 * struct nr_count - what became of messages of one kind
 * @messages: messages that succeeded
 * @bytes: bytes of their payloads
 * @last_bytes: bytes of the last one
 * @last_ns: time from the post of the last one to its end, as the wire says
 * @late_ns: time from then to when the engine has seen it
 */
struct nr_count {
	u64 messages;
	u64 bytes;
	u64 last_bytes;
	u64 last_ns;
	u64 late_ns;
};

/**
 * struct nr_dev - the device of an end, as long as it is registered
 * @ibdev: what the RDMA core knows
 * @end: the end, which outlives the device
 */
struct nr_dev {
	struct ib_device ibdev;
	struct nr_end *end;
};

/**
 * struct nr_end - an end: a device and its wire
 * @bells: posts that the engine has not seen
 * @busy: with sched=fifo: the engine comes back before a new message could arrive
 * @free_at: time from which the wire has nothing to do, ns
 * @last_arrival: time when the last message on @pipe arrives, ns
 * @last_ack: time when the last acknowledgment on @acks arrives, ns
 * @byte_ns: time that a byte takes, in units of 2^-32 ns
 * @ns_bytes: bytes that leave in a ns, in units of 2^-32 bytes
 * @delay_ns: propagation delay, ns
 * @fifo: messages that wait, with sched=fifo
 * @pipe: messages that have left, in the order of their arrival
 * @acks: acknowledgments that have left, in the order of their arrival
 * @opening: messages that the adapter does not know yet, with sched=rr
 * @active: flows that take turns, with sched=rr
 * @nactive: number of them
 * @turn_at: time when the present turn has begun, ns
 * @finish_at: time when the first of the messages has left, ns; NR_NEVER if none is sent
 * @finish_turns: whole turns of any flow from @turn_at until the last one of that message
 * @qps: queue pairs by number
 * @mrs: memory regions by index
 * @next_qp: number that is tried first for a new queue pair
 * @next_mr: index that is tried first for a new memory region
 * @up: the port is up
 * @carrier: the netdev is up and has a carrier
 * @mbps: rate of the wire, Mbit/s
 * @port_speed: what the port tells, NR_SPEED_FITS if that is @mbps
 * @mtu: MTU of a path, bytes
 * @count: what became of its requests
 * @lost: messages that nobody was there for
 * @not_ready: messages that found no receive
 * @events: calls of handlers of its CQs
 * @index: position in nr_ends
 * @ifindex: number of the netdev
 * @dev: device, NULL once it is not registered any more
 * @gone: unregisters the device when the netdev goes
 */
struct nr_end {
	struct llist_head bells;
	bool busy;
	u64 free_at ____cacheline_aligned_in_smp;
	u64 last_arrival;
	u64 last_ack;
	u64 byte_ns;
	u64 ns_bytes;
	u64 delay_ns;
	struct list_head fifo;
	struct list_head pipe;
	struct list_head acks;
	struct list_head opening;
	struct list_head active;
	u32 nactive;
	u64 turn_at;
	u64 finish_at;
	u64 finish_turns;
	struct nr_qp **qps;
	struct nr_mr **mrs;
	u32 next_qp;
	u32 next_mr;
	bool up;
	bool carrier;
	u32 mbps;
	u32 port_speed;
	u32 mtu;
	struct nr_count count[NR_KINDS];
	u64 lost;
	u64 not_ready;
	u64 events;
	int index;
	int ifindex;
	struct nr_dev *dev;
	struct work_struct gone;
};

/**
 * struct nr_engine - what moves all messages
 * @lock: protects it, and what the opening comment of this file says
 * @timer: wakes it at the time of the next event
 * @call: interrupts its CPU when another one has posted
 * @called: @call is on its way
 * @cpu: CPU that it runs on
 * @running: it runs, and looks again at what was posted before it ends
 * @dirty: ends whose wires have changed since they were looked at, a bit for each
 * @next: for each end, time of its next event, ns; it may be too early
 * @timed_at: time of the first of @delayed and @gaps, ns; it may be too early
 * @armed: time that @timer was set to, ns
 * @now: time that it has read last, ns
 * @fired: CQs whose handlers are to be called
 * @delayed: CQs whose events are delayed, by time
 * @events: queue pairs whose event handlers are to be called
 * @gaps: queue pairs that send nothing for a while, by time
 * @calling: CQ or queue pair whose handler is being called
 */
struct nr_engine {
	spinlock_t lock;	/* all that the engine moves */
	struct hrtimer timer;
	call_single_data_t call;
	atomic_t called;
	int cpu;
	bool running;
	u32 dirty;
	u64 next[NR_MAX_ENDS];
	u64 timed_at;
	u64 armed;
	u64 now;
	struct list_head fired;
	struct list_head delayed;
	struct list_head events;
	struct list_head gaps;
	void *calling;
};

extern struct nr_engine nr_engine;
extern struct nr_end *nr_ends[NR_MAX_ENDS];
extern int nr_num_ends;

static inline struct nr_dev *to_nr_dev(struct ib_device *ibdev)
{
	return container_of(ibdev, struct nr_dev, ibdev);
}

static inline struct nr_end *nr_get_end(struct ib_device *ibdev)
{
	return to_nr_dev(ibdev)->end;
}

static inline struct nr_qp *to_nr_qp(struct ib_qp *ibqp)
{
	return container_of(ibqp, struct nr_qp, ibqp);
}

static inline struct nr_cq *to_nr_cq(struct ib_cq *ibcq)
{
	return container_of(ibcq, struct nr_cq, ibcq);
}

static inline struct nr_mr *to_nr_mr(struct ib_mr *ibmr)
{
	return container_of(ibmr, struct nr_mr, ibmr);
}

static inline struct nr_ah *to_nr_ah(struct ib_ah *ibah)
{
	return container_of(ibah, struct nr_ah, ibah);
}

/*
 * Messages change lists four times each. The kernel's functions look at every neighbour
 * with CONFIG_DEBUG_LIST, which would be a third of what the engine does.
 */
static inline void nr_append(struct nr_wqe *wqe, struct list_head *list)
{
	struct list_head *last = list->prev;

	wqe->link.prev = last;
	wqe->link.next = list;
	list->prev = &wqe->link;
	last->next = &wqe->link;
}

static inline void nr_remove(struct nr_wqe *wqe)
{
	__list_del(wqe->link.prev, wqe->link.next);
	INIT_LIST_HEAD(&wqe->link);
}

static inline struct nr_wqe *nr_get_first(struct list_head *list)
{
	return list_first_entry_or_null(list, struct nr_wqe, link);
}

/* Something happens at an end at @t, and maybe before. */
static inline void nr_expect(struct nr_end *end, u64 t)
{
	if (t < nr_engine.next[end->index])
		nr_engine.next[end->index] = t;
}

static inline struct nr_wqe *nr_get_wqe(struct nr_qp *qp, u32 idx)
{
	return qp->sq.buf + (size_t)(idx & qp->sq.mask) * qp->sq.stride;
}

static inline struct nr_rwqe *nr_get_rwqe(struct nr_qp *qp, u32 idx)
{
	return qp->rq.buf + (size_t)(idx & qp->rq.mask) * qp->rq.stride;
}

#endif /* NULLRDMA_H */
