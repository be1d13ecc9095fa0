#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# What "make install", "make install-dkms" and "make uninstall" do, in a tree of its own,
# and what make says about kernel headers. The module is that of the newest headers here.
set -u

cd "$(dirname "$0")/.." || exit
# What "make check" was asked for ("DEBUG=1") is not for the makes of here.
unset MAKEFLAGS MFLAGS MAKEOVERRIDES DEBUG KVER
tmp=$(mktemp -d)
mkdir "$tmp/dkms"
trap 'rm -rf "$tmp"' EXIT
root=$tmp/root
release=$(tools/kernel.sh rel newest) || exit
updates=$root/lib/modules/$release/updates
status=0

# check WHAT COMMAND...
check()
{
	local what=$1
	shift

	if "$@"; then
		echo "ok install: $what"
	else
		echo "not ok install: $what"
		status=1
	fi
}

# run TARGET [VARIABLE=VALUE]...: its output is in $tmp/out
run()
{
	make -s KVER=newest DESTDIR="$root" "$@" >"$tmp/out" 2>&1 && return
	sed 's/^/# /' "$tmp/out"
	return 1
}

installs()
{
	mkdir -p "$root/usr/local/sbin"
	mkdir -p "$root/usr/local/share/doc/rdma-isolate"
	touch "$root/usr/local/sbin/rdma-isolate" \
		"$root/usr/local/share/doc/rdma-isolate/of_old.rst" && run install
}

# Only that the headers are those of another kernel may be told.
is_quiet()
{
	! grep -Ev '^no headers of |^(make|  [A-Z]+ )' "$tmp/out"
}

# Everybody finds it, and no older one before it.
in_bin()
{
	[ -x "$root/usr/local/bin/rdma-isolate" ] &&
	[ ! -e "$root/usr/local/sbin/rdma-isolate" ] &&
	grep -q '^ExecStart=/usr/local/bin/rdma-isolate apply' \
		"$root/usr/lib/systemd/system/rdma-isolate.service"
}

# All pages and no others, where the manual page says
has_guide()
{
	local dir=usr/local/share/doc/rdma-isolate

	diff -r "$root/$dir" Documentation/admin-guide &&
	sed 's/\\-/-/g' Documentation/man/rdma-isolate.8 | grep -qx "\.I /$dir/index.rst"
}

has_manual()
{
	local page

	for page in Documentation/man/*.8; do
		cmp "$root/usr/local/share/man/man8/${page##*/}" "$page" || return
	done
}

module_is_stripped()
{
	cp "$updates"/rdma_isolate.ko* "$tmp" && unpack_module &&
	! readelf -S "$tmp/rdma_isolate.ko" | grep -q debug_info
}

unpack_module()
{
	local file

	for file in "$tmp"/rdma_isolate.ko.*; do
		case $file in
		*.xz)	xz -df "$file" ;;
		*.zst)	zstd -q --rm -df "$file" ;;
		*.gz)	gzip -df "$file" ;;
		esac || return
	done
}

# version_is VERSION FILE...
version_is()
{
	[ "$(modinfo -F version "${@:2}")" = "$1" ]
}

nothing_left()
{
	local left

	left=$(find "$root" -type f -o -type l | sed "s|^$root||" |
		grep -Ev '^/etc/rdma-isolated.conf$')
	[ -z "$left" ] && return
	echo "# left: $left"
	return 1
}

# --- headers ---

# says STATUS TEXT VARIABLE=VALUE...: in one line
says()
{
	local want=$1 text=$2 is lines
	shift 2

	make -s headers "$@" >"$tmp/out" 2>&1
	is=$?
	lines=$(grep -Evc '^make(\[[0-9]+\])?: \*\*\*' "$tmp/out")
	[[ $is -eq $want && $lines -eq 1 && $(<"$tmp/out") == *"$text"* ]] && return
	sed 's/^/# /' "$tmp/out"
	return 1
}

# A host that runs a kernel without headers, and has those of others
other_headers()
{
	local rel

	for rel in 5.10.0-9-amd64 6.1.0-9-amd64 6.1.0-30-amd64 6.1.0-99-cloud-amd64; do
		mkdir -p "$tmp/src/linux-headers-$rel"
		touch "$tmp/src/linux-headers-$rel/Makefile"
	done
	RISO_SOURCES=$tmp/src says 0 "building for 6.1.0-30-amd64" RUNNING=6.9.9-none
}

no_headers()
{
	mkdir "$tmp/empty"
	RISO_SOURCES=$tmp/empty says 2 "no kernel headers of 6.1 or later" \
		RUNNING=6.9.9-none
}

# --- dkms ---

# with_dkms DIRECTORY TARGET: of the sources there
with_dkms()
{
	local dkms="dkms --no-depmod --dkmstree $tmp/dkms"

	dkms+=" --sourcetree $root/usr/src --installtree $root/lib/modules"
	run -C "$@" DKMS="$dkms"
}

# A copy of the sources, of another version
make_other()
{
	mkdir "$tmp/other" &&
	cp -a Makefile version.mk dkms.conf Kbuild Documentation LICENSES kmod tools uapi \
		userspace "$tmp/other" &&
	sed -i 's/^PACKAGE_VERSION=.*/PACKAGE_VERSION="99.2"/' "$tmp/other/dkms.conf"
}

# Both are there in the end, and the newer one is in the kernel.
newer_replaces_older()
{
	with_dkms . install-dkms && version_is "$version" "$updates"/dkms/rdma_isolate.ko* &&
	make_other && with_dkms "$tmp/other" install-dkms &&
	version_is 99.2 "$updates"/dkms/rdma_isolate.ko*
}

install_refuses()
{
	! make -s KVER=newest DESTDIR="$root" install >"$tmp/out" 2>&1 &&
	grep -q "dkms has the module for $release" "$tmp/out"
}

dkms_goes()
{
	with_dkms . uninstall && nothing_left && [ -z "$(ls "$tmp/dkms/rdma_isolate" 2>&-)" ]
}

version=$(sed -n 's/^PACKAGE_VERSION="\(.*\)"/\1/p' dkms.conf)
check "headers of other kernels" other_headers
check "no headers" no_headers
check "make install" installs
check "without noise" is_quiet
check "the tool is in bin" in_bin
check "the administrator's guide" has_guide
check "the manual pages" has_manual
check "the module is stripped" module_is_stripped
check "the module has the version" version_is "$version" "$updates"/rdma_isolate.ko*
if [ "$(id -u)" != 0 ] || ! command -v dkms >/dev/null; then
	echo "# dkms is not tested: not root, or no dkms"
	check "make uninstall" run uninstall
else
	check "dkms replaces an older version" newer_replaces_older
	check "make install does not go behind dkms" install_refuses
	check "make uninstall" dkms_goes
fi
check "nothing is left" nothing_left
exit $status
