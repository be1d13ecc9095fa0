/* SPDX-License-Identifier: GPL-2.0 WITH Linux-syscall-note */
/*
 * /dev/rdma_isolate: how the verbs of a process take part in the shares of a device.
 *
 * A process opens the file, attaches it to one RDMA device, and maps two pages. The
 * kernel writes the first: how messages are to be cut, and grants of bytes that may be
 * posted until a point in time. The process writes the second: how much it wants to
 * post, and what became of the grants. Nothing that it writes there is trusted.
 *
 * All times are of CLOCK_MONOTONIC, in nanoseconds. Sizes are in cost bytes: the bytes
 * of a work request on the wire, the payload with riso_kpage.header around each packet
 * of the path MTU and 16 for itself, but at least riso_kpage.op_bytes. A READ costs what
 * it brings, in direction RISO_USER_RX; everything else counts in RISO_USER_TX.
 */
#ifndef _UAPI_LINUX_RDMA_ISOLATE_USER_H
#define _UAPI_LINUX_RDMA_ISOLATE_USER_H

#include <linux/ioctl.h>
#include <linux/types.h>

#define RISO_USER_FILE		"/dev/rdma_isolate"
/* Of the pages and ioctls; another one is refused. */
#define RISO_USER_VERSION	4

/*
 * Paths that a process may be told of: one for each direction, which leads to all peers that have
 * no limit of their own, and one for each limit of a peer and direction.
 */
#define RISO_USER_PATHS		16

/* What goes straight is counted in as many places, so that threads need not share one. */
#define RISO_USER_LANES		32

/* Offsets for mmap(), in pages, of a page each. The first is read-only. */
#define RISO_USER_KPAGE		0
#define RISO_USER_UPAGE		1

/**
 * enum riso_user_dir - direction of the bytes
 * @RISO_USER_TX: local to remote: WRITE, SEND, atomics
 * @RISO_USER_RX: remote to local: READ
 * @RISO_USER_DIRS: how many
 */
enum riso_user_dir {
	RISO_USER_TX,
	RISO_USER_RX,
	RISO_USER_DIRS,
};

/**
 * enum riso_user_mode - what a process shall do with its managed flows
 * @RISO_USER_OPEN: post at once and uncut; nobody else is active, or the device
 *	is not enabled. What is posted then may be counted in &riso_upage.passed alone
 * @RISO_USER_PACED: post under grants, or within &riso_kpage.sparse as debt
 */
enum riso_user_mode {
	RISO_USER_OPEN,
	RISO_USER_PACED,
};

/**
 * struct riso_grant - the right to post some bytes
 * @not_after: void from then on
 * @bytes: how many
 * @seq: its number
 * @pad: 0
 */
struct riso_grant {
	__u64 not_after;
	__u64 bytes;
	__u32 seq;
	__u32 pad;
};

/**
 * struct riso_kpath - grants for one path
 * @seq: number of the grant given last, from 1 on; 0 when there was none
 * @chunk: size that messages are cut to (payload bytes), rounded up to a multiple of the
 *	path MTU, 0 for uncut
 * @grant: grant n is in element n % 2
 * @pad: 0
 *
 * An element is overwritten only when it is void or riso_upath.taken says that it was
 * taken. While that is being done riso_grant.seq is 0, and @seq is written last: what was
 * read of an element counts if riso_grant.seq was n before and after.
 *
 * Grant 1 follows grant 4294967295, and is in the same element: if the process has not taken
 * that one, it is lost.
 */
struct riso_kpath {
	__u32 seq;
	__u32 chunk;
	struct riso_grant grant[2];
	__u64 pad;
};

