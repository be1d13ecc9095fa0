#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# check-names.sh [KMOD SHIM]
#
# Has each name one meaning: is no name defined both in the kernel module (kmod/*.[ch]) and
# in the verbs shim (userspace/shim/*.[ch])? Who searches the tree for a name shall find one
# thing. kmod/core does not count, as both programs compile it. Static names count. KMOD and
# SHIM are other directories to compare.
#
# The check reads text, in kernel style, and knows no C. Comments and literals are taken out
# first. Then these are definitions:
#
#   function    the first NAME( of a line that begins at column 0 and has no "=", if the next
#               line that begins at column 0 is "{", or if the same line goes on to a "{";
#               __attribute__((...)) and annotations such as __printf(1, 2) are skipped
#   tag         struct, union or enum, NAME and "{" on one line
#   enumerator  the first word of each item between "enum ... {" and "}"
#   macro       the name behind #define, that of an include guard, too
#
# Prototypes, members, variables and types without a "{" are no definitions.
set -u

if [ $# = 0 ]; then
	cd "$(dirname "$0")/.." || exit
	set -- kmod userspace/shim
fi

# defined DIRECTORY: a line "NAME KIND FILE:LINE" for each name
defined()
{
	awk '
	function tell(name, kind)
	{
		print name, kind, FILENAME ":" FNR
	}

	# The line without comments, also those over several lines, and literals
	function strip(line,	start, rest)
	{
		gsub(/"([^"\\]|\\.)*"/, "\"\"", line)
		gsub(/\047([^\047\\]|\\.)+\047/, "0", line)
		if (comment) {
			start = index(line, "*/")
			if (!start)
				return ""
			comment = 0
			line = substr(line, start + 2)
		}
		while ((start = index(line, "/*"))) {
			rest = substr(line, start + 2)
			line = substr(line, 1, start - 1)
			start = index(rest, "*/")
			if (!start) {
				comment = 1
				break
			}
			line = line " " substr(rest, start + 2)
		}
		sub(/\/\/.*/, "", line)
		return line
	}

	function enumerators(text,	items, num, i)
	{
		while (gsub(/\([^()]*\)/, "", text))
			;
		num = split(text, items, ",")
		for (i = 1; i <= num; i++)
			if (match(items[i], /[A-Za-z_][A-Za-z0-9_]*/))
				tell(substr(items[i], RSTART, RLENGTH), "enumerator")
	}

	# The name of the function that a line at column 0 may define, or ""
	function candidate(line)
	{
		gsub(/__attribute__ *\(\([^()]*(\([^()]*\))?[^()]*\)\)/, "", line)
		gsub(/__[a-z]+\([^()]*\)/, "", line)
		if (line !~ /^[A-Za-z_]/ || line ~ /=/ ||
		    !match(line, /[A-Za-z_][A-Za-z0-9_]*\(/))
			return ""
		return substr(line, RSTART, RLENGTH - 1)
	}

	FNR == 1 {
		comment = in_enum = 0
		name = ""
	}

	{
		line = strip($0)
	}

	in_enum {
		end = index(line, "}")
		enumerators(end ? substr(line, 1, end - 1) : line)
		in_enum = !end
		next
	}

	match(line, /^#[ \t]*define[ \t]+[A-Za-z_][A-Za-z0-9_]*/) {
		word = substr(line, RSTART, RLENGTH)
		sub(/.*[ \t]/, "", word)
		tell(word, "macro")
		next
	}

	match(line, /(struct|union|enum)[ \t]+[A-Za-z_][A-Za-z0-9_]*[ \t]*\{/) {
		word = substr(line, RSTART, RLENGTH)
		sub(/[ \t]*\{$/, "", word)
		sub(/.*[ \t]/, "", word)
		tell(word, "tag")
	}

	match(line, /(^|[^A-Za-z0-9_])enum([ \t]+[A-Za-z_][A-Za-z0-9_]*)?[ \t]*\{/) {
		rest = substr(line, RSTART + RLENGTH)
		end = index(rest, "}")
		enumerators(end ? substr(rest, 1, end - 1) : rest)
		in_enum = !end
		next
	}

	/^\{/ && name != "" {
		tell(name, "function")
	}

	line ~ /^[^ \t]/ {
		name = candidate(line)
		if (name != "" && line ~ /\)[^;]*\{/) {
			tell(name, "function")
			name = ""
		}
	}' "$1"/*.[ch]
}

# The order of join
export LC_ALL=C
tmp=$(mktemp -d) || exit
trap 'rm -rf "$tmp"' EXIT
for dir in "$1" "$2"; do
	defined "$dir" | sort >"$tmp/names"
	if [ ! -s "$tmp/names" ]; then
		echo "names: nothing is defined in $dir" >&2
		exit 1
	fi
	mv "$tmp/names" "$tmp/${n:=1}"
	n=2
done
join "$tmp/1" "$tmp/2" | awk '{
	printf "names: %s: %s in %s, %s in %s\n", $1, $2, $3, $4, $5
}
END {
	exit NR > 0
}' >&2
