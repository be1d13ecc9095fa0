#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# rdma-isolate unload: names whoever keeps the module, and changes nothing then; else it
# disables all devices, however many, and unloads the module, also while an agent asks it
# all the time.
#
# One kernel is enough: it tests the tool.

. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/cli.inc"
. "$(dirname "$0")/agent.inc"

# More than a tool would have room for in an array of the usual size
DEVS=66
# A group of netdevs, which can go together
NETDEVS=66

dir=$(mktemp -d)
trap 'remove_netdevs; agent_cleanup' EXIT

# A file of another name is the same device.
opened()
{
	local number major minor holder status

	number=$(cat /sys/class/misc/rdma_isolate/dev)
	IFS=: read -r major minor <<<"$number"
	mknod "$dir/node" c "$major" "$minor" || return
	sleep 1000 <>"$dir/node" &
	holder=$!
	busywait 10 readlink -q "/proc/$holder/fd/0" >/dev/null
	refused 1 "process $holder (sleep) has /dev/rdma_isolate open" unload &&
	refused 1 "nothing was changed" unload && budget '.agent_pid > 0' &&
	shows '.[0].state == "enable"' dev show dev rxe1
	status=$?
	kill "$holder"
	wait "$holder" 2>/dev/null
	return $status
}

# Who has closed the file, and kept a page of it, has it nevertheless.
mapped()
{
	local holder status

	python3 - >"$dir/mapped" <<-'END' &
		import ctypes, mmap, os, signal
		libc = ctypes.CDLL(None)
		libc.mmap.restype = ctypes.c_void_p
		libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int,
				      ctypes.c_int, ctypes.c_int, ctypes.c_long]
		fd = os.open("/dev/rdma_isolate", os.O_RDWR)
		page = libc.mmap(None, mmap.PAGESIZE, mmap.PROT_READ, mmap.MAP_SHARED, fd, 0)
		os.close(fd)
		print(page != ctypes.c_void_p(-1).value, flush=True)
		signal.pause()
	END
	holder=$!
	busywait 30 grep -q True "$dir/mapped" &&
	refused 1 "process $holder (python3) has /dev/rdma_isolate mapped" unload &&
	refused 1 "nothing was changed" unload && budget '.agent_pid > 0'
	status=$?
	kill "$holder"
	wait "$holder" 2>/dev/null
	return $status
}

# Their RDMA devices go with them, faster than one after the other.
remove_netdevs()
{
	ip link del group $NETDEVS 2>/dev/null
}

# The doctor has a word on each.
many_devices()
{
	local i

	for ((i = 0; i < DEVS; i++)); do
		ip link add "dummy$i" up group $NETDEVS type dummy &&
		rdma link add "rxe_many$i" type rxe netdev "dummy$i" || return
		echo "dev set dev rxe_many$i mode enable"
	done >"$dir/enable"
	rdma-isolate -b "$dir/enable" &&
	shows "map(select(.check == \"max-rate\" and
		(.found | contains(\"rxe_many\")))) | length == $DEVS" doctor
}

of_user()
{
	local err

	err=$(setpriv --reuid 65534 --clear-groups rdma-isolate unload 2>&1)
	[ $? -eq 1 ] && [[ $err == *"only root may unload the module"* ]]
}

# Who asks while it goes hears that it has gone.
goes()
{
	local asking status i

	for i in 1 2 3 4; do
		while rdma-isolate dev show; do
			:
		done >/dev/null 2>>"$dir/asked" &
		asking+=($!)
	done
	rdma-isolate unload && ! is_loaded rdma_isolate
	status=$?
	[ "$status" -eq 0 ] || kill "${asking[@]}"
	wait "${asking[@]}"
	grep -v "module rdma_isolate \(was unloaded\|is not loaded\)" "$dir/asked" |
	sed "s/^/# /"
	return $((status | (PIPESTATUS[0] == 0)))
}

# Does nobody have a dump of generic netlink that is not read to its end?
no_dumps()
{
	awk '$2 == 16 && $7 { exit 1 }' /proc/net/netlink
}

# Who began a dump and does not read it is named when the tool has waited ten seconds.
unread()
{
	local holder status

	python3 - >"$dir/unread" <<-'END' &
		import signal, socket, struct
		def ask(kind, flags, cmd, attrs=b""):
		    message = struct.pack("BBxx", cmd, 1) + attrs
		    nl.send(struct.pack("IHHII", 16 + len(message), kind, flags | 1, 1, 0) +
		            message)
		nl = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 16)
		name = b"rdma_isolate\0"
		ask(16, 0, 3, struct.pack("HH", 4 + len(name), 2) + name + bytes(3))
		answer = nl.recv(65536)[20:]
		while struct.unpack_from("HH", answer)[1] != 1:
		    answer = answer[struct.unpack_from("HH", answer)[0] + 3 & ~3:]
		ask(struct.unpack_from("HHH", answer)[2], 0x300, 1)
		print(True, flush=True)
		signal.pause()
	END
	holder=$!
	busywait 30 grep -q True "$dir/unread" &&
	refused 1 "process $holder (python3) has not read a netlink dump to its end" unload &&
	refused 1 "the devices are disabled, but the module cannot be unloaded" unload
	status=$?
	kill "$holder"
	wait "$holder" 2>/dev/null
	rdma-isolate -b "$dir/enable" && return $status
}

# One that has to look at the devices before it hears that the module has gone: the agent
# of rxe1 is stopped until its timer has fired, but not while it reads a dump.
unseen()
{
	local i

	for ((i = 0; i < 100; i++)); do
		kill -STOP "${agents[rxe1]}"
		busywait 2 no_dumps && break
		kill -CONT "${agents[rxe1]}"
	done
	no_dumps || return
	sleep 12
	goes || return
	kill -CONT "${agents[rxe1]}"
	wait "${agents[rxe1]}" && logged rxe1 0 "No such file" &&
	wait "${agents[rxe0]}"
}

agent_setup setpriv mknod python3
ktap_print_header
ktap_set_plan 9
start_agent rxe0
start_agent rxe1
start_latency
check "an agent steers" is_steered
check "a process has it open" opened
check "a process has a page of it" mapped
check "an ordinary user" of_user
check "$DEVS devices are enabled" many_devices
stop_latency
check "a process has not read a dump" unread
check "it goes, and the agents end without a fault" unseen
check "it is gone" refused 1 "module rdma_isolate is not loaded" unload
check "no word may follow" refused 2 "nothing may follow unload" unload now
[ "$KTAP_CNT_FAIL" -eq 0 ] || agent_report
ktap_finished
