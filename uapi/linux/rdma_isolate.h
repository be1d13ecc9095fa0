/* SPDX-License-Identifier: GPL-2.0 WITH Linux-syscall-note */
/* Do not edit directly, auto-generated from: */
/*	Documentation/netlink/specs/rdma_isolate.yaml */
/* YNL-GEN uapi header */

#ifndef _UAPI_LINUX_RDMA_ISOLATE_H
#define _UAPI_LINUX_RDMA_ISOLATE_H

#define RDMA_ISOLATE_FAMILY_NAME	"rdma_isolate"
#define RDMA_ISOLATE_FAMILY_VERSION	1

#define RDMA_ISOLATE_DEV_NAME_MAX	63
#define RDMA_ISOLATE_ULP_NAME_MAX	31
#define RDMA_ISOLATE_COMM_MAX		15
#define RDMA_ISOLATE_CGROUP_MAX		255
#define RDMA_ISOLATE_PEER_MAX		45
#define RDMA_ISOLATE_WEIGHT_MAX		10000
#define RDMA_ISOLATE_WEIGHT_DEFAULT	100
#define RDMA_ISOLATE_AUTO		4294967295
#define RDMA_ISOLATE_RATE_MIN		100000
#define RDMA_ISOLATE_RATE_MAX		1000000000000
#define RDMA_ISOLATE_CHUNK_MIN		1024
#define RDMA_ISOLATE_CHUNK_MAX		1048576
#define RDMA_ISOLATE_INFLIGHT_MIN	1024
#define RDMA_ISOLATE_TARGET99_MAX	4000000000
#define RDMA_ISOLATE_LEASE_MIN		1000000
#define RDMA_ISOLATE_LEASE_MAX		3600000000000

/**
 * enum riso_dev_state - what the module does with a device now
 * @RISO_DEV_IDLE: queue pairs are registered, traffic is not looked at
 * @RISO_DEV_OBSERVE: traffic is counted, never delayed or cut
 * @RISO_DEV_ENABLE: flows are managed
 * @RISO_DEV_DRAINING: being disabled, what is held goes out
 * @RISO_DEV_GONE: the device is being removed
 */
enum riso_dev_state {
	RISO_DEV_IDLE,
	RISO_DEV_OBSERVE,
	RISO_DEV_ENABLE,
	RISO_DEV_DRAINING,
	RISO_DEV_GONE,
};

/**
 * enum riso_mode - what the module shall do with a device
 * @RISO_MODE_DISABLE: let everything that is held go out, then be idle
 * @RISO_MODE_OBSERVE: count traffic, never delay or cut it
 * @RISO_MODE_ENABLE: manage flows
 */
enum riso_mode {
	RISO_MODE_DISABLE,
	RISO_MODE_OBSERVE,
	RISO_MODE_ENABLE,
};

/**
 * enum riso_class - how a flow is treated
 * @RISO_CLASS_LATENCY: never delayed, cut or held
 * @RISO_CLASS_THROUGHPUT: as bandwidth, and turns of flows of the kernel also
 *   end after token-ops messages
 * @RISO_CLASS_BANDWIDTH: large messages, cut and paced by bytes per second
 */
enum riso_class {
	RISO_CLASS_LATENCY,
	RISO_CLASS_THROUGHPUT,
	RISO_CLASS_BANDWIDTH,
};

/**
 * enum riso_reason - why a flow is not managed
 * @RISO_REASON_NONE: managed
 * @RISO_REASON_LATENCY_CLASS: latency class, never delayed
 * @RISO_REASON_OBSERVE_ONLY: the device is only observed
 * @RISO_REASON_BEFORE_LOAD: created before load, reconnect
 * @RISO_REASON_USER_QP: owned by a user-space program that runs without the
 *   verbs shim
 * @RISO_REASON_QP_TYPE: not a reliable connection
 * @RISO_REASON_SPECIAL_QP: management queue pair
 * @RISO_REASON_POLL_DIRECT: its completions are polled by the ULP alone
 * @RISO_REASON_SIGNAL_ALL: created to signal every work request
 * @RISO_REASON_CREATE_FLAGS: created with flags that cannot be cut, such as
 *   integrity
 * @RISO_REASON_ULP_NOT_LISTED: ULP is not one that is known to be safe, add a
 *   rule
 * @RISO_REASON_NO_CQ_ROOM: no room left in its completion queue
 * @RISO_REASON_MEMORY: no memory left for its records
 * @RISO_REASON_DEVICE_NOT_CAPABLE: the device lacks what is needed
 * @RISO_REASON_DISABLED: the device is not enabled
 * @RISO_REASON_UNKNOWN_OPCODE: it posted, or may post, an operation that is
 *   not known
 * @RISO_REASON_REFERENCE: the agent measures with it, it is counted nowhere
 * @RISO_REASON_NO_PLACE: its user, its container or the device has too many
 *   programs
 * @RISO_REASON_NO_THREAD: its program could not start the thread that the
 *   verbs shim needs
 * @RISO_REASON_SHIM_LIMIT: the verbs shim cannot govern it with this provider
 */
