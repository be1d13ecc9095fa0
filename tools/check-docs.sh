#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Does another page lead to each page of Documentation/, do the links lead anywhere, are the
# pictures of the results what their figures give, and does docutils understand the pages,
# where it is installed.
set -u

cd "$(dirname "$0")/.." || exit
status=0
results=Documentation/results

wrong()
{
	echo "docs: $*" >&2
	status=1
}

# is_named PAGE: by README.md, or by another page, which may leave out the ending
is_named()
{
	local name=${1##*/}

	grep -q "($1)" README.md ||
		find Documentation -name '*.rst' ! -path "$1" -exec \
			grep -Eq "^ *${name%.rst}\$|[/<\`]$name" {} \; -print |
			grep -q .
}

# sections PAGE: their titles as links write them
sections()
{
	grep -B 1 -E '^(=+|-+)$' "$1" | tr '[:upper:]' '[:lower:]' |
		sed 's/[^a-z0-9]\+/-/g; s/^-//; s/-$//'
}

# leads PAGE LINK: to a page that is there, and to a section that it has
leads()
{
	local page=${2%%#*} section=${2#*#}

	page=$(dirname "$1")/$page
	[ -e "$page" ] || return
	[ "$section" = "$2" ] || sections "$page" | grep -qx -- "$section"
}

# Sphinx knows more than docutils does.
understood()
{
	python3 -m docutils --report=3 "$1" /dev/null 2>&1 |
		grep -E '\((ERROR|SEVERE)/' |
		grep -Ev 'Unknown directive type "toctree"|Unknown interpreted text role "doc"'
}

pages=$(find Documentation -name '*.rst' | sort)
for page in $pages; do
	is_named "$page" || wrong "nothing leads to $page"
	for link in $(grep -oP '<\K[^<> :]+\.rst(#[^<> ]+)?(?=>`)' "$page" | sort -u); do
		leads "$page" "$link" || wrong "$page leads to $link, which is not there"
	done
done
for page in *.md; do
	for link in $(grep -oP '\]\(\K[^)#:]+(?=\))' "$page" | sort -u); do
		[ -e "$link" ] || wrong "$page leads to $link, which is not there"
	done
done
for picture in latency kv; do
	tools/plot/latency.py $results/$picture.json | cmp -s - $results/$picture.svg ||
		wrong "$results/$picture.svg is not what $picture.json gives"
done
if python3 -c 'import docutils.__main__' 2>/dev/null; then
	for page in $pages; do
		said=$(understood "$page") && wrong "$said"
	done
else
	echo "docs: pages are not parsed: no docutils"
fi
exit $status
