#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# What happens to a port while bulk runs beside a latency flow: it changes its speed, goes
# down for a moment or for good, and tells a speed that it does not have; peers do not answer;
# or somebody has set a MaxRate that is not that of the port. The bulk goes on, events and explain
# tell what is believed, and nothing hangs. port.sh has the same without traffic.
#
# The clock of the machine is not exact, so bulk passes when it has sent half of what it sends
# without the module in one second of several.
#
# One kernel is enough: port.sh runs on each.

. "$(dirname "$0")/lib.sh"

LOAD=/sys/kernel/debug/riso_test_load
PARAMETERS=/sys/module/nullrdma/parameters
# Mbit/s: speeds that a port can tell, and that an emulated processor can keep busy in chunks of
# 512 KB, each of which takes 400 us at least
FAST=10000
SLOW=2500
# The largest MaxRate there can be
MOST=1000000000000
# What nullrdma's port_speed has: SDR, a speed that is not defined yet, none, and that of the wire
SDR=1
UNDEFINED=32768
NONE=0
FITS=65536

set_param()
{
	echo "$2" >"$PARAMETERS/$1"
}

# bytes_of MBPS: bytes per second
bytes_of()
{
	echo $(($1 * 125000))
}

# measure_rate [SECONDS]: bytes per second of what null0 has sent, and has an answer to
measure_rate()
{
	null_rate write_bytes "$@"
}

sends_half()
{
	[ "$(measure_rate)" -ge $(($1 / 2)) ]
}

# keeps PLAIN: half of these bytes per second
keeps()
{
	busywait 30 sends_half "$1" && return
	ktap_print_msg "$(measure_rate) bytes/s of $1 without the module"
	return 1
}

sends_nothing()
{
	[ "$(measure_rate)" -eq 0 ]
}

# Large messages until it gets a signal, and how that ended
load_bulk()
{
	trap : TERM
	echo "load len=4194304 depth=4 every_us=10000 window_ms=60000 windows=20 $load_with" \
		>$LOAD/run
}

begin_load()
{
	load_bulk 2>"$said" &
	pid=$!
	busywait 20 sends_half 2
}

# All that was posted has to end well.
end_load()
{
	local status

	kill "$pid" 2>/dev/null
	wait "$pid"
	status=$?
	pid=
	[ $status -eq 0 ] || ktap_print_msg "the load: $(cat "$said")"
	return $status
}

# The load ends by itself, as its queue pairs have failed, and all that was posted has ended.
load_fails()
{
	wait "$pid"
	pid=
	grep -q 'Input/output error' "$said" && return
	ktap_print_msg "the load: $(cat "$said")"
	return 1
}

# plain_rate MBPS: without the module
plain_rate()
{
	set_param rate_mbps "$1" && begin_load && measure_rate
	end_load
}

# is_shaped: bulk is cut, as there is a latency flow
is_shaped()
{
	local chunks

	chunks=$(rdma-isolate -j statistic show dev null0 | jq '.[0].chunk_posted')
	busywait 10 has_latency_flow null0 && sleep 1 &&
	[ "$(rdma-isolate -j statistic show dev null0 | jq '.[0].chunk_posted')" -gt "$chunks" ]
}

# under_load COMMAND...: with bulk before and afterwards, which ends well
under_load()
{
	local status

	begin_load && is_shaped && "$@"
	status=$?
	end_load && return $status
}

# shows FILTER: does a jq filter hold for the device
shows()
{
	rdma-isolate -j dev show dev null0 | jq -e ".[0] | $1" >/dev/null
}

explains()
{
	local id

	id=$(rdma-isolate -j group show dev null0 | jq '.[] | select(.ulp == "riso_load0").id')
	rdma-isolate -j explain group dev null0 id "$id" | jq -e ".[0] | $1" >/dev/null
}

# Have listeners been told of a device for which it holds since the case has begun?
is_told()
{
	tail -n "+$((1 + heard))" "$events" |
		jq -es "any(.. | objects | select(has(\"believed_rate\")); $1)" >/dev/null
}

# believes FILTER: dev show, explain and an event agree that it holds
believes()
{
	busywait 20 shows "$1" && explains "$1" && busywait 10 is_told "$1" && return
	ktap_print_msg "not so: $1"
	ktap_print_msg "$(rdma-isolate dev show dev null0)"
	return 1
}

begin_case()
{
	heard=$(wc -l <"$events")
}

# believes_port MBPS: what the port tells, and no more
believes_port()
{
	believes ".max_rate == $(bytes_of "$1") and .believed_rate == .max_rate and
		.believed_from == \"port\""
}

# believes_more FILTER: what was delivered; a debug kernel may deliver less than is told
believes_more()
{
	is_debug_kernel || believes "$1"
}

