#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Programs of other people with the verbs shim, which check what they receive where
# they can: the examples of libibverbs and librdmacm, and qperf. Then rperf --load,
# which checks data, order and kind of all completions, by each way to post.
#
# One kernel is enough: what is below the verbs shim is tested by shim_stress.

. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/cli.inc"
. "$(dirname "$0")/shim.inc"

MB=$((1 << 20))

port=21000
make_pair=()

# pingpong PROGRAM [OPTION]...: of libibverbs, both ends
pingpong()
{
	server=("$@" -d rxe1 -g "$gid1" -p "$port")
	client=("$@" -d rxe0 -g "$gid0" -p "$port" 127.0.0.1)
	listens=(tcp "$port")
}

ping_by_cm()
{
	server=(rping -s -a 10.0.0.2 -p "$port" -V -S 60000 -C 20)
	client=(rping -c -I 10.0.0.1 -a 10.0.0.2 -p "$port" -V -S 60000 -C 20)
	listens=(cm rping)
}

messages_by_cm()
{
	server=(ucmatose -b 10.0.0.2 -p "$port" -c 2 -C 20 -S 60000)
	client=(ucmatose -b 10.0.0.1 -s 10.0.0.2 -p "$port" -c 2 -C 20 -S 60000)
	listens=(cm ucmatose)
}

# It binds to no address of its own.
one_by_cm()
{
	server=(rdma_server -p "$port")
	client=(rdma_client -s 10.0.0.2 -p "$port")
	listens=(cm rdma_server)
}

# Its last test ends the server. Without rdma_cm it knows no GIDs.
qperfs()
{
	server=(qperf -lp "$port" -lto 60)
	client=(qperf -lp "$port" 10.0.0.2 -cm1 -to 60 "$@" quit)
	listens=(tcp "$port")
}

# qperf's server tells its client a port of rdma_cm before it listens there, so a client
# may be too early: with the shim or without, that pair runs again.
unless_early()
{
	local i

	for ((i = 0; i < 3; i++)); do
		"$@" && return
		grep -q "Event rejected" "$dir/client" || return
	done
	return 1
}

next_port()
{
	port=$((port + 1))
	"${make_pair[@]}"
}

# runs PAIR [WORD]...: what sets the commands of the pair
runs()
{
	make_pair=("$@")
	next_port
	same_with_shim
}

# Who does not say where it comes from gets the address of the other end.
route_from_any()
{
	ip rule add pref 30 to 10.0.0.2 lookup 130 &&
	ip route add 10.0.0.2/32 dev veth0 src 10.0.0.1 table 130
}

cleanup()
{
	# shellcheck disable=SC2046 # numbers
	kill $(jobs -p) 2>/dev/null
	ip rule del pref 30 2>/dev/null
	teardown_all
	rm -rf "$dir"
}

# --- rperf --load -----------------------------------------------------------

# load OP API [OPTION]...: by another name than that of the latency flow
load()
{
	local op=$1 api=$2
	shift 2

	shim_run "$SHIM" "$dir/rload" --dev rxe0 --peer rxe1 --load "$op" \
		--api "$api" --verify --json "$@" >"$dir/load"
}

loads()
{
	load "$@" && return
	ktap_print_msg "$(tail -n 3 "$dir/load")"
	return 1
}

