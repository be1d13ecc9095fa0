#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# The test adapter itself: what a kernel ULP does over rxe it does over nullrdma as well,
# messages take as long as the wire says, errors are those of an adapter, and storage
# connects over it.
#
# One kernel is enough: nothing of the adapter depends on the version of the kernel.

. "$(dirname "$0")/lib.sh"
RISO_ULP_KIND=null
. "$(dirname "$0")/ulp.inc"

PARAMETERS=/sys/module/nullrdma/parameters
MB=$((1 << 20))
# Mbit/s and ns: a message of 1 MB is long enough for posts behind it, even emulated
RATE=1000
DELAY=5000

# What the other tests of the ULP do; the adapter has no shared receive queues.
cases()
{
	local test

	for test in data queue context error; do
		RISO_ULP_LIST=1 "$(dirname "$0")/ulp_$test.sh"
	done | grep -v '^[a-z]* srq'
}

set_param()
{
	echo "$2" >"$PARAMETERS/$1"
}

# count END NAME: what an end has done until now
count()
{
	sed -n "s/^$2 //p" "$NULL/$1"
}

# reload [PARAMETER=VALUE]...: the adapter, on the netdevs that are there
reload()
{
	rmmod nullrdma && load_null "$@"
}

ulp_passes()
{
	ulp_run "$@" || { ulp_report; return 1; }
}

# wire_ns BYTES: ns that the wire carries a message, with its headers
wire_ns()
{
	echo $((($1 + ($1 + 4095) / 4096 * 58 + 16) * 8000 / RATE))
}

# is_about NS EXPECTED: within 1 %
is_about()
{
	ktap_print_msg "$1 ns, expected $2"
	[ "$1" -ge $(($2 - $2 / 100)) ] && [ "$1" -le $(($2 + $2 / 100)) ]
}

# The acknowledgment comes back over the same distance.
lone_write()
{
	ulp_passes size op=write count=1 len=$MB &&
	[ "$(count null0 write_last_bytes)" -eq $MB ] &&
	ktap_print_msg "late by $(count null0 write_late_ns) ns" &&
	is_about "$(count null0 write_last_ns)" $(($(wire_ns $MB) + 2 * DELAY))
}

# The request is a packet, and the answer uses the wire of the peer.
lone_read()
{
	set_param rate_mbps $((20 * RATE)),$RATE &&
	ulp_passes size op=read count=1 len=$MB &&
	set_param rate_mbps $RATE &&
	is_about "$(count null0 read_last_ns)" $(($(wire_ns $MB) + 2 * DELAY))
}

# The SEND waits for eight messages, less what was sent before it was posted. A machine that is
# held up in between posts it late.
behind_fifo()
{
	local tries took

	for ((tries = 1; tries <= 5; tries++)); do
		ulp_passes behind count=8 len=$MB &&
			is_about "$(count null0 write_last_ns)" \
				$((8 * $(wire_ns $MB) + 2 * DELAY)) || return
		took=$(count null0 send_last_ns)
		ktap_print_msg "the SEND took $took ns"
		[ "$took" -le $((8 * $(wire_ns $MB) + 3 * DELAY)) ] || return
		[ "$took" -le $((7 * $(wire_ns $MB))) ] || return 0
	done
	return 1
}

# It waits for the turn of the other queue pair to end, and the others for it.
behind_rr()
{
	reload rate_mbps=$RATE delay_ns=$DELAY sched=rr &&
	ulp_passes behind count=8 len=$MB &&
	is_about "$(count null0 write_last_ns)" \
		$((8 * $(wire_ns $MB) + $(wire_ns 64) + 2 * DELAY)) &&
	ktap_print_msg "the SEND took $(count null0 send_last_ns) ns" &&
	[ "$(count null0 send_last_ns)" -le \
		$(($(wire_ns 4096) + $(wire_ns 64) + 2 * DELAY + 1000)) ]
}

# Small messages are moved, and no others.
without_copy()
{
	set_param copy 0 &&
	ulp_passes size op=write len=4096 && ulp_passes size op=send len=4096 || return
	ulp_run size op=write len=4097 && return 1
	set_param copy 1 && ulp_passes size op=write len=4097
}

# ms that 20 WRITEs take, of which each is posted when the one before it completes
time_reposts()
{
	local began

	began=$(date +%s%N)
	ulp_passes repost threads=1 count=20 len=64 cq=softirq &&
	echo $((($(date +%s%N) - began) / 1000000))
}