enum riso_reason {
	RISO_REASON_NONE,
	RISO_REASON_LATENCY_CLASS,
	RISO_REASON_OBSERVE_ONLY,
	RISO_REASON_BEFORE_LOAD,
	RISO_REASON_USER_QP,
	RISO_REASON_QP_TYPE,
	RISO_REASON_SPECIAL_QP,
	RISO_REASON_POLL_DIRECT,
	RISO_REASON_SIGNAL_ALL,
	RISO_REASON_CREATE_FLAGS,
	RISO_REASON_ULP_NOT_LISTED,
	RISO_REASON_NO_CQ_ROOM,
	RISO_REASON_MEMORY,
	RISO_REASON_DEVICE_NOT_CAPABLE,
	RISO_REASON_DISABLED,
	RISO_REASON_UNKNOWN_OPCODE,
	RISO_REASON_REFERENCE,
	RISO_REASON_NO_PLACE,
	RISO_REASON_NO_THREAD,
	RISO_REASON_SHIM_LIMIT,
};

/**
 * enum riso_believed_from - where believed-rate comes from
 * @RISO_BELIEVED_FROM_SET: max-rate, or a safe-util above what the port tells,
 *   was set
 * @RISO_BELIEVED_FROM_PORT: the port tells it
 * @RISO_BELIEVED_FROM_DELIVERED: the device was seen to deliver more than
 *   max-rate or the port tells
 * @RISO_BELIEVED_FROM_NOTHING: the port has told no rate yet, so it is the
 *   largest there is
 */
enum riso_believed_from {
	RISO_BELIEVED_FROM_SET,
	RISO_BELIEVED_FROM_PORT,
	RISO_BELIEVED_FROM_DELIVERED,
	RISO_BELIEVED_FROM_NOTHING,
};

/**
 * enum riso_switch - whether something is done
 * @RISO_SWITCH_OFF: it is not
 * @RISO_SWITCH_ON: it is
 */
enum riso_switch {
	RISO_SWITCH_OFF,
	RISO_SWITCH_ON,
};

/**
 * enum riso_size - size classes of messages, by payload; the n-th ends at 64
 *   << 2 * n
 * @RISO_SIZE_64: 0 to 64 bytes
 * @RISO_SIZE_256: 65 to 256 bytes
 * @RISO_SIZE_1K: 257 to 1024 bytes
 * @RISO_SIZE_4K: 1025 to 4096 bytes
 * @RISO_SIZE_16K: 4097 to 16384 bytes
 * @RISO_SIZE_64K: 16385 to 65536 bytes
 * @RISO_SIZE_256K: 65537 to 262144 bytes
 * @RISO_SIZE_1M: 262145 to 1048576 bytes
 * @RISO_SIZE_MORE: more than 1048576 bytes
 */
enum riso_size {
	RISO_SIZE_64,
	RISO_SIZE_256,
	RISO_SIZE_1K,
	RISO_SIZE_4K,
	RISO_SIZE_16K,
	RISO_SIZE_64K,
	RISO_SIZE_256K,
	RISO_SIZE_1M,
	RISO_SIZE_MORE,
};

