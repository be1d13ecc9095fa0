#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Runs in the virtual machine, where one instruction takes one nanosecond: the
# phases of $RISO_PLAN, one JSON line for each in $RISO_OUT/phases.jsonl, from
# which report.py makes ratios.
#
# The probe is rperf between rxe0 and rxe1; the bulk is 1 MB reads by fio from
# an NVMe target at rxe1, so that what rxe1 sends is shared with one direction
# of the probe; or programs that write from rxe1 (shim.inc). Each phase is one
# function phase_NAME. Those without the module come first: a queue pair is
# managed only when it was created while the module was loaded.

. "$(dirname "$0")/../lib.sh"
. "$(dirname "$0")/shim.inc"
. "$(dirname "$0")/agent.inc"
. "$(dirname "$0")/hostile.inc"
. "$(dirname "$0")/kv.inc"

LINK=400mbit
SAFE_UTIL=385mbit
CHUNK=8k
# A wire so slow that the processor hardly matters: it shows the pacer alone.
SLOW_LINK=100mbit
SLOW_CHUNK=4k
SLOW_PAUSE=997
PROBES=10000
PROBES_BESIDE=1000
SECONDS_BULK=3
OVERHEAD_ROUNDS=5
# While the host reads a file for it, the guest sleeps, and its clock jumps from
# one timer to the next: minutes go by in no time.
PATIENCE=600

BASELINE="alone beside slow_alone slow_beside small_reads initiators cpu_bound"
ISOLATED="overhead isolated control twice_rate slow_isolated small_reads_isolated
	initiators_equal initiators_3to1 cpu_bound_isolated cpu_bound_observed
	dump"
REPEATED="isolated control twice_rate $SHIM_REPEATED"

case $RISO_PLAN in
full)		PLAN="$BASELINE $ISOLATED"; REPEATS=${RISO_REPEATS:-3} ;;
baseline)	PLAN="$BASELINE"; REPEATS=1 ;;
shim)		PLAN="$SHIM_BASELINE $SHIM_ISOLATED"; REPEATS=${RISO_REPEATS:-3} ;;
hostile)	PLAN="$HOSTILE_PHASES"; REPEATS=1 ;;
agent)		PLAN="shim_plain_one $AGENT_PHASES"; REPEATS=1 ;;
demo)		PLAN="alone beside isolated"; REPEATS=1; PROBES=3000 ;;
kv)		PLAN="$KV_PHASES"; REPEATS=1 ;;
*)		PLAN="$RISO_PLAN"; REPEATS=${RISO_REPEATS:-1} ;;
esac

die()
{
	echo "bench: $*" >&2
	{
		grep . /sys/block/nvme*/inflight /sys/block/nvme*/stat
		if is_loaded rdma_isolate; then
			rdma-isolate dev show
			rdma-isolate flow show
			rdma-isolate statistic show
		fi
		echo w >/proc/sysrq-trigger
	} >"$RISO_OUT/why" 2>&1
	exit 1
}

# --- what the phases are made of --------------------------------------------

# emit JSON-MEMBERS: one phase's figures
emit()
{
	echo "{\"phase\": \"$PHASE\", \"repeat\": $REPEAT, $1}" \
		>>"$RISO_OUT/phases.jsonl"
}

# probe SAMPLES [OPTION]...: rperf's JSON
probe()
{
	rperf --dev rxe0 --peer rxe1 --json --samples "$@" ||
		die "$PHASE: rperf failed"
}

# connect NAME HOST-ADDRESS: sets $disk
connect()
{
	disk=$(connect_nvme "$1" 10.0.0.2 "$2") || die "no controller of $1"
}

# start_bulk DISK [BLOCK-SIZE]: reads until stop_bulk
start_bulk()
{
	local at

	at=$(sectors_read "$1")
	fio --name=bulk --filename="$1" --rw=read --bs="${2:-1M}" --iodepth=8 \
		--ioengine=libaio --direct=1 --time_based --runtime=1d \
		--thread >"$RISO_OUT/$PHASE-${1#/dev/}.fio" 2>&1 &
	bulk+=($!)
	busywait "$PATIENCE" is_reading "$1" $((at + 65536)) ||
		die "$PHASE: no reads of $1"
}

stop_bulk()
{
	kill -INT "${bulk[@]}"
	wait "${bulk[@]}"
	bulk=()
}

# mb_per_s DISK...: one JSON list of what is read from each, over some seconds
mb_per_s()
{
	local d list='' start stop
	declare -A at

	start=$(date +%s%N)
	for d in "$@"; do
		at[$d]=$(sectors_read "$d")
	done
	sleep "$SECONDS_BULK"
	stop=$(date +%s%N)
	for d in "$@"; do
		list+="${list:+, }$(awk -v s=$(($(sectors_read "$d") - at[$d])) \
			-v t=$((stop - start)) \
			'BEGIN { printf "%.3f", s * 512 * 1000 / t }')"
	done
	echo "[$list]"
}

