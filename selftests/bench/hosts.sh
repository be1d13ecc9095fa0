#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# shellcheck disable=SC2154 # loads is that of shim.inc
#
# Runs in the virtual machine, where one instruction takes one nanosecond: what several hosts do to
# a latency flow, and what their agents make of it (hosts.inc has the hosts). Host 1 receives. One
# JSON line in $RISO_OUT/phases.jsonl for each run; hosts.py makes ratios of them.
#
# Each run is made without the module, with it and an agent for each host, and with both while
# the latency flow goes between two other hosts: what the one processor costs.
#
# The papers' hosts send 1 MB to 1 GB at 56 Gbit/s. Here it is 64 KB to 512 KB: that is many
# chunks, and rates are counted in whole messages. One processor has the work of all adapters,
# hosts and agents, so links are of 100 Mbit/s: at 400 it has none left, and messages wait for it.
# What time a message may take is scaled by that.

. "$(dirname "$0")/../lib.sh"
. "$(dirname "$0")/../hosts.inc"
. "$(dirname "$0")/shim.inc"

MBIT=100
LINK=${MBIT}mbit
# As 250 us at 400 Mbit/s: what may be added is 400
TARGET=$((250 * 400 / MBIT))us
PROBES=3000
# Between two messages: a latency flow that is no load itself
PAUSE_US=2000
# For a second: until all hosts know of the flow
WARMUP=500
SECONDS_SETTLE=3
# Until the pool is what it is going to be
SECONDS_LAW=10
# From one reference message to the next: all agents share one processor.
REF_PERIOD=2ms
PATIENCE=600
REPEAT=1
PARTS="incast2 incast4 incast8 own2 own4 own8 remote_reads"

agents=()

