#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Open MPI with the verbs shim: two ranks, one on each device, exchange 8 MB and compare every
# byte. They use libfabric's verbs provider: the other ways of Debian's Open MPI to verbs do
# not work on rxe, with the shim or without (the openib component knows no RoCE, and UCX
# begins with UD, whose messages do not arrive).
#
#	RISO_CASES	"all", as check-full has it; else it is skipped, as the ranks poll, and
#			take minutes where processors are few
#
# One kernel is enough: what is below the verbs shim is tested by shim_stress.

. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/cli.inc"
. "$(dirname "$0")/shim.inc"

own=$(cd "$(dirname "$0")" && pwd)
ROUNDS=4

# exchange JQ BEFORE BEHIND: BEFORE mpirun and BEHIND it are words; this holds for the flows of
# the two ranks, which stay until it was looked for
exchange()
{
	local pid status holds=0
	# shellcheck disable=SC2206 # words
	local before=($2) behind=($3)

	timeout -k 5 "$SHIM_SECONDS" "${before[@]}" mpirun --oversubscribe \
		--mca mpi_yield_when_idle 1 --mca pml cm --mca mtl ofi \
		--mca mtl_ofi_provider_include 'verbs;ofi_rxm' \
		-np 1 -x FI_VERBS_IFACE=veth0 "${behind[@]}" \
		"$own/mpi_exchange" "$ROUNDS" "$dir/seen" : \
		-np 1 -x FI_VERBS_IFACE=veth1 "${behind[@]}" \
		"$own/mpi_exchange" "$ROUNDS" "$dir/seen" \
		>"$dir/out" 2>&1 &
	pid=$!
	busywait 120 flows_are "$1" >/dev/null || holds=1
	touch "$dir/seen"
	wait "$pid"
	status=$?
	rm "$dir/seen"
	[ "$holds $status" = "0 0" ] && grep -qx "$ROUNDS rounds" "$dir/out" && return
	ktap_print_msg "seen: $holds, status $status: $(tail -n 3 "$dir/out")"
	return 1
}

# Both ranks are connected over verbs, and all flows of theirs are so.
flows_are()
{
	shows "map(select(.comm == \"mpi_exchange\" and .qp_type == \"RC\")) |
		(map(.dev) | unique | length) == 2 and
		all(.qp_state == \"RTS\" and $1)" flow show
}

dir=$(mktemp -d)
trap 'kill $(jobs -p) 2>/dev/null; teardown_all; rm -rf "$dir"' EXIT
[ "${RISO_CASES:-}" = all ] || skip_all "only with RISO_CASES=all"
shim_setup mpirun
# The ranks poll, and take the time of the processor from each other and from rxe.
SHIM_SECONDS=$((2 * SHIM_SECONDS))
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
export OMPI_MCA_plm_rsh_agent=false
# A completion queue for 256 peers is larger than rxe has any.
export FI_UNIVERSE_SIZE=2
ktap_print_header
ktap_set_plan 3
check "without the shim" exchange '(.managed | not)' "" ""
check "mpirun with the shim" waited exchange .managed "rdma-isolate run --" ""
check "each rank with the shim" waited exchange .managed "" "rdma-isolate run --"
ktap_finished