/**
 * enum riso_error - how a work request failed, numbered as enum ib_wc_status
 * @RISO_ERROR_NONE: no work request of it has failed
 * @RISO_ERROR_LOCAL_LENGTH: local length error
 * @RISO_ERROR_LOCAL_OPERATION: local QP operation error
 * @RISO_ERROR_LOCAL_EEC_OPERATION: local EE context operation error
 * @RISO_ERROR_LOCAL_PROTECTION: local protection error
 * @RISO_ERROR_FLUSHED: flushed
 * @RISO_ERROR_WINDOW_BIND: memory window bind error
 * @RISO_ERROR_BAD_RESPONSE: bad response from the peer
 * @RISO_ERROR_LOCAL_ACCESS: local access error
 * @RISO_ERROR_REMOTE_INVALID: the peer calls the request invalid
 * @RISO_ERROR_REMOTE_ACCESS: the peer does not allow the access
 * @RISO_ERROR_REMOTE_OPERATION: the peer could not do it
 * @RISO_ERROR_RETRY_EXCEEDED: the peer does not answer
 * @RISO_ERROR_RNR_RETRY_EXCEEDED: the peer posts no receives
 * @RISO_ERROR_LOCAL_RDD: local RDD violation
 * @RISO_ERROR_REMOTE_INVALID_RD: the peer calls the RD request invalid
 * @RISO_ERROR_REMOTE_ABORT: the peer has aborted
 * @RISO_ERROR_EEC_NUMBER: invalid EE context number
 * @RISO_ERROR_EEC_STATE: invalid EE context state
 * @RISO_ERROR_FATAL: fatal error of the device
 * @RISO_ERROR_RESPONSE_TIMEOUT: the response timed out
 * @RISO_ERROR_GENERAL: the provider refused it after it was taken
 */
enum riso_error {
	RISO_ERROR_NONE,
	RISO_ERROR_LOCAL_LENGTH,
	RISO_ERROR_LOCAL_OPERATION,
	RISO_ERROR_LOCAL_EEC_OPERATION,
	RISO_ERROR_LOCAL_PROTECTION,
	RISO_ERROR_FLUSHED,
	RISO_ERROR_WINDOW_BIND,
	RISO_ERROR_BAD_RESPONSE,
	RISO_ERROR_LOCAL_ACCESS,
	RISO_ERROR_REMOTE_INVALID,
	RISO_ERROR_REMOTE_ACCESS,
	RISO_ERROR_REMOTE_OPERATION,
	RISO_ERROR_RETRY_EXCEEDED,
	RISO_ERROR_RNR_RETRY_EXCEEDED,
	RISO_ERROR_LOCAL_RDD,
	RISO_ERROR_REMOTE_INVALID_RD,
	RISO_ERROR_REMOTE_ABORT,
	RISO_ERROR_EEC_NUMBER,
	RISO_ERROR_EEC_STATE,
	RISO_ERROR_FATAL,
	RISO_ERROR_RESPONSE_TIMEOUT,
	RISO_ERROR_GENERAL,
};

/**
 * enum riso_fault - what a process does wrong on its page of /dev/rdma_isolate
 * @RISO_FAULT_NONE: nothing was seen
 * @RISO_FAULT_COUNTERS: one of its sums went back, or on by more than 8 GiB at
 *   once
 * @RISO_FAULT_TAKEN: it says that it took a grant that it was not given
 * @RISO_FAULT_UNSPENT: it wants more after 8 grants that it did not use
 * @RISO_FAULT_STOPPED: it wants grants, and had not taken the last a second
 *   after that was void
 */
enum riso_fault {
	RISO_FAULT_NONE,
	RISO_FAULT_COUNTERS,
	RISO_FAULT_TAKEN,
	RISO_FAULT_UNSPENT,
	RISO_FAULT_STOPPED,
};

/**
 * enum riso_ctrl - who chooses safe-util
 * @RISO_CTRL_AUTO: the agent, if there is one
 * @RISO_CTRL_MANUAL: the operator
 */
enum riso_ctrl {
	RISO_CTRL_AUTO,
	RISO_CTRL_MANUAL,
};

/**
 * enum riso_share_by - which processes have one share together
 * @RISO_SHARE_PROCESS: none, each process has its own
 * @RISO_SHARE_CGROUP: those of one container or, outside of containers, of one
 *   user; of root, of one control group
 * @RISO_SHARE_USER: those of one user, or of the user that made a user
 *   namespace
 */
enum riso_share_by {
	RISO_SHARE_PROCESS,
	RISO_SHARE_CGROUP,
	RISO_SHARE_USER,
};

