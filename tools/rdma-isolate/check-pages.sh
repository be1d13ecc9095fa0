#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# check-pages.sh GUIDE PAGE...: do the manual pages name every word that the tool takes, and
# do they and the guide explain every reason that it shows. The first page names the others,
# and each other page is of objects that the tool has.
set -eu

dir=$(dirname "$0")
guide=$1
shift
pages=$(sed 's/\\-/-/g' "$@")
status=0

groff -man -ww -z "$@"

# lacks FILE WHAT
lacks()
{
	echo "$1 lacks: $2" >&2
	status=1
}

# keys WORDS: those that may follow an object, and its verb if it has verbs
keys()
{
	local synopsis="fBrdma-isolate $1" key

	grep -q "$synopsis" <<<"$pages" || lacks "the manual" "$1"
	# shellcheck disable=SC2086 # words
	for key in $("$dir/rdma-isolate" complete $1); do
		[ "$key" != help ] || continue
		grep -qE "fB$key\\\\fR|$synopsis $key\\\\fR" <<<"$pages" ||
			lacks "the manual" "$1 $key"
	done
}

for object in $("$dir/rdma-isolate" complete); do
	case $object in
	help)
		continue ;;
	dump|sync|apply|unload)
		grep -q "fBrdma-isolate $object" <<<"$pages" ||
			lacks "the manual" "$object"
		continue ;;
	top|calibrate|run)
		keys "$object"
		continue ;;
	esac
	for verb in $("$dir/rdma-isolate" complete "$object"); do
		[ "$verb" != help ] || continue
		keys "$object $verb"
	done
done

for page in "${@:2}"; do
	name=$(basename "$page" .8)
	"$dir/rdma-isolate" complete | grep -qx "${name#rdma-isolate-}" ||
		lacks "the tool" "what $page is about"
	sed 's/\\-/-/g' "$1" | grep -qF "$name (8)" || lacks "$1" "$name"
done

# Each reason, except "none"
for reason in $(sed -n '/ reason_values\[\]/,/^}/s/.*{ "\([^"]*\)".*/\1/p' \
		"$dir/names_gen.c"); do
	[ "$reason" != none ] || continue
	grep -qx "\.B $reason" <<<"$pages" || lacks "the manual" "reason $reason"
	grep -q "^\`\`$reason\`\` -- " "$guide" || lacks "$guide" "reason $reason"
done
exit $status
