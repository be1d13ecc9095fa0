#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# check-length.sh [DIRECTORY]
#
# Can each file be read in one go? No file of code has more than 700 lines. Tables may: the
# specification of the netlink family, and the JSON schema.
set -u

cd "${1:-$(dirname "$0")/..}" || exit
find . -path ./build -prune -o -path ./.git -prune -o \
	-type f -regex '.*\.\(c\|h\|sh\|inc\|py\|bt\|mk\)' -exec wc -l {} + |
awk '$1 > 700 && $2 != "total" {
	printf "length: %s: %d lines, 700 at most\n", $2, $1
	long = 1
}
END {
	exit long
}' >&2
