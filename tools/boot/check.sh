#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# check.sh FILE...: do systemd and udev understand these units and rules
set -eu -o pipefail

cd "$(dirname "$0")"
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
units=()
rules=()
status=0

# What is wrong in other units of this machine is not ours.
check_units()
{
	systemd-analyze verify --man=no "$@" 2>&1 | grep rdma-isolate >"$tmp/wrong" ||
		return 0
	cat "$tmp/wrong" >&2
	return 1
}

for file in "$@"; do
	case $file in
	*.service)
		# a program that is there
		sed 's|^\(Exec[A-Za-z]*=\)rdma-isolated\?\b|\1/bin/true|' \
			"$file" >"$tmp/${file##*/}"
		units+=("$tmp/${file##*/}")
		;;
	*)
		rules+=("$file") ;;
	esac
done

if ! command -v systemd-analyze >/dev/null; then
	echo "boot: units are not checked: no systemd-analyze"
else
	check_units "${units[@]}" || status=1
fi
if ! udevadm verify --help >/dev/null 2>&1; then
	echo "boot: rules are not checked: udevadm has no verify (systemd 254 has)"
else
	udevadm verify "${rules[@]}" || status=1
fi

# The confinement of the two is the same.
confinement()
{
	sed -n '/^\[Service\]/,$p' "$1" | grep -v '^ExecStart='
}

diff <(confinement "$1") <(confinement "$2") || status=1
exit $status
