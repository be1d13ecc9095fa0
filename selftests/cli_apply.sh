#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Settings that come at boot: rdma-isolate apply reads /etc/rdma-isolate.d. udev and
# systemd, which are started for this, run it as the units say: when the module comes
# and when a device does. A second time changes nothing, what the operator has added
# stays, and with anything wrong in any file nothing changes at all.
#
# One kernel is enough: it tests the tool and its units.

. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/cli.inc"
. "$(dirname "$0")/systemd.inc"

require rdma rdma-isolate jq unshare nsenter systemctl systemd-escape udevadm
need_module rdma_rxe
[ -e "$BOOT_DIR/rdma-isolate@.service" ] || skip_all "no tools/boot beside the tests"
! is_loaded rdma_isolate || skip_all "the module is loaded"
conf=/etc/rdma-isolate.d
dir=$(mktemp -d)
trap clean_up EXIT

clean_up()
{
	[ ! -e /sys/class/infiniband/riso-3 ] || rdma dev set riso-3 name rxe3
	teardown_all
	stop_systemd
	umount "$conf"
	rm -rf "$dir"
}

# The instance is made of the path.
unit_of()
{
	echo "rdma-isolate@$(systemd-escape -p \
		"$(realpath "/sys/class/infiniband/$1")").service"
}

device_comes()
{
	unit_is active "$(unit_of "$1")"
}

# file NAME LINE...
file()
{
	local name=$1
	shift

	printf '%s\n' "$@" >"$conf/$name"
}

# state NAME: all that can be set, and the ids of the rules
state()
{
	{ rdma-isolate dump && rdma-isolate rule show; } >"$dir/$1"
}

# is_still NAME
is_still()
{
	state now && diff "$dir/$1" "$dir/now" >"$dir/diff" && return
	while read -r line; do
		ktap_print_msg "$line"
	done <"$dir/diff"
	return 1
}

first_files()
{
	file 20-more.conf "# what comes last about a setting counts" \
		"rule add comm two class latency" \
		"dev set dev rxe0 chunk-bytes 8k" \
		"dev set dev rxe2 max-rate 200mbit mode observe" \
		"dev set dev riso-3 chunk-bytes 16k"
	file 10-site.conf "rule add ulp one class bandwidth weight 300" \
		"dev set dev rxe0 chunk-bytes 16k max-rate 400mbit mode observe" \
		"dev set dev rxe1 chunk-bytes 16k" \
		"rule add ulp one class bandwidth weight 300"
	file 30-not-this.conf.old "nonsense"
}

module_comes()
{
	load_module && unit_is active rdma-isolate.service &&
	shows '.[0] | .chunk_bytes == 8192 and .max_rate == 50000000 and
		.state == "observe" and .calibrated' dev show dev rxe0 &&
	shows '.[0] | .chunk_bytes == 16384 and .state == "idle" and
		(.calibrated | not)' dev show dev rxe1 &&
	rules_are one two
}

# Events of the devices may still come, from before the module did. The units that
# they start apply the files once; afterwards nobody does any more but the test.
devices_have_come()
{
	local dev

	for dev in rxe0 rxe1; do
		udevadm trigger --action=change "/sys/class/infiniband/$dev" &&
		device_comes "$dev" || return
	done
}

twice()
{
	state before && rdma-isolate apply && is_still before &&
	rdma-isolate apply rxe0 && is_still before
}

one_device()
{
	rdma-isolate dev set dev rxe0 chunk-bytes 4k &&
	rdma-isolate dev set dev rxe1 chunk-bytes 4k &&
	rdma-isolate apply rxe1 &&
	shows '.[0].chunk_bytes == 16384' dev show dev rxe1 &&
	shows '.[0].chunk_bytes == 4096' dev show dev rxe0 &&
	rdma-isolate apply rxe9 &&
	shows '.[0].chunk_bytes == 4096' dev show dev rxe0
}

# Rules and settings that no file names stay; a rule that one names comes back.
operators_own()
{
	local id

	id=$(rdma-isolate -j rule show | jq '.[0].id')
	rdma-isolate rule add ulp mine class latency >/dev/null &&
	rdma-isolate rule delete id "$id" &&
	rdma-isolate dev set dev rxe0 token-bytes 8k &&
	rdma-isolate apply && rules_are two mine one &&
	shows '.[0] | .token_bytes == 8192 and .chunk_bytes == 8192' \
		dev show dev rxe0
}

