#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Mooncake's transfer engine with the verbs shim, by the program of bench/kv.inc: it hands
# 64 KB over and offloads 1 MB, reads both back and compares. tools/setup-debian.sh kv
# installs the engine.
#
# One kernel is enough: what is below the verbs shim is tested by shim_stress.

. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/cli.inc"
. "$(dirname "$0")/shim.inc"

KV_ENGINE=$(dirname "$0")/bench/kv_engine.py
CACHE=${RISO_CACHE:-/var/cache/rdma_isolate}
PACKAGE=$(echo "$CACHE"/mooncake/lib/python3*/site-packages/mooncake)

# receive NAME: sets $peer
receive()
{
	python3 "$KV_ENGINE" receive rxe0 >"$dir/$1.peer" 2>"$dir/$1.receive" &
	busywait 60 test -s "$dir/$1.peer" || return
	peer=$(<"$dir/$1.peer")
}

# ends_well NAME STATUS
ends_well()
{
	[ "$2" -eq 0 ] && grep -q ns "$dir/$1" && return
	ktap_print_msg "status $2: $(tail -n 1 "$dir/$1.err")"
	return 1
}

# handoff SHIM: 20 of them
handoff()
{
	receive handoff &&
	LD_PRELOAD=$1 timeout "$SHIM_SECONDS" "$dir/kv-handoff" "$KV_ENGINE" handoff rxe1 \
		"$peer" 20 >"$dir/handoff" 2>"$dir/handoff.err"
	ends_well handoff $?
}

# has_flows COMM CLASS REASON: on the device that sends
has_flows()
{
	shows "map(select(.comm == \"$1\")) | length > 0 and
		all(.class == \"$2\" and .reason == \"$3\")" flow show dev rxe1
}

# offload: with the shim, and hand-offs beside it
offload()
{
	local pid status

	receive offload || return
	LD_PRELOAD=$SHIM "$dir/kv-offload" "$KV_ENGINE" offload rxe1 "$peer" "$dir/ready" \
		>"$dir/offload" 2>"$dir/offload.err" &
	pid=$!
	busywait 60 has_flows kv-offload bandwidth none >/dev/null && handoff "$SHIM"
	status=$?
	has_flows kv-offload bandwidth none || status=1
	kill -TERM "$pid"
	wait "$pid" || status=$?
	grep -q bytes_per_s "$dir/offload" && [ "$status" -eq 0 ] && return
	ktap_print_msg "offload: $(tail -n 1 "$dir/offload.err")"
	return 1
}

has_latency_class()
{
	LD_PRELOAD=$SHIM "$dir/kv-handoff" "$KV_ENGINE" handoff rxe1 "$peer" 1000 \
		>/dev/null 2>&1 &
	busywait 60 has_flows kv-handoff latency latency-class >/dev/null
	has_flows kv-handoff latency latency-class
}

dir=$(mktemp -d)
trap 'kill $(jobs -p) 2>/dev/null; wait; teardown_all; rm -rf "$dir"' EXIT
[ -e "$PACKAGE/engine.so" ] || skip_all "no transfer engine: tools/setup-debian.sh kv"
shim_setup python3
rdma-isolate rule add dev rxe1 comm kv-handoff class latency >/dev/null
export PYTHONPATH=$PACKAGE PYTHONDONTWRITEBYTECODE=1 MC_GID_INDEX=1 MC_WORKERS_PER_CTX=1
ln -s "$(command -v python3)" "$dir/kv-handoff"
ln -s "$(command -v python3)" "$dir/kv-offload"
ktap_print_header
ktap_set_plan 4
check "hand-offs without the shim" handoff ""
check "hand-offs with it" handoff "$SHIM"
check "offload beside hand-offs" waited offload
check "hand-offs are of class latency" has_latency_class
ktap_finished
