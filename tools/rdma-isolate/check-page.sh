#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# check-page.sh PAGE GUIDE: does the manual page name every word that the tool takes, and
# do both pages explain every reason that it shows
set -eu

dir=$(dirname "$0")
file=$1
guide=$2
page=$(sed 's/\\-/-/g' "$file")
status=0

groff -man -ww -z "$file"

lacks()
{
	echo "$file lacks: $1" >&2
	status=1
}

# keys WORDS: those that may follow an object, and its verb if it has verbs
keys()
{
	local synopsis="fBrdma-isolate $1" key

	grep -q "$synopsis" <<<"$page" || lacks "$1"
	# shellcheck disable=SC2086 # words
	for key in $("$dir/rdma-isolate" complete $1); do
		[ "$key" != help ] || continue
		grep -qE "fB$key\\\\fR|$synopsis $key\\\\fR" <<<"$page" ||
			lacks "$1 $key"
	done
}

for object in $("$dir/rdma-isolate" complete); do
	case $object in
	help)
		continue ;;
	dump|sync|apply|run|unload)
		grep -q "fBrdma-isolate $object" <<<"$page" ||
			lacks "$object"
		continue ;;
	top|calibrate)
		keys "$object"
		continue ;;
	esac
	for verb in $("$dir/rdma-isolate" complete "$object"); do
		[ "$verb" != help ] || continue
		keys "$object $verb"
	done
done

# Each reason, but for "none"
for reason in $(sed -n '/ reason_values\[\]/,/^}/s/.*{ "\([^"]*\)".*/\1/p' \
		"$dir/names_gen.c"); do
	[ "$reason" != none ] || continue
	grep -qx "\.B $reason" <<<"$page" || lacks "reason $reason"
	grep -q "^\`\`$reason\`\` -- " "$guide" || file=$guide lacks "reason $reason"
done
exit $status
