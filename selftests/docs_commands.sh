#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Every command of the tool that README, the administrator's guide and the manual
# pages show does what they say it does: it succeeds, on a device with an NVMe
# connection and a latency flow. Names and numbers that are examples are replaced
# by those that there are.
#
# One kernel is enough: it tests texts.

. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/cli.inc"

docs=$(dirname "$(dirname "$(realpath "${BASH_SOURCE[0]}")")")
[ -e "$docs/Documentation/man/rdma-isolate.8" ] ||
	skip_all "no documents beside the tests"
require rdma nvme jq rdma-isolate
need_module rdma_rxe nvme-rdma nvmet-rdma
trap teardown_all EXIT

# The pages of the guide, in the order of their index
pages()
{
	local guide=$docs/Documentation/admin-guide

	sed -n "s|^   \([a-z]*\)\$|$guide/\1.rst|p" "$guide/index.rst"
}

# One a line, each once: shell commands that begin with the tool's name; calibrate,
# which needs an agent, and unload have tests of their own
commands()
{
	{
		# shellcheck disable=SC2046 # names without blanks
		sed -n 's/^ *# \(rdma-isolate .*\)/\1/p' $(pages)
		sed -n 's/\\-/-/g; s/^# \(rdma-isolate .*\)/\1/p' \
			"$docs"/Documentation/man/rdma-isolate{,-*}.8
		sed -n 's/^    # \(rdma-isolate .*\)/\1/p' "$docs/README.md"
	} | awk '!/^rdma-isolate (calibrate|unload)/ && !seen[$0]++'
}

first()
{
	rdma-isolate -j "$1" show dev rxe1 | jq "[.[] | select(.ulp ==
		\"nvmet_rdma\")][0].$2"
}

runs()
{
	local command=$1 status seconds=20 endless=

	load_module || return
	command=${command//mlx5_0/rxe1}
	case $command in
	*" id 3"*)
		command=${command/ id 3/ id $(first group id)} ;;
	*" qpn 17"*)
		command=${command/ qpn 17/ qpn $(first flow qpn)} ;;
	*monitor*|*"top dev rxe1")
		seconds=3 endless=1 ;;
	esac
	timeout $seconds bash -c "cd $dir && set -o pipefail; $command" \
		>"$dir/out" 2>&1
	status=$?
	# what is shown until it is interrupted
	[ -z "$endless" ] || [ "$status" -ne 124 ] || return 0
	[ "$status" -eq 0 ] && return
	ktap_print_msg "$command: status $status"
	tail -n 5 "$dir/out" | while read -r line; do
		ktap_print_msg "$line"
	done
	return 1
}

dir=$(mktemp -d)
# as make install does
mkdir -p /etc/rdma-isolate.d
load_module && setup_rxe && start_nvmet riso0 10.0.0.2 &&
	connect_nvme riso0 10.0.0.2 10.0.0.1 >/dev/null || skip_all "no target"
mapfile -t lines < <(commands)
ktap_print_header
ktap_set_plan $((${#lines[@]} + 1))
check "there are commands" test "${#lines[@]}" -ge 20
for line in "${lines[@]}"; do
	check "$line" runs "$line"
done
rm -rf "$dir"
ktap_finished