device_appears()
{
	setup_rxe_pair 1 && device_comes rxe2 &&
	shows '.[0] | .max_rate == 25000000 and .state == "observe"' \
		dev show dev rxe2 &&
	shows '.[0].chunk_bytes == "auto"' dev show dev rxe3
}

device_comes_back()
{
	local unit

	unit=$(unit_of rxe2)
	rdma link delete rxe2 && unit_is inactive "$unit" &&
	rdma link add rxe2 type rxe netdev veth2 && device_comes rxe2 &&
	shows '.[0] | .max_rate == 25000000 and .state == "observe"' \
		dev show dev rxe2
}

# A dash is no dash any more in the name of a unit.
another_name()
{
	rdma dev set rxe3 name riso-3 && device_comes riso-3 &&
	shows '.[0].chunk_bytes == 16384' dev show dev riso-3 &&
	rdma dev set riso-3 name rxe3
}

# The number is the same, but now somebody has said so.
a_guess_is_no_setting()
{
	local rate

	rate=$(rdma-isolate -j dev show dev rxe1 | jq '.[0].max_rate')
	file 40-rate.conf "dev set dev rxe1 max-rate ${rate}B/s"
	rdma-isolate apply && shows '.[0].calibrated' dev show dev rxe1 || return
	file 40-rate.conf "dev set dev rxe1 max-rate auto"
	rdma-isolate apply &&
	shows ".[0] | (.calibrated | not) and .max_rate == $rate" dev show dev rxe1
}

# Of devices that appear at once none adds what another has.
all_at_once()
{
	local pids=() i

	for i in {1..20}; do
		echo "rule add ulp many$i class latency"
	done >"$conf/50-many.conf"
	for i in {1..8}; do
		rdma-isolate apply &
		pids+=($!)
	done
	for i in "${pids[@]}"; do
		wait "$i" || return
	done
	shows 'map(select(.ulp // "" | startswith("many"))) | length == 20' \
		rule show
}

