#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Mode observe: what a kernel ULP posts is counted exactly, for the device, for each
# flow and by size; times from post to completion are measured for each work request
# that is signaled, when that is on; and nothing is delayed or cut.
#
# One kernel is enough: lifecycle.sh tests the hooks that count on each.

# shellcheck disable=SC1102,SC2046,SC2211,SC2285,SC2288 # arithmetic on members of arrays
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/cli.inc"
. "$(dirname "$0")/ulp.inc"

require rdma rdma-isolate jq rperf
dir=$(mktemp -d)

SIZES="64 256 1024 4096 16384 65536 262144 1048576"
MB=$((1 << 20))

# --- what should be counted -------------------------------------------------

declare -A want

# messages tx|rx LENGTH [COUNT]: more of them
messages()
{
	local n=${3:-1} name=more i=64
	local -A names=([1024]=1k [4096]=4k [16384]=16k [65536]=64k
		[262144]=256k [1048576]=1m)

	for i in $SIZES; do
		[ "$2" -gt "$i" ] || { name=${names[$i]:-$i}; break; }
	done
	: $((want[observed_wrs] += n)) $((want[size_$name] += n)) \
		$((want[observed_$1_bytes] += n * $2)) \
		$((want[observed_bytes] += n * $2))
}

# What the ULP posts for itself: memory is registered twice on the first QP, and each
# queue is drained with an empty WRITE, which completes with an error.
pair()
{
	want=([observed_wrs]=2)
	messages tx 0 "$1"
}

# In bash alone, here and below: a process takes a moment here, and jq a long one.
KEYS="observed_wrs observed_bytes observed_tx_bytes observed_rx_bytes size_64 size_256
	size_1k size_4k size_16k size_64k size_256k size_1m size_more"

# sums ARRAY: what is not 0 of it, in the order of $KEYS
sums()
{
	local -n sums_of=$1
	local key text=

	for key in $KEYS; do
		[ "${sums_of[$key]:-0}" -eq 0 ] || text+="$key ${sums_of[$key]} "
	done
	echo "$text"
}

# --- what was counted -------------------------------------------------------

stats()
{
	rdma-isolate -j statistic show dev "$1"
}