/**
 * enum riso_ctrl_state - what the agent that steers a device finds (paper,
 *   4.2.2 and 4.5)
 * @RISO_CTRL_STATE_NONE: no agent steers it, or it has no target yet
 * @RISO_CTRL_STATE_OPEN: there is no latency flow, safe-util is max-rate
 * @RISO_CTRL_STATE_TRACKING: the target is met
 * @RISO_CTRL_STATE_MISSED: the target is missed, safe-util goes down
 * @RISO_CTRL_STATE_NOT_LOCAL: the target is missed, and safe-util does not
 *   matter for it
 * @RISO_CTRL_STATE_UNATTAINABLE: the target is missed at the least that others
 *   are guaranteed
 * @RISO_CTRL_STATE_NO_PEER: there is nobody to measure with, safe-util is the
 *   operator's
 */
enum riso_ctrl_state {
	RISO_CTRL_STATE_NONE,
	RISO_CTRL_STATE_OPEN,
	RISO_CTRL_STATE_TRACKING,
	RISO_CTRL_STATE_MISSED,
	RISO_CTRL_STATE_NOT_LOCAL,
	RISO_CTRL_STATE_UNATTAINABLE,
	RISO_CTRL_STATE_NO_PEER,
};

#define RDMA_ISOLATE_BUCKETS	24

enum {
	RDMA_ISOLATE_A_DEV_PAD = 1,
	RDMA_ISOLATE_A_DEV_DEV,
	RDMA_ISOLATE_A_DEV_INDEX,
	RDMA_ISOLATE_A_DEV_STATE,
	RDMA_ISOLATE_A_DEV_MODE,
	RDMA_ISOLATE_A_DEV_MAX_RATE,
	RDMA_ISOLATE_A_DEV_MAX_OPS,
	RDMA_ISOLATE_A_DEV_SAFE_UTIL,
	RDMA_ISOLATE_A_DEV_CHUNK_BYTES,
	RDMA_ISOLATE_A_DEV_TOKEN_BYTES,
	RDMA_ISOLATE_A_DEV_TOKEN_OPS,
	RDMA_ISOLATE_A_DEV_INFLIGHT_BYTES,
	RDMA_ISOLATE_A_DEV_CALIBRATED,
	RDMA_ISOLATE_A_DEV_LATENCY_FLOWS,
	RDMA_ISOLATE_A_DEV_MANAGED_FLOWS,
	RDMA_ISOLATE_A_DEV_HELD_WRS,
	RDMA_ISOLATE_A_DEV_PORTS,
	RDMA_ISOLATE_A_DEV_HISTOGRAM,
	RDMA_ISOLATE_A_DEV_PROCESSES,
	RDMA_ISOLATE_A_DEV_TARGET99_NS,
	RDMA_ISOLATE_A_DEV_CTRL,
	RDMA_ISOLATE_A_DEV_SHARE,
	RDMA_ISOLATE_A_DEV_BELIEVED_RATE,
	RDMA_ISOLATE_A_DEV_BELIEVED_FROM,

	__RDMA_ISOLATE_A_DEV_MAX,
	RDMA_ISOLATE_A_DEV_MAX = (__RDMA_ISOLATE_A_DEV_MAX - 1)
};

enum {
	RDMA_ISOLATE_A_FLOW_PAD = 1,
	RDMA_ISOLATE_A_FLOW_DEV,
	RDMA_ISOLATE_A_FLOW_QPN,
	RDMA_ISOLATE_A_FLOW_CLASS,
	RDMA_ISOLATE_A_FLOW_MANAGED,
	RDMA_ISOLATE_A_FLOW_REASON,
	RDMA_ISOLATE_A_FLOW_QP_TYPE,
	RDMA_ISOLATE_A_FLOW_QP_STATE,
	RDMA_ISOLATE_A_FLOW_ULP,
	RDMA_ISOLATE_A_FLOW_PEER,
	RDMA_ISOLATE_A_FLOW_PID,
	RDMA_ISOLATE_A_FLOW_COMM,
	RDMA_ISOLATE_A_FLOW_UID,
	RDMA_ISOLATE_A_FLOW_RULE_ID,
	RDMA_ISOLATE_A_FLOW_WEIGHT,
	RDMA_ISOLATE_A_FLOW_TX_BYTES,
	RDMA_ISOLATE_A_FLOW_RX_BYTES,
	RDMA_ISOLATE_A_FLOW_WRS,
	RDMA_ISOLATE_A_FLOW_CHUNKS,
	RDMA_ISOLATE_A_FLOW_SPLITS,
	RDMA_ISOLATE_A_FLOW_QUEUED,
	RDMA_ISOLATE_A_FLOW_WAIT_NS,
	RDMA_ISOLATE_A_FLOW_HELD,
	RDMA_ISOLATE_A_FLOW_GROUP,
	RDMA_ISOLATE_A_FLOW_RNR_TIMER,
	RDMA_ISOLATE_A_FLOW_SIZE,
	RDMA_ISOLATE_A_FLOW_ERROR,
	RDMA_ISOLATE_A_FLOW_OVER_TARGET,
	RDMA_ISOLATE_A_FLOW_CGROUP,

