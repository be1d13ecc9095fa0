// SPDX-License-Identifier: GPL-2.0
/* Do not edit directly, auto-generated from: */
/*	Documentation/netlink/specs/rdma_isolate.yaml */
/* by tools/regen.sh */

#include "names_gen.h"

static const struct name_value state_values[] = {
	{ "idle", "queue pairs are registered, traffic is not looked at" },
	{ "observe", "traffic is counted, never delayed or cut" },
	{ "enable", "flows are managed" },
	{ "draining", "being disabled, what is held goes out" },
	{ "gone", "the device is being removed" },
};

const struct name_enum name_state = {
	state_values, 5,
};

static const struct name_value mode_values[] = {
	{ "disable", "let everything that is held go out, then be idle" },
	{ "observe", "count traffic, never delay or cut it" },
	{ "enable", "manage flows" },
};

const struct name_enum name_mode = {
	mode_values, 3,
};

static const struct name_value class_values[] = {
	{ "latency", "never delayed, cut or held" },
	{ "throughput", "as bandwidth, and turns of flows of the kernel also end after token-ops messages" },
	{ "bandwidth", "large messages, cut and paced by bytes per second" },
};

const struct name_enum name_class = {
	class_values, 3,
};

static const struct name_value reason_values[] = {
	{ "none", "managed" },
	{ "latency-class", "latency class, never delayed" },
	{ "observe-only", "the device is only observed" },
	{ "before-load", "created before load, reconnect" },
	{ "user-qp", "owned by a user-space program that runs without the verbs shim" },
	{ "qp-type", "not a reliable connection" },
	{ "special-qp", "management queue pair" },
	{ "poll-direct", "its completions are polled by the ULP alone" },
	{ "signal-all", "created to signal every work request" },
	{ "create-flags", "created with flags that cannot be cut, such as integrity" },
	{ "ulp-not-listed", "ULP is not one that is known to be safe, add a rule" },
	{ "no-cq-room", "no room left in its completion queue" },
	{ "memory", "no memory left for its records" },
	{ "device-not-capable", "the device lacks what is needed" },
	{ "disabled", "the device is not enabled" },
	{ "unknown-opcode", "it posted, or may post, an operation that is not known" },
	{ "reference", "the agent measures with it, it is counted nowhere" },
	{ "no-place", "its user, its container or the device has too many programs" },
	{ "no-thread", "its program could not start the thread that the verbs shim needs" },
	{ "shim-limit", "the verbs shim cannot govern it with this provider" },
};

const struct name_enum name_reason = {
	reason_values, 20,
};

static const struct name_value believed_from_values[] = {
	{ "set", "max-rate, or a safe-util above what the port tells, was set" },
	{ "port", "the port tells it" },
	{ "delivered", "the device was seen to deliver more than max-rate or the port tells" },
	{ "nothing", "the port has told no rate yet, so it is the largest there is" },
};

const struct name_enum name_believed_from = {
	believed_from_values, 4,
};

static const struct name_value switch_values[] = {
	{ "off", "it is not" },
	{ "on", "it is" },
};

const struct name_enum name_switch = {
	switch_values, 2,
};

static const struct name_value dir_values[] = {
	{ "tx", "what the host sends to the peer, by SEND, WRITE and atomics" },
	{ "rx", "what the host reads from the peer" },
};

const struct name_enum name_dir = {
	dir_values, 2,
};

static const struct name_value size_values[] = {
	{ "64", "0 to 64 bytes" },
	{ "256", "65 to 256 bytes" },
	{ "1k", "257 to 1024 bytes" },
	{ "4k", "1025 to 4096 bytes" },
	{ "16k", "4097 to 16384 bytes" },
	{ "64k", "16385 to 65536 bytes" },
	{ "256k", "65537 to 262144 bytes" },
	{ "1m", "262145 to 1048576 bytes" },
	{ "more", "more than 1048576 bytes" },
};

const struct name_enum name_size = {
	size_values, 9,
};

