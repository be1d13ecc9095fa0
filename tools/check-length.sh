#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# check-length.sh [DIRECTORY]
#
# Can each file be read in one go? No file of code has more than 700 lines. Tables may: the
# specification of the netlink family, and the JSON schema.
set -u

cd "${1:-$(dirname "$0")/..}" || exit
long=$(find . -path ./build -prune -o -path ./.git -prune -o \
	-type f -regex '.*\.\(c\|h\|sh\|inc\|py\|bt\|mk\)' \
	-exec awk 'END { if (FNR > 700) print FILENAME ": " FNR " lines" }' {} \;)
[ -n "$long" ] || exit 0
sed 's/^/length: /; s/$/, 700 at most/' <<<"$long" >&2
exit 1
