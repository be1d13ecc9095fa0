#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Boots a kernel on this machine's own root file system (read-only, what the
# guest changes is forgotten) and runs one command in it as root:
#
#   boot.sh [-k KVER] [-c CPUS] [-i] [-m MEMORY] [-o DIR] [-s SECONDS] [COMMAND [ARG]...]
#
#   -k	a release, the start of one, "debug" or "kcsan" (default 6.12)
#   -c	virtual CPUs (default 4)
#   -i	count instructions: one CPU whose clock goes on by 1 ns for each
#   -m	memory (default 2G, with the debug kernel 4G)
#   -o	a directory that the guest may write to, as $RISO_OUT
#   -s	give up after so many seconds (default 1200)
#
# Without a COMMAND, a shell. The exit status is the command's, 124 when time
# ran out, or 125 when the machine never came to an end: what it said then is
# kept as DIR/console, or told. (There is none with -i, it would cost time.)
set -eu

top=$(cd "$(dirname "$0")/../.." && pwd)
cache=${RISO_CACHE:-/var/cache/rdma_isolate}
kver=6.12
cpus=4
icount=
memory=
out=
limit=1200

while getopts k:c:im:o:s: opt; do
	case $opt in
	k)	kver=$OPTARG ;;
	c)	cpus=$OPTARG ;;
	i)	icount=1; cpus=1 ;;
	m)	memory=$OPTARG ;;
	o)	out=$OPTARG ;;
	s)	limit=$OPTARG ;;
	*)	exit 2 ;;
	esac
done
shift $((OPTIND - 1))

rel=$("$top/tools/kernel.sh" rel "$kver")
image=$("$top/tools/kernel.sh" image "$kver")
# The guest sees a tmpfs where the host has /var/cache and /var/tmp, so the
# directories it needs are mounted once more by their names. Its overlay of
# /tmp does not suit a directory to write to elsewhere.
dir=$(mktemp -d /tmp/riso-vm.XXXXXX)
trap 'rm -rf "$dir"' EXIT

opts=(-r "$image" --cpus "$cpus" --user root --rwdir "$dir"
      --rodir "$top" --rodir "$cache")
# KASAN takes an eighth of the memory, and the quarantine more.
if [ "$kver" = debug ]; then
	opts+=(--memory "${memory:-4G}")
else
	opts+=(--memory "${memory:-2G}")
fi
# One CPU needs no newer QEMU than Debian's, whose figures are those that are known: later
# ones count other instructions, a small message on a busy CPU takes a quarter longer.
qemu=$cache/qemu/usr
if [ -z "$icount" ] && [ -x "$qemu/bin/qemu-system-x86_64" ]; then
	# With its own firmware: that of Debian 12 waits half a minute for a disk.
	opts+=(--qemu "$qemu/bin/qemu-system-x86_64"
	       --qemu-opts="-L $qemu/share/seabios -L $qemu/share/qemu")
fi
if [ -n "$icount" ]; then
	opts+=(--disable-kvm --qemu-opts='-icount shift=0,align=off,sleep=off')
elif [ -z "${RISO_KVM:-}" ]; then
	# A /dev/kvm inside a virtual machine may be there and hang. The emulator moves single
	# bytes where the processor calls that fast (ERMS, FSRM), which takes three times as
	# long, and it finds each address in five steps with LA57. It leaks nothing, so what
	# mitigates leaks only takes time. It looks at each of 64 queues of each serial device
	# whenever it wakes up.
	opts+=(--disable-kvm --append mitigations=off
	       --qemu-opts='-cpu max,-erms,-fsrm,-la57'
	       --qemu-opts='-global virtio-serial-pci.max_ports=2')
fi

{
	echo '#!/bin/bash'
	echo 'exec 2>&1'
	echo ": >$dir/started"
	echo "export RISO_OUT=$dir/out"
	echo "export RISO_BUILD=$top/build/$rel"
	# shellcheck disable=SC2016 # expanded in the guest
	echo 'export RISO_MODULE=$RISO_BUILD/rdma_isolate.ko'
	echo "export PATH=$top/tools/rdma-isolate:$top/tools/rperf:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
	for v in ${!RISO_*} KVER; do
		case $v in
		RISO_OUT|RISO_BUILD|RISO_MODULE) ;;
		*) [ -z "${!v:-}" ] || printf 'export %s=%q\n' "$v" "${!v}" ;;
		esac
	done
	echo 'ip link set lo up'
	echo 'cd "$RISO_BUILD/selftests/rdma_isolate" 2>/dev/null || cd /'
	printf '%q ' "${@:-bash}"
	echo
	echo "echo \$? >$dir/status"
} >"$dir/run"
chmod +x "$dir/run"
mkdir "$dir/out"

export PATH=$cache/venv/bin:$PATH
if [ $# -eq 0 ]; then
	vng "${opts[@]}" --exec "$dir/run"
	exit
fi

# QEMU opens what it finds as its standard output once more: a file would be
# truncated. timeout makes a process group, which is to end with this script.
start()
{
	timeout -k 10 "$limit" vng "${opts[@]}" --exec "$dir/run" </dev/null \
		> >(cat) 2> >(cat >>"$dir/console") &
	vm=$!
}

# Has it come as far as the command? It has seven and a half minutes.
has_started()
{
	local n

	for ((n = 0; n < 450; n++)); do
		[ ! -e "$dir/started" ] || return 0
		kill -0 "$vm" 2>/dev/null || return 1
		sleep 1
	done
	return 1
}

[ -n "$icount" ] || opts+=(--verbose)
trap 'kill -- "-$vm" 2>/dev/null; rm -rf "$dir"; exit 125' INT TERM HUP
# The emulator may die, or lose a timer, while the kernel boots. Nothing of ours has run
# then, so it is no result.
for try in 1 2 3; do
	start
	! has_started || break
	echo "boot.sh: the machine did not start, try $try of 3" >&2
	kill -- "-$vm" 2>/dev/null || true
	[ "$try" -eq 3 ] || wait "$vm" || true
done
status=0
wait "$vm" || status=$?
[ -z "$out" ] || cp -r "$dir/out/." "$out"
if [ ! -s "$dir/status" ]; then
	echo "boot.sh: vng ended with status $status" >>"$dir/console"
	if [ -n "$out" ]; then
		cp "$dir/console" "$out"
	else
		tail -n 50 "$dir/console" >&2
	fi
fi
[ "$status" -ne 124 ] || echo "boot.sh: gave up after $limit s" >&2
if [ -s "$dir/status" ]; then
	status=$(cat "$dir/status")
elif [ "$status" -ne 124 ]; then
	status=125
fi
exit "$status"