static const struct name_value error_values[] = {
	{ "none", "no work request of it has failed" },
	{ "local-length", "local length error" },
	{ "local-operation", "local QP operation error" },
	{ "local-eec-operation", "local EE context operation error" },
	{ "local-protection", "local protection error" },
	{ "flushed", "flushed" },
	{ "window-bind", "memory window bind error" },
	{ "bad-response", "bad response from the peer" },
	{ "local-access", "local access error" },
	{ "remote-invalid", "the peer calls the request invalid" },
	{ "remote-access", "the peer does not allow the access" },
	{ "remote-operation", "the peer could not do it" },
	{ "retry-exceeded", "the peer does not answer" },
	{ "rnr-retry-exceeded", "the peer posts no receives" },
	{ "local-rdd", "local RDD violation" },
	{ "remote-invalid-rd", "the peer calls the RD request invalid" },
	{ "remote-abort", "the peer has aborted" },
	{ "eec-number", "invalid EE context number" },
	{ "eec-state", "invalid EE context state" },
	{ "fatal", "fatal error of the device" },
	{ "response-timeout", "the response timed out" },
	{ "general", "the provider refused it after it was taken" },
};

const struct name_enum name_error = {
	error_values, 22,
};

static const struct name_value fault_values[] = {
	{ "none", "nothing was seen" },
	{ "counters", "one of its sums went back, or on by more than 8 GiB at once" },
	{ "taken", "it says that it took a grant that it was not given" },
	{ "unspent", "it wants more after 8 grants that it did not use" },
	{ "stopped", "it wants grants, and had not taken the last a second after that was void" },
};

const struct name_enum name_fault = {
	fault_values, 5,
};

static const struct name_value ctrl_values[] = {
	{ "auto", "the agent, if there is one" },
	{ "manual", "the operator" },
};

const struct name_enum name_ctrl = {
	ctrl_values, 2,
};

static const struct name_value share_values[] = {
	{ "process", "none, each process has its own" },
	{ "cgroup", "those of one container or, outside of containers, of one user; of root, of one control group" },
	{ "user", "those of one user, or of the user that made a user namespace" },
};

const struct name_enum name_share = {
	share_values, 3,
};

static const struct name_value ctrl_state_values[] = {
	{ "none", "no agent steers it, or it has no target yet" },
	{ "open", "there is no latency flow, safe-util is max-rate" },
	{ "tracking", "the target is met" },
	{ "missed", "the target is missed, safe-util goes down" },
	{ "not-local", "the target is missed, and safe-util does not matter for it" },
	{ "unattainable", "the target is missed at the least that others are guaranteed" },
	{ "no-peer", "there is nobody to measure with, safe-util is the operator's" },
};

const struct name_enum name_ctrl_state = {
	ctrl_state_values, 7,
};

static const struct name_attr dev_attrs[] = {
	[1] = { "pad", NAME_PAD, 0 },
	[2] = { "dev", NAME_STRING, 0 },
	[3] = { "index", NAME_U32, 0 },
	[4] = { "state", NAME_U32, &name_state },
	[5] = { "mode", NAME_U32, &name_mode },
	[6] = { "max_rate", NAME_U64, 0 },
	[7] = { "max_ops", NAME_U64, 0 },
	[8] = { "safe_util", NAME_U64, 0 },
	[9] = { "chunk_bytes", NAME_U32, 0 },
	[10] = { "token_bytes", NAME_U32, 0 },
	[11] = { "token_ops", NAME_U32, 0 },
	[12] = { "inflight_bytes", NAME_U32, 0 },
	[13] = { "calibrated", NAME_U32, 0 },
	[14] = { "latency_flows", NAME_U32, 0 },
	[15] = { "managed_flows", NAME_U32, 0 },
	[16] = { "held_wrs", NAME_U32, 0 },
	[17] = { "ports", NAME_U32, 0 },
	[18] = { "histogram", NAME_U32, &name_switch },
	[19] = { "processes", NAME_U32, 0 },
	[20] = { "target99_ns", NAME_U32, 0 },
	[21] = { "ctrl", NAME_U32, &name_ctrl },
	[22] = { "share", NAME_U32, &name_share },
	[23] = { "believed_rate", NAME_U64, 0 },
	[24] = { "believed_from", NAME_U32, &name_believed_from },
};

