#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# What ulp_live.sh does, over nullrdma: work requests complete on another CPU than the one that
# posts them. The devices stay.
#
# One kernel is enough: ulp_live.sh is run on each.

export RISO_ULP_KIND=null
. "$(dirname "$0")/ulp_live.sh"
