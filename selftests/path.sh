#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Paths: what a device may send to a peer, or read from it. Bulk of the kernel from null0 to null1
# runs all the time.
#
# The clock of the machine is not exact: a rate holds if 60 to 120 % of it are sent in one second of
# several.
#
# One kernel is enough: what a kernel does otherwise is below the limits.

. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/cli.inc"

LOAD=/sys/kernel/debug/riso_test_load
FAST=10000
# Mbit/s; of a wire's, as rates of a path are
LIMIT=400

# What is counted, the name of it in the device's file
counts=write_bytes

# bytes per second
measure_rate()
{
	null_rate "$counts"
}

# holds_to MBPS
holds_to()
{
	local rate

	rate=$(measure_rate)
	[ "$rate" -ge $(($1 * 125000 * 6 / 10)) ] && [ "$rate" -le $(($1 * 125000 * 12 / 10)) ]
}

# keeps_to MBPS: and no second is far above it
keeps_to()
{
	busywait 20 holds_to "$1" && return
	ktap_print_msg "$(measure_rate) bytes/s"
	return 1
}

is_free()
{
	[ "$(measure_rate)" -gt $((LIMIT * 125000 * 2)) ]
}

# load_bulk [KEY=VALUE]...
load_bulk()
{
	trap : TERM
	echo "load len=1048576 every_us=10000 window_ms=60000 windows=20 $*" >$LOAD/run
}

# limit_is FILTER: of the paths of null0
limit_is()
{
	shows "$1" path show dev null0
}

limit()
{
	rdma-isolate path set dev null0 peer "$peer" "$@"
}

limits()
{
	limit dir tx rate ${LIMIT}mbit && keeps_to $LIMIT &&
	limit_is 'length == 1 and .[0].dir == "tx" and .[0].cut == "off" and
		.[0].lease_ns == 0 and
		.[0].rate == 50000000 and .[0].bytes > 0 and .[0].waits > 0'
}

changes()
{
	limit dir tx rate $((LIMIT / 2))mbit && keeps_to $((LIMIT / 2)) &&
	limit dir tx rate ${LIMIT}mbit && keeps_to $LIMIT
}

ends()
{
	limit dir tx rate off && limit_is 'length == 0' && busywait 20 is_free
}

# The other direction, and another peer, hold nobody back.
leaves_others()
{
	limit dir rx rate ${LIMIT}mbit &&
	rdma-isolate path set dev null0 peer 10.9.9.9 dir tx rate ${LIMIT}mbit &&
	limit_is 'length == 2' && busywait 20 is_free &&
	limit dir rx rate off && rdma-isolate path set dev null0 peer 10.9.9.9 dir tx rate off
}

is_leased()
{
	limit dir tx rate ${LIMIT}mbit lease 5s &&
		limit_is '.[0].lease_ns > 0 and .[0].lease_ns <= 5e9' &&
	keeps_to $LIMIT && busywait 20 is_free && busywait 10 limit_is 'length == 0'
}

# group ULP FILTER
group()
{
	rdma-isolate -j group show dev null0 |
		jq --arg ulp "$1" "[.[] | select(.ulp == \$ulp)] | .[0] | $2"
}

# A flow of the bulk
bulk_qpn()
{
	rdma-isolate -j flow show dev null0 |
		jq '[.[] | select(.ulp == "riso_load0") | .qpn] | first'
}

# Nothing of a group's time that it has waited so is its own.
is_explained()
{
	local id path own

	limit dir tx rate ${LIMIT}mbit && keeps_to $LIMIT || return
	path=$(group riso_load0 .path_ns) own=$(group riso_load0 .own_ns)
	sleep 2
	path=$(($(group riso_load0 .path_ns) - path)) own=$(($(group riso_load0 .own_ns) - own))
	ktap_print_msg "of 2 s for the path $path ns, its own $own"
	id=$(group riso_load0 .id)
	shows ".[0] | .path_ns > 1e9 and (.waits_for | length == 1) and (.waits_for[0] |
		.peer == \"$peer\" and .dir == \"tx\" and .rate == 50000000 and .lease_ns == 0 and
		.set_by == \"operator\")" explain group dev null0 id "$id" &&
	limit dir tx rate ${LIMIT}mbit lease 60s &&
	shows '.[0].waits_for[0] | .lease_ns > 0 and .set_by == "agent"' \
		explain flow dev null0 qpn "$(bulk_qpn)" &&
	[ "$path" -gt 1000000000 ] && [ "$own" -lt 500000000 ] && limit dir tx rate off
}

# top_shows FILTER [COMMAND]...: of a device in the answer of top, which these run
top_shows()
{
	local filter=$1 out
	shift

	out=$("$@" rdma-isolate -j top dev null0 count 1) || return
	answers+=$(printf 'top\t%s' "$out")$'\n'
	jq -e "$filter" >/dev/null <<<"$out" && return
	ktap_print_msg "$out"
	return 1
}

# Who may not ask for paths sees the rest, and hears of no error.
is_on_top()
{
	limit dir tx rate ${LIMIT}mbit && limit dir rx rate ${LIMIT}mbit lease 60s &&
	keeps_to $LIMIT &&
	top_shows "(.path | length == 2) and (.path[0] | .peer == \"$peer\" and .dir == \"tx\" and
		.limit == 50000000 and .used > 10 and .rate > 0 and .waits > 0 and
		.lease_ns == 0) and (.path[1] | .dir == \"rx\" and .rate == 0 and .used == 0 and
		.lease_ns > 0 and .lease_ns <= 60e9)" &&
	top_shows '(has("path") | not) and any(.group[]; .rate > 0)' \
		setpriv --reuid 65534 --regid 65534 --clear-groups 2>"$dir/said" &&
	[ ! -s "$dir/said" ] && limit dir tx rate off && limit dir rx rate off
}

