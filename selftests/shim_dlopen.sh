#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Programs that load libibverbs while they run, with the verbs shim: one that looks up
# each function with its version, as NCCL does, and checks what it writes; and UCX, in
# which a plugin brings the library.
#
# One kernel is enough: what is below the verbs shim is tested by shim_stress.

. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/cli.inc"
. "$(dirname "$0")/shim.inc"

VERBS=$(realpath "$(ldconfig -p | sed -n 's/.*libibverbs\.so\.1 .*=> //p' | head -n 1)")

port=22000

# Both ends are one process.
is_managed()
{
	shows 'map(select(.comm == "dlopen_write")) | length == 2 and
		all(.managed and .reason == "none")' flow show
}

# writes COMMAND...: the program, by a command that becomes it
writes()
{
	local pid status

	"$@" "$(dirname "$0")/dlopen_write" rxe0 rxe1 >"$dir/out" 2>&1 &
	pid=$!
	busywait 30 is_managed >/dev/null
	is_managed
	status=$?
	kill -TERM "$pid"
	wait "$pid" && [ "$status" -eq 0 ] && return
	ktap_print_msg "$(tail -n 3 "$dir/out")"
	return 1
}

# The server does what the client does, on the same device.
next_port()
{
	port=$((port + 1))
	server=(ucx_perftest -p "$port")
	client=(ucx_perftest 127.0.0.1 -p "$port" -x rc_verbs -d rxe0:1 -f -w 2
		"${words[@]}")
	listens=(tcp "$port")
}

# ucx TEST [OPTION]...
ucx()
{
	words=(-t "$@")
	next_port
	same_with_shim
}

dir=$(mktemp -d)
trap 'kill $(jobs -p) 2>/dev/null; teardown_all; rm -rf "$dir"' EXIT
shim_setup ucx_perftest
ktap_print_header
ktap_set_plan 9
check "as NCCL does it" waited writes rdma-isolate run --
check "as NCCL does it, NCCL_IBVERBS_LIB is libibverbs" \
	waited writes rdma-isolate run -- env NCCL_IBVERBS_LIB="$VERBS"
check "as NCCL does it, NCCL_IBVERBS_LIB is the shim" \
	waited writes env NCCL_IBVERBS_LIB="${SHIM%.so}_verbs.so"
check "UCX: put" waited ucx put_bw -D zcopy -s 1048576 -n 20
check "UCX: put, inline" ucx put_lat -D short -s 8 -n 50
check "UCX: get" waited ucx get -D zcopy -s 1048576 -n 20
check "UCX: messages" slowly 40mbit waited ucx am_bw -D bcopy -s 8000 -n 100
check "UCX: messages, inline" ucx am_lat -D short -s 8 -n 50
check "UCX: atomics" ucx fadd -s 8 -n 50
ktap_finished
