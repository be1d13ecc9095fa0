#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Sourced by the tests: two RDMA 'hosts' in one kernel, an NVMe target on one
# of them, and the module.
#
#	   rxe0                      rxe1		pair 0
#	  10.0.0.1                 10.0.0.2
#	  veth0 ====== netem ====== veth1
#
#	   rxe2                      rxe3		pair 1
#	  10.0.1.1                 10.0.1.2
#	  veth2 ====== netem ====== veth3
#
# rxe lives in the initial network namespace alone, so both ends of a pair are
# there, and policy routing sends what one end has for the other over the
# wire. GID index 1 of each device is its IPv4 address.

# shellcheck source=/dev/null
. "$(dirname "${BASH_SOURCE[0]}")/../kselftest/ktap_helpers.sh"

NVMET=/sys/kernel/config/nvmet
NULLB=/sys/kernel/config/nullb
# shellcheck disable=SC2034 # tests use it
NULL=/sys/kernel/debug/nullrdma

# --- small things -----------------------------------------------------------

# busywait SECONDS COMMAND...: until the command succeeds; a debug kernel may take four
# times as long.
busywait()
{
	local deadline=$((SECONDS + $1))
	! is_debug_kernel || deadline=$((deadline + 3 * $1))
	shift

	until "$@"; do
		[ "$SECONDS" -le "$deadline" ] || return 1
		sleep 0.05
	done
}

# Ends the whole test, before its first case.
skip_all()
{
	ktap_print_header
	ktap_skip_all "$*"
	exit "$KSFT_SKIP"
}

# require COMMAND...: each must be there
require()
{
	local c

	for c in "$@"; do
		command -v "$c" >/dev/null || skip_all "no $c"
	done
}

# need_module NAME...: loads each, or skips the test
need_module()
{
	local m

	for m in "$@"; do
		modprobe -q "$m" || skip_all "no kernel module $m"
	done
}

# With KASAN, lockdep and kmemleak all takes many times longer.
is_debug_kernel()
{
	[ -e /sys/kernel/debug/kmemleak ]
}

# stage_binary PROGRAM...: into memory, with its libraries. The root file
# system is the host's, and the clock goes on while the host reads a file.
stage_binary()
{
	local dir=/dev/shm/riso prog lib

	mkdir -p "$dir/bin" "$dir/lib"
	for prog in "$@"; do
		prog=$(command -v "$prog") || return
		cp -L "$prog" "$dir/bin/" || return
		for lib in $(LD_LIBRARY_PATH='' ldd "$prog" | sed -n 's/.*=> \(\/[^ ]*\).*/\1/p'); do
			cp -Lu "$lib" "$dir/lib/"
		done
	done
	case $PATH in
	"$dir/bin:"*) ;;
	*) export PATH=$dir/bin:$PATH LD_LIBRARY_PATH=$dir/lib ;;
	esac
}

# --- the network ------------------------------------------------------------

# The local table is looked up first in every kernel, and would keep all of
# it off the wire. So it goes behind the rules of the pairs.
local_table_last()
{
	ip rule show pref 0 | grep -q . || return 0
	ip rule add pref 100 lookup local
	ip rule del pref 0
}

local_table_first()
{
	ip rule show pref 100 | grep -q . || return 0
	ip rule add pref 0 lookup local
	ip rule del pref 100
}

netdev_sysctl()
{
	sysctl -qw "net.ipv4.conf.$1.rp_filter=0" \
		"net.ipv4.conf.$1.accept_local=1" \
		"net.ipv4.conf.$1.arp_ignore=1"
}