	__RDMA_ISOLATE_A_FLOW_MAX,
	RDMA_ISOLATE_A_FLOW_MAX = (__RDMA_ISOLATE_A_FLOW_MAX - 1)
};

enum {
	RDMA_ISOLATE_A_RULE_PAD = 1,
	RDMA_ISOLATE_A_RULE_ID,
	RDMA_ISOLATE_A_RULE_DEV,
	RDMA_ISOLATE_A_RULE_ULP,
	RDMA_ISOLATE_A_RULE_PEER,
	RDMA_ISOLATE_A_RULE_COMM,
	RDMA_ISOLATE_A_RULE_UID,
	RDMA_ISOLATE_A_RULE_CLASS,
	RDMA_ISOLATE_A_RULE_WEIGHT,
	RDMA_ISOLATE_A_RULE_CHOOSE,
	RDMA_ISOLATE_A_RULE_CGROUP,
	RDMA_ISOLATE_A_RULE_CUT_IMM,

	__RDMA_ISOLATE_A_RULE_MAX,
	RDMA_ISOLATE_A_RULE_MAX = (__RDMA_ISOLATE_A_RULE_MAX - 1)
};

enum {
	RDMA_ISOLATE_A_STAT_PAD = 1,
	RDMA_ISOLATE_A_STAT_DEV,
	RDMA_ISOLATE_A_STAT_COUNTER,

	__RDMA_ISOLATE_A_STAT_MAX,
	RDMA_ISOLATE_A_STAT_MAX = (__RDMA_ISOLATE_A_STAT_MAX - 1)
};

enum {
	RDMA_ISOLATE_A_COUNTER_PAD = 1,
	RDMA_ISOLATE_A_COUNTER_NAME,
	RDMA_ISOLATE_A_COUNTER_VALUE,

	__RDMA_ISOLATE_A_COUNTER_MAX,
	RDMA_ISOLATE_A_COUNTER_MAX = (__RDMA_ISOLATE_A_COUNTER_MAX - 1)
};

enum {
	RDMA_ISOLATE_A_GROUP_PAD = 1,
	RDMA_ISOLATE_A_GROUP_DEV,
	RDMA_ISOLATE_A_GROUP_ID,
	RDMA_ISOLATE_A_GROUP_ULP,
	RDMA_ISOLATE_A_GROUP_PEER,
	RDMA_ISOLATE_A_GROUP_PID,
	RDMA_ISOLATE_A_GROUP_COMM,
	RDMA_ISOLATE_A_GROUP_UID,
	RDMA_ISOLATE_A_GROUP_WEIGHT,
	RDMA_ISOLATE_A_GROUP_FLOWS,
	RDMA_ISOLATE_A_GROUP_HELD,
	RDMA_ISOLATE_A_GROUP_TX_BYTES,
	RDMA_ISOLATE_A_GROUP_RX_BYTES,
	RDMA_ISOLATE_A_GROUP_WRS,
	RDMA_ISOLATE_A_GROUP_USED_NS,
	RDMA_ISOLATE_A_GROUP_STALL_NS,
	RDMA_ISOLATE_A_GROUP_CLOCK_NS,
	RDMA_ISOLATE_A_GROUP_WINDOW_NS,
	RDMA_ISOLATE_A_GROUP_OWN_NS,
	RDMA_ISOLATE_A_GROUP_AVG10,
	RDMA_ISOLATE_A_GROUP_AVG60,
	RDMA_ISOLATE_A_GROUP_AVG300,
	RDMA_ISOLATE_A_GROUP_BEHIND,
	RDMA_ISOLATE_A_GROUP_BEHIND_OTHERS_NS,
	RDMA_ISOLATE_A_GROUP_SHIM,
	RDMA_ISOLATE_A_GROUP_FAULT,

