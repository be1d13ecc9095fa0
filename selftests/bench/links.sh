#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Runs in the virtual machine, where one instruction takes one nanosecond: what the module
# makes of adapters of 25 to 400 Gbit/s, which the test adapter stands for. One JSON line
# in $RISO_OUT/links.jsonl for each run of test_modules/riso_test_load; links.py makes
# ratios of them. $RISO_PLAN names the parts, all of them if it is empty.
#
# Each run is made without the module and with it. The queue pairs are made anew each time.

. "$(dirname "$0")/../lib.sh"

LOAD=/sys/kernel/debug/riso_test_load
PARAMETERS=/sys/module/nullrdma/parameters
PARTS="cost chunks many users busy wide moderated far far_soft groups wrong late oversubscribed irqs
nvme"
RATES=${RISO_RATES:-25000 100000 400000}

die()
{
	echo "links: $*" >&2
	dmesg | tail -40 >&2
	exit 1
}

set_param()
{
	echo "$2" >"$PARAMETERS/$1" || die "no parameter $1=$2"
}

# wire RATE-MBPS [DELAY-NS [MODERATION-US]]
wire()
{
	RATE=$1
	set_param rate_mbps "$1"
	set_param delay_ns "${2:-1000}"
	set_param moder_us "${3:-0}"
}

# measure NAME HOW load|cost|posts [KEY=VALUE]...
measure()
{
	local name=$1 how=$2 shaped=null failed=false dev=${devices:-null0} result
	shift 2

	if ! echo "$*" >"$LOAD/run"; then
		failed=true
		echo "links: $name, $how: $* failed" >&2
		dmesg | tail -5 >&2
	fi
	# What was delivered until then is told even if the last messages do not end.
	result=$(cat "$LOAD/result")
	[ "$how" != isolated ] || shaped=$(rdma-isolate -j statistic show dev "${dev%% *}")
	echo "{\"name\": \"$name\", \"how\": \"$how\", \"failed\": $failed," \
		"\"result\": ${result:-null}, \"statistics\": ${shaped:-null}}" \
		>>"$RISO_OUT/links.jsonl"
	echo "# $name, $how: $(tail -n 1 "$RISO_OUT/links.jsonl" | cut -c -400)"
}

# tell_params NAME MODULE PARAMETER...: what a test module has seen, the first one as "value"
tell_params()
{
	local name=$1 dir=/sys/module/$2/parameters param list
	shift 2

	list="\"value\": $(cat "$dir/$1")"
	for param in "${@:2}"; do
		list+=", \"$param\": $(cat "$dir/$param")"
	done
	echo "{\"name\": \"$name\", \"how\": \"isolated\", \"result\": {$list}," \
		"\"statistics\": null}" >>"$RISO_OUT/links.jsonl"
}

# isolate [SETTING]...: both ends; what nobody sets is what an operator gets
isolate()
{
	local dev

	load_module || die "cannot load the module"
	rdma-isolate rule add ulp riso_load0 class bandwidth >/dev/null &&
	rdma-isolate rule add ulp riso_load1 class bandwidth weight "${WEIGHT:-100}" >/dev/null &&
	rdma-isolate rule add ulp riso_load_small class latency >/dev/null ||
		die "no rules"
	for dev in ${devices:-null0 null1}; do
		rdma-isolate dev set dev $dev mode enable "$@" || die "cannot enable"
	done
}

release()
{
	local dev

	for dev in ${devices:-null0 null1}; do
		rdma-isolate dev set dev $dev mode disable || die "cannot disable"
	done
	unload_module || die "cannot unload"
}

# both NAME [KEY=VALUE]...: without the module, and with it. SafeUtil leaves the device some
# room, as an operator should.
both()
{
	local name=$1
	shift

	measure "$name" plain load "$@"
	isolate safe-util "$((RATE * 97 / 100))mbit"
	measure "$name" isolated load "$@"
	release
}

# What a post and a poll cost: of a latency flow; of one that shares a CQ with a managed
# flow; of a managed one; each with other flows or not. What passes is measured on an adapter where
# it ends at once: the timer of the other one costs twenty times as much, and never quite the same.
part_cost()
{
	rmmod nullrdma && load_null instant=1 || die "no adapter"
	measure "cost" plain cost
	measure "cost of 8" plain cost chain=8
	isolate
	measure "latency" isolated cost
	measure "latency, shared CQ" isolated cost shared=1
	measure "managed, open" isolated cost managed=1
	measure "managed, open, of 8" isolated cost managed=1 chain=8
	release
	rmmod nullrdma && load_null copy=0 || die "no adapter"
	wire 100000
	measure "cost of one held" plain cost
	isolate
	measure "managed, shaped" isolated cost managed=1 shared=1
	release
}