# Where somebody has set MaxRate, doctor says why something else is believed.
says_why()
{
	is_debug_kernel || rdma-isolate -j doctor | jq -e 'any(.check == "believed-rate" and
		(.found | contains("delivers more than its max-rate")))' >/dev/null
}

is_port()
{
	grep -q "$2" "/sys/class/infiniband/$1/ports/1/state"
}

has_lost()
{
	[ "$(sed -n 's/^lost //p' "$NULL/null0")" -gt "$1" ]
}

take_down()
{
	local lost

	lost=$(sed -n 's/^lost //p' "$NULL/null0")
	set_param link 0 && busywait 10 is_port null0 DOWN && busywait 20 has_lost "$lost"
}

bring_up()
{
	set_param link 1 && busywait 10 is_port null0 ACTIVE
}

# --- the cases --------------------------------------------------------------

as_the_port_tells()
{
	begin_case
	shows ".calibrated == false and .max_rate == $(bytes_of $FAST)" &&
		explains ".max_rate == $(bytes_of $FAST)" && keeps "$plain_fast"
}

changes_speed()
{
	begin_case
	set_param rate_mbps $SLOW && believes_port $SLOW && keeps "$plain_slow" || return
	begin_case
	set_param rate_mbps $FAST && believes_port $FAST && keeps "$plain_fast"
}

# Shorter than the sender tries: it sends again what was lost.
is_down_for_a_while()
{
	take_down && sends_nothing &&
	shows ".max_rate == $(bytes_of $FAST)" && bring_up && keeps "$plain_fast" &&
	shows ".max_rate == $(bytes_of $FAST) and .believed_rate == .max_rate"
}

# The port comes back with another speed.
comes_back_slower()
{
	begin_case
	take_down && set_param rate_mbps $SLOW && bring_up &&
	believes_port $SLOW && keeps "$plain_slow"
}

holds_nothing()
{
	shows ".held_wrs == 0"
}

# The queue pairs fail. What was held ends as well, and others are no worse off.
is_down_for_good()
{
	local status

	begin_load && is_shaped && set_param timeout_ms 20 && take_down && load_fails &&
		busywait 10 holds_nothing
	status=$?
	set_param timeout_ms 2000 && bring_up && under_load keeps "$plain_fast" && return $status
}

# What is out to them waits for them, not in the device, so it does not hold others back.
beside_mute_peers()
{
	local status

	set_param timeout_ms 60000
	load_with=mute=64
	under_load keeps "$plain_fast"
	status=$?
	load_with=
	set_param timeout_ms 2000
	holds_nothing && return $status
}

# Disabling has to wait for what is out, which fails.
is_disabled_while_down()
{
	local status

	begin_load && is_shaped && set_param timeout_ms 200 && take_down &&
		rdma-isolate dev set dev null0 mode disable timeout 30s && load_fails
	status=$?
	set_param timeout_ms 2000 && bring_up && rdma-isolate dev set dev null0 mode enable &&
		under_load keeps "$plain_fast" && return $status
}

# A quarter of the wire's speed. What is delivered then depends on the host's processor as well.
tells_too_little()
{
	begin_case
	set_param port_speed $SDR &&
	believes_more ".max_rate > $(bytes_of $SLOW) and .believed_rate >= .max_rate and
		.believed_from == \"delivered\"" &&
	keeps "$plain_fast"
}

tells_too_much()
{
	begin_case
	set_param port_speed $UNDEFINED &&
	believes ".max_rate == $MOST and .believed_from == \"port\"" &&
	shows ".safe_util == $MOST" && keeps "$plain_fast"
}

# A SafeUtil of a small part of a guess is none of it: half of what ran without the module, in all
# of the time. The wire is slow and the window large, so that the device is full.
util_beside_a_guess()
{
	local rate

	set_param port_speed $UNDEFINED && busywait 10 shows ".max_rate == $MOST" &&
	set_param rate_mbps $SLOW && rdma-isolate dev set dev null0 inflight-bytes 4m \
		safe-util $((SLOW / 10 * 11))mbit && sleep 1 || return
	rate=$(measure_rate 5)
	rdma-isolate dev set dev null0 inflight-bytes auto safe-util auto &&
		[ "$rate" -ge $((plain_slow / 2)) ] && return
	ktap_print_msg "$rate bytes/s of $plain_slow without the module"
	return 1
}

# What was believed before stays.
tells_nothing()
{
	set_param port_speed $FITS && busywait 10 shows ".max_rate == $(bytes_of $FAST)" &&
	set_param port_speed $NONE && sleep 1 && shows ".max_rate == $(bytes_of $FAST)" &&
	keeps "$plain_fast"
}

tells_the_truth_again()
{
	set_param port_speed $UNDEFINED && busywait 10 shows ".max_rate > $(bytes_of $FAST)" ||
		return
	begin_case
	set_param port_speed $FITS && believes_port $FAST && keeps "$plain_fast"
}