const struct name_set name_set_dev = {
	dev_attrs, 24,
};

static const struct name_attr flow_attrs[] = {
	[1] = { "pad", NAME_PAD, 0 },
	[2] = { "dev", NAME_STRING, 0 },
	[3] = { "qpn", NAME_U32, 0 },
	[4] = { "class", NAME_U32, &name_class },
	[5] = { "managed", NAME_U32, 0 },
	[6] = { "reason", NAME_U32, &name_reason },
	[7] = { "qp_type", NAME_U32, 0 },
	[8] = { "qp_state", NAME_U32, 0 },
	[9] = { "ulp", NAME_STRING, 0 },
	[10] = { "peer", NAME_STRING, 0 },
	[11] = { "pid", NAME_U32, 0 },
	[12] = { "comm", NAME_STRING, 0 },
	[13] = { "uid", NAME_U32, 0 },
	[14] = { "rule_id", NAME_U32, 0 },
	[15] = { "weight", NAME_U32, 0 },
	[16] = { "tx_bytes", NAME_U64, 0 },
	[17] = { "rx_bytes", NAME_U64, 0 },
	[18] = { "wrs", NAME_U64, 0 },
	[19] = { "chunks", NAME_U64, 0 },
	[20] = { "splits", NAME_U64, 0 },
	[21] = { "queued", NAME_U64, 0 },
	[22] = { "wait_ns", NAME_U64, 0 },
	[23] = { "held", NAME_U64, 0 },
	[24] = { "group", NAME_U32, 0 },
	[25] = { "rnr_timer", NAME_U32, 0 },
	[26] = { "size", NAME_NEST, 0 },
	[27] = { "error", NAME_U32, &name_error },
	[28] = { "over_target", NAME_U32, 0 },
	[29] = { "cgroup", NAME_STRING, 0 },
	[30] = { "around", NAME_U32, 0 },
};

const struct name_set name_set_flow = {
	flow_attrs, 30,
};

static const struct name_attr rule_attrs[] = {
	[1] = { "pad", NAME_PAD, 0 },
	[2] = { "id", NAME_U32, 0 },
	[3] = { "dev", NAME_STRING, 0 },
	[4] = { "ulp", NAME_STRING, 0 },
	[5] = { "peer", NAME_STRING, 0 },
	[6] = { "comm", NAME_STRING, 0 },
	[7] = { "uid", NAME_U32, 0 },
	[8] = { "class", NAME_U32, &name_class },
	[9] = { "weight", NAME_U32, 0 },
	[10] = { "choose", NAME_U32, &name_switch },
	[11] = { "cgroup", NAME_STRING, 0 },
	[12] = { "cut_imm", NAME_U32, &name_switch },
};

const struct name_set name_set_rule = {
	rule_attrs, 12,
};

static const struct name_attr stat_attrs[] = {
	[1] = { "pad", NAME_PAD, 0 },
	[2] = { "dev", NAME_STRING, 0 },
	[3] = { "counter", NAME_NEST, 0 },
};

const struct name_set name_set_stat = {
	stat_attrs, 3,
};

static const struct name_attr counter_attrs[] = {
	[1] = { "pad", NAME_PAD, 0 },
	[2] = { "name", NAME_STRING, 0 },
	[3] = { "value", NAME_U64, 0 },
};

const struct name_set name_set_counter = {
	counter_attrs, 3,
};

