#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# check-page.sh PAGE: does the manual page name every word that the tool takes
set -eu

dir=$(dirname "$0")
file=$1
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
exit $status