# The port has told nothing since the module was loaded.
has_never_told()
{
	set_param port_speed $NONE && unload && load &&
	shows ".max_rate == $MOST and .believed_from == \"nothing\"" &&
	under_load keeps "$plain_fast" && set_param port_speed $FITS &&
	busywait 10 shows ".max_rate == $(bytes_of $FAST)"
}

set_too_low()
{
	begin_case
	rdma-isolate dev set dev null0 max-rate $((FAST / 10))mbit &&
	believes_more ".max_rate == $(bytes_of $FAST) / 10 and .believed_rate / 2 > .max_rate and
		.believed_from == \"delivered\"" &&
	keeps "$plain_fast" && says_why
}

# What was delivered above that number says nothing about the port.
auto_after_too_low()
{
	set_too_low && rdma-isolate dev set dev null0 max-rate auto &&
	shows ".calibrated == false and .max_rate == $(bytes_of $FAST) and
		.safe_util == .max_rate and .believed_rate == .max_rate and
		.believed_from == \"port\"" &&
	keeps "$plain_fast"
}

set_too_high()
{
	begin_case
	rdma-isolate dev set dev null0 max-rate $((FAST * 10))mbit &&
	believes ".max_rate == $(bytes_of $((FAST * 10))) and .believed_rate == .max_rate and
		.believed_from == \"set\"" &&
	keeps "$plain_fast"
}

# What somebody has set stays, and bulk goes by what the port can.
changes_speed_below_a_setting()
{
	set_param rate_mbps $SLOW && keeps "$plain_slow" &&
	shows ".calibrated and .max_rate == $(bytes_of $((FAST * 10)))" &&
	set_param rate_mbps $FAST && keeps "$plain_fast"
}

# The monitor listens, and tells of a change.
is_heard()
{
	rdma-isolate dev set dev null1 mode observe && rdma-isolate dev set dev null1 mode enable &&
	[ -s "$events" ]
}

load()
{
	local dev

	load_module &&
	rdma-isolate rule add ulp riso_load0 class bandwidth >/dev/null &&
	rdma-isolate rule add ulp riso_load_small class latency >/dev/null &&
	for dev in null0 null1; do
		rdma-isolate dev set dev $dev mode enable chunk-bytes 512k || return
	done
	rdma-isolate -j monitor >"$events" &
	listener=$!
	busywait 10 is_heard
}

unload()
{
	local dev

	for dev in null0 null1; do
		rdma-isolate dev set dev $dev mode disable timeout 20s || return
	done
	kill "$listener"
	wait "$listener"
	unload_module
}

CASES=(
	"as the port tells|under_load as_the_port_tells"
	"the port changes its speed|under_load changes_speed"
	"it is down for a while|under_load is_down_for_a_while"
	"it comes back slower|under_load comes_back_slower"
	"it is down for good|is_down_for_good"
	"disabled while it is down|is_disabled_while_down"
	"64 peers that do not answer|beside_mute_peers"
	"it tells a quarter of what it can|under_load tells_too_little"
	"it tells a speed that there is not|under_load tells_too_much"
	"a SafeUtil beside such a speed|under_load util_beside_a_guess"
	"it tells no speed|under_load tells_nothing"
	"it tells the truth again|under_load tells_the_truth_again"
	"it has never told a speed|has_never_told"
	"a MaxRate of a tenth|under_load set_too_low"
	"a MaxRate of ten times|under_load set_too_high"
	"another speed, below that MaxRate|under_load changes_speed_below_a_setting"
	"auto after one of a tenth|under_load auto_after_too_low"
	"disabled, and unloaded|unload"
)

load_with=
require rdma ip tc jq
command -v rdma-isolate >/dev/null || skip_all "no rdma-isolate"
dir=$(mktemp -d)
events=$dir/events
said=$dir/said
trap 'kill "${pid:-}" "${listener:-}" 2>/dev/null; wait; teardown_all; rm -rf "$dir"' EXIT
setup_null rate_mbps=$FAST copy=0 || skip_all "no two devices of nullrdma"
load_test_module riso_test_load
plain_slow=$(plain_rate $SLOW)
plain_fast=$(plain_rate $FAST)
load || skip_all "rdma_isolate cannot be loaded"

ktap_print_header
ktap_set_plan ${#CASES[@]}
ktap_print_msg "without the module: $plain_fast and $plain_slow bytes/s"
for c in "${CASES[@]}"; do
	# whatever the last one has left
	set_param rate_mbps $FAST && set_param port_speed $FITS && set_param timeout_ms 2000 &&
		bring_up
	ktap_test_result "${c%%|*}" eval "${c#*|}"
done
ktap_finished
