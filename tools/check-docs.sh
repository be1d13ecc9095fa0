#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Are all pages of Documentation/ led to by another one, do the links of README.md lead
# anywhere, and does docutils understand the pages, where it is installed.
set -u

cd "$(dirname "$0")/.." || exit
status=0

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
done
for link in $(grep -oP '\]\(\K[^)#:]+(?=\))' README.md | sort -u); do
	[ -e "$link" ] || wrong "README.md leads to $link, which is not there"
done
if python3 -c 'import docutils.__main__' 2>/dev/null; then
	for page in $pages; do
		said=$(understood "$page") && wrong "$said"
	done
else
	echo "docs: pages are not parsed: no docutils"
fi
exit $status
