#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# rdma-isolate without its module: command lines that are wrong say what would
# be right and return 2, the others that the module is missing and return 1.
#
# One kernel is enough: it tests the tool.

. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/cli.inc"

require rdma-isolate jq
! is_loaded rdma_isolate || skip_all "the module is loaded"

# usage TEXT WORD...
usage()
{
	local text=$1
	shift
	check "usage: $*" refused 2 "$text" "$@"
}

json_is_empty()
{
	[ "$(rdma-isolate -j "$@" 2>/dev/null)" = "[]" ]
}

# The tests load it from where it was built: there is mostly none that modprobe finds.
doctor_misses_it()
{
	local fix=modprobe

	modprobe -nq rdma_isolate || fix=$(uname -r)
	rdma-isolate -j doctor | jq -e --arg fix "$fix" 'map(select(.verdict == "bad")) |
		length == 1 and .[0].check == "module" and
		(.[0].fix | contains($fix))' >/dev/null
}

# Each keyword that the tool completes is in its help, and the reverse.
help_is_complete()
{
	local object verb key

	for object in top calibrate; do
		for key in $(rdma-isolate complete "$object" | grep -v help); do
			rdma-isolate "$object" help | grep -q "^      $key " || return
		done
	done
	for object in $(rdma-isolate complete | grep -Ev "help|dump|sync|apply|run|unload|top|calibrate"); do
		for verb in $(rdma-isolate complete "$object" | grep -v help); do
			rdma-isolate "$object" help |
				grep -q "^rdma-isolate $object $verb" || return
			for key in $(rdma-isolate complete "$object" "$verb"); do
				rdma-isolate "$object" help |
					grep -q "^      $key " || return
			done
		done
	done
}

# What was given is not offered again, and a class follows --class.
run_is_completed()
{
	[ "$(rdma-isolate complete run | xargs)" = "--class --ucx-verbs -v --verbose --" ] &&
	[ "$(rdma-isolate complete run -v --class | xargs)" = "latency throughput bandwidth" ] &&
	[ "$(rdma-isolate complete run -v --class latency | xargs)" = \
		"--ucx-verbs --verbose --" ]
}

help_as_option()
{
	[ "$(rdma-isolate --help)" = "$(rdma-isolate help)" ] &&
	[ "$(rdma-isolate -h)" = "$(rdma-isolate help)" ]
}

version_as_option()
{
	[[ $(rdma-isolate --version) =~ ^rdma-isolate\ [0-9]+\.[0-9]+,\ JSON\ [0-9]+$ ]] &&
	[ "$(rdma-isolate -V)" = "$(rdma-isolate --version)" ]
}

run_has_help()
{
	[[ $(rdma-isolate run --help) == *"--ucx-verbs "* ]] &&
	[ "$(rdma-isolate run help)" = "$(rdma-isolate help run)" ] &&
	[ "$(rdma-isolate run --class=latency -v -- true 2>&1 | grep -c =)" -ge 4 ] &&
	rdma-isolate run -v -- true 2>&1 |
		grep -q "^rdma-isolate: warning: /dev/rdma_isolate: .*: nothing is held$"
}

# A word that is wrong is not taken for an option that stands too late.
no_option_meant()
{
	! rdma-isolate dev show device 2>&1 | grep -q options
}

# ends_with STATUS WORD...
ends_with()
{
	local want=$1
	shift

	rdma-isolate "$@" >/dev/null 2>&1
	[ $? -eq "$want" ]
}

