#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Libraries over verbs with the shim as without: libfabric and rsockets, which check or copy
# what they send, and fio, which does not check it.
#
# One kernel is enough: what is below the verbs shim is tested by shim_stress.

. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/cli.inc"
. "$(dirname "$0")/shim.inc"

port=24000
make_pair=()

# fabric PROVIDER ENDPOINT [OPTION]...
fabric()
{
	server=(fi_pingpong -p "$1" -e "$2" -c "${@:3}" -B "$port")
	client=(fi_pingpong -p "$1" -e "$2" -c "${@:3}" -P "$port" 10.0.0.2)
	listens=(tcp "$port")
}

# streams OPTION...
streams()
{
	server=(rstream -b 10.0.0.2 -p "$port" -T v "$@")
	client=(rstream -b 10.0.0.1 -s 10.0.0.2 -p "$port" -T v "$@")
	listens=(cm rstream)
}

# fios VERB: write or send. Without --thread its job is in a session of its own, and lives on where
# fio is killed.
fios()
{
	local job=(fio --thread --ioengine=rdma --name=job "--port=$port" --bs=1m --size=16m \
		   --iodepth=4)

	server=("${job[@]}" --rw=read)
	client=("${job[@]}" --hostname=10.0.0.2 --bindname=10.0.0.1 --verb="$1" --rw=write)
	listens=(cm fio)
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

# Where the server is late with its receives, as on a busy host, fio ends, with the shim or without.
sends()
{
	local try

	for try in 1 2 3; do
		runs fios send && return
		grep -q "RNR retry counter exceeded" "$dir/client" || return
		ktap_print_msg "the receives were late, try $try"
	done
	return 1
}

# Did the server end in libfabric, which tells of the signal?
ended_in_libfabric()
{
	sed -n '/terminated with signal 11/{n;p}' "$dir/server" | grep -q libfabric
}

# Where a message comes between a look at the queue and one at the events, libfabric 1.17 takes it
# after it has closed the connection, and posts a receive there. It may do so without the shim, too,
# where it loses the processor in between.
datagrams()
{
	local try

	for try in 1 2 3; do
		runs fabric 'verbs;ofi_rxm' rdm "$@" && return
		ended_in_libfabric || return
		ktap_print_msg "libfabric had closed the connection, try $try"
	done
	return 1
}

# copied SHIM: the server goes on until it is killed. $pid is the shell around it, and
# killing that would leave the server to the next listens_on.
copied()
{
	local pid status=0

	port=$((port + 1))
	rm -f "$dir/copy"
	shim_run "$1" rcopy -p "$port" >"$dir/server" &
	pid=$!
	busywait 60 listens_on cm rcopy
	shim_run "$1" rcopy "$dir/file" "10.0.0.2:$dir/copy" -p "$port" >"$dir/client" &&
		busywait 30 cmp -s "$dir/file" "$dir/copy" || status=1
	pkill -x rcopy
	wait "$pid"
	[ "$status" -eq 0 ] && return
	ktap_print_msg "$(tail -n 2 "$dir/client" "$dir/server")"
	return 1
}

copies()
{
	head -c 8000001 /dev/urandom >"$dir/file"
	copied "" && copied "$SHIM"
}

dir=$(mktemp -d)
trap 'kill $(jobs -p) 2>/dev/null; teardown_all; rm -rf "$dir"' EXIT
shim_setup fi_pingpong rstream rcopy fio cmp pkill
cd "$dir" || skip_all "no $dir"
# A completion queue for 256 peers is larger than rxe has any.
export FI_UNIVERSE_SIZE=2
ktap_print_header
ktap_set_plan 8
check "libfabric: messages of 1 MB" waited runs fabric verbs msg -I 20 -S 1048576
check "libfabric: small messages" runs fabric verbs msg -I 100 -S 64
check "libfabric: datagrams, reliable" waited datagrams -I 20 -S 1048576
check "libfabric: small ones" datagrams -I 100 -S 64
check "rsockets" waited runs streams -S 1000000 -C 8 -I 4
check "rsockets: copy a file" waited copies
check "fio: WRITEs" waited runs fios write
check "fio: SENDs" waited sends
ktap_finished