/**
 * struct riso_kpage - what the kernel tells a process
 * @version: RISO_USER_VERSION
 * @mode: enum riso_user_mode
 * @classes: changes when a registered queue pair may have another class, other flags or another
 *	path than RISO_IOC_REGISTER answered last, or the rules allow a wish that it refused
 * @op_bytes: least cost of a work request
 * @header: bytes around the payload of each packet
 * @slice_ns: length of a slice
 * @sparse: cost bytes that may be posted in each slice without a grant, by work requests
 *	that are not cut, of queue pairs of which nothing is held
 * @window: cost bytes that may be posted and not completed, per queue pair
 * @over_target: 1 while an agent finds that latency flows wait longer than they should
 *	(Current99 above Target99), 0 otherwise
 * @paths: elements of @path that are in use, at least RISO_USER_DIRS; it never gets less
 * @looks_until: until then the kernel looks at riso_upath.want without a call, every 50 us or so; 0
 *	for never
 * @looked: when the kernel looked last, while the process says that it polls. If that is long ago
 *	and riso_kpage.looks_until is to come, its timer is late, and RISO_IOC_WAIT is in its place
 * @rate: cost bytes per second that all may post together while there is a latency flow, 0 while
 *	there is none. What the path of a queue pair holds at this rate may be out besides @window
 * @grants: changes with each grant, after riso_kpath.seq
 * @pad32: 0
 * @pad: 0
 * @path: grants. The first two are those of enum riso_user_dir. Behind them are those of paths with
 *	a limit: what goes there is posted under grants also while @mode is RISO_USER_OPEN
 */
struct riso_kpage {
	__u32 version;
	__u32 mode;
	__u32 classes;
	__u32 op_bytes;
	__u32 header;
	__u32 slice_ns;
	__u64 sparse;
	__u64 window;
	__u32 over_target;
	__u32 paths;
	__u64 looks_until;
	__u64 looked;
	__u64 rate;
	__u32 grants;
	__u32 pad32;
	__u64 pad[6];
	struct riso_kpath path[RISO_USER_PATHS];
};

/**
 * struct riso_upath - what a process tells of one path
 * @want: cost bytes held for which there is no grant
 * @posted: cost bytes posted in all, with and without grants, ever growing
 * @done: of @posted, those that have completed
 * @debt: of @posted, those posted without a grant while grants were needed
 * @taken: number of the last grant taken over
 * @pad: 0
 */
struct riso_upath {
	__u64 want;
	__u64 posted;
	__u64 done;
	__u64 debt;
	__u32 taken;
	__u32 pad[7];
};

/**
 * struct riso_upassed - what was posted and is counted nowhere else
 * @bytes: cost bytes, by direction, ever growing
 * @pad: 0
 *
 * The kernel goes by the sum of all, and takes them for complete. Who adds to one without an
 * atomic operation may lose what another thread adds at the same moment.
 */
struct riso_upassed {
	__u64 bytes[RISO_USER_DIRS];
	__u64 pad[6];
};

/**
 * struct riso_upage - what a process tells the kernel
 * @path: by path, see riso_kpage.path
 * @lanes: elements of @passed that are in use, the first ones
 * @polls: 1 while the process looks at riso_kpage.grants all the time, so that it need not be
 *	woken up
 * @pad: 0
 * @passed: what was posted in mode RISO_USER_OPEN and went straight to the device
 */
struct riso_upage {
	struct riso_upath path[RISO_USER_PATHS];
	__u32 lanes;
	__u32 polls;
	__u32 pad[14];
	struct riso_upassed passed[RISO_USER_LANES];
};

#define RISO_IOC_MAGIC	0xb9

/**
 * struct riso_ioc_attach - take part in a device
 * @version: RISO_USER_VERSION
 * @qpn: number of a queue pair of the process on the device, a reliable connection
 * @dev: name of the RDMA device
 *
 * Once for each file. Grants are given only while a registered queue pair is in RTS.
 * Errors: EPROTONOSUPPORT for another version; EINVAL for a name that does not end;
 * ENODEV when the network namespace of the caller has no such device, or the process has
 * closed a descriptor of the file; ENOENT when the process has no such queue pair;
 * EBUSY when the process has the device with another file, or the file has one;
 * EDQUOT when the container of the process, or outside of containers its user, has too
 * many processes on the device, or takes part anew too often; EUSERS when the device has
 * too many; ENOMEM. After EDQUOT and EUSERS, flow dumps give RISO_REASON_NO_PLACE for the
 * queue pair.
 */
