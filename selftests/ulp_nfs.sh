#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# NFS over RDMA: files are written, read back and compared while messages are cut. Events
# come late on the server's device, so that the reaper is there before the ULP. The server
# is driven by its own files; except for rpcbind it needs no daemon.
#
# One kernel is enough.

. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/ulp.inc"
. "$(dirname "$0")/layer.inc"

EXPORT=/dev/shm/riso-export
MNT=/dev/shm/riso-nfs
NFSD=/proc/fs/nfsd
MB=8
OPTIONS=vers=4.1,proto=rdma,port=20049,addr=10.0.0.2,clientaddr=10.0.0.1,sec=sys
OPTIONS+=,rsize=262144,wsize=262144

# What its daemons would tell the server: who may mount what, for good.
serve()
{
	local forever=2000000000

	rpcbind -f &
	rpcbind=$!
	busywait 20 test -S /run/rpcbind.sock || return
	mkdir -p $EXPORT $MNT && mount -t tmpfs none $EXPORT &&
	chmod 777 $EXPORT || return
	[ -e $NFSD/threads ] || mount -t nfsd none $NFSD || return
	echo 10 >$NFSD/nfsv4gracetime
	echo "nfsd 10.0.0.1 $forever client" >/proc/net/rpc/auth.unix.ip/channel &&
	# from any port, no subtree check, fsid 0, which a client sees first
	echo "client $EXPORT $forever 9218 65534 65534 0" \
		>/proc/net/rpc/nfsd.export/channel &&
	echo "client 1 \\x00000000 $forever $EXPORT" \
		>/proc/net/rpc/nfsd.fh/channel || return
	echo 4 >$NFSD/threads && echo "rdma 20049" >$NFSD/portlist
}

# The client takes the address that the route gives it: not the server's own.
mount_nfs()
{
	ip route replace 10.0.0.2/32 dev veth0 src 10.0.0.1 table 200 &&
	ip rule add pref 30 iif lo to 10.0.0.2 lookup 200 &&
	timeout 120 mount -i -t nfs4 -o "$OPTIONS" 10.0.0.2:/ $MNT
}

# copy COUNT [REAPED]: files there, and read from the server again, with chunks posted and
# at least so many completions reaped
copy()
{
	local chunks reaped i sum

	chunks=$(ulp_counter "${ULP_KIND}1" chunk_posted)
	reaped=$(ulp_counter "${ULP_KIND}1" cqe_reaped)
	dd if=/dev/urandom of=/dev/shm/riso-data bs=1M count=$MB status=none
	sum=$(sha256sum </dev/shm/riso-data)
	for ((i = 0; i < $1; i++)); do
		timeout 300 dd if=/dev/shm/riso-data of=$MNT/file$i bs=1M \
			conv=fsync status=none || return
		echo 3 >/proc/sys/vm/drop_caches
		[ "$(timeout 300 cat $MNT/file$i | sha256sum)" = "$sum" ] || return
		[ "$(sha256sum <$EXPORT/file$i)" = "$sum" ] || return
	done
	chunks=$(($(ulp_counter "${ULP_KIND}1" chunk_posted) - chunks))
	reaped=$(($(ulp_counter "${ULP_KIND}1" cqe_reaped) - reaped))
	ktap_print_msg "$chunks chunks, $reaped completions reaped"
	[ $chunks -gt 100 ] && [ $reaped -ge "${2:-0}" ]
}

end_nfs()
{
	timeout 120 umount $MNT || return
	echo 0 >$NFSD/threads
}

# shellcheck disable=SC2317 # called by the trap
teardown_nfs()
{
	umount -l $MNT 2>/dev/null
	echo 0 2>/dev/null >$NFSD/threads
	ip rule del pref 30 2>/dev/null
	umount $EXPORT 2>/dev/null
	[ -z "${rpcbind:-}" ] || kill "$rpcbind"
	rm -f /dev/shm/riso-data
	modprobe -qr rpcrdma
	teardown_all
}

require rdma-isolate rpcbind sha256sum
ulp_setup
trap teardown_nfs EXIT
need_module nfsd nfsv4 rpcrdma
load_test_module riso_test_layer "dev=${ULP_KIND}1" late=1
ktap_print_header
ktap_set_plan 8
ktap_test_result "both devices enabled" ulp_isolate
ktap_test_result "a server" serve
ktap_test_result "a mount" mount_nfs
ktap_test_result "files there and back, events late" copy 2 20
layer late 0
ktap_test_result "events in time" copy 1
layer late 1
ktap_test_result "events late again" copy 1 5
ktap_test_result "unmounted, and the server stopped" end_nfs
ktap_test_result "both disabled, and the module unloaded" ulp_release
ktap_finished
