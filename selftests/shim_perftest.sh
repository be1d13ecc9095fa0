#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# perftest, each program with the verbs shim as without: every kind of message, on
# every transport that rxe has, one or more queue pairs, one way or both. They check
# no data and poll without sleeping; both ends have to come to their end.

. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/cli.inc"
. "$(dirname "$0")/shim.inc"

CASES="
	ib_write_bw -s 65536 -n 40
	ib_write_bw -s 1048576 -n 20 -q 4
	ib_write_bw -s 65536 -n 40 -b
	ib_write_bw -s 4096 -n 80 -t 16 -l 8
	ib_write_bw -s 32 -n 100 -I 32
	ib_write_bw -s 65536 -n 40 -c UC
	ib_write_bw -s 65536 -n 40 --use_old_post_send
	ib_write_lat -s 8 -n 100
	ib_write_lat -s 65536 -n 40
	ib_write_lat -s 16 -n 100 -I 16
	ib_write_lat -s 4096 -n 40 -c UC
	ib_read_bw -s 65536 -n 40
	ib_read_bw -s 1048576 -n 20 -q 2
	ib_read_bw -s 65536 -n 40 -b
	ib_read_lat -s 65536 -n 40
	ib_send_bw -s 65536 -n 40
	ib_send_bw -s 65536 -n 40 -b -q 2
	ib_send_bw -s 4096 -n 40 -q 2 --use-srq
	ib_send_bw -s 1024 -n 80 -t 16 -l 8
	ib_send_bw -s 32768 -n 40 -c UC
	ib_send_bw -s 2048 -n 100 -c UD
	ib_send_lat -s 16 -n 100
	ib_send_lat -s 65536 -n 40
	ib_send_lat -s 1024 -n 40 -c UD
	ib_atomic_bw -n 100
	ib_atomic_bw -n 40 -q 2 -A CMP_AND_SWAP
	ib_atomic_lat -n 100
"

port=20000
words=()

# A server of before may still hold the last one.
next_port()
{
	port=$((port + 1))
	server=("${words[@]}" -F -d rxe1 -x "$gid1" -p "$port")
	client=("${words[@]}" -F -d rxe0 -x "$gid0" -p "$port" 127.0.0.1)
	listens=(tcp "$port")
}

# One line of $CASES
runs()
{
	read -ra words <<<"$1"
	next_port
	same_with_shim
}

all_run()
{
	local line

	while read -r line <&3; do
		[ -z "$line" ] || check "$line" runs "$line"
	done 3<<<"$CASES"
}

dir=$(mktemp -d)
trap 'kill $(jobs -p) 2>/dev/null; teardown_all; rm -rf "$dir"' EXIT
shim_setup ib_write_bw ib_write_lat ib_read_bw ib_read_lat ib_send_bw ib_send_lat \
	ib_atomic_bw ib_atomic_lat
gid0=$(gid_of rxe0 10.0.0.1)
gid1=$(gid_of rxe1 10.0.0.2)
ktap_print_header
ktap_set_plan $(($(grep -c ib_ <<<"$CASES") + 1))
check "what was posted was paced" waited all_run
ktap_finished