struct riso_ioc_attach {
	__u32 version;
	__u32 qpn;
	char dev[64];
};

#define RISO_IOC_ATTACH		_IOW(RISO_IOC_MAGIC, 0, struct riso_ioc_attach)

/* For riso_ioc_register.class_id: the rules decide alone. */
#define RISO_CLASS_BY_RULE	0xffffffffU

/*
 * Of riso_ioc_register.flags: RDMA_WRITE_WITH_IMM may be cut into WRITEs and, at last, one
 * with the immediate. The peer is told the bytes of that one only.
 */
#define RISO_REGISTER_CUT_IMM	0x1U

/**
 * struct riso_ioc_register - a queue pair takes part
 * @qpn: its number
 * @class_id: wish, an enum riso_class or RISO_CLASS_BY_RULE; the class in force is
 *	returned
 * @flags: 0; RISO_REGISTER_* are returned
 * @path: 0; the elements of riso_kpage.path that the queue pair takes are returned, by direction
 * @pad: 0
 *
 * May be repeated: it then asks again. Errors: ENOENT when the process has no such
 * queue pair on the device; EPERM when no rule lets it choose that class; EINVAL for what
 * is no class, and for @flags, @path or @pad that are not 0.
 */
struct riso_ioc_register {
	__u32 qpn;
	__u32 class_id;
	__u32 flags;
	__u8 path[RISO_USER_DIRS];
	__u8 pad[2];
};

#define RISO_IOC_REGISTER	_IOWR(RISO_IOC_MAGIC, 1, struct riso_ioc_register)

/**
 * struct riso_ioc_wait - look at riso_upath.want, and wait for a grant
 * @grants: riso_kpage.grants as seen last
 * @mode: riso_kpage.mode as seen last
 * @timeout_us: how long to wait, 0 for not at all
 *
 * Returns 0 when one of these has changed and when the time is over. A process without
 * a registered queue pair is given nothing. Errors: EINTR; EBUSY if it would wait
 * while another thread does.
 */
struct riso_ioc_wait {
	__u32 grants;
	__u32 mode;
	__u32 timeout_us;
};

#define RISO_IOC_WAIT		_IOW(RISO_IOC_MAGIC, 2, struct riso_ioc_wait)

/**
 * struct riso_ioc_report - say why the process does not govern a queue pair
 * @qpn: number of a queue pair of the process on the device
 * @reason: RISO_REASON_NONE to take a report back, or one of RISO_REASON_NO_CQ_ROOM,
 *	RISO_REASON_MEMORY, RISO_REASON_UNKNOWN_OPCODE, RISO_REASON_NO_THREAD and
 *	RISO_REASON_SHIM_LIMIT
 * @dev: name of the RDMA device
 *
 * Needs no ATTACH. Flow dumps show @reason until the queue pair is registered; one that
 * was registered before is not any more. Errors: EINVAL, ENODEV and ENOENT as for ATTACH;
 * EINVAL also for another reason.
 */
struct riso_ioc_report {
	__u32 qpn;
	__u32 reason;
	char dev[64];
};

#define RISO_IOC_REPORT		_IOW(RISO_IOC_MAGIC, 3, struct riso_ioc_report)

/* All: EPERM from another process than the one that opened the file, and after exec(): a file that
 * survives that keeps its place, so that the process can have no other. Open it with O_CLOEXEC.
 * REGISTER and WAIT: ENOTCONN before ATTACH; ENODEV when the device is gone.
 */

#endif /* _UAPI_LINUX_RDMA_ISOLATE_USER_H */