# chunk_cost RATE-MBPS IDLE: all that a message of 1 MB costs beside a latency flow and idle flows.
# What of that is the adapter's own for each work request is told by 256 of 4 KB, in chains of
# 16 of which only the last one is signaled.
chunk_cost()
{
	wire "$1"
	measure "1 MB $1 $2" plain cost size=1048576 idle="$2" wait_ms=50
	measure "4 KB $1 $2" plain cost size=4096 count=256 chain=16 idle="$2" wait_ms=50
	isolate chunk-bytes 4096
	measure "4 KB $1 $2" isolated cost size=1048576 idle="$2" wait_ms=50
	release
}

# At 100 Gbit/s also with the chunk size that nobody has set, 120 KB.
part_chunks()
{
	set_param small 0
	chunk_cost 400000 0
	chunk_cost 100000 0
	measure "120 KB 100000 0" plain cost size=122880 count=9 chain=16 wait_ms=50
	isolate
	measure "120 KB 100000 0" isolated cost size=1048576 wait_ms=50
	release
	set_param small 4096
}

# The same beside 1,000 managed flows that have posted once, and what posts and polls cost there
part_many()
{
	local n

	set_param small 0
	for n in 0 1000; do
		chunk_cost 100000 $n
		measure "cost $n" plain cost idle=$n
		isolate
		measure "latency $n" isolated cost idle=$n
		measure "managed, open $n" isolated cost managed=1 idle=$n
		release
	done
	set_param small 4096
}

# load_soft: rxe2 and rxe3, on a wire of their own
load_soft()
{
	[ -e /sys/class/infiniband/rxe2 ] || setup_rxe_pair 1 || die "no rxe devices"
}

has_made_all()
{
	grep -qs ready /dev/shm/riso/qps
}

# start_users COUNT: a program with as many queue pairs, each with two maps. rxe has room for
# 131,000.
start_users()
{
	echo $((3 * $1 + 65530)) >/proc/sys/vm/max_map_count
	rm -f /dev/shm/riso/qps
	"$(dirname "$0")/../many_qps" rxe2 "$1" >/dev/shm/riso/qps &
	users=$!
	busywait 600 has_made_all || die "no $1 queue pairs"
}

stop_users()
{
	kill "$users"
	# by a signal
	wait "$users" || true
}

# What a post and a poll cost on rxe beside queue pairs of programs, which the module knows of
# where it was loaded before
part_users()
{
	local load="cost dev=rxe2 peer=rxe3"
	local devices="rxe2 rxe3" qps=${RISO_QPS:-100000}

	load_soft
	# shellcheck disable=SC2086 # words
	{
	measure "users 0" plain $load
	start_users "$qps"
	measure "users $qps" plain $load
	stop_users
	isolate
	measure "users 0" isolated $load
	measure "managed users 0" isolated $load managed=1
	start_users "$qps"
	measure "users $qps" isolated $load
	measure "managed users $qps" isolated $load managed=1
	stop_users
	release
	}
}

# One, 16 and 256 queue pairs of large messages beside small ones. In turns, 256 messages end at
# about the same time, so a window has 37 times as many.
part_busy()
{
	local rate sched qps

	for sched in fifo rr; do
		rmmod nullrdma && load_null sched=$sched copy=0 || die "no adapter"
		for rate in $RATES; do
			wire "$rate"
			measure "alone $sched $rate" plain load depth=0 depth2=0 qps=1 \
				every_us=97 wait_ms=5 window_ms=100
			for qps in 1 16 256; do
				both "busy $sched $rate $qps" qps=$qps every_us=97 \
					depth=$((qps > 16 ? 1 : 8)) \
					wait_ms=100 window_ms=$((qps > 16 ? 80000000 / rate : 50))
			done
		done
	done
	rmmod nullrdma && load_null copy=0 || die "no adapter"
}

part_wide()
{
	wire 100000
	both "no latency flow 100000 16" qps=16 wait_ms=20 window_ms=50
	wire 400000
	both "no latency flow 400000 16" qps=16 wait_ms=20 window_ms=50
}

