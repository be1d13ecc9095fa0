#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Gets a Debian 12 machine ready, and only as far as asked:
#   setup-debian.sh build   compilers, libraries and kernel headers
#   setup-debian.sh style   also checkpatch.pl and sparse
#   setup-debian.sh vm      also what boots and runs the tests (the default)
#   setup-debian.sh debug   also the kernel with KASAN, lockdep and kmemleak (about 9
#                           minutes on 2 cores)
#   setup-debian.sh kcsan   as vm, and the kernel with KCSAN
#   setup-debian.sh kv      as vm, and Mooncake's transfer engine
# What is there already is left alone, so that a second run costs nothing.
# Everything that is no Debian package goes to $RISO_CACHE.
set -eu

top=$(cd "$(dirname "$0")/.." && pwd)
cache=${RISO_CACHE:-/var/cache/rdma_isolate}
want=${1:-vm}

# What the tests and the module are built and run against. The headers
# packages only pull in the newest kernel of their series.
series="6.1 6.12"
virtme_ng=1.42
# Its wheel for the Python of Debian 12
mooncake=0.3.13.post1
mooncake_sha256=ca9f668a04ffe648b250fda28b97d0a7da149cb110dec5cf3d166a9e68afc940

build_packages="build-essential pkg-config git kmod rsync linux-headers-amd64
	linux-headers-6.12-amd64 libibverbs-dev librdmacm-dev libmnl-dev
	libinih-dev libcmocka-dev libsystemd-dev libmicrohttpd-dev libsodium-dev
	python3-yaml python3-jsonschema groff-base dkms"
style_packages="linux-source-6.12 xz-utils sparse perl shellcheck"
vm_packages="qemu-system-x86 busybox-static file zstd python3-venv rdma-core
	ibverbs-utils ibverbs-providers rdmacm-utils perftest qperf ucx-utils
	bpftrace nvme-cli fio iproute2 jq gojq procps util-linux systemd udev rpcbind
	openmpi-bin libopenmpi-dev libfabric-bin libjemalloc2 python3-pyverbs"
kv_packages="libnuma1 libcurl4"
debug_packages="flex bison bc libelf-dev libssl-dev dwarves cpio"

say()
{
	echo "setup: $*"
}