load_again()
{
	kill "$pid"
	wait "$pid"
	load_bulk "$@" &
	pid=$!
	busywait 20 is_free
}

# Two groups to one peer, of more flows than try again together
shares_a_path()
{
	local one three

	load_again depth=1 groups=2 qps=24 || return
	limit dir tx rate ${LIMIT}mbit && keeps_to $LIMIT || return
	one=$(group riso_load0 .tx_bytes) three=$(group riso_load1 .tx_bytes)
	sleep 4
	one=$(($(group riso_load0 .tx_bytes) - one)) three=$(($(group riso_load1 .tx_bytes) - three))
	ktap_print_msg "weight 100: $one bytes, weight 300: $three bytes"
	[ "$three" -gt $((one * 2)) ] && [ "$three" -lt $((one * 4)) ] || return
	limit dir tx rate off && load_again depth=4
}

# What is read from the peer has a limit of its own.
reads()
{
	local counts=read_bytes

	load_again depth=4 read=1 && limit dir tx rate ${LIMIT}mbit && busywait 20 is_free &&
	limit dir tx rate off && limit dir rx rate ${LIMIT}mbit && keeps_to $LIMIT &&
	limit dir rx rate off && counts=write_bytes && load_again depth=4
}

# classify_small CLASS: what the small messages of the load are
classify_small()
{
	local id

	id=$(rdma-isolate -j rule show | jq '.[] | select(.ulp == "riso_load_small").id')
	rdma-isolate rule delete id "$id" &&
	rdma-isolate rule add ulp riso_load_small class "$1" >/dev/null
}

# With a latency flow, chunks are paced for both.
is_shaped()
{
	classify_small latency && limit dir tx rate ${LIMIT}mbit && keeps_to $LIMIT &&
	limit dir tx rate off && busywait 20 is_free && classify_small bandwidth
}

# chunks: posted so far
chunks()
{
	rdma-isolate -j statistic show dev null0 | jq '.[0].chunk_posted'
}

# Nothing of null0 is latency, so nothing is cut without that.
is_cut()
{
	local before

	before=$(chunks)
	sleep 1
	[ "$(chunks)" -eq "$before" ] && limit dir tx rate off cut on &&
	limit_is '.[0].cut == "on" and .[0].rate == 0' && sleep 1 &&
	[ "$(chunks)" -gt $((before + 100)) ] && limit dir tx rate off
}

# says WORDS COMMAND...: it fails with that
says()
{
	local words=$1 out
	shift

	out=$("$@" 2>&1) && return 1
	grep -q "$words" <<<"$out" && return
	ktap_print_msg "$out"
	return 1
}

is_refused()
{
	says "no RDMA device" rdma-isolate path set dev none peer 10.0.0.1 dir tx rate 1gbit &&
	says "peer" rdma-isolate path set dev null0 peer 10.0.0 dir tx rate 1gbit &&
	says "must be tx, rx" limit dir up rate 1gbit &&
	says "800kbit to 8tbit" limit dir tx rate 1bit &&
	says "1ms to 3600s" limit dir tx rate 1gbit lease 2h &&
	limit_is 'length == 0'
}

# set_many RATE: for 1024 peers
set_many()
{
	local i

	for ((i = 0; i < 1024; i++)); do
		rdma-isolate path set dev null0 peer "10.1.$((i / 256)).$((i % 256))" dir tx \
			rate "$1" || return
	done
}

# More than there may be, and they leave room again.
are_too_many()
{
	set_many 1gbit && limit_is 'length == 1024' &&
	says "1024 peers" limit dir tx rate 1gbit &&
	set_many off && limit_is 'length == 0'
}

# All that was posted ends well, also when the module goes.
unload()
{
	limit dir tx rate ${LIMIT}mbit && rdma-isolate dev set dev null0 mode disable timeout 20s &&
	kill "$pid" && { wait "$pid"; pid=; unload_module; }
}

require rdma jq
command -v rdma-isolate >/dev/null || skip_all "no rdma-isolate"
dir=$(mktemp -d)
trap 'kill "${pid:-}" 2>/dev/null; wait; teardown_all; rm -rf "$dir"' EXIT
setup_null rate_mbps=$FAST copy=0 || skip_all "no two devices of nullrdma"
load_test_module riso_test_load
load_module || skip_all "rdma_isolate cannot be loaded"
for ulp in riso_load0 riso_load_small; do
	rdma-isolate rule add ulp $ulp class bandwidth >/dev/null
done
rdma-isolate rule add ulp riso_load1 class bandwidth weight 300 >/dev/null
rdma-isolate dev set dev null0 mode enable chunk-bytes 64k
load_bulk depth=4 &
pid=$!
busywait 20 is_free || skip_all "no load"
peer=$(rdma-isolate -j flow show dev null0 |
	jq -r '[.[] | select(.ulp == "riso_load0") | .peer] | first')

ktap_print_header
ktap_set_plan 15
ktap_print_msg "to $peer: $(measure_rate) bytes/s without a limit"
check "a rate is kept" limits
check "another rate" changes
check "it ends" ends
check "another direction, and another peer" leaves_others
check "for a while" is_leased
check "a group says what it waits for" is_explained
check "top shows it" is_on_top
check "groups share a path by their weights" shares_a_path
check "what is read" reads
check "beside a latency flow" is_shaped
check "cut without a latency flow" is_cut
check "bad input" is_refused
check_schema
check "1024 peers" are_too_many
check "disabled, and unloaded, with a limit" unload
ktap_finished
