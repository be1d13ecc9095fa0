#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# What is easily done wrong with the agent is told in plain words: no peer, one that is
# not there, or is this host, a device that is not there, a second agent, an address of another
# host, a secret that everybody may read.
#
# One kernel is enough: it tests the agent.

. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/cli.inc"
. "$(dirname "$0")/agent.inc"

dir=$(mktemp -d)
trap agent_cleanup EXIT
PORT=20001

# conf NAME LINE...
conf()
{
	local name=$1
	shift

	printf '%s\n' "[agent]" "$@" >"$dir/$name.conf"
}

# checked NAME TEXT: the file is right, but this is told
checked()
{
	local out

	out=$(rdma-isolated --config "$dir/$1.conf" --check 2>"$dir/said") &&
	[ "$(tail -n 1 <<<"$out")" = OK ] && grep -q "$2" "$dir/said" && return
	ktap_print_msg "$out $(cat "$dir/said")"
	return 1
}

# fails NAME TEXT: it ends with this
fails()
{
	local said

	said=$(timeout 60 rdma-isolated --config "$dir/$1.conf" 2>&1)
	[ $? -eq 1 ] && [[ $said == *"$2"* ]] && return
	ktap_print_msg "$said"
	return 1
}

# logs NAME TEXT: it runs, and this is in its log once
logs()
{
	local pid status

	rdma-isolated --config "$dir/$1.conf" >"$dir/$1.log" 2>&1 &
	pid=$!
	busywait 60 grep -q "$2" "$dir/$1.log" && sleep 3 && logged "$1" 1 "$2"
	status=$?
	kill "$pid" && wait "$pid" && return $status
}

no_peer()
{
	conf lonely "listen = 10.0.0.1" "port = $PORT" "[device rxe0]"
	checked lonely "rxe0: no peer is in the settings" &&
	logs lonely "rxe0: no peer is in the settings"
}

no_device()
{
	conf empty "listen = 10.0.0.1" "port = $PORT"
	checked empty "no device is in the settings"
}

missing_device()
{
	conf missing "listen = 10.0.0.1" "port = $PORT" "[device rxe9]" "peer = 10.0.0.2"
	logs missing "there is no such RDMA device now: rxe9"
}

own_peer()
{
	conf own "listen = 10.0.0.1" "port = $PORT" "[device rxe0]" "peer = 10.0.0.2"
	checked own "rxe0: peer 10.0.0.2 is an address of this host"
}

bad_secret()
{
	conf secret "secret = $dir/secret" "[device rxe0]" "peer = 10.0.0.2"
	fails secret "secret = $dir/secret: No such file" && head -c 32 /dev/zero >"$dir/secret" &&
	chmod 644 "$dir/secret" && fails secret "its group or others have rights to it" &&
	chmod 600 "$dir/secret" && checked secret "rxe0: peer" &&
	rdma-isolated --config "$dir/secret.conf" --check 2>/dev/null | grep -q "^secret: agents"
}

unreachable_peer()
{
	conf far "listen = 10.0.0.1" "port = $PORT" "[device rxe0]" "peer = 10.0.0.77"
	logs far "peer 10.0.0.77: no host has this address" && logged far 0 RDMA_CM
}

nobody_listens()
{
	conf deaf "listen = 10.0.0.1" "port = $PORT" "[device rxe0]" "peer = 10.0.0.2"
	logs deaf "peer 10.0.0.2: nobody listens there; is rdma-isolated running?"
}

is_listening()
{
	rdma resource show cm_id | grep -q "state LISTEN"
}

# The first one has the port before the second one asks for it.
second_agent()
{
	start_agent rxe0
	busywait 60 is_listening &&
		busywait 30 fails rxe0 "cannot listen at 10.0.0.1 port 18516: the port is taken"
}

foreign_address()
{
	conf foreign "listen = 192.0.2.99" "[device rxe0]" "peer = 10.0.0.2"
	fails foreign "cannot listen at 192.0.2.99 port 18516: this host does not have"
}

agent_setup
ktap_print_header
ktap_set_plan 9
check "no peer" no_peer
check "no device" no_device
check "a device that is not there" missing_device
check "a peer that is this host" own_peer
check "a secret that is none" bad_secret
check "a peer that is not there" unreachable_peer
check "a peer without an agent" nobody_listens
check "a second agent" second_agent
check "an address of another host" foreign_address
[ "$KTAP_CNT_FAIL" -eq 0 ] || agent_report
ktap_finished
