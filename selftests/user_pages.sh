#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# /dev/rdma_isolate: what a process may do with it, and what it cannot do to others.

. "$(dirname "$0")/lib.sh"

require rdma rperf rdma-isolate
need_module rdma_rxe
trap 'kill $(jobs -p) 2>/dev/null; teardown_all' EXIT

has_latency_flow()
{
	rdma-isolate dev show dev rxe0 | grep -q 'latency-flows [1-9]'
}

load_module && setup_rxe 400mbit || skip_all "no module or no rxe devices"
rdma-isolate rule add comm rperf class latency >/dev/null
# Large grants, which take long beside the time to wake up.
rdma-isolate dev set dev rxe0 mode enable max-rate 400mbit chunk 64k
rperf --dev rxe0 --peer rxe1 --samples 0 --seconds 1000 --interval 10000 \
	>/dev/null 2>&1 &
busywait 60 has_latency_flow || skip_all "no latency flow"
"$(dirname "$0")/user_pages" rxe0 50000000