# add_up ARRAY SIGN JSON: the counters of one object
add_up()
{
	# shellcheck disable=SC2034 # written through the name
	local -n add_to=$1
	local key

	for key in $KEYS; do
		if [[ ! $3 =~ \"$key\":([0-9]+) ]]; then
			echo "$1: no $key"
			return 1
		fi
		: $((add_to[$key] $2= BASH_REMATCH[1]))
	done
}

# Of a device since $before, by name
counted()
{
	local -A since

	add_up since + "$(stats "$1")" && add_up since - "$before" && sums since
}

# heard KIND: how many such events
heard()
{
	grep -c "\"event\":\"$1\"" "$dir/events"
}

# are_heard KIND NUMBER
are_heard()
{
	[ "$(heard "$1")" -ge "$2" ]
}

# Events come in order, so whatever has happened is heard when a device has been left and observed
# again.
hear_all()
{
	local before

	before=$(heard device)
	rdma-isolate dev set dev rxe1 mode disable && rdma-isolate dev set dev rxe1 mode observe &&
	busywait 20 are_heard device $((before + 2))
}

# The sum of the flows of a device that have gone since so many had
flows_counted()
{
	local skip=$2 line tx rx wrs
	# shellcheck disable=SC2034 # written through its name
	local -A all

	while read -r line; do
		[[ $line == *'"event":"flow-gone"'* ]] || continue
		[ $((skip--)) -le 0 ] || continue
		[[ $line == *"\"dev\":\"$1\""* ]] || continue
		[[ $line =~ \"tx_bytes\":([0-9]+) ]] && tx=${BASH_REMATCH[1]} &&
		[[ $line =~ \"rx_bytes\":([0-9]+) ]] && rx=${BASH_REMATCH[1]} &&
		[[ $line =~ \"wrs\":([0-9]+) ]] && wrs=${BASH_REMATCH[1]} &&
		add_up all + "$line\"observed_wrs\":$wrs \"observed_bytes\":$((tx + rx))
			\"observed_tx_bytes\":$tx \"observed_rx_bytes\":$rx" || return
	done <"$dir/events"
	sums all
}

# same WHAT TEXT WANTED
same()
{
	[ "$2" = "$3" ] && return
	ktap_print_msg "$1: $2"
	ktap_print_msg "not $3"
	return 1
}

# counts QPS CASE [KEY=VALUE]...: the case posts what $want says on rxe0, and
# nothing of its own on rxe1, on so many QPs
counts()
{
	local qps=$1 last before expect
	shift

	hear_all || return
	last=$(heard flow-gone)
	expect=$(sums want)
	before=$(stats rxe0)
	ulp_run "$@" || { ulp_report; return 1; }
	same "$*" "$(counted rxe0)" "$expect" &&
	busywait 20 are_heard flow-gone $((last + 2 * qps)) &&
	same "$*: flows" "$(flows_counted rxe0 "$last")" "$expect" || return
	pair "$qps"
	same "$*: the peer" "$(flows_counted rxe1 "$last")" "$(sums want)"
}

sizes()
{
	local edge len

	for edge in $SIZES; do
		for len in "$edge" $((edge + 1)); do
			pair 1
			messages tx $len 2
			counts 1 size op=write len=$len count=2 || return
		done
	done
}

# of REG_MR and LOCAL_INV no data is sent
operations()
{
	local op way

	for op in write read send writeimm sendimm; do
		way=tx
		[ $op != read ] || way=rx
		pair 1
		messages $way 5000 7
		counts 1 size op=$op len=5000 count=7 || return
	done
}

chain()
{
	local dirs=(tx tx rx tx tx rx) i len

	pair 1
	for ((i = 0; i < 24; i++)); do
		len=$((i % 3 ? 3000 : 64 + i))
		messages "${dirs[$((i % 6))]}" $len
	done
	counts 1 chain len=3000 count=24
}

# more QPs on one CQ, and both ends post
flows()
{
	local last before qps=3

	hear_all || return
	last=$(heard flow-gone)
	before=$(stats rxe0)
	ulp_run onecq qps=$qps || { ulp_report; return 1; }
	busywait 20 are_heard flow-gone $((last + 2 * qps)) &&
	same "device and flows" "$(counted rxe0)" \
		"$(flows_counted rxe0 "$last")"
}

# The same queue from several CPUs, and several queues
cpus()
{
	pair 1
	messages tx 3000 $((4 * 64))
	counts 1 cpus len=3000 threads=4 count=64 || return
	pair 3
	messages tx 3000 $((6 * 64))
	counts 3 cpus len=3000 threads=6 qps=3 count=64
}

# What the provider refuses is not counted: the rest has completed.
refused_posts()
{
	local last before counts

	hear_all || return
	last=$(heard flow-gone)
	before=$(stats rxe0)
	ulp_run overpost len=3000 op="$1" || { ulp_report; return 1; }
	counts=$(counted rxe0)
	busywait 20 are_heard flow-gone $((last + 2)) &&
	same "device and flows" "$counts" "$(flows_counted rxe0 "$last")" &&
	[[ $counts == *" observed_tx_bytes $(sed -n '1s/.*bytes //p' "$ULP/result") "* ]]
}

# --- times ------------------------------------------------------------------

histograms()
{
	rdma-isolate statistic histogram
}

# How many of each device and class there are since $before: the words of a line are
# "dev NAME class NAME", and then a bucket and its count each
times()
{
	local sign text line key i
	local -A since

	for sign in + -; do
		text=$before
		[ $sign = - ] || text=$(histograms)
		while read -ra line; do
			key="${line[1]} ${line[3]}"
			for ((i = 5; i < ${#line[@]}; i += 2)); do
				: $((since[$key] $sign= line[i]))
			done
		done <<<"$text"
	done
	for key in "${!since[@]}"; do
		[ "${since[$key]}" -eq 0 ] || echo "$key ${since[$key]}"
	done
}

# timed COUNT CASE [KEY=VALUE]...: so many on rxe0 of class $class, and no others
timed()
{
	local count=$1 wanted='' before
	shift

	[ "$count" -eq 0 ] || wanted="rxe0 $class $count"
	before=$(histograms)
	ulp_run "$@" || { ulp_report; return 1; }
	same "$*" "$(times)" "$wanted"
}

off_by_default()
{
	shows '.[0].histogram == "off"' dev show dev rxe0 &&
	timed 0 size len=3000 count=5 signal=1
}

# The ULP signals every n-th message, and the last one.
totals()
{
	local cq op

	for cq in wq softirq work tasklet; do
		timed 30 size len=3000 count=30 signal=1 cq=$cq &&
		timed 6 size len=3000 count=30 signal=7 cq=$cq || return
	done
	for op in write read send writeimm sendimm; do
		timed 1 size op=$op len=3000 count=30 signal=0 &&
		timed 20 size op=$op len=100 count=20 signal=1 || return
	done
	timed 30 size len=3000 count=30 signal=1 cq=work odd=1 &&
	timed 30 size len=3000 count=30 signal=1 cq=tasklet odd=1 batch=1 &&
	timed 62 depth len=3000 signal=1 &&
	timed 1000 size len=100 count=1000 depth=1000 signal=1
}

both_polled()
{
	timed 30 size len=3000 count=30 signal=1 &&
	timed 5 size len=3000 count=30 signal=9 cq=work
}

# QPs that signal every work request do so without being asked.
all_signaled()
{
	timed 30 size len=3000 count=30 signal=0 sigall=1 &&
	timed 24 chain len=3000 count=24 signal=0 sigall=1
}

# What was posted on an error, or did not complete at all, is not measured, nor
# is it taken for what comes later.
errors()
{
	ulp_run remacc && ulp_run reset && ulp_run errpost && ulp_run destroy &&
	timed 30 size len=3000 count=30 signal=1
}

# Those of the class on the device, a line each
words()
{
	sed -n 's/^dev rxe0 class bandwidth //p' | xargs -n 2
}

# A megabyte takes 20 ms at this rate, and longer if nobody looks.
in_microseconds()
{
	local before grown status

	before=$(histograms)
	set_rate 400mbit
	timed 1 size len=$MB count=1 signal=1
	status=$?
	set_rate none
	grown=$(diff <(words <<<"$before") <(histograms | words) |
		sed -n 's/^> \(.*\) .*/\1/p')
	case $grown in
	below_32768us|below_65536us|below_131072us|below_262144us)
		return $status ;;
	below_524288us|below_1048576us|below_2097152us)
		! is_debug_kernel || return $status ;;
	esac
	ktap_print_msg "$grown"
	return 1
}

by_class()
{
	local id status

	id=$(rdma-isolate -j rule add ulp riso_test_ulp class "$1" |
		jq '.[0].id') || return
	class=$1
	timed 30 size len=3000 count=30 signal=1
	status=$?
	rdma-isolate rule delete id "$id"
	class=bandwidth
	return $status
}

# --- with traffic -----------------------------------------------------------

during()
{
	local pid status

	ulp_run traffic op=write len=100000 &
	pid=$!
	let_flow 1 && "$@"
	status=$?
	ulp_stop
	wait $pid || { ulp_report; return 1; }
	return $status
}

# The flow that carries the traffic
busiest()
{
	rdma-isolate -j flow show dev rxe0 sort bytes limit 1
}

# No work request of it was held or cut.
left_alone()
{
	busiest | jq -e '.[0] | .ulp == "riso_test_ulp" and (.managed | not) and
		.tx_bytes > 1000000 and .wrs > 10 and .size_256k > 10 and
		.chunks == 0 and .splits == 0 and .queued == 0 and
		.wait_ns == 0 and .held == 0' >/dev/null
}

top_talkers()
{
	shows 'map(.tx_bytes + .rx_bytes // 0) | . == (sort | reverse) and
		.[0] > 1000000' flow show dev rxe0 sort bytes &&
	shows 'map(.wrs // 0) | . == (sort | reverse) and .[0] > 10' \
		flow show sort ops &&
	shows 'map(.wait_ns // 0) | . == (sort | reverse)' flow show sort wait &&
	shows 'length == 2 and .[0].ulp == "riso_test_ulp" and
		.[0].tx_bytes > .[1].tx_bytes' flow show sort bytes limit 2 &&
	shows 'length == 1' flow show limit 1 &&
	[ "$(rdma-isolate flow show sort ops limit 3 | wc -l)" -eq 3 ] &&
	[[ $(rdma-isolate -d flow show dev rxe0 sort bytes limit 1) == *\
"ulp riso_test_ulp "*" size_64 "*" size_256k "[1-9]* ]]
}

wrs_of()
{
	rdma-isolate -j flow show dev rxe0 qpn "$1" | jq '.[0].wrs'
}

# What was counted stays when the device is left, and nothing is added then.
counts_stay()
{
	local qpn first later

	qpn=$(busiest | jq '.[0].qpn')
	first=$(wrs_of "$qpn")
	rdma-isolate dev set dev rxe0 mode disable || return
	later=$(wrs_of "$qpn")
	[ "$later" -ge "$first" ] && let_flow 1 &&
	same "idle" "$(wrs_of "$qpn")" "$later" &&
	rdma-isolate dev set dev rxe0 mode observe && let_flow 1 &&
	[ "$(wrs_of "$qpn")" -gt "$later" ]
}

switch()
{
	local before i

	before=$(histograms)
	for i in {1..5}; do
		rdma-isolate dev set dev rxe0 histogram off &&
		rdma-isolate dev set dev rxe0 histogram on &&
		rdma-isolate dev set dev rxe0 mode disable &&
		rdma-isolate dev set dev rxe0 mode observe || return
	done
	let_flow 2
	[[ $(times) =~ "rxe0 bandwidth "[1-9] ]]
}

# --- what is not counted ----------------------------------------------------

# An enabled device counts nothing for the flows that it leaves alone.
enabled()
{
	local before

	rdma-isolate rule add ulp riso_test_ulp class latency >/dev/null &&
	rdma-isolate dev set dev rxe0 mode enable && before=$(stats rxe0) &&
	timed 0 size len=3000 count=30 signal=1 &&
	same enabled "$(counted rxe0)" ""
}

# Programs post without the kernel: their flows are listed with nothing.
program()
{
	local last before

	hear_all || return
	last=$(heard flow-gone)
	before=$(stats rxe0)
	rperf --dev rxe0 --peer rxe1 --samples 100 --interval 1000 \
		>/dev/null || return
	busywait 20 are_heard flow-gone $((last + 2)) &&
	grep '"event":"flow-gone"' "$dir/events" | tail -n +$((last + 1)) |
		jq -se 'map(select(.comm == "rperf")) | length >= 2 and
			all(.reason == "user-qp" and .wrs == 0 and
			.tx_bytes == 0 and .rx_bytes == 0 and .size_64 == 0)' \
			>/dev/null
}

is_listening()
{
	rdma-isolate dev set dev rxe1 mode observe
	rdma-isolate dev set dev rxe1 mode disable
	[ -s "$dir/events" ]
}

# From the first case to here
nothing_was_touched()
{
	local dev

	for dev in rxe0 rxe1; do
		stats $dev | jq -e '.[0] | [.wr_queued, .wr_split, .whole_posted,
			.chunk_posted, .wr_completed, .cqe_hidden, .cqe_reaped,
			.debt_posted, .throttle_clock, .throttle_window,
			.timer_fired] | add == 0' >/dev/null && continue
		ktap_print_msg "$(rdma-isolate statistic show dev $dev)"
		return 1
	done
}

start()
{
	rdma-isolate -j monitor >"$dir/events" &
	busywait 30 is_listening &&
	rdma-isolate dev set dev rxe0 mode observe &&
	rdma-isolate dev set dev rxe1 mode observe
}

# It may be managed then, and its CQs are looked after already.
rule()
{
	managed=$(rdma-isolate -j rule add ulp riso_test_ulp class bandwidth |
		jq '.[0].id')
}

no_rule()
{
	rdma-isolate rule delete id "$managed"
}

ulp_setup
trap 'ulp_stop; kill $(jobs -p) 2>/dev/null; teardown_all; rm -rf "$dir"' EXIT
load_module || skip_all "the module does not load"
class=bandwidth
ktap_print_header
ktap_set_plan 27
check "both devices observed" start
check "size classes" sizes
check "operations" operations
check "a chain" chain
check "more flows" flows
check "more CPUs" cpus
check "more than the queue holds" refused_posts write
check "a chain of more than the queue holds" refused_posts chain
check "no times by default" off_by_default
check "times are measured when asked for" \
	rdma-isolate dev set dev rxe0 histogram on
check "one for each that is signaled" totals
check "all are signaled" all_signaled
check "errors" errors
check "in microseconds" in_microseconds
check "of class latency" by_class latency
check "of class throughput" by_class throughput
check "with a rule to manage it" rule
check "a chain of it" chain
check "its times" both_polled
check "traffic is left alone" during left_alone
check "top talkers" during top_talkers
check "counts stay" during counts_stay
check "on and off" during switch
check "without the rule" no_rule
check "programs" program
check "nothing was held, cut or hidden" nothing_was_touched
check "an enabled device" enabled
ktap_finished
