#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# check.sh FILE...: do systemd and udev understand these units and rules, and is the list of
# ULPs that are managed without a rule everywhere the same
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

# The module judges by its own list; the other two say what is on it.
settings=Documentation/admin-guide/settings.rst
sed -n '/^static const char \* const ulps\[\]/,/^};/p' ../../kmod/reason.c |
	{ grep -o '"[^"]*"' || :; } | tr -d '"' | sort >"$tmp/managed"
sed -n 's/^softdep \([^ ]*\) pre: rdma_isolate$/\1/p' modprobe.conf | sort >"$tmp/loaded"
sed -n '/^These ULPs are managed without a rule:/,/``\./{s/``\..*/``/;p}' ../../$settings |
	{ grep -o '``[^`]*``' || :; } | tr -d '`' | sort >"$tmp/told"

# same LIST FILE: is the list of FILE that of the module
same()
{
	diff "$tmp/managed" "$tmp/$1" >"$tmp/differ" && return
	echo "boot: the ULPs of kmod/reason.c (<) and those of $2 (>) differ:" >&2
	cat "$tmp/differ" >&2
	status=1
}

same loaded tools/boot/modprobe.conf
same told $settings
exit $status
