#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# check-page.sh PAGE: does the manual page name every word that the tool takes
set -eu

dir=$(dirname "$0")
page=$(sed 's/\\-/-/g' "$1")
status=0

groff -man -ww -z "$1"

lacks()
{
	echo "$1 lacks: $2" >&2
	status=1
}

for object in $("$dir/rdma-isolate" complete); do
	case $object in
	help)
		continue ;;
	dump|sync|apply|run)
		grep -q "fBrdma-isolate $object" <<<"$page" ||
			lacks "$1" "$object"
		continue ;;
	esac
	for verb in $("$dir/rdma-isolate" complete "$object"); do
		[ "$verb" != help ] || continue
		synopsis="fBrdma-isolate $object $verb"
		grep -q "$synopsis" <<<"$page" || lacks "$1" "$object $verb"
		for key in $("$dir/rdma-isolate" complete "$object" "$verb"); do
			grep -qE "fB$key\\\\fR|$synopsis $key\\\\fR" <<<"$page" ||
				lacks "$1" "$object $verb $key"
		done
	done
done
exit $status