# probe_beside SAMPLES [OPTION]...: with the bulk read meanwhile
probe_beside()
{
	local json

	start_bulk "$disk"
	json=$(probe "$@" --warmup 50 --watch "/sys/block/${disk#/dev/}/stat")
	stop_bulk
	emit "\"probe\": $json"
}

# Reads of 4 KB through a second controller, beside bulk and probe.
small_reads_beside()
{
	local bulk_disk=$disk pid

	connect riso1 10.0.0.1
	start_bulk "$bulk_disk"
	rperf --dev rxe0 --peer rxe1 --samples 0 --seconds 100000 >/dev/null &
	pid=$!
	fio --name=small --filename="$disk" --rw=randread --bs=4k --iodepth=1 \
		--ioengine=libaio --direct=1 --number_ios="$1" --thread \
		--output-format=json --output="$RISO_OUT/$PHASE.json" ||
		die "$PHASE: fio failed"
	kill "$pid"
	wait "$pid"
	stop_bulk
	emit "\"fio\": \"$PHASE.json\""
	disconnect_nvme riso1
	disk=$bulk_disk
}

# Two initiators, of two addresses: 1 MB reads against 64 KB reads.
two_initiators()
{
	local large=$disk

	connect riso1 10.0.0.3
	start_bulk "$large" 1M
	start_bulk "$disk" 64k
	emit "\"mb_per_s\": $(mb_per_s "$large" "$disk")"
	stop_bulk
	disconnect_nvme riso1
	disk=$large
}

# A latency flow that hardly sends: bulk is shaped because of it.
start_trickle()
{
	rperf --dev rxe0 --peer rxe1 --samples 0 --seconds 100000 \
		--interval 100000 >/dev/null &
	trickle=$!
}

stop_trickle()
{
	kill "$trickle"
	wait "$trickle"
}

bulk_alone()
{
	start_bulk "$disk"
	emit "\"mb_per_s\": $(mb_per_s "$disk")"
	stop_bulk
}

# --- without the module -----------------------------------------------------

# phase_alone [OPTION]...
phase_alone()
{
	emit "\"probe\": $(probe "$PROBES" "$@")"
}

phase_beside()
{
	probe_beside "$PROBES_BESIDE"
}

# on_slow_wire COMMAND...
on_slow_wire()
{
	set_rate "$SLOW_LINK"
	"$@"
	set_rate "$LINK"
}

# A probe that goes as soon as it has come back meets each packet of the bulk at the same place.
# So it pauses, for a time that has nothing to do with that of a packet.
phase_slow_alone()
{
	on_slow_wire phase_alone --interval "$SLOW_PAUSE"
}

phase_slow_beside()
{
	on_slow_wire probe_beside "$PROBES_BESIDE"
}

phase_small_reads()
{
	small_reads_beside 1000
}

phase_initiators()
{
	two_initiators
}

phase_cpu_bound()
{
	set_rate none
	bulk_alone
	set_rate "$LINK"
}

# --- with it ----------------------------------------------------------------

# with_module: loads it once, and connects anew what it is to manage
with_module()
{
	! is_loaded rdma_isolate || return 0
	disconnect_nvme riso0
	load_module || die "cannot load the module"
	connect riso0 10.0.0.1
}

# shape MAX-RATE SAFE-UTIL: enables the device if it is not
shape()
{
	with_module
	rdma-isolate dev set dev rxe1 mode enable max-rate "$1" \
		safe-util "$2" chunk-bytes "$CHUNK" || die "cannot enable rxe1"
	[ -n "${latency_rule:-}" ] ||
		rdma-isolate rule add dev rxe1 comm rperf class latency \
			>/dev/null ||
		die "cannot add a rule"
	latency_rule=1
}

unshape()
{
	rdma-isolate dev set dev rxe1 mode disable || die "cannot disable rxe1"
}

# observe HISTOGRAM
observe()
{
	with_module
	rdma-isolate dev set dev rxe1 mode observe histogram "$1" ||
		die "cannot observe rxe1"
}

statistics()
{
	rdma-isolate -j statistic show dev rxe1 \
		>"$RISO_OUT/$PHASE-$REPEAT.stat.json"
}

# What the module costs a probe that is alone: a few instructions. From one boot,
# load or connection to the next the median moves by more, so these take turns.
phase_overhead()
{
	local n

	disconnect_nvme riso0
	for ((n = 1; n <= OVERHEAD_ROUNDS; n++)); do
		unload_module || die "cannot unload the module"
		latency_rule=
		PHASE=bare phase_alone
		load_module || die "cannot load the module"
		PHASE=loaded phase_alone
		shape "$LINK" "$SAFE_UTIL"
		PHASE=enabled phase_alone
		unshape
		observe off
		PHASE=observed phase_alone
		unshape
	done
	connect riso0 10.0.0.1
}

