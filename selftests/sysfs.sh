#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# The files of a device, /sys/class/infiniband/DEV/rdma_isolate/: they say what
# rdma-isolate says, set what it sets, refuse what it refuses, and are there for as
# long as the device and the module are.
#
# One kernel is enough: what the files do is the module's own.

. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/cli.inc"

require rdma rdma-isolate jq setpriv unshare
need_module rdma_rxe
go=$(mktemp)
trap 'rm -f "$go"; wait; teardown_all' EXIT
export LC_ALL=C

# named as the attributes of netlink
NUMBERS="safe_util max_rate max_ops chunk_bytes token_bytes token_ops inflight_bytes
	target99_ns"

group_of()
{
	echo "/sys/class/infiniband/$1/rdma_isolate"
}

file_of()
{
	echo "$(group_of rxe0)/$1"
}

# reads FILE TEXT
reads()
{
	[ "$(<"$(file_of "$1")")" = "$2" ]
}

is()
{
	reads "$@" && return
	ktap_print_msg "$1: $(<"$(file_of "$1")"), not $2"
	return 1
}

# says JSON FILE TEXT: it is a number or a word there
says()
{
	[[ $1 == *"\"$2\":$3"[,\}]* || $1 == *"\"$2\":\"$3\""* ]] && return
	ktap_print_msg "$2 is not $3: $1"
	return 1
}

# netlink_is ATTRIBUTE TEXT: what the tool says
netlink_is()
{
	says "$(rdma-isolate -j dev show dev rxe0)" "$@"
}

agrees()
{
	local file out

	out=$(rdma-isolate -j dev show dev rxe0)
	for file in state $NUMBERS; do
		says "$out" "$file" "$(<"$(file_of "$file")")" || return
	done
	[ "$(find "$(group_of rxe0)" -type f | wc -l)" -eq 12 ]
}

# both_ways FILE KEY WORDS NUMBER OTHER: set by the file and by the tool, each time
# another number before
both_ways()
{
	local file=$1 key=$2 words=$3 number=$4 other=$5

	echo "$other" >"$(file_of "$file")" && netlink_is "$file" "$other" &&
	echo "$number" >"$(file_of "$file")" && is "$file" "$number" &&
	netlink_is "$file" "$number" &&
	echo "$other" >"$(file_of "$file")" &&
	rdma-isolate dev set dev rxe0 "$key" "$words" &&
	is "$file" "$number" && agrees
}

# mode_both_ways MODE STATE
mode_both_ways()
{
	echo "$1" >"$(file_of mode)" && is mode "$1" &&
	busywait 20 reads state "$2" && agrees &&
	echo disable >"$(file_of mode)" && busywait 20 reads state idle &&
	rdma-isolate dev set dev rxe0 mode "$1" && is mode "$1" &&
	is state "$2" &&
	rdma-isolate dev set dev rxe0 mode disable && is mode disable &&
	is state idle
}

# What is in all files, into $all: without a process, as it is looked at often
read_all()
{
	local file text

	all=
	for file in mode state $NUMBERS; do
		read -r text <"/sys/class/infiniband/rxe0/rdma_isolate/$file"
		all+="$file $text "
	done
}

# no_write ERROR COMMAND...: it fails with this, and nothing was changed
no_write()
{
	local want=$1 before err status
	shift

	read_all
	before=$all
	err=$("$@" 2>&1 >/dev/null)
	status=$?
	read_all
	[ $status -ne 0 ] && [[ $err == *"$want"* ]] &&
		[ "$before" = "$all" ] && return
	ktap_print_msg "\"$*\": status $status, \"$err\", not \"$want\""
	return 1
}

# put FILE FORMAT: with one write
put()
{
	# shellcheck disable=SC2059 # it is a format
	printf -- "$2" >"$(file_of "$1")"
}

