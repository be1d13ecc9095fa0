#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# The netlink family itself, below the tool: what is malformed, out of range,
# unknown or not allowed is refused with a text, and events are told.
#
# One kernel is enough: what is refused is the module's own.

. "$(dirname "$0")/lib.sh"

require rdma python3
need_module rdma_rxe
trap teardown_all EXIT

load_module || skip_all "the module does not load"
setup_rxe || skip_all "no rxe devices"
"$(dirname "$0")/netlink_messages.py" rxe0