# The events are late, unless there are as many completions as an event waits for. A
# completion that is there before the handler re-arms is polled without an event, so each
# WRITE takes longer than a handler does on a busy host, and a few may miss their event.
moderated()
{
	local late=0 early=0

	set_param delay_ns 10000000 && set_param moder_us 50000 && late=$(time_reposts) &&
		set_param moder_count 1 && early=$(time_reposts)
	ktap_print_msg "$late ms, $early without moderation"
	set_param delay_ns $DELAY && set_param moder_us 0 && set_param moder_count 32 &&
	[ "$early" -gt 0 ] && [ "$late" -ge $((20 * 50)) ] && [ "$early" -lt "$late" ]
}

port_is()
{
	grep -q "$2" "/sys/class/infiniband/$1/ports/1/state"
}

# A rate is told as the slowest usual one that is not slower.
tells_rate()
{
	local rate=/sys/class/infiniband/null0/ports/1/rate

	set_param rate_mbps 100000 && busywait 5 grep -q '^100 Gb' $rate &&
	set_param rate_mbps 25000,400000 && busywait 5 grep -q '^25 Gb' $rate &&
	grep -q '^400 Gb' ${rate/null0/null1} && port_is null0 ACTIVE
}

has_lost()
{
	[ "$(count null0 lost)" -gt "$1" ]
}

# Whoever posts while the port is down waits, and goes on when it is up again.
survives_link()
{
	local pid lost status

	lost=$(count null0 lost)
	set_param timeout_ms 500 && set_param link 1,0 && busywait 5 port_is null1 DOWN &&
		port_is null0 ACTIVE || return
	ulp_run size op=write &
	pid=$!
	busywait 20 has_lost "$lost"
	set_param link 1
	wait $pid
	status=$?
	lost=$(($(count null0 lost) - lost))
	ktap_print_msg "$lost messages lost"
	busywait 5 port_is null1 ACTIVE && set_param timeout_ms 0 &&
		[ "$lost" -gt 0 ] && return $status
}

follows_carrier()
{
	ip link set veth1 down && busywait 5 port_is null0 DOWN && port_is null1 DOWN &&
	ip link set veth1 up && busywait 5 port_is null0 ACTIVE &&
	busywait 5 port_is null1 ACTIVE &&
	ip route replace 10.0.0.1/32 dev veth1 table 101 &&
	busywait 10 gid_of null1 10.0.0.2 >/dev/null
}

# The peer's queue pair has ended: the ULP's timeout is not waited for.
gives_up()
{
	local began=$SECONDS

	set_param timeout_ms 20 && ulp_passes peergone && set_param timeout_ms 0 &&
	[ $((SECONDS - began)) -lt 30 ]
}

nvme_verify()
{
	local disk status

	start_nvmet riso0 10.0.0.2 64 && disk=$(connect_nvme riso0 10.0.0.2 10.0.0.1 4420 2) &&
	fio --name=verify --filename="$disk" --rw=randrw --rwmixread=40 \
		--bssplit=8k/96:64k/3:1m/1 --size=16m --iodepth=16 --ioengine=libaio \
		--direct=1 --verify=crc32c --verify_fatal=1 --verify_backlog=512 \
		--output="${RISO_OUT:-/tmp}/nullrdma.fio"
	status=$?
	ktap_print_msg "$(count null1 read_bytes) bytes read from the host," \
		"$(count null1 write_bytes) written there"
	stop_all_nvmet
	[ "$status" -eq 0 ] && [ "$(count null1 read_bytes)" -gt $((8 * MB)) ]
}

nvme_both()
{
	reload && nvme_verify && reload sched=rr moder_us=32 && nvme_verify
}

# The device goes with its netdev. The other end stays.
follows_netdev()
{
	ip link del veth0 && busywait 10 test ! -e /sys/class/infiniband/null0
}

CASES=(
	"a lone WRITE|lone_write"
	"a lone READ|lone_read"
	"sched=fifo: a SEND behind 8 MB|behind_fifo"
	"sched=rr: a SEND behind 8 MB|behind_rr"
	"copy=0|without_copy"
	"moderation|moderated"
	"a new rate is told|tells_rate"
	"a port that was down for a while|survives_link"
	"the carrier of the netdev|follows_carrier"
	"a peer that is gone, timeout_ms|gives_up"
	"NVMe over it, with checksums|nvme_both"
	"unloaded|rmmod nullrdma"
	"loaded again|load_test_module nullrdma ends=veth0,veth1"
	"the netdev goes|follows_netdev"
)

require rdma ip tc nvme fio awk
need_module nvme-rdma nvmet-rdma
ulp_setup
ktap_print_header
ktap_set_plan $((${#CASES[@]} + $(cases | wc -l)))
ulp_cases alone
reload rate_mbps=$RATE delay_ns=$DELAY
for c in "${CASES[@]}"; do
	ktap_test_result "${c%%|*}" eval "${c#*|}"
done
ktap_finished
