#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# rdma-isolate calibrate: what it finds of a device is within the bounds that the wire
# sets, and as documented; --apply sets and keeps it, all or nothing; and whatever is
# wrong with the peer is said.
#
# One kernel is enough: it tests programs.

. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/cli.inc"

top=$(dirname "$(dirname "$(realpath "${BASH_SOURCE[0]}")")")
PATH=$PATH:$top/userspace/agent
require rdma rdma-isolate rdma-isolated rperf jq
need_module rdma_rxe rdma_ucm
[ ! -e /etc/rdma-isolated.conf ] || skip_all "the agent of this host has settings"
conf=/etc/rdma-isolate.d
kept=$conf/90-calibrate-rxe1.conf
mkdir -p "$conf" && mount -t tmpfs -o mode=755 riso-calibrate "$conf" ||
	skip_all "no file system for $conf"
noisy=$(mktemp -d)
trap clean_up EXIT

agent=
clean_up()
{
	# shellcheck disable=SC2046 # numbers
	kill $(jobs -p) 2>/dev/null
	wait
	umount "$conf"
	rm -rf /etc/rdma-isolated.conf "$noisy"
	teardown_all
}

start_agent()
{
	rdma-isolated --listen 10.0.0.1 &
	agent=$!
	busywait 10 is_listening
}

is_listening()
{
	rdma -j resource show cm_id | jq -e 'any(.state == "LISTEN")' >/dev/null
}

# found WORD...: the JSON of a calibration
found()
{
	out=$(rdma-isolate -j calibrate dev rxe1 "$@" 2>"$noisy/progress")
}

# holds FILTER: of that
holds()
{
	jq -e ".[0] | $1" >/dev/null <<<"$out" && return
	ktap_print_msg "$1: $out"
	return 1
}

# The wire has 400 Mbit/s, and 2 % are for netem's ways of counting; how much less the
# emulated processor has is not known.
measures()
{
	local least=2500000

	! is_debug_kernel || least=400000
	found peer 10.0.0.1 && ktap_print_msg "$out" &&
	holds '.dev == "rxe1" and .peer == "10.0.0.1" and (.applied | not)' &&
	holds ".max_rate >= $least and .max_rate <= 51000000" &&
	holds '.rtt_min_ns > 1000 and .rtt_min_ns <= .p50_ns and .p50_ns <= .p99_ns' &&
	holds '.p50_ns < 100000000 and .max_ops >= 100' &&
	holds '.safe_util <= 0.97 * .max_rate and .safe_util > 0.96 * .max_rate' &&
	holds '.chunk_bytes as $c | .sizes | map(.chunk_bytes) |
		(index($c) != null or $c == "auto") and
		. == [4096, 8192, 16384, 32768, 65536, 131072, 262144, 524288, 1048576]' &&
	holds '.target99_ns >= 4 * .p99_ns and .target99_ns < 4 * .p99_ns + 1000'
}

# A chunk that reaches 95 % of a rate that is rounded down by less than 1 %. That of auto is 4 KB
# here.
chunk_is_smallest()
{
	holds '.max_rate as $m | (if .chunk_bytes == "auto" then 4096 else .chunk_bytes end) as $c |
		.chunk_bytes != 4096 and
		(any(.sizes[]; .chunk_bytes < $c and .rate > 0.97 * $m) | not) and
		(all(.sizes[]; .rate < 0.97 * $m) or
		 any(.sizes[]; .chunk_bytes == $c and .rate >= 0.95 * $m))'
}

nothing_is_set()
{
	shows '.[0] | .calibrated == false and .target99_ns == "auto"' \
		dev show dev rxe1 && [ -z "$(ls -A "$conf")" ]
}