static const struct name_attr group_attrs[] = {
	[1] = { "pad", NAME_PAD, 0 },
	[2] = { "dev", NAME_STRING, 0 },
	[3] = { "id", NAME_U32, 0 },
	[4] = { "ulp", NAME_STRING, 0 },
	[5] = { "peer", NAME_STRING, 0 },
	[6] = { "pid", NAME_U32, 0 },
	[7] = { "comm", NAME_STRING, 0 },
	[8] = { "uid", NAME_U32, 0 },
	[9] = { "weight", NAME_U32, 0 },
	[10] = { "flows", NAME_U32, 0 },
	[11] = { "held", NAME_U32, 0 },
	[12] = { "tx_bytes", NAME_U64, 0 },
	[13] = { "rx_bytes", NAME_U64, 0 },
	[14] = { "wrs", NAME_U64, 0 },
	[15] = { "used_ns", NAME_U64, 0 },
	[16] = { "stall_ns", NAME_U64, 0 },
	[17] = { "clock_ns", NAME_U64, 0 },
	[18] = { "window_ns", NAME_U64, 0 },
	[19] = { "own_ns", NAME_U64, 0 },
	[20] = { "avg10", NAME_U32, 0 },
	[21] = { "avg60", NAME_U32, 0 },
	[22] = { "avg300", NAME_U32, 0 },
	[23] = { "behind", NAME_NEST, 0 },
	[24] = { "behind_others_ns", NAME_U64, 0 },
	[25] = { "shim", NAME_U32, 0 },
	[26] = { "fault", NAME_U32, &name_fault },
	[27] = { "path_ns", NAME_U64, 0 },
};

const struct name_set name_set_group = {
	group_attrs, 27,
};

static const struct name_attr behind_attrs[] = {
	[1] = { "pad", NAME_PAD, 0 },
	[2] = { "group", NAME_U32, 0 },
	[3] = { "used_ns", NAME_U64, 0 },
};

const struct name_set name_set_behind = {
	behind_attrs, 3,
};

static const struct name_attr budget_attrs[] = {
	[1] = { "pad", NAME_PAD, 0 },
	[2] = { "dev", NAME_STRING, 0 },
	[3] = { "safe_util", NAME_U64, 0 },
	[4] = { "chunk_bytes", NAME_U32, 0 },
	[5] = { "inflight_bytes", NAME_U32, 0 },
	[6] = { "lease_ns", NAME_U64, 0 },
	[7] = { "tx_pace", NAME_U64, 0 },
	[8] = { "rx_pace", NAME_U64, 0 },
	[9] = { "agent_pid", NAME_U32, 0 },
	[10] = { "ctrl_state", NAME_U32, &name_ctrl_state },
	[11] = { "target99_ns", NAME_U32, 0 },
	[12] = { "current99_ns", NAME_U64, 0 },
	[13] = { "latency_groups", NAME_U32, 0 },
	[14] = { "bandwidth_groups", NAME_U32, 0 },
	[15] = { "throughput_groups", NAME_U32, 0 },
	[16] = { "peer_latency_groups", NAME_U32, 0 },
};

const struct name_set name_set_budget = {
	budget_attrs, 16,
};

static const struct name_attr hist_attrs[] = {
	[1] = { "pad", NAME_PAD, 0 },
	[2] = { "dev", NAME_STRING, 0 },
	[3] = { "class", NAME_U32, &name_class },
	[4] = { "counter", NAME_NEST, 0 },
};

const struct name_set name_set_hist = {
	hist_attrs, 4,
};

static const struct name_attr path_attrs[] = {
	[1] = { "pad", NAME_PAD, 0 },
	[2] = { "dev", NAME_STRING, 0 },
	[3] = { "peer", NAME_STRING, 0 },
	[4] = { "dir", NAME_U32, &name_dir },
	[5] = { "rate", NAME_U64, 0 },
	[6] = { "cut", NAME_U32, &name_switch },
	[7] = { "lease_ns", NAME_U64, 0 },
	[8] = { "bytes", NAME_U64, 0 },
	[9] = { "waits", NAME_U64, 0 },
};

const struct name_set name_set_path = {
	path_attrs, 9,
};
