#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# check.sh LIBRARY: can it be loaded into any program, in an old image as in a new one? It may ask
# for what glibc 2.17 had, and for no other library; and each symbol that it asks for has a version.
set -eu

most=2.17
bad=0

fail()
{
	echo "shim: $*" >&2
	bad=1
}

while read -r version symbol; do
	newest=$(printf '%s\n' "$most" "$version" | sort -V | tail -n 1)
	[ "$newest" = "$most" ] || fail "$symbol is of glibc $version"
done < <(objdump -T "$1" | sed -n 's/.*\*UND\*.*(GLIBC_\([0-9.]*\)) \(.*\)/\1 \2/p')
while read -r library; do
	case $library in
	libc.so.6|libpthread.so.0|libdl.so.2|ld-linux*) ;;
	*) fail "it needs $library" ;;
	esac
done < <(readelf -d "$1" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p')
while read -r symbol; do
	fail "nobody has $symbol"
done < <(objdump -T "$1" | awk '$2 != "w" && /\*UND\*/ && !/\(GLIBC_/ { print $NF }')
# The only symbol that has two versions: not all compilers know how to give a function one.
for version in MLX5_1.0 MLX5_1.2; do
	objdump -T "$1" | grep -q " (\?$version)\? *mlx5dv_init_obj$" ||
		fail "it has no mlx5dv_init_obj of $version"
done
[ "$bad" -eq 0 ] && echo "ok shim: it asks for nothing that is newer than glibc $most"
