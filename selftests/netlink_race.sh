#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# 10,000 valid and invalid commands of writers that race, by netlink and sysfs: a
# device always has what one of them has given, and wrong ones change nothing.
#
# One kernel is enough: what races is the module's own.

. "$(dirname "$0")/lib.sh"

require rdma python3
need_module rdma_rxe
trap teardown_all EXIT

load_module || skip_all "the module does not load"
setup_rxe || skip_all "no rxe devices"
"$(dirname "$0")/netlink_race.py" rxe0 "${RISO_COMMANDS:-10000}"
