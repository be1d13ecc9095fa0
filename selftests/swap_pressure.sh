#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Memory that goes to a swap file on NVMe over RDMA, through devices that are managed: who
# waits for memory then waits for the connection. Rules come and go from the same control
# group, where memory is short, while the connection is reset and lost, and comes back.
# Nothing hangs, and the memory holds what was written to it.
#
#	RISO_PRESSURE	rounds (default 6)
#
# One kernel is enough.

. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/cli.inc"

ROUNDS=${RISO_PRESSURE:-6}
MNT=/dev/shm/riso-swap
SWAP=$MNT/file
SWAP_MB=96
# of the program and of its control group: above HIGH_MB who wants more waits for what is
# written out, above MOST_MB the kernel would end somebody
MB=20
HIGH_MB=8
MOST_MB=16
# the longest that a round, a pass and the end may take, emulated beside others
MOST_S=240

require jq rdma nvme rperf rdma-isolate mkfs.ext4 mkswap swapon
need_module rdma_rxe nvme-rdma nvmet-rdma ext4
scratch=$(mktemp -d)

# shellcheck disable=SC2317 # called by the trap
teardown()
{
	# Who waits for the connection could not end.
	relink
	# shellcheck disable=SC2046 # numbers
	kill $(jobs -p) 2>/dev/null
	[ -z "${program:-}" ] || busywait $MOST_S has_ended
	swapoff $SWAP 2>/dev/null
	umount $MNT 2>/dev/null
	[ -z "${cgroups:-}" ] || end_cgroups /riso
	teardown_all
	rm -r "$scratch"
}
trap teardown EXIT

# Memory that is not written out reads as zeroes, and is not compressed on the way.
swap_on()
{
	echo N 2>/dev/null >/sys/module/zswap/parameters/enabled
	mkfs.ext4 -q -F "$disk" && mkdir -p $MNT && mount "$disk" $MNT &&
	dd if=/dev/zero of=$SWAP bs=1M count=$SWAP_MB status=none &&
	chmod 600 $SWAP && mkswap -q $SWAP && swapon $SWAP
}

begin_program()
{
	begin_cgroups /riso && echo +memory >"$cgroups/cgroup.subtree_control" &&
	echo $((HIGH_MB << 20)) >"$cgroups/riso/memory.high" &&
	echo $((MOST_MB << 20)) >"$cgroups/riso/memory.max" || return
	in_cgroup /riso ./swap_verify $MB >"$scratch/passes" &
	program=$!
	busywait $MOST_S has_passed 1
}

# has_passed N: has the program been through so often?
has_passed()
{
	[ "$(wc -l <"$scratch/passes")" -ge "$1" ]
}

# The debug kernel does not count in /proc/vmstat what it swaps.
has_swapped()
{
	swapped=$(($(cat "$cgroups/riso/memory.swap.current") >> 20))
	[ $swapped -ge $((MB - MOST_MB)) ]
}

is_live()
{
	nvme_is_live "$ctrl"
}

# What the target forgets, its hosts lose, and try for again.
unlink_target()
{
	rm $NVMET/ports/4420/subsystems/riso0
}

relink()
{
	[ ! -e $NVMET/ports/4420 ] || [ -e $NVMET/ports/4420/subsystems/riso0 ] ||
		ln -s $NVMET/subsystems/riso0 $NVMET/ports/4420/subsystems/riso0
}

# one_round N
one_round()
{
	local id

	id=$(in_cgroup /riso rdma-isolate -j rule add ulp nvmet_rdma weight $((1 + $1 % 100)) \
		class bandwidth | jq '.[0].id') && [ -n "$id" ] || return
	if [ $(($1 % 2)) -eq 0 ]; then
		echo 1 >"/sys/class/nvme/$ctrl/reset_controller" || return
	else
		unlink_target && relink || return
	fi
	(in_cgroup /riso rdma-isolate rule delete id "$id") && busywait $MOST_S is_live
}

rounds()
{
	local i passes swapped status

	passes=$(wc -l <"$scratch/passes")
	for ((i = 0; i < ROUNDS; i++)); do
		one_round "$i" || { ktap_print_msg "round $i"; return 1; }
		kill -0 "$program" || { ktap_print_msg "round $i: no program"; return 1; }
	done
	busywait $MOST_S has_passed $((passes + 1)) || return
	busywait $MOST_S has_swapped
	status=$?
	passes=$(($(wc -l <"$scratch/passes") - passes))
	ktap_print_msg "$ROUNDS rounds in $SECONDS s, $passes passes, $swapped MB in swap"
	return $status
}

has_ended()
{
	! kill -0 "$program" 2>/dev/null
}

is_intact()
{
	kill "$program"
	if ! busywait $MOST_S has_ended; then
		ktap_print_msg "it hangs in $(cat "/proc/$program/wchan")"
		return 1
	fi
	wait "$program" && return
	tail -n 1 "$scratch/passes"
	return 1
}

load_module && setup_rxe && start_nvmet riso0 10.0.0.2 128 || skip_all "no target"
ktap_print_header
ktap_set_plan 5
rdma-isolate rule add comm rperf class latency >/dev/null
for dev in rxe0 rxe1; do
	rdma-isolate dev set dev $dev mode enable max-rate 10gbit
done
disk=$(connect_nvme riso0 10.0.0.2 10.0.0.1 4420 2)
ctrl=$(nvme_ctrl riso0)
echo 1 >"/sys/class/nvme/$ctrl/reconnect_delay"
rperf --dev rxe1 --peer rxe0 --samples 0 --seconds 100000 --interval 100000 >/dev/null &
check "a latency flow beside" busywait 20 has_latency_flow rxe1
check "a swap file" swap_on
check "a program with more memory than it may have" begin_program
check "rules and connections come and go" rounds
check "its memory is as it was" is_intact
ktap_finished