	__RDMA_ISOLATE_A_GROUP_MAX,
	RDMA_ISOLATE_A_GROUP_MAX = (__RDMA_ISOLATE_A_GROUP_MAX - 1)
};

enum {
	RDMA_ISOLATE_A_BEHIND_PAD = 1,
	RDMA_ISOLATE_A_BEHIND_GROUP,
	RDMA_ISOLATE_A_BEHIND_USED_NS,

	__RDMA_ISOLATE_A_BEHIND_MAX,
	RDMA_ISOLATE_A_BEHIND_MAX = (__RDMA_ISOLATE_A_BEHIND_MAX - 1)
};

enum {
	RDMA_ISOLATE_A_BUDGET_PAD = 1,
	RDMA_ISOLATE_A_BUDGET_DEV,
	RDMA_ISOLATE_A_BUDGET_SAFE_UTIL,
	RDMA_ISOLATE_A_BUDGET_CHUNK_BYTES,
	RDMA_ISOLATE_A_BUDGET_INFLIGHT_BYTES,
	RDMA_ISOLATE_A_BUDGET_LEASE_NS,
	RDMA_ISOLATE_A_BUDGET_TX_PACE,
	RDMA_ISOLATE_A_BUDGET_RX_PACE,
	RDMA_ISOLATE_A_BUDGET_AGENT_PID,
	RDMA_ISOLATE_A_BUDGET_CTRL_STATE,
	RDMA_ISOLATE_A_BUDGET_TARGET99_NS,
	RDMA_ISOLATE_A_BUDGET_CURRENT99_NS,
	RDMA_ISOLATE_A_BUDGET_LATENCY_GROUPS,
	RDMA_ISOLATE_A_BUDGET_BANDWIDTH_GROUPS,
	RDMA_ISOLATE_A_BUDGET_THROUGHPUT_GROUPS,

	__RDMA_ISOLATE_A_BUDGET_MAX,
	RDMA_ISOLATE_A_BUDGET_MAX = (__RDMA_ISOLATE_A_BUDGET_MAX - 1)
};

enum {
	RDMA_ISOLATE_A_HIST_PAD = 1,
	RDMA_ISOLATE_A_HIST_DEV,
	RDMA_ISOLATE_A_HIST_CLASS,
	RDMA_ISOLATE_A_HIST_COUNTER,

	__RDMA_ISOLATE_A_HIST_MAX,
	RDMA_ISOLATE_A_HIST_MAX = (__RDMA_ISOLATE_A_HIST_MAX - 1)
};

enum {
	RDMA_ISOLATE_CMD_DEV_GET = 1,
	RDMA_ISOLATE_CMD_DEV_SET,
	RDMA_ISOLATE_CMD_DEV_NTF,
	RDMA_ISOLATE_CMD_FLOW_GET,
	RDMA_ISOLATE_CMD_RULE_ADD,
	RDMA_ISOLATE_CMD_RULE_DEL,
	RDMA_ISOLATE_CMD_RULE_GET,
	RDMA_ISOLATE_CMD_STAT_GET,
	RDMA_ISOLATE_CMD_FLOW_NTF,
	RDMA_ISOLATE_CMD_FLOW_DEL_NTF,
	RDMA_ISOLATE_CMD_GROUP_GET,
	RDMA_ISOLATE_CMD_BUDGET_GET,
	RDMA_ISOLATE_CMD_BUDGET_SET,
	RDMA_ISOLATE_CMD_BUDGET_NTF,
	RDMA_ISOLATE_CMD_HIST_GET,
	RDMA_ISOLATE_CMD_FLOW_ERROR_NTF,
	RDMA_ISOLATE_CMD_GROUP_FAULT_NTF,
	RDMA_ISOLATE_CMD_CTRL_NTF,

	__RDMA_ISOLATE_CMD_MAX,
	RDMA_ISOLATE_CMD_MAX = (__RDMA_ISOLATE_CMD_MAX - 1)
};

#define RDMA_ISOLATE_MCGRP_EVENTS	"events"

#endif /* _UAPI_LINUX_RDMA_ISOLATE_H */