install_packages()
{
	local missing=() p

	for p in "$@"; do
		[ "$(dpkg-query -W -f '${db:Status-Status}' "$p" 2>/dev/null)" \
			= installed ] || missing+=("$p")
	done
	[ ${#missing[@]} -gt 0 ] || return 0
	if [ "$(id -u)" != 0 ]; then
		echo "setup: these Debian packages are missing, and installing" \
		     "needs root: ${missing[*]}" >&2
		exit 1
	fi
	say "installing ${missing[*]}"
	apt-get -qq update
	DEBIAN_FRONTEND=noninteractive apt-get -qq install -y \
		--no-install-recommends "${missing[@]}" >/dev/null
}

# fetch_image RELEASE DIR: into DIR/root. The package is unpacked, not
# installed: that would rebuild an initramfs and change what boots next.
fetch_image()
{
	say "fetching linux-image-$1"
	chown _apt "$2"
	# The package list may be older than the archive.
	(cd "$2" && apt-get -qq download "linux-image-$1") ||
		(apt-get -qq update && cd "$2" &&
		 apt-get -qq download "linux-image-$1") || {
		echo "setup: Debian no longer has linux-image-$1;" \
		     "upgrade the linux-headers packages" >&2
		exit 1
	}
	dpkg -x "$2"/*.deb "$2/root"
	rm -rf "$2/root/usr"
}

unpack_kernel()
{
	local rel=$1 dir=$cache/kernels/$1 tmp

	[ -e "$dir/lib/modules/$rel/modules.dep.bin" ] && return
	tmp=$(mktemp -d "$cache/unpack.XXXXXX")
	# shellcheck disable=SC2064 # the name of now is the one to remove
	trap "rm -rf '$tmp'" EXIT
	chmod 755 "$tmp"
	if [ -e "/boot/vmlinuz-$rel" ] && [ -d "/lib/modules/$rel/kernel" ]; then
		# Debian's 6.12 headers bring their image along.
		mkdir -p "$tmp/root/boot" "$tmp/root/lib/modules/$rel"
		cp "/boot/vmlinuz-$rel" "$tmp/root/boot/"
		cp -a "/lib/modules/$rel/kernel" "/lib/modules/$rel"/modules.* \
			"$tmp/root/lib/modules/$rel/"
	else
		fetch_image "$rel" "$tmp"
	fi
	depmod -b "$tmp/root" "$rel"
	rm -rf "$dir"
	mkdir -p "$cache/kernels"
	mv "$tmp/root" "$dir"
	rm -rf "$tmp"
	trap - EXIT
}

make_venv()
{
	local ver

	ver=$("$cache/venv/bin/vng" --version 2>/dev/null) || ver=
	[ "$ver" = "virtme-ng $virtme_ng" ] && return
	say "installing virtme-ng $virtme_ng"
	rm -rf "$cache/venv"
	python3 -m venv "$cache/venv"
	"$cache/venv/bin/pip" -q --disable-pip-version-check install \
		"virtme-ng==$virtme_ng"
}

# Without what it names as needed, which is for other parts of it than the engine.
make_mooncake_venv()
{
	local venv=$cache/mooncake

	[ "$(cat "$venv/.complete" 2>/dev/null)" != "$mooncake_sha256" ] || return 0
	say "installing Mooncake's transfer engine $mooncake"
	rm -rf "$venv"
	python3 -m venv "$venv"
	"$venv/bin/pip" -q --disable-pip-version-check install --no-deps --only-binary :all: \
		--require-hashes -r /dev/stdin <<-END
		mooncake-transfer-engine-non-cuda==$mooncake --hash=sha256:$mooncake_sha256
		END
	echo "$mooncake_sha256" >"$venv/.complete"
}

# Debian 12's own QEMU emulates several processors with a race: a guest that patches its
# code may die of a breakpoint that it has just removed ("int3: 0000"). Fixed in 8.1. The
# backport has the same libraries; it is unpacked, and no source is added to the system.
fetch_qemu()
{
	local tmp deb

	[ ! -x "$cache/qemu/usr/bin/qemu-system-x86_64" ] || return 0
	say "fetching QEMU from bookworm-backports"
	tmp=$(mktemp -d "$cache/unpack.XXXXXX")
	# shellcheck disable=SC2064 # the name of now is the one to remove
	trap "rm -rf '$tmp'" EXIT
	chmod 755 "$tmp"
	mkdir -p "$tmp/lists/partial" "$tmp/root"
	chown -R _apt "$tmp"
	echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg]" \
		"http://deb.debian.org/debian bookworm-backports main" >"$tmp/list"
	(
		cd "$tmp"
		set -- -qq -o "Dir::Etc::SourceList=$tmp/list" \
			-o Dir::Etc::SourceParts=/dev/null \
			-o "Dir::State::Lists=$tmp/lists"
		apt-get "$@" update && apt-get "$@" download \
			qemu-system-x86 qemu-system-data seabios
	) || {
		say "there are no backports here: a virtual machine may now and then" \
			"die of the emulator's \"int3\" race"
		return 0
	}
	for deb in "$tmp"/*.deb; do
		dpkg -x "$deb" "$tmp/root"
	done
	rm -rf "$cache/qemu"
	mv "$tmp/root" "$cache/qemu"
	rm -rf "$tmp"
	trap - EXIT
}

# The parts of the kernel's sources that are used as they are: the kselftest
# machinery, the netlink code generator and checkpatch.
unpack_ksrc()
{
	local tarball=/usr/src/linux-source-6.12.tar.xz

	[ -e "$cache/ksrc/.complete" ] &&
		[ ! "$tarball" -nt "$cache/ksrc/.complete" ] && return
	say "unpacking the kernel's test and style scripts"
	rm -rf "$cache/ksrc"
	mkdir -p "$cache/ksrc"
	tar -C "$cache/ksrc" -xf "$tarball" --strip-components=1 --wildcards \
		'*/scripts/checkpatch.pl' '*/scripts/spelling.txt' \
		'*/scripts/const_structs.checkpatch' '*/scripts/kernel-doc' \
		'*/.clang-format' '*/Documentation/netlink' \
		'*/Documentation/dev-tools/checkpatch.rst' '*/tools/net/ynl' \
		'*/tools/testing/selftests/lib.mk' \
		'*/tools/testing/selftests/kselftest' \
		'*/tools/testing/selftests/kselftest.h' \
		'*/tools/testing/selftests/kselftest_harness.h'
	touch "$cache/ksrc/.complete"
}

# build_kernel DIR CONFIG KERNEL_VAR [MODULE_VAR]: CONFIG names files in selftests/; the
# variables are given to make for the kernel itself, and for its modules
build_kernel()
{
	local src=$cache/src/$1 config=$2 flags=$3 module_flags=${4:-} tmp rel mod dir

	tmp=$(mktemp)
	# Other variables make another kernel, as another configuration does.
	# shellcheck disable=SC2086 # a list of words
	(cd "$top/selftests" && cat $config && echo "# $flags $module_flags") >"$tmp"
	if ! cmp -s "$tmp" "$src/.riso-config"; then
		say "building a kernel with checks, about 9 minutes on 2 cores"
		mkdir -p "$src"
		[ -e "$src/Makefile" ] ||
			tar -C "$src" --strip-components=1 \
				-xf /usr/src/linux-source-6.12.tar.xz
		make -s -C "$src" tinyconfig
		cat "$tmp" >>"$src/.config"
		make -s -C "$src" olddefconfig
		# shellcheck disable=SC2086 # nothing, or one word
		{
			make -s -C "$src" -j"$(nproc)" $flags bzImage &&
			make -s -C "$src" -j"$(nproc)" $module_flags modules
		} >"$src.log" 2>&1 || {
			tail -n 20 "$src.log" >&2
			exit 1
		}
		cp "$tmp" "$src/.riso-config"
	fi
	rm "$tmp"
	rel=$(cat "$src/include/config/kernel.release")
	dir=$cache/kernels/$rel
	mod=$dir/lib/modules/$rel/modules.dep.bin
	if [ ! -e "$mod" ] || [ "$src/.riso-config" -nt "$mod" ]; then
		make -s -C "$src" INSTALL_MOD_PATH="$dir" modules_install
		mkdir -p "$dir/boot"
		cp "$src/arch/x86/boot/bzImage" "$dir/boot/vmlinuz-$rel"
		touch "$mod"
	fi
}

case $want in
build|style|vm|debug|kcsan|kv) ;;
*)	echo "usage: setup-debian.sh [build|style|vm|debug|kcsan|kv]" >&2
	exit 2
	;;
esac

# shellcheck disable=SC2046,SC2086 # lists of words
install_packages $build_packages \
	$([ "$want" = build ] || echo $style_packages) \
	$(case $want in vm|debug|kcsan|kv) echo $vm_packages ;; esac) \
	$([ "$want" != kv ] || echo $kv_packages) \
	$(case $want in debug|kcsan) echo $debug_packages ;; esac)
[ "$want" = build ] && exit

mkdir -p "$cache"
unpack_ksrc
[ "$want" = style ] && exit

for s in $series; do
	unpack_kernel "$("$top/tools/kernel.sh" rel "$s")"
done
make_venv
fetch_qemu
[ "$want" != kv ] || make_mooncake_venv
# Code that is built without these flags is not checked. KASAN checks modules: ours, the RDMA
# core and its users. The kernel itself is built without checks, which halves the time that
# it takes when it is emulated; its allocator still marks memory that is free. KCSAN checks
# our module alone.
case $want in
debug)	build_kernel linux-source-6.12 debug-kernel.config CFLAGS_KASAN= ;;
kcsan)	build_kernel linux-source-6.12-kcsan \
		"debug-kernel.config kcsan-kernel.config" CFLAGS_KCSAN= CFLAGS_KCSAN= ;;
esac