# as_found: the device is as the last JSON has it
as_found()
{
	local filter

	filter=$(jq -r '.[0] | ".[0] | .max_rate == \(.max_rate) and
		.chunk_bytes == \(.chunk_bytes | tojson) and
		.target99_ns == \(.target99_ns) and .calibrated"' <<<"$out")
	shows "$filter" dev show dev rxe1
}

# sets_safe_util: SafeUtil was MaxRate, or what an earlier calibration made of it
sets_safe_util()
{
	found peer 10.0.0.1 --apply --force && holds .applied && as_found &&
	shows ".[0].safe_util == $(jq '.[0].safe_util' <<<"$out")" dev show dev rxe1
}

# MaxOps stays as it was. An emulated processor need not be quiet. A file of somebody else that is
# wrong does not matter.
applies()
{
	local status

	echo "dev set dev rxe9 chunk-bytes 1" >"$conf/10-wrong.conf"
	sets_safe_util && shows '.[0].max_ops == 0' dev show dev rxe1 &&
	rdma-isolate dev set dev rxe1 max-rate 10gbit safe-util 9700mbit && sets_safe_util
	status=$?
	rm "$conf/10-wrong.conf"
	[ "$(ls -A "$conf")" = "${kept##*/}" ] && return $status
}

is_kept()
{
	rdma-isolate dev set dev rxe1 safe-util 1mbit max-rate 1gbit \
		chunk-bytes 64k target99 1s && rdma-isolate apply && as_found
}

# The operator's safe-util is below; it stays, and the peer is the agent's.
keeps_safe_util()
{
	printf '%s\n' "[device rxe1]" "peer = 10.0.0.1" >/etc/rdma-isolated.conf
	rdma-isolate dev set dev rxe1 safe-util 1mbit &&
	found --apply --force && as_found &&
	shows '.[0].safe_util == 125000' dev show dev rxe1 &&
	grep -q "safe-util 1mbit" "$kept"
}

# at_odds: with a file whose name comes later
at_odds()
{
	local before

	before=$(rdma-isolate dump; cat "$kept")
	echo "dev set dev rxe1 safe-util 8tbit" >"$conf/99-more.conf"
	refused 2 "$conf/99-more.conf:1: safe-util of rxe1 may not be above" \
		calibrate dev rxe1 --apply --force &&
	rm "$conf/99-more.conf" &&
	[ "$(rdma-isolate dump; cat "$kept")" = "$before" ] &&
	[ "$(ls -A "$conf")" = "${kept##*/}" ]
}

warns()
{
	local load err status

	rdma-isolate dev set dev rxe1 mode enable &&
	rdma-isolate rule add dev rxe1 comm rdma-isolate-ca class latency >/dev/null
	rdma-isolate run -- rperf --dev rxe1 --peer rxe0 --load write --size 64k \
		>/dev/null &
	load=$!
	sleep 1
	err=$(rdma-isolate calibrate dev rxe1 2>&1 >/dev/null)
	status=$?
	kill "$load"
	wait "$load"
	[ "$status" -eq 0 ] && [[ $err == *"warning: other traffic"* ]] && return
	ktap_print_msg "status $status: $err"
	return 1
}

# A host that is not quiet, made up: the tool finds the program that measures beside it.
with_noise()
{
	cp "$(command -v rdma-isolate)" "$noisy" &&
	cat >"$noisy/rdma-isolate-calibrate" <<-'EOF' &&
		#!/bin/sh
		printf '%s\n' "peer $2" "p50 290000" "p99 12600000" "rtt-min 200000" \
			"rate 50000000" "ops 20000" "size 4096 49000000"
	EOF
	chmod +x "$noisy/rdma-isolate-calibrate"
}

noise_is_told()
{
	local err before

	with_noise || return
	before=$(rdma-isolate dump; cat "$kept")
	err=$("$noisy/rdma-isolate" calibrate dev rxe1 peer 10.0.0.1 2>&1 >/dev/null) &&
	[[ $err == *"warning: the host or the path is not quiet"* ]] || return
	err=$("$noisy/rdma-isolate" calibrate dev rxe1 peer 10.0.0.1 --apply 2>&1 >/dev/null)
	[ $? -eq 1 ] && [[ $err == *"nothing is applied"* ]] &&
	[ "$(rdma-isolate dump; cat "$kept")" = "$before" ] &&
	"$noisy/rdma-isolate" calibrate dev rxe1 peer 10.0.0.1 --apply --force \
		>/dev/null 2>&1 &&
	shows '.[0].target99_ns == 50400000' dev show dev rxe1
}

# What is measured, while it is, also where nobody looks at a terminal.
tells_progress()
{
	local what

	for what in "connecting to 10.0.0.1" "measuring latency" "measuring max-rate" \
		"measuring max-ops" "measuring chunk-bytes"; do
		grep -q "^rdma-isolate: $what" "$noisy/progress" || return
	done
}

peer_dies()
{
	local killer status

	{ sleep 1.5; kill -KILL "$agent"; } &
	killer=$!
	refused 1 "10.0.0.1" calibrate dev rxe1
	status=$?
	wait "$killer" "$agent"
	return $status
}

load_module && setup_rxe 400mbit || skip_all "no rxe devices"
ktap_print_header
ktap_set_plan 17
check "no peer is known" refused 2 "peer is missing" calibrate dev rxe1
check "no such device" refused 1 "no RDMA device of this name" \
	calibrate dev rxe9 peer 10.0.0.1
check "nobody listens" refused 1 "peer 10.0.0.1 port 18516: nobody listens there" \
	calibrate dev rxe1 peer 10.0.0.1
check "an address of another kind" refused 1 "rxe1 has no address of the kind" \
	calibrate dev rxe1 peer 2001:db8::1
start_agent || ktap_print_msg "no agent"
check "another port" refused 1 "port 4711: nobody listens there" \
	calibrate dev rxe1 peer 10.0.0.1 port 4711
check "it measures" measures
check "the chunk is the smallest that is enough" chunk_is_smallest
check "it says what it does" tells_progress
check "nothing is set" nothing_is_set
check_schema "calibrate"$'\t'"$out"
check "--apply sets it" applies
check "and keeps it" is_kept
check "the agent's peer, and safe-util" keeps_safe_util
check "at odds with another file" at_odds
check "a host that is not quiet" noise_is_told
check "other traffic" warns
check "the peer dies" peer_dies
ktap_finished