# Of the process that runs: its queue pairs take part, and the books know it.
is_in_the_books()
{
	shows "map(select(.comm == \"rload\")) | length == 2 and
		all(.managed and .reason == \"none\")" flow show dev rxe0 &&
	shows "map(select(.comm == \"rload\")) | length == 1 and
		(.[0] | .tx_bytes >= 4 * $MB and .used_ns > 0)" \
		group show dev rxe0
}

# Until it is told to end; the figures are of one line.
books()
{
	local pid status

	LD_PRELOAD=$SHIM "$dir/rload" --dev rxe0 --peer rxe1 --load write \
		--qps 2 --json --ready "$dir/ready" >"$dir/load" 2>&1 &
	pid=$!
	busywait 60 test -e "$dir/ready"
	busywait 30 is_in_the_books >/dev/null
	is_in_the_books
	status=$?
	kill -TERM "$pid"
	wait "$pid" || status=1
	[ "$status" -eq 0 ] &&
		jq -e "(.bytes >= 4 * $MB) and .qps == 2" "$dir/load" >/dev/null &&
		return
	ktap_print_msg "$(tail -n 3 "$dir/load")"
	return 1
}

# are_of CLASS: the queue pairs of the process that runs
are_of()
{
	shows "map(select(.comm == \"rload\")) | length == 2 and
		all(.class == \"$1\")" flow show dev rxe0
}

# lets_choose KEY VALUE: a rule that does
lets_choose()
{
	rule=$(rdma-isolate -j rule add "$@" class bandwidth choose on |
		jq '.[0].id')
}

# The class that it would like, as long as a rule lets its user or control group choose
chooses()
{
	local pid rule status=0

	begin_cgroups /riso || return
	in_cgroup /riso rdma-isolate run --class latency -- "$dir/rload" --dev rxe0 \
		--peer rxe1 --load write --qps 2 --json --ready "$dir/chooses" \
		>"$dir/load" 2>&1 &
	pid=$!
	busywait 60 test -e "$dir/chooses"
	are_of bandwidth && lets_choose uid 0 && busywait 30 are_of latency &&
		rdma-isolate rule delete id "$rule" && busywait 30 are_of bandwidth &&
		lets_choose cgroup /riso && busywait 30 are_of latency || status=1
	kill -TERM "$pid"
	wait "$pid" || status=1
	rdma-isolate rule delete id "$rule" && end_cgroups /riso &&
		[ "$status" -eq 0 ] && return
	ktap_print_msg "$(tail -n 3 "$dir/load")"
	return 1
}

is_unreliable()
{
	shows 'map(select(.comm == "ibv_ud_pingpong") | .reason) == ["qp-type"]' \
		flow show dev rxe1
}

# What the shim cannot do for a program is not said to be for want of it.
unreliable()
{
	local pid status=0

	rdma-isolate run -- ibv_ud_pingpong -d rxe1 -g "$gid1" >/dev/null &
	pid=$!
	busywait 30 is_unreliable || status=1
	kill "$pid"
	wait "$pid"
	return "$status"
}

# It says why it does nothing if it is asked, and the program does not mind.
without_the_module()
{
	# shellcheck disable=SC2046 # numbers
	kill $(jobs -p)
	wait
	rdma-isolate dev set dev rxe0 mode disable &&
	rdma-isolate dev set dev rxe1 mode disable &&
	busywait 30 unload_module &&
	rdma-isolate run -- ibv_devinfo -d rxe0 >"$dir/quiet" 2>&1 &&
	RDMA_ISOLATE_DEBUG=1 rdma-isolate run -- ibv_devinfo -d rxe0 \
		>"$dir/plain" 2>"$dir/said" &&
	cmp "$dir/quiet" "$dir/plain" && [ "$(wc -l <"$dir/said")" = 1 ] &&
	grep -q /dev/rdma_isolate "$dir/said"
}

dir=$(mktemp -d)
trap cleanup EXIT
shim_setup ibv_rc_pingpong ibv_uc_pingpong ibv_ud_pingpong ibv_srq_pingpong \
	rping ucmatose rdma_server rdma_client ibv_devinfo qperf
ln -s "$(command -v rperf)" "$dir/rload"
gid0=$(gid_of rxe0 10.0.0.1)
gid1=$(gid_of rxe1 10.0.0.2)
route_from_any || skip_all "no route"
ktap_print_header
ktap_set_plan 27
check "RC" waited runs pingpong ibv_rc_pingpong -c -n 50 -s 262144
check "RC, events" waited runs pingpong ibv_rc_pingpong -c -e -n 50 -s 262144
check "RC, builders" waited runs pingpong ibv_rc_pingpong -c -N -n 50 -s 262144
# With more than 64 packets out rxe may wait for ever for one of them to be freed; RC has
# a timer that helps.
check "UC" runs pingpong ibv_uc_pingpong -c -n 50 -s 32768
check "UD" runs pingpong ibv_ud_pingpong -c -n 100
check "shared receive queue" \
	slowly 40mbit waited runs pingpong ibv_srq_pingpong -c -q 4 -n 20 -s 65536
check "shared receive queue, events" \
	slowly 40mbit waited runs pingpong ibv_srq_pingpong -c -e -q 4 -n 20 -s 65536
check "READ and WRITE over rdma_cm" slowly 40mbit waited runs ping_by_cm
check "messages over rdma_cm" slowly 40mbit waited runs messages_by_cm
check "a message over rdma_cm" runs one_by_cm
check "qperf: bandwidth" waited unless_early runs qperfs -t 1 -m 1M \
	rc_rdma_write_bw rc_rdma_read_bw rc_bw rc_bi_bw
check "qperf: latency" unless_early runs qperfs -t 1 \
	rc_rdma_write_poll_lat rc_rdma_read_lat rc_lat
check "qperf: atomics" unless_early runs qperfs -t 1 ver_rc_fetch_add ver_rc_compare_swap
for op in write read send; do
	for api in post wr; do
		check "load: $op by $api" \
			waited loads $op $api --seconds 2
	done
done
check "load: batches of small messages" \
	slowly 1mbit waited loads write post --size 16 --batch 64 --depth 256 --seconds 1
check "load: more queue pairs" \
	waited loads write wr --qps 8 --size 100001 --seconds 2
check "load: one large message" \
	waited loads write post --size 64M --depth 1 --seconds 0.1
check "load: in the books" waited books
check "a class that it chooses" chooses
check "an unreliable queue pair" unreliable
check "without the module" without_the_module
check_schema
ktap_finished