# Packets are received on the CPU that takes them off the sender's queue, and
# would overtake each other where that changes. rxe then sends all again that is
# not acknowledged, registers memory once more that is registered by now, and
# puts the QP into error. So one CPU receives all that comes to a device.
keep_order()
{
	[ "$(nproc)" -eq 1 ] ||
		printf '%x\n' $((1 << ${1#veth} % $(nproc))) \
			>"/sys/class/net/$1/queues/rx-0/rps_cpus"
}

# route_over_wire FROM-ADDRESS NETDEV TO-ADDRESS PEER-NETDEV
route_over_wire()
{
	local table=$((100 + ${2#veth}))

	ip rule show from "$1" to "$3" | grep -q . ||
		ip rule add pref 20 from "$1" to "$3" lookup "$table"
	ip route replace "$3/32" dev "$2" table "$table"
	ip neigh replace "$3" dev "$2" \
		lladdr "$(cat "/sys/class/net/$4/address")"
}

# A device has its GID only after the address was heard of, among the first of
# a thousand.
gid_of()
{
	local dev=$1 hex file
	# shellcheck disable=SC2046 # four numbers
	# shellcheck disable=SC2046,SC2183 # four numbers
	hex=$(printf '%02x%02x:%02x%02x' $(echo "$2" | tr . ' '))
	file=$(grep -lx "0000:0000:0000:0000:0000:ffff:$hex" \
		/sys/class/infiniband/"$dev"/ports/1/gids/?) &&
	basename "$file"
}

# add_address DEV ADDRESS PEER-DEV PEER-ADDRESS: one more for an rxe device,
# reachable from the given address of its peer
add_address()
{
	local v=veth${1#rxe} w=veth${3#rxe}

	ip addr add "$2/32" dev "$v" &&
	route_over_wire "$2" "$v" "$4" "$w" &&
	route_over_wire "$4" "$w" "$2" "$v" &&
	busywait 10 gid_of "$1" "$2" >/dev/null
}

# setup_veth_pair N: veth(2N) at 10.0.N.1 and veth(2N+1) at 10.0.N.2, one wire
setup_veth_pair()
{
	local a=veth$((2 * $1)) b=veth$((2 * $1 + 1)) v
	local addr_a=10.0.$1.1 addr_b=10.0.$1.2

	ip link add "$a" type veth peer name "$b" || return
	netdev_sysctl all
	# rxe ends a QP when veth drops a request, as it does for a CPU that is late.
	sysctl -qw net.core.netdev_max_backlog=100000
	for v in "$a" "$b"; do
		netdev_sysctl "$v"
		keep_order "$v" || return
		# room for RoCE's largest MTU, 4096, and its headers
		ip link set "$v" mtu 4200 up
		ip rule add pref 10 iif "$v" lookup local
	done
	ip addr add "$addr_a/32" dev "$a"
	ip addr add "$addr_b/32" dev "$b"
	local_table_last
	route_over_wire "$addr_a" "$a" "$addr_b" "$b"
	route_over_wire "$addr_b" "$b" "$addr_a" "$a"
}

# setup_rxe_pair N [RATE]: devices rxe(2N) and rxe(2N+1)
setup_rxe_pair()
{
	local a=veth$((2 * $1)) b=veth$((2 * $1 + 1)) v
	local addr_a=10.0.$1.1 addr_b=10.0.$1.2

	modprobe -a rdma_rxe ib_uverbs rdma_ucm && setup_veth_pair "$1" || return
	for v in "$a" "$b"; do
		rdma link add "rxe${v#veth}" type rxe netdev "$v" || return
	done
	busywait 10 gid_of "rxe${a#veth}" "$addr_a" >/dev/null &&
	busywait 10 gid_of "rxe${b#veth}" "$addr_b" >/dev/null || return
	[ -z "${2:-}" ] || set_rate "$2" "rxe${a#veth}" "rxe${b#veth}"
}

# setup_rxe [RATE]: the first pair, rxe0 and rxe1
setup_rxe()
{
	setup_rxe_pair 0 "$@"
}

# set_rate RATE [DEV]...: what the wire carries from each device (default
# rxe0 and rxe1); "none" for as much as the CPU can
set_rate()
{
	local rate=$1 dev
	shift

	[ $# -gt 0 ] || set -- rxe0 rxe1
	for dev in "$@"; do
		tc qdisc del dev "veth${dev#rxe}" root 2>/dev/null
		[ "$rate" = none ] ||
			tc qdisc add dev "veth${dev#rxe}" root netem \
				rate "$rate" limit 100000 || return
	done
}

# load_null [PARAMETER=VALUE]...: the test adapter's null0 and null1, over netdevs that exist
load_null()
{
	load_test_module nullrdma ends=veth0,veth1 "$@" &&
	busywait 10 gid_of null0 10.0.0.1 >/dev/null &&
	busywait 10 gid_of null1 10.0.0.2 >/dev/null
}

# setup_null [PARAMETER=VALUE]...: the same, over the first pair
setup_null()
{
	setup_veth_pair 0 && load_null "$@"
}

# null_count COUNTER: of null0
null_count()
{
	sed -n "s/^$1 //p" "$NULL/null0"
}

# null_rate COUNTER [SECONDS]: how much it grows in a second, from about as long
null_rate()
{
	local began from to

	began=${EPOCHREALTIME/./}
	from=$(null_count "$1")
	sleep "${2:-1}"
	to=$(null_count "$1")
	echo $(((to - from) * 1000000 / (${EPOCHREALTIME/./} - began)))
}

teardown_rxe()
{
	local dev v pref

	! is_loaded nullrdma || rmmod nullrdma
	for dev in /sys/class/infiniband/rxe*; do
		[ ! -e "$dev" ] || rdma link delete "$(basename "$dev")"
	done
	for v in /sys/class/net/veth*[02468]; do
		[ ! -e "$v" ] || ip link del "$(basename "$v")"
	done
	local_table_first
	for pref in 10 20; do
		while ip rule del pref "$pref" 2>/dev/null; do :; done
	done
}

# --- NVMe over RDMA ---------------------------------------------------------

# start_nvmet NAME ADDRESS [MEGABYTES [PORT]]: a subsystem on a disk in memory,
# for anyone who comes to the address. With NULLB_BACKED=0 the disk forgets what
# is written, and costs no time.
start_nvmet()
{
	local name=$1 addr=$2 mb=${3:-64} port=${4:-4420} p sub ns

	# One block device for each controller, not one for all paths.
	modprobe nvme_core multipath=N && modprobe null_blk nr_devices=0 &&
	modprobe -a nvmet nvmet-rdma nvme-rdma || return
	mountpoint -q /sys/kernel/config ||
		mount -t configfs none /sys/kernel/config || return

	mkdir "$NULLB/$name" || return
	echo "$mb" >"$NULLB/$name/size"
	echo "${NULLB_BACKED:-1}" >"$NULLB/$name/memory_backed"
	echo 1 >"$NULLB/$name/power" || return

	sub=$NVMET/subsystems/$name
	ns=$sub/namespaces/1
	mkdir "$sub" && echo 1 >"$sub/attr_allow_any_host" &&
	mkdir "$ns" && echo "/dev/$name" >"$ns/device_path" &&
	echo 1 >"$ns/enable" || return

	p=$NVMET/ports/$port
	if [ ! -e "$p" ]; then
		mkdir "$p"
		echo rdma >"$p/addr_trtype"
		echo ipv4 >"$p/addr_adrfam"
		echo "$addr" >"$p/addr_traddr"
		echo "$port" >"$p/addr_trsvcid"
	fi
	ln -s "$sub" "$p/subsystems/$name"
}

# nvme_ctrl NAME [HOST-ADDRESS]: the controllers that are connected
nvme_ctrl()
{
	local c

	for c in /sys/class/nvme/nvme*; do
		[ "$(cat "$c/subsysnqn" 2>/dev/null)" = "$1" ] || continue
		[ -z "${2:-}" ] || grep -q "host_traddr=$2\b" "$c/address" ||
			continue
		basename "$c"
	done
}

nvme_is_live()
{
	[ "$(cat "/sys/class/nvme/$1/state" 2>/dev/null)" = live ] &&
	[ -b "/dev/$1n1" ]
}

# connect_nvme NAME ADDRESS HOST-ADDRESS [PORT [QUEUES]]: prints the block
# device. Each address is a host of its own, name and id.
connect_nvme()
{
	local ctrl id

	id=00000000-0000-4000-8000-$(echo "$3" | tr -d .)
	while [ ${#id} -lt 36 ]; do
		id+=0
	done

	nvme connect -t rdma -n "$1" -a "$2" -w "$3" -s "${4:-4420}" \
		-i "${5:-1}" -q "nqn.2014-08.org.nvmexpress:$3" -I "$id" >&2 ||
		return
	ctrl=$(nvme_ctrl "$1" "$3")
	busywait 30 nvme_is_live "$ctrl" || return
	echo "/dev/${ctrl}n1"
}

# sectors_read DISK: read from it so far
sectors_read()
{
	local sectors

	read -r _ _ sectors _ <"/sys/block/${1#/dev/}/stat"
	echo "$sectors"
}

# is_reading DISK SECTORS: more than these were read
is_reading()
{
	[ "$(sectors_read "$1")" -gt "$2" ]
}

disconnect_nvme()
{
	nvme disconnect -n "$1" >/dev/null
}

stop_nvmet()
{
	local name=$1 p

	disconnect_nvme "$name" 2>/dev/null
	for p in "$NVMET"/ports/*/subsystems/"$name"; do
		[ -e "$p" ] || continue
		rm "$p"
		p=${p%/subsystems/*}
		[ -n "$(ls "$p/subsystems")" ] || rmdir "$p"
	done
	if [ -e "$NVMET/subsystems/$name" ]; then
		echo 0 >"$NVMET/subsystems/$name/namespaces/1/enable"
		rmdir "$NVMET/subsystems/$name/namespaces/1" \
			"$NVMET/subsystems/$name"
	fi
	[ ! -e "$NULLB/$name" ] || rmdir "$NULLB/$name"
}

stop_all_nvmet()
{
	local s

	for s in "$NVMET"/subsystems/*; do
		[ ! -e "$s" ] || stop_nvmet "$(basename "$s")"
	done
}

# --- the module -------------------------------------------------------------

is_loaded()
{
	[ -e "/sys/module/$1" ]
}

# The one built for this kernel where the harness names it, else the installed.
load_module()
{
	! is_loaded rdma_isolate || return 0
	modprobe ib_core || return
	if [ -n "${RISO_MODULE:-}" ]; then
		insmod "$RISO_MODULE" "$@"
	else
		modprobe rdma_isolate "$@"
	fi
}

unload_module()
{
	! is_loaded rdma_isolate || rmmod rdma_isolate
}

# has_latency_flow DEV: one that may send, so that others are paced
has_latency_flow()
{
	rdma-isolate dev show dev "$1" | grep -q 'latency-flows [1-9]'
}

# load_test_module NAME [PARAMETER=VALUE]...: one of test_modules/
load_test_module()
{
	local name=$1 ko
	shift

	! is_loaded "$name" || return 0
	ko=$(dirname "${BASH_SOURCE[0]}")/test_modules/$name.ko
	[ -e "$ko" ] || skip_all "test_modules/$name.ko is not built"
	modprobe -a ib_core rdma_cm && insmod "$ko" "$@"
}

# Everything that this file can set up, in reverse. A test that leaves
# something behind would fail the next one.
teardown_all()
{
	stop_all_nvmet
	! is_loaded riso_test_ulp || rmmod riso_test_ulp
	! is_loaded riso_test_load || rmmod riso_test_load
	teardown_rxe
	! is_loaded riso_test_late || rmmod riso_test_late
	! is_loaded riso_test_irqs || rmmod riso_test_irqs
	unload_module
	! is_loaded riso_test_layer || rmmod riso_test_layer
}
