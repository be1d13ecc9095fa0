#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# /dev/rdma_isolate: what a process may do with it, and what it cannot do to others.
#
# One kernel is enough: nothing of the file depends on the version of the kernel.

. "$(dirname "$0")/lib.sh"

require rdma rperf rdma-isolate
need_module rdma_rxe
events=$(mktemp)
cgroups=$(mktemp -d)
# Where each network namespace has its own devices; it can be changed while there is one.
rdma system set netns exclusive || skip_all "no exclusive mode of network namespaces"
trap 'kill $(jobs -p) 2>/dev/null; teardown_all; rm -f "$events"
	rdma system set netns shared' EXIT
mount -t cgroup2 none "$cgroups" || skip_all "no control groups"

# An event that is provoked until it is seen
is_listening()
{
	rdma-isolate dev set dev rxe0 mode observe
	rdma-isolate dev set dev rxe0 mode enable
	[ -s "$events" ]
}

load_module && setup_rxe 400mbit || skip_all "no module or no rxe devices"
rdma-isolate rule add comm rperf class latency >/dev/null
# Grants that take long beside the time to wake up, on a busy host, too
rdma-isolate dev set dev rxe0 mode enable max-rate 100mbit chunk-bytes 64k
rperf --dev rxe0 --peer rxe1 --samples 0 --seconds 1000 --interval 10000 \
	>/dev/null 2>&1 &
busywait 60 has_latency_flow rxe0 || skip_all "no latency flow"
rdma-isolate -j monitor show dev rxe0 >"$events" &
busywait 60 is_listening || skip_all "no events"
"$(dirname "$0")/user_pages" rxe0 12500000 "$events" "$cgroups"