ktap_print_header
ktap_set_plan 89
usage "usage:"
usage "one of: dev, flow, group, budget, path, rule, statistic, monitor, top, explain, doctor, calibrate, dump, sync, apply, run, unload, help" device
usage "one of: dev, flow, group, budget, path, rule, statistic, monitor, top, explain, doctor, calibrate, dump, sync, apply, run, unload, help" de
usage "one of: show, set, help" dev list
usage "one of: show, set, help" dev sho
usage "options are" -x dev
usage "options are" --hlep
usage "one of: show, help; options come before the object (rdma-isolate -d flow show)" flow -d
usage "limit; options come before the object (rdma-isolate -d flow show)" flow show -d
usage "nothing may follow; options come before the object" doctor show -j
usage "one of: dev" dev show device rxe0
usage "needs a value" dev show dev
usage "1 to 63 bytes" dev show dev ""
usage "1 to 63 bytes" dev show dev "$(printf '%064d' 0)"
usage "given twice" dev show dev a dev b
usage "dev is missing" dev set mode enable
usage "nothing to set" dev set dev rxe0
usage "disable, observe, enable" dev set dev rxe0 mode on
usage "mbit" dev set dev rxe0 max-rate 400
usage "GB/s, TB/s, KiB/s, MiB/s, GiB/s, TiB/s" dev set dev rxe0 max-rate 400
usage "mbit" dev set dev rxe0 max-rate 400mb
usage "mbit" dev set dev rxe0 max-rate 0mbit
usage "mbit" dev set dev rxe0 safe-util -1mbit
usage "KiB" dev set dev rxe0 chunk-bytes 4kb
usage "1024 to 1048576" dev set dev rxe0 chunk-bytes 4g
usage "1024 to 1048576" dev set dev rxe0 chunk-bytes 1023
usage "800kbit to 8tbit" dev set dev rxe0 max-rate 799kbit
usage "800kbit to 8tbit" dev set dev rxe0 safe-util 8.000001tbit
usage "1024 to 4294967294" dev set dev rxe0 token-bytes 1023
usage "1 to 4294967294" dev set dev rxe0 token-ops 0
usage "1024 to 4294967294" dev set dev rxe0 inflight-bytes 1
usage "or auto" dev set dev rxe0 token-bytes off
usage "or auto" dev set dev rxe0 inflight-bytes x
usage "whole number" dev set dev rxe0 max-ops 1.5
usage "mode disable only" dev set dev rxe0 mode enable timeout 1s
usage "ns, us, ms" dev set dev rxe0 mode disable timeout 10
usage "needs dev" flow show qpn 1
usage "0 to 16777215" flow show dev rxe0 qpn 16777216
usage "class is missing" rule add ulp x
usage "needs one of" rule add class latency
usage "latency, throughput, bandwidth" rule add ulp x class fast
usage "1 to 10000" rule add ulp x class latency weight 10001
usage "IPv4" rule add peer 10.0.0 class latency
usage "1 to 4294967295" rule delete id 0
usage "one of: dev" statistic show now
usage "one of: dev, interval, count, --batch" top show
usage "100ms to 60s" top interval 99ms
usage "100ms to 60s" top --batch interval 61s
usage "ns, us, ms, s or min" top interval 1
usage "whole number, 1 to 4294967295" top count 0
usage "given twice" top --batch --batch
usage "needs a value" top --batch dev
usage "top may not stand here" -b <(echo top --batch)
usage "path may not stand here, one of: dev," -b <(echo path show)
usage "nothing may follow dump" dump x
usage "sync takes one FILE" sync
usage "one DEV, or --check" apply rxe0 rxe1
usage "one DEV, or --check" apply --chek
usage "one DEV, or --check" apply help
usage "the name of an RDMA device" apply ""
usage "the name of an RDMA device" apply /sys/class/infiniband/
usage "-b FILE" -b - dev show
usage "dev is missing" calibrate
usage "--force goes with --apply only" calibrate dev rxe0 --force
usage "one of: dev, peer, port, --apply, --force" calibrate dev rxe0 mode enable
usage "given twice" calibrate --apply --apply
usage "needs a value" calibrate --apply dev
usage "IPv4 address" calibrate dev rxe0 peer other
usage "1 to 65535" calibrate dev rxe0 port 0
usage "run takes" run ls
usage "run takes" run --class latency --
usage "unknown option \"--foo\"" run --foo -- ls
usage "missing before \"ls\"" run ls
usage "not \"\"" run --class
check "run and its help" run_has_help
usage "latency, throughput or bandwidth" run --class fast -- ls
check "a program's own status" ends_with 7 run -- sh -c "exit 7"
check "no such program" ends_with 127 run -- /nonexistent
check "the doctor says that it is missing" doctor_misses_it
check "the module is missing for dump" refused 1 "modprobe" dump
check "the module is missing for sync" refused 1 "modprobe" sync /dev/null
check "the module is missing" \
	refused 1 "modprobe rdma_isolate" dev show
check "JSON is valid without it" json_is_empty dev show
check "JSON is valid for a setter" json_is_empty rule delete id 1
check "help and completion agree" help_is_complete
check "completion of run" run_is_completed
check "--help and -h" help_as_option
check "--version and -V" version_as_option
check "options are named for options only" no_option_meant
ktap_finished
