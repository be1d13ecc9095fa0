#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Programs that open ConnectX adapters and create their queue pairs through libmlx5, with the
# verbs shim. Here libmlx5 is a stand-in, over rxe: mlx5_standin/standin.c says what it has in
# common with libmlx5. One has the symbols of Debian 12's, the other those of a later one. The
# programs are one that checks what it writes, and UCX.
#
# One kernel is enough: what is below the verbs shim is tested by shim_stress.

. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/cli.inc"
. "$(dirname "$0")/shim.inc"

port=24000

# Both ends are one process.
ends_are()
{
	shows "map(select(.comm == \"$1\")) | length == 2 and all($2)" flow show
}

# writes LIBRARY SHOWN LOOKUP OPEN KIND: the program with that stand-in; its queue pairs are SHOWN
writes()
{
	local library=$1 shown=$2 program=mlx5_write pid status
	shift 2

	[ "$1" = linked ] || program=mlx5_write_dl
	LD_LIBRARY_PATH=$dir/$library rdma-isolate run -- "$(dirname "$0")/$program" "$@" \
		rxe0 rxe1 >"$dir/out" 2>&1 &
	pid=$!
	busywait 30 ends_are "$program" "$shown" >/dev/null
	ends_are "$program" "$shown"
	status=$?
	kill -TERM "$pid"
	wait "$pid" && [ "$status" -eq 0 ] && return
	ktap_print_msg "$(tail -n 3 "$dir/out")"
	return 1
}

managed='.managed and .reason == "none"'

left_alone()
{
	echo "(.managed | not) and .reason == \"$1\""
}

# An older libmlx5 refuses a flag that it does not know, with the shim as without.
refuses_newer()
{
	local run

	for run in "" "rdma-isolate run --"; do
		# shellcheck disable=SC2086 # words
		LD_LIBRARY_PATH=$dir/44 $run "$(dirname "$0")/mlx5_write" linked mlx5 newer \
			rxe0 rxe1 >"$dir/out" 2>&1 && return 1
		grep -q "queue pair: Invalid argument" "$dir/out" || return
	done
}

# The server does what the client does, on the same device.
next_port()
{
	port=$((port + 1))
	server=(ucx_perftest -p "$port")
	client=(ucx_perftest 127.0.0.1 -p "$port" -f -w 2 "${words[@]}")
	listens=(tcp "$port")
}

# Each process has opened the device by libmlx5, without the shim and with it.
opened_by_mlx5()
{
	[ "$(grep -c "^mlx5dv_open_device rxe0$" "$MLX5_STANDIN_LOG")" -ge 4 ] && return
	ktap_print_msg "UCX has not opened rxe0 by mlx5dv_open_device()"
	return 1
}

# ucx TEST [OPTION]...: the same end, with the shim as without
ucx()
{
	local -x MLX5_STANDIN_LOG=$dir/log LD_LIBRARY_PATH=$dir/44

	words=(-t "$@")
	rm -f "$MLX5_STANDIN_LOG"
	next_port
	same_with_shim && opened_by_mlx5
}

# By the interface that names the transport and the device. The one that chooses them connects by
# ud_verbs, which does not work over rxe, with the shim or without.
uct()
{
	ucx "$@" -x rc_verbs -d rxe0:1
}

ucx_is_managed()
{
	shows "map(select(.comm == \"ucx_perftest\")) | length >= 2 and all($managed)" \
		flow show dev rxe0
}

# opened_by LIBRARY: both processes have opened the device by "mlx5" or by "verbs"
opened_by()
{
	local opened

	opened=$(grep -c "^mlx5dv_open_device rxe0$" "$MLX5_STANDIN_LOG")
	case $1 in
	mlx5)	[ "$opened" -ge 2 ] ;;
	verbs)	[ "$opened" -eq 0 ] ;;
	esac
}

# ucx_shown LIBRARY RUN...: while it runs, its queue pairs are managed, and the device is opened
# by LIBRARY
ucx_shown()
{
	local library=$1 pids status
	local -x MLX5_STANDIN_LOG=$dir/log LD_LIBRARY_PATH=$dir/44
	shift

	words=(-t put_bw -D zcopy -s 1048576 -n 1000000 -x rc_verbs -d rxe0:1)
	: >"$MLX5_STANDIN_LOG"
	next_port
	"$@" "${server[@]}" >"$dir/server" 2>&1 &
	pids=$!
	busywait 60 listens_on "${listens[@]}"
	"$@" "${client[@]}" >"$dir/client" 2>&1 &
	pids+=" $!"
	busywait 60 ucx_is_managed >/dev/null
	ucx_is_managed && opened_by "$library"
	status=$?
	# shellcheck disable=SC2086 # numbers
	kill $pids 2>/dev/null
	# shellcheck disable=SC2086 # numbers
	wait $pids
	[ "$status" -eq 0 ] && return
	ktap_print_msg "$(cat "$MLX5_STANDIN_LOG")"
	ktap_print_msg "$(head -n 3 "$dir/client")"
	return 1
}

dir=$(mktemp -d)
trap 'kill $(jobs -p) 2>/dev/null; teardown_all; rm -rf "$dir"' EXIT
shim_setup ucx_perftest
for library in 44 newer; do
	mkdir "$dir/$library"
	ln -s "$(realpath "$(dirname "$0")/mlx5_standin_$library.so")" \
		"$dir/$library/libmlx5.so.1"
done
ktap_print_header
ktap_set_plan 19
for library in 44 newer; do
	for open in mlx5 verbs; do
		check "$library, linked, opened by $open" \
			waited writes "$library" "$managed" linked "$open" plain
	done
	for way in dlsym dlvsym; do
		check "$library, found by $way" \
			waited writes "$library" "$managed" "$way" mlx5 plain
	done
	check "$library, an operation of the vendor" \
		writes "$library" "$(left_alone unknown-opcode)" linked mlx5 vendor
	check "$library, it gets the memory of its queue pairs" \
		writes "$library" "$(left_alone shim-limit)" linked mlx5 memory
done
check "44, a flag of a newer one is refused" refuses_newer
check "newer, with that flag" waited writes newer "$managed" linked mlx5 newer
check "UCX: put" waited uct put_bw -D zcopy -s 1048576 -n 20
check "UCX: get" waited uct get -D zcopy -s 1048576 -n 20
check "UCX: active messages" slowly 40mbit waited uct am_bw -D bcopy -s 8000 -n 100
check "UCX is managed" ucx_shown mlx5 rdma-isolate run --
check "UCX with run --ucx-verbs is managed" ucx_shown verbs rdma-isolate run --ucx-verbs --
ktap_finished