die()
{
	echo "hosts: $*" >&2
	rdma-isolate path show >&2
	cat /dev/shm/riso/*.log >&2
	exit 1
}

emit()
{
	echo "{\"phase\": \"$PHASE\", \"how\": \"$HOW\", \"mbit\": $MBIT, $1}" \
		>>"$RISO_OUT/phases.jsonl"
	echo "# $(tail -n 1 "$RISO_OUT/phases.jsonl" | cut -c -600)"
}

# is_connected COUNT
is_connected()
{
	[ "$(cat /dev/shm/riso/*.log | grep -c "connected$")" -ge "$1" ]
}

# start_agents PEERS: one for each host in it; a line of PEERS is "HOST PEER"
start_agents()
{
	local host conf from to

	for host in $(tr ' ' '\n' <<<"$1" | sort -un); do
		conf=/dev/shm/riso/$host.conf
		printf '%s\n' "[agent]" "listen = 10.0.9.$host" "ref-period = $REF_PERIOD" \
			"[device rxe$host]" >"$conf"
		while read -r from to; do
			[ "$from" != "$host" ] || echo "peer = 10.0.9.$to"
		done <<<"$1" >>"$conf"
		nice -n -10 rdma-isolated --config "$conf" 2>/dev/shm/riso/$host.log &
		agents+=($!)
	done
	busywait "$PATIENCE" is_connected "$(wc -l <<<"$1")" || die "agents are not connected"
}

stop_agents()
{
	[ ${#agents[@]} -eq 0 ] || kill "${agents[@]}"
	wait "${agents[@]}" 2>/dev/null
	agents=()
	mkdir -p "$RISO_OUT/$PHASE" && mv /dev/shm/riso/*.log "$RISO_OUT/$PHASE"
}

# isolate PEERS [CHUNK TARGET]
isolate()
{
	local host

	load_module || die "cannot load the module"
	rdma-isolate rule add comm rperf class latency >/dev/null || die "cannot add a rule"
	for ((host = 1; host <= HOSTS; host++)); do
		rdma-isolate dev set dev "rxe$host" mode enable max-rate "$LINK" \
			chunk-bytes "${2:-4k}" target99 "${3:-$TARGET}" || die "cannot enable rxe$host"
	done
	start_agents "$1"
}

unisolate()
{
	stop_agents
	# A list that an agent was reading keeps the module for a moment.
	busywait 10 unload_module || die "cannot unload the module"
}

# For how long the processor had nothing to do
idle_us()
{
	awk '/^cpu / { printf "%d\n", ($5 + $6) * 10000 }' /proc/stat
}

# probe_hosts FROM TO: the JSON of a latency flow
probe_hosts()
{
	local json idle begin

	idle=$(idle_us)
	begin=${EPOCHREALTIME/./}
	json=$(rperf --dev "rxe$1" --peer "rxe$2" --json --samples "$PROBES" \
		--interval "$PAUSE_US" --warmup "$WARMUP") || return
	idle=$((($(idle_us) - idle) * 100 / (${EPOCHREALTIME/./} - begin)))
	echo "\"idle_percent\": $idle, \"probe\": $json"
}

# settle FROM TO: a latency flow, for the law to find its way
settle()
{
	rperf --dev "rxe$1" --peer "rxe$2" --samples 0 --seconds "$SECONDS_LAW" \
		--interval "$PAUSE_US" >/dev/null
}

# measured COMMAND...: as measure_loads, with the paths in the midst of it
measured()
{
	local members list=/dev/shm/riso/paths

	(sleep 3; rdma-isolate -j path show | tr -d '\n' >$list) &
	members=$("$@") && echo "$members, \"paths\": $(<$list)"
}

# start_senders COUNT SHIM: of four sizes in turns
start_senders()
{
	local n

	for ((n = 2; n <= $1 + 1; n++)); do
		start_load rload "$2" --dev "rxe$n" --peer rxe1 \
			--size $((64 << n % 4))k --depth 4
	done
	sleep "$SECONDS_SETTLE"
}

# peers_of COUNT: senders and the latency flow's host have host 1
peers_of()
{
	local n

	for ((n = 2; n <= $1 + 2; n++)); do
		echo "$n 1"
	done
}

# incast COUNT
incast()
{
	local last=$(($1 + 2))

	HOW=alone emit "$(probe_hosts $last 1)"
	HOW=shared
	start_senders "$1" ""
	PROBES=100 WARMUP=5 measure_loads probe_hosts $last 1
	isolate "$(peers_of "$1")"
	HOW=isolated
	start_senders "$1" "$SHIM"
	settle $last 1
	measure_loads measured probe_hosts $last 1
	# A latency flow for host 1 to care for, as before, and the one that is measured elsewhere
	HOW=control
	rperf --dev rxe$last --peer rxe1 --samples 0 --seconds 100000 \
		--interval "$PAUSE_US" >/dev/null &
	other=$!
	start_senders "$1" "$SHIM"
	measure_loads measured probe_hosts $((HOSTS - 1)) "$HOSTS"
	kill "$other"
	wait "$other"
	unisolate
}

# Host 1 has a latency flow to host 2, and host 3 reads 1 MB messages from host 1.
remote_reads()
{
	HOW=alone emit "$(probe_hosts 1 2)"
	HOW=shared
	start_load rload "" --dev rxe3 --peer rxe1 --load read --size 1M
	sleep "$SECONDS_SETTLE"
	PROBES=100 WARMUP=5 measure_loads probe_hosts 1 2
	# A message waits for the rest of a chunk, which is 82 us so.
	isolate "3 1
1 2" 1k 300us
	HOW=isolated
	start_load rload "$SHIM" --dev rxe3 --peer rxe1 --load read --size 1M
	settle 1 2
	measure_loads measured probe_hosts 1 2
	HOW=control
	rperf --dev rxe1 --peer rxe2 --samples 0 --seconds 100000 \
		--interval "$PAUSE_US" >/dev/null &
	other=$!
	start_load rload "$SHIM" --dev rxe3 --peer rxe1 --load read --size 1M
	sleep "$SECONDS_SETTLE"
	measure_loads measured probe_hosts $((HOSTS - 1)) "$HOSTS"
	kill "$other"
	wait "$other"
	unisolate
}

# are_there FILE...: each has something in it
are_there()
{
	local file

	for file in "$@"; do
		[ -s "$file" ] || return
	done
}

# all_probes FILE...: the worst of some latency flows that run, and what agents find meanwhile
all_probes()
{
	local idle begin

	idle=$(idle_us)
	begin=${EPOCHREALTIME/./}
	sleep 2
	echo "\"states\": $(rdma-isolate -j budget show | jq -c '[.[].ctrl_state]'), "
	busywait "$PATIENCE" are_there "$@" || return
	idle=$((($(idle_us) - idle) * 100 / (${EPOCHREALTIME/./} - begin)))
	echo "\"idle_percent\": $idle, \"probe\": $(jq -s -c 'max_by(.p99_ns)' "$@")"
}

# own COUNT: each sender has a latency flow of its own to host 1
own()
{
	local n probes=() file

	isolate "$(peers_of $(($1 - 1)))"
	HOW=isolated
	start_senders "$1" "$SHIM"
	for ((n = 2; n <= $1 + 1; n++)); do
		file=/dev/shm/riso/own$n
		probes+=("$file")
		rperf --dev "rxe$n" --peer rxe1 --port $((18600 + n)) --json --samples "$PROBES" \
			--interval "$PAUSE_US" --warmup $((SECONDS_LAW * 1000000 / PAUSE_US)) \
			>"$file" &
	done
	sleep "$SECONDS_LAW"
	measure_loads all_probes "${probes[@]}"
	unisolate
}

incast2() { incast 2; }
incast4() { incast 4; }
incast8() { incast 8; }
own2() { own 2; }
own4() { own 4; }
own8() { own 8; }

PLAN=${RISO_PLAN:-$PARTS}
# Those that send, the receiver, one with a latency flow to it, and two beside them
case $PLAN in *incast8*) HOSTS=12 ;; *own8*) HOSTS=9 ;; *incast4*) HOSTS=8 ;; *) HOSTS=6 ;; esac
trap 'kill $(jobs -p) 2>/dev/null; dmesg >"$RISO_OUT/dmesg"' EXIT

PATH=$(dirname "$(realpath "${BASH_SOURCE[0]}")")/../../userspace/agent:$PATH
setup_hosts "$HOSTS" || die "no hosts"
for ((host = 1; host <= HOSTS; host++)); do
	set_adapter $host $LINK
	set_output s$host $LINK fifo || die "no switch"
done
stage_binary nice sort rperf rdma-isolate rdma-isolated awk date sleep sed tr rm grep cat cut wc tail
stage_shim
for PHASE in $PLAN; do
	$PHASE
done