phase_isolated()
{
	shape "$LINK" "$SAFE_UTIL"
	probe_beside "$PROBES"
	statistics
	unshape
}

# The same bulk, while the probe goes over another wire: what the one CPU costs.
phase_control()
{
	shape "$LINK" "$SAFE_UTIL"
	start_trickle
	start_bulk "$disk"
	emit "\"probe\": $(rperf --dev rxe2 --peer rxe3 --json \
		--samples "$PROBES" --warmup 50 \
		--watch "/sys/block/${disk#/dev/}/stat")"
	stop_bulk
	stop_trickle
	unshape
}

# MaxRate set to twice of what the link can do, by mistake.
phase_twice_rate()
{
	shape 800mbit 780mbit
	probe_beside "$PROBES"
	statistics
	unshape
}

phase_slow_isolated()
{
	CHUNK=$SLOW_CHUNK shape "$SLOW_LINK" "$SLOW_LINK"
	on_slow_wire probe_beside "$PROBES" --interval "$SLOW_PAUSE"
	statistics
	unshape
}

phase_small_reads_isolated()
{
	shape "$LINK" "$SAFE_UTIL"
	small_reads_beside 5000
	unshape
}

phase_initiators_equal()
{
	shape "$LINK" "$SAFE_UTIL"
	two_initiators
	unshape
}

phase_initiators_3to1()
{
	local id

	shape "$LINK" "$SAFE_UTIL"
	id=$(rdma-isolate -j rule add dev rxe1 peer 10.0.0.1 class bandwidth \
		weight 300 | grep -o '[0-9]*' | head -n 1)
	disconnect_nvme riso0
	connect riso0 10.0.0.1
	two_initiators
	rdma-isolate rule delete id "$id"
	unshape
	disconnect_nvme riso0
	connect riso0 10.0.0.1
}

# No latency flow, and no link slower than the CPU.
phase_cpu_bound_isolated()
{
	set_rate none
	shape 10gbit 10gbit
	bulk_alone
	statistics
	unshape
	set_rate "$LINK"
}

# What counting costs, and measuring, in turns with neither.
phase_cpu_bound_observed()
{
	local n

	set_rate none
	with_module
	for ((n = 1; n <= OVERHEAD_ROUNDS; n++)); do
		PHASE=cpu_bound_idle bulk_alone
		observe off
		PHASE=cpu_bound_observe bulk_alone
		unshape
		observe on
		PHASE=cpu_bound_histogram bulk_alone
		unshape
	done
	set_rate "$LINK"
}

has_made_all()
{
	grep -qs ready /dev/shm/riso/qps
}

# 1,000 queue pairs and 200 rules
phase_dump()
{
	local n begin end pid

	with_module
	for ((n = 1; n <= 200; n++)); do
		echo "rule add uid $((100000 + n)) class throughput"
	done | rdma-isolate -b - >/dev/null || die "cannot add rules"
	"$(dirname "$0")/../many_qps" rxe0 1000 >/dev/shm/riso/qps &
	pid=$!
	busywait "$PATIENCE" has_made_all || die "no 1,000 queue pairs"
	# In memory: the clock goes on while the host writes.
	begin=$(date +%s%N)
	rdma-isolate flow show dev rxe0 >/dev/shm/riso/flows
	end=$(date +%s%N)
	emit "\"flows\": $(wc -l </dev/shm/riso/flows), \"ns\": $((end - begin))"
	kill "$pid"
	# by a signal
	wait "$pid" || true
}

# --- all of them ------------------------------------------------------------

bulk=()
receivers=()
trap 'kill $(jobs -p) 2>/dev/null; dmesg >"$RISO_OUT/dmesg"' EXIT

setup_rxe_pair 0 "$LINK" && setup_rxe_pair 1 "$LINK" || die "no rxe devices"
add_address rxe0 10.0.0.3 rxe1 10.0.0.2 || die "no second address"
NULLB_BACKED=0
start_nvmet riso0 10.0.0.2 1024 && start_nvmet riso1 10.0.0.2 1024 ||
	die "no target"
connect riso0 10.0.0.1
stage_binary rperf fio awk date sleep
command -v rdma-isolate >/dev/null && stage_binary rdma-isolate
case $PLAN in *shim_*|*agent_*|*kv_*) stage_binary sed tr rm && stage_shim ;; esac
case $PLAN in *agent_*) stage_agent ;; esac
case $PLAN in *hostile_*) stage_binary "$(dirname "$0")/../hostile" ;; esac
case $PLAN in *kv_*) stage_kv ;; esac
case $PLAN in *crowd_*) stage_binary "$(dirname "$0")/../crowd" ;; esac

for PHASE in $PLAN; do
	n=1
	case " $REPEATED " in *" $PHASE "*) n=$REPEATS ;; esac
	for ((REPEAT = 1; REPEAT <= n; REPEAT++)); do
		echo "# $PHASE $REPEAT"
		"phase_$PHASE"
	done
done