# Events come late: by the time for which an adapter collects them, and by what it may take to
# wake somebody up.
part_moderated()
{
	local rate ms

	for rate in 100000 25000; do
		wire $rate 1000 32
		both "moderated $rate 1 32" qps=1 every_us=97 wait_ms=200 window_ms=100
	done
	set_param moder_count 1000000
	for rate in 100000 25000; do
		for ms in 1 5 10; do
			wire $rate 1000 $((ms * 1000))
			both "moderated $rate 16 ${ms}000" qps=16 every_us=997 wait_ms=500 \
				window_ms=500
		done
	done
	set_param moder_count 32
}

# Half of the round trip is each way.
part_far()
{
	local rate us read qps

	for rate in 25000 100000; do
		for us in 20 100 500 1000 4000 12000; do
			for read in 0 1; do
				for qps in 1 16; do
					wire $rate $((us * 500))
					both "far $rate $us $read $qps" qps=$qps \
						depth=$((qps == 1 ? 64 : 16)) \
						read=$read every_us=997 \
						window_ms=1000 windows=${RISO_SECONDS:-6}
				done
			done
		done
	done
}

# delay_soft RATE-MBPS RTT-US: what the wire of the soft-RoCE pair carries, and how late
delay_soft()
{
	local veth

	for veth in veth2 veth3; do
		tc qdisc replace dev $veth root netem rate "$1mbit" delay "$(($2 / 2))us" \
			limit 100000 || die "no delay"
	done
}

# The same paths on soft-RoCE at 400 Mbit/s. Those of 16 queue pairs end at about the same time, so
# messages are small: 16 of 32 KB take 10 ms, and are the least that a second is measured in.
part_far_soft()
{
	local us read qps devices="rxe2 rxe3"

	load_soft
	RATE=400
	for us in 20 100 500 1000 4000 12000; do
		delay_soft $RATE $us
		for read in 0 1; do
			for qps in 1 16; do
				both "far $RATE $us $read $qps" dev=rxe2 peer=rxe3 \
					len=$((qps == 1 ? 262144 : 32768)) \
					qps=$qps depth=$((qps == 1 ? 32 : 8)) read=$read \
					every_us=997 window_ms=1000 windows=${RISO_SECONDS:-6}
			done
		done
	done
}

part_groups()
{
	local weight

	wire 400000
	for weight in 100 300; do
		measure "groups $weight" plain load groups=2 qps=4 wait_ms=20 window_ms=100
		WEIGHT=$weight isolate
		measure "groups $weight" isolated load groups=2 qps=4 wait_ms=200 window_ms=100
		release
	done
}

# What an operator has set wrongly, with a latency flow
part_wrong()
{
	local mbps

	wire 100000
	measure "wrong" plain load qps=4 every_us=97 wait_ms=5 window_ms=500
	for mbps in 10000 1000000; do
		isolate max-rate ${mbps}mbit
		measure "wrong $mbps" isolated load qps=4 every_us=97 wait_ms=4000 window_ms=500
		release
	done
	wire 400
	measure "slow and wrong" plain load qps=4 every_us=997 wait_ms=5 window_ms=5000
	isolate max-rate 40mbit
	measure "slow and wrong" isolated load qps=4 every_us=997 wait_ms=4000 window_ms=5000
	release
}

# The timers of the module are late. With SafeUtil the clock paces, else the window does. At
# 400 Mbit/s all 16 queue pairs end a message at about the same time, each third of a second.
part_late()
{
	local rate ms safe settings

	for rate in 400 25000 100000; do
		wire $rate
		set -- qps=16 every_us=997 wait_ms=500 window_ms=$((rate == 400 ? 8000 : 500))
		measure "late $rate" plain load "$@"
		for safe in set unset; do
			settings=()
			[ $safe = unset ] || settings=(max-rate "${RATE}mbit"
						       safe-util "$((RATE * 97 / 100))mbit")
			for ms in 1 5 10; do
				isolate "${settings[@]}"
				load_test_module riso_test_late us=$((ms * 1000)) || die "not late"
				measure "late $rate $ms $safe" isolated load "$@"
				tell_params "timers of late $rate $ms $safe" riso_test_late timers
				rmmod riso_test_late
				release
			done
		done
	done
}

# Two programs that never sleep have the processor, beside what the load does.
part_oversubscribed()
{
	local rate loops

	while :; do :; done &
	loops=$!
	while :; do :; done &
	loops+=" $!"
	for rate in 25000 100000; do
		wire $rate
		both "oversubscribed $rate" qps=16 every_us=997 wait_ms=200 window_ms=200
	done
	# shellcheck disable=SC2086 # numbers
	kill $loops
}