# Of every number, and of those that have a range
bad_numbers()
{
	local inval="Invalid argument" range="Numerical result out of range"
	local file value

	for file in $NUMBERS; do
		for value in '\n' '-1' '-4096\n' ' 4096' '4096 ' '4096x' \
			'0x1000' '4k' '4096 4096' '4096,' '1e6' '4096.0' \
			'400000\0' '400000\0001' 'off' 'yes' 'autox' '+'; do
			no_write "$inval" put $file "$value" || return
		done
		no_write "$range" put $file 18446744073709551616 || return
		no_write "$range" put $file "$(printf '9%.0s' {1..60})" ||
			return
	done
	no_write "$inval" put max_ops auto || return
	for file in safe_util max_rate; do
		for value in 0 99999 1000000000001 18446744073709551615; do
			no_write "$range" put $file $value || return
		done
	done
	for file in chunk_bytes token_bytes token_ops inflight_bytes target99_ns; do
		for value in 4294967295 4294967296 1000000000000; do
			no_write "$range" put $file $value || return
		done
	done
	for value in 1 1023 1048577; do
		no_write "$range" put chunk_bytes $value || return
	done
	for file in token_bytes=0 token_bytes=1023 token_ops=0 \
		inflight_bytes=1023 target99_ns=0 target99_ns=4000000001; do
		no_write "$range" put ${file%=*} ${file#*=} || return
	done
}

# safe_util follows max_rate only as long as they are equal
above_max_rate()
{
	local range="Numerical result out of range"

	rdma-isolate dev set dev rxe0 max-rate 400mbit safe-util 390mbit &&
	no_write "$range" put safe_util 50000001 &&
	no_write "$range" put max_rate 48749999 &&
	put safe_util 50000000 && put max_rate 48000000 &&
	is safe_util 48000000
}

# What the port tells is read as a number, and safe_util follows it.
max_rate_auto()
{
	local port

	port=$(<"$(group_of rxe1)/max_rate")
	rdma-isolate dev set dev rxe0 max-rate 400mbit safe-util 400mbit &&
	put max_rate auto && is max_rate "$port" && is safe_util "$port" &&
	shows '.[0].calibrated | not' dev show dev rxe0 &&
	rdma-isolate dev set dev rxe0 max-rate 1tbit safe-util 1tbit &&
	put safe_util 100000000000 &&
	no_write "Numerical result out of range" put max_rate auto &&
	put safe_util auto && is safe_util 125000000000 && put max_rate auto &&
	is safe_util "$port"
}

bad_words()
{
	local value

	for value in '\n' 0 1 -1 on enabled Enable 'enable ' ' enable' \
		'enable\0' idle draining gone; do
		no_write "Invalid argument" put mode "$value" || return
	done
	no_write "Permission denied" setpriv --reuid 65534 --clear-groups \
		sh -c "echo idle >$(file_of state)"
}

# by anybody who may not open it, and by root without the capability
nobody()
{
	local file

	for file in mode $NUMBERS; do
		no_write "Permission denied" setpriv --reuid 65534 \
			--clear-groups sh -c "echo 100000 >$(file_of $file)" &&
		no_write "Operation not permitted" setpriv \
			--bounding-set -net_admin --inh-caps -net_admin \
			bash -c "echo 100000 >$(file_of $file)" &&
		setpriv --reuid 65534 --clear-groups cat "$(file_of $file)" \
			>/dev/null || return
	done
}

renamed()
{
	local status

	rdma dev set rxe0 name isl0 || return
	[ ! -e "$(group_of rxe0)" ] &&
	echo 8192 >"$(group_of isl0)/chunk_bytes" &&
	shows '.[0].chunk_bytes == 8192' dev show dev isl0 &&
	echo observe >"$(group_of isl0)/mode" &&
	shows '.[0].state == "observe"' dev show dev isl0 &&
	echo disable >"$(group_of isl0)/mode"
	status=$?
	rdma dev set isl0 name rxe0 && busywait 20 reads state idle &&
		return $status
}

# Others see the device, and nothing of ours. It changes nothing for us.
namespace()
{
	# shellcheck disable=SC2016 # expanded inside
	unshare -n -m sh -c 'mount -t sysfs none /sys &&
		test -e /sys/class/infiniband/rxe0 &&
		test ! -e /sys/class/infiniband/rxe0/rdma_isolate' && agrees
}

# --- races ------------------------------------------------------------------

# Writers go on as long as there is $go. Who would kill one would not wait for what it
# has begun.
begin()
{
	local writer

	: >"$go"
	for writer in "$@"; do
		while [ -e "$go" ]; do
			$writer
		done 2>/dev/null &
	done
}

end()
{
	rm "$go"
	wait
}

write_settings()
{
	put safe_util 40000000
	put safe_util 60000000
}

tool_settings()
{
	rdma-isolate dev set dev rxe0 max-rate 800mbit safe-util 800mbit
	rdma-isolate dev set dev rxe0 max-rate 400mbit safe-util 400mbit
}

# One that somebody has written: never max_rate of one and safe_util of another
# netlink message, nor more than max_rate.
settings_are_whole()
{
	local out

	out=$(rdma-isolate -j dev show dev rxe0)
	[[ $out =~ \"max_rate\":([0-9]+).*\"safe_util\":([0-9]+) ]]
	case ${BASH_REMATCH[1]}-${BASH_REMATCH[2]} in
	100000000-100000000|100000000-40000000|100000000-60000000)
		return ;;
	50000000-50000000|50000000-40000000)
		return ;;
	esac
	ktap_print_msg "$out"
	return 1
}

race_settings()
{
	local i status=0

	rdma-isolate dev set dev rxe0 max-rate 400mbit safe-util 400mbit
	begin write_settings tool_settings
	for ((i = 0; i < 50 && !status; i++)); do
		settings_are_whole || status=1
	done
	end
	[ $status -eq 0 ] && settings_are_whole && agrees
}

write_modes()
{
	put mode observe
	put mode disable
}

tool_modes()
{
	rdma-isolate dev set dev rxe0 mode enable
	rdma-isolate dev set dev rxe0 mode disable timeout 0s
}

race_modes()
{
	local i

	begin write_modes tool_modes
	for ((i = 0; i < 40; i++)); do
		cat "$(group_of rxe0)"/* >/dev/null || break
		sleep 0.1
	done
	end
	[ $i -eq 40 ] && busywait 20 settled && agrees &&
	put mode disable && busywait 20 reads state idle
}

settled()
{
	grep -qE '^(idle|observe|enable)$' "$(file_of state)"
}

# --- the end ----------------------------------------------------------------

# Who holds a file open is told, by the error of its next write.
told()
{
	local err

	err=$(echo 1000000 2>&1 >&9)
	exec 9>&-
	[[ $err == *"No such device"* ]]
}

# While somebody writes to them
gone_with_device()
{
	local status

	begin write_modes
	sleep 0.5
	exec 9>"$(file_of max_rate)"
	rdma link delete rxe0
	status=$?
	end
	told && [ $status -eq 0 ] && [ ! -e "$(group_of rxe0)" ]
}

write_rates()
{
	echo 1000000 >"$(group_of rxe1)/max_rate"
	echo 2000000 >"$(group_of rxe1)/max_rate"
}

gone_with_module()
{
	local status

	begin write_rates
	exec 9>"$(group_of rxe1)/max_rate"
	rmmod rdma_isolate
	status=$?
	end
	told && [ $status -eq 0 ] && [ -e /sys/class/infiniband/rxe1 ] &&
	[ ! -e "$(group_of rxe1)" ]
}

back_again()
{
	load_module && [ "$(cat "$(group_of rxe1)/mode")" = disable ]
}

load_module && setup_rxe || skip_all "no rxe devices"
ktap_print_header
ktap_set_plan 31
check "files and netlink agree" agrees
check "max_rate" both_ways max_rate max-rate 400mbit 50000000 60000000
check "safe_util" both_ways safe_util safe-util 390mbit 48750000 50000000
check "max_ops" both_ways max_ops max-ops 100000 100000 7
check "max_ops, off" both_ways max_ops max-ops off 0 9007199254740991
check "chunk_bytes" both_ways chunk_bytes chunk-bytes 8k 8192 1048576
check "chunk_bytes, off" both_ways chunk_bytes chunk-bytes off 0 1024
check "chunk_bytes, auto" both_ways chunk_bytes chunk-bytes auto auto 1024
check "token_bytes" both_ways token_bytes token-bytes 64k 65536 1024
check "token_bytes, auto" both_ways token_bytes token-bytes auto auto 4294967294
check "token_ops" both_ways token_ops token-ops 32 32 1
check "token_ops, auto" both_ways token_ops token-ops auto auto 2
check "inflight_bytes" both_ways inflight_bytes inflight-bytes 64k 65536 auto
check "inflight_bytes, off" both_ways inflight_bytes inflight-bytes off 0 1024
check "inflight_bytes, auto" both_ways inflight_bytes inflight-bytes auto auto 0
check "target99_ns" both_ways target99_ns target99 20us 20000 4000000000
check "target99_ns, auto" both_ways target99_ns target99 auto auto 1
check "mode: observe" mode_both_ways observe observe
check "mode: enable" mode_both_ways enable enable
check "numbers that are none, or out of range" bad_numbers
check "safe_util above max_rate" above_max_rate
check "max_rate, auto" max_rate_auto
check "words that are none" bad_words
check "nobody may write" nobody
check "renamed" renamed
check "another network namespace" namespace
check "writers of settings race" race_settings
check "writers of modes race" race_modes
check "gone with the device" gone_with_device
check "gone with the module" gone_with_module
check "back again" back_again
ktap_finished