# wrong STATUS TEXT LINE...: these in the second file are refused with this, and those of
# the others are applied
wrong()
{
	local want=$1 text=$2 id
	shift 2

	rm "$conf"/*
	rdma-isolate dev set dev rxe0 chunk-bytes 4k
	for id in $(rdma-isolate -j rule show |
		jq '.[] | select(.ulp == "good" or .ulp == "better").id'); do
		rdma-isolate rule delete id "$id"
	done
	file 10-good.conf "rule add ulp good class latency" \
		"dev set dev rxe0 chunk-bytes 32k"
	file 20-bad.conf "$@"
	file 30-better.conf "rule add ulp better class latency"
	refused "$want" "$conf/20-bad.conf:$text" apply &&
	shows '.[0].chunk_bytes == 32768' dev show dev rxe0 &&
	shows 'map(.ulp) | contains(["good", "better"]) and all(. != "bad")' rule show
}

# Where two files have to do with a refusal the one that is right is applied.
earlier_file_is_wrong()
{
	rm "$conf"/*
	file 10-first.conf "dev set dev rxe1 safe-util 1tbit" \
		"rule add ulp first class latency"
	file 20-second.conf "dev set dev rxe1 chunk-bytes 64k" \
		"rule add ulp second class latency"
	refused 1 "$conf/10-first.conf is left out" apply &&
	! refused 1 "$conf/20-second.conf is left out" apply >/dev/null &&
	shows '.[0].chunk_bytes == 65536' dev show dev rxe1 &&
	shows 'map(.ulp) | any(. == "second") and all(. != "first")' rule show
}

only_checked()
{
	file 20-bad.conf "rule add ulp x class latency" "nonsense"
	file 30-bad.conf "rule add ulp x class"
	state before &&
	refused 2 "$conf/20-bad.conf:2: unknown object" apply --check &&
	refused 2 "$conf/30-bad.conf:1: class needs a value" apply --check &&
	is_still before && rm "$conf"/*-bad.conf &&
	[ "$(rdma-isolate apply --check)" = OK ]
}

# doctor_says FILTER: what jq makes of the answer; the doctor itself may call it bad
doctor_says()
{
	local out

	out=$(rdma-isolate -j doctor 2>/dev/null)
	jq -e "$1" <<<"$out" >/dev/null && return
	ktap_print_msg "${out//$'\n'/ }"
	return 1
}

doctor_names_it()
{
	rm "$conf"/*
	file 10-good.conf "rule add ulp good class latency" && rdma-isolate apply &&
	doctor_says 'any(.check == "settings" and .verdict == "ok") and
		all(.check != "applied")' &&
	file 20-bad.conf "rule add ulp bad clas latency" &&
	doctor_says "any(.check == \"settings\" and .verdict == \"bad\" and
		(.found | contains(\"$conf/20-bad.conf\")))" &&
	! rdma-isolate doctor >/dev/null 2>&1 &&
	file 20-bad.conf "rule add ulp new class latency" \
		"dev set dev rxe0 chunk-bytes 64k" &&
	doctor_says 'any(.check == "applied" and (.found | startswith("2 commands")))' &&
	rdma-isolate apply && doctor_says 'all(.check != "applied")'
}

too_many_rules()
{
	local i lines=() room

	# those of the other files are deleted first, and one is before
	room=$((1024 - $(rdma-isolate -j rule show | jq length)))
	for ((i = 1; i <= room + 2; i++)); do
		lines+=("rule add ulp x$i class latency")
	done
	wrong 1 "$((room + 2)): there may be 1024 rules at most" "${lines[@]}"
}

a_directory()
{
	rm "$conf"/*
	mkdir "$conf/99-dir.conf" &&
	refused 1 "$conf/99-dir.conf: Is a directory" apply
}

unit_fails()
{
	! ctl restart rdma-isolate.service && unit_is failed rdma-isolate.service
}

module_goes()
{
	rmdir "$conf/99-dir.conf" && ctl restart rdma-isolate.service &&
	unit_is active rdma-isolate.service &&
	rdma-isolate dev set dev rxe0 mode disable &&
	rdma-isolate dev set dev rxe2 mode disable && unload_module &&
	unit_is inactive rdma-isolate.service
}

# by_unit NAME COMMAND...: a case of what systemd does; the debug kernel cannot run it
by_unit()
{
	if is_debug_kernel; then
		ktap_test_skip "$1: no systemd on the debug kernel"
	else
		check "$@"
	fi
}

completes()
{
	rdma-isolate complete apply | grep -qx rxe1
}

mkdir -p "$conf" && mount -t tmpfs -o mode=755 riso-apply "$conf" || {
	trap - EXIT
	skip_all "no file system for $conf"
}
setup_rxe || skip_all "no rxe devices"
ktap_print_header
ktap_set_plan 27
by_unit "systemd and udev are there" start_systemd "$BOOT_DIR"/rdma-isolate{,@}.service
check "no file, nothing to do" rdma-isolate apply
first_files
check "the module is missing" refused 1 "modprobe" apply
by_unit "the module comes" module_comes
by_unit "the units of the devices that were there" devices_have_come
! is_debug_kernel || { load_module && rdma-isolate apply; }
check "a second time" twice
check "one device" one_device
check "what the operator has set stays" operators_own
by_unit "a device appears" device_appears
by_unit "a device comes back" device_comes_back
by_unit "a device gets another name" another_name
check "a guess is no setting" a_guess_is_no_setting
check "eight at once" all_at_once
check "completion" completes
check "an unknown word" wrong 2 "2: unknown word \"chunks\"" \
	"dev set dev rxe0 chunk-bytes 4k" "dev set dev rxe0 chunks 4k"
check "out of range, for a device that is not there" wrong 2 \
	"1: chunk-bytes \"1\": must be" "dev set dev rxe9 chunk-bytes 1"
check "half a quotation" wrong 2 '1: a " is missing' \
	'rule add comm "x class latency'
check "no setting" wrong 2 "3: only dev set and rule add may stand here" "" "" \
	"dev show"
check "settings that are at odds" wrong 2 "1: safe-util of rxe9 may not be above" \
	"dev set dev rxe9 max-rate 100mbit safe-util 200mbit"
check "a setting that the kernel refuses" wrong 1 "2: safe-util may not be above" \
	"rule add ulp bad class latency" "dev set dev rxe0 safe-util 1tbit chunk-bytes 8k"
check "a rule that the kernel refuses" too_many_rules
check "a rule that the earlier file has wrong" earlier_file_is_wrong
check "files are only checked" only_checked
check "the doctor names what is left out" doctor_names_it
check "a directory" a_directory
by_unit "the unit fails then" unit_fails
by_unit "and not without a file; the module goes" module_goes
ktap_finished