# For how long the module keeps interrupts off, with 64 queue pairs that are busy
part_irqs()
{
	local kind safe settings

	wire 100000
	for safe in set unset; do
		settings=()
		[ $safe = unset ] || settings=(safe-util 97gbit)
		isolate "${settings[@]}"
		load_test_module riso_test_irqs || die "no probes"
		measure "irqs off, $safe" isolated load qps=64 depth=4 every_us=97 \
			wait_ms=100 window_ms=200
		for kind in timer call lock; do
			tell_params "irqs off, $kind, $safe" riso_test_irqs \
				${kind}_ns empty_lock_ns empty_call_ns pair_ns
		done
		rmmod riso_test_irqs
		release
	done
}

# Messages of 64 bytes that 1, 2 and 8 CPUs post and poll, each with a queue pair of its own, on
# an adapter where they end at once. It needs as many CPUs, so it is for run.sh -c only.
part_posts()
{
	local cpus round how="wait_ms=200 window_ms=1000"

	rmmod nullrdma && load_null instant=1 || die "no adapter"
	# shellcheck disable=SC2086 # words
	for ((round = 0; round < 5; round++)); do
		for cpus in 1 2 8; do
			[ $cpus -le "$(nproc)" ] || continue
			measure "posts $cpus $round" plain posts qps=$cpus $how
		done
		isolate
		for cpus in 1 2 8; do
			[ $cpus -le "$(nproc)" ] || continue
			measure "posts $cpus $round" isolated posts qps=$cpus $how
		done
		release
	done
	rmmod nullrdma && load_null copy=0 || die "no adapter"
}

# read_storage NAME HOW [KEY=VALUE]...: 1 MB reads of a connection made anew, with small messages
# or none beside them; the load tells how long the CPU is idle meanwhile
read_storage()
{
	local name=$1 how=$2 shaped=null disk reader began from now to
	shift 2

	disk=$(connect_nvme riso0 10.0.0.2 10.0.0.1) || die "no controller"
	fio --name=bulk --filename="$disk" --rw=read --bs=1M --iodepth=8 --ioengine=libaio \
		--direct=1 --time_based --runtime=1d --thread >"$RISO_OUT/fio" 2>&1 &
	reader=$!
	from=$(sectors_read "$disk")
	busywait 600 is_reading "$disk" $((from + 65536)) || die "no reads"
	began=${EPOCHREALTIME/./}
	from=$(sectors_read "$disk")
	echo "load qps=1 depth=0 depth2=0 wait_ms=100 window_ms=1000 $*" >"$LOAD/run" ||
		die "no load beside storage"
	now=${EPOCHREALTIME/./}
	to=$(sectors_read "$disk")
	[ "$how" != isolated ] || shaped=$(rdma-isolate -j statistic show dev null1)
	echo "{\"name\": \"$name\", \"how\": \"$how\", \"result\": {" \
		"\"bytes\": $(((to - from) * 512)), \"us\": $((now - began))," \
		"\"load\": $(cat "$LOAD/result")}, \"statistics\": $shaped}" \
		>>"$RISO_OUT/links.jsonl"
	echo "# $(tail -n 1 "$RISO_OUT/links.jsonl")"
	kill -INT "$reader"
	wait "$reader"
	disconnect_nvme riso0
}

# NVMe reads from a disk that costs nothing, alone and beside small messages
part_nvme()
{
	local rate

	NULLB_BACKED=0
	start_nvmet riso0 10.0.0.2 1024 || die "no target"
	stage_binary fio nvme
	for rate in 25000 100000; do
		wire $rate
		read_storage "nvme $rate alone" plain
		read_storage "nvme $rate beside" plain every_us=997
		isolate
		read_storage "nvme $rate alone" isolated
		release
		isolate safe-util "$((rate * 97 / 100))mbit"
		read_storage "nvme $rate beside" isolated every_us=997
		release
	done
	stop_nvmet riso0
}

setup_null copy=0 || die "no adapter"
load_test_module riso_test_load || die "no load"
trap teardown_all EXIT
stage_binary rdma-isolate cat cut tail rmmod
for part in ${RISO_PLAN:-$PARTS}; do
	declare -F "part_$part" >/dev/null || die "no part $part"
done
for part in ${RISO_PLAN:-$PARTS}; do
	"part_$part"
done
