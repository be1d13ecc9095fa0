#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Answers what the Makefile and the test harness ask about a kernel:
#   kernel.sh rel KVER     its full release
#   kernel.sh dir KVER     the directory to build modules against
#   kernel.sh image KVER   the image to boot in a virtual machine
# KVER is a full release, or the start of one (6.1, 6.12: the newest kernel
# headers of that series), or "newest" for the newest headers of all, or
# "debug" or "kcsan" for the kernel that "setup-debian.sh debug" or "kcsan" builds.
# RISO_SOURCES is where headers are, /usr/src.
set -eu

cache=${RISO_CACHE:-/var/cache/rdma_isolate}
sources=${RISO_SOURCES:-/usr/src}

die()
{
	echo "kernel.sh: $*" >&2
	exit 1
}

# Where a kernel with checks is built
checked_tree()
{
	case $1 in
	debug)	echo "$cache/src/linux-source-6.12" ;;
	kcsan)	echo "$cache/src/linux-source-6.12-kcsan" ;;
	*)	return 1 ;;
	esac
}

# Debian's headers of other flavours (-cloud-amd64, -rt-amd64) are left aside:
# the images that are booted are the generic ones.
newest_headers()
{
	local rel

	for rel in "$sources"/linux-headers-"$1"*-amd64; do
		[ -e "$rel/Makefile" ] || continue
		rel=${rel#"$sources"/linux-headers-}
		case $rel in
		*-cloud-amd64|*-rt-amd64) ;;
		# 6.1 is the oldest kernel that the module is built for.
		[1-5].*|6.0.*) ;;
		*) echo "$rel" ;;
		esac
	done | sort -V | tail -n 1
}

release()
{
	local rel=

	case $1 in
	debug|kcsan)
		rel=$(cat "$(checked_tree "$1")/include/config/kernel.release" \
		      2>/dev/null) || die "no $1 kernel: run tools/setup-debian.sh $1"
		;;
	*-*)
		rel=$1
		;;
	newest)
		rel=$(newest_headers "")
		[ -n "$rel" ] ||
			die "no kernel headers of 6.1 or later:" \
				"install linux-headers-$(uname -r), or give KDIR="
		;;
	*)
		rel=$(newest_headers "$1.")
		[ -n "$rel" ] ||
			die "no headers of a $1 kernel: run tools/setup-debian.sh build"
		;;
	esac
	echo "$rel"
}

headers()
{
	local rel dir

	! checked_tree "$1" || return 0
	rel=$(release "$1")
	for dir in "$sources/linux-headers-$rel" "/lib/modules/$rel/build"; do
		if [ -e "$dir/Makefile" ]; then
			echo "$dir"
			return
		fi
	done
	die "no headers of $rel: give KDIR=, or install linux-headers-$rel"
}

image()
{
	local rel img

	rel=$(release "$1")
	img=$cache/kernels/$rel/boot/vmlinuz-$rel
	[ -e "$img" ] || die "no image of $rel: run tools/setup-debian.sh vm"
	echo "$img"
}

[ $# -eq 2 ] || die "usage: kernel.sh rel|dir|image KVER"
case $1 in
rel)	release "$2" ;;
dir)	headers "$2" ;;
image)	image "$2" ;;
*)	die "usage: kernel.sh rel|dir|image KVER" ;;
esac
