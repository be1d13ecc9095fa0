#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Generate what follows from Documentation/netlink/specs/rdma_isolate.yaml:
# the uAPI header, the kernel's policies, the tool's words and the schema of its
# JSON, and the reference.
#
#   KSRC=... tools/regen.sh [--check]
#
# KSRC is an unpacked kernel source of 6.12, for its tools/net/ynl; by default
# the one that "make" unpacks. That needs python3-yaml and python3-jsonschema
# (PYTHON chooses the interpreter).
# --check changes nothing and fails when a file is not as it would be generated.

set -eu -o pipefail

top=$(dirname "$(dirname "$(realpath "$0")")")
spec=Documentation/netlink/specs/rdma_isolate.yaml
ksrc=${KSRC:-${RISO_CACHE:-/var/cache/rdma_isolate}/ksrc}
ynl=$ksrc/tools/net/ynl/ynl-gen-c.py
python=${PYTHON:-/usr/bin/python3}
check=

case "${1-}" in
--check)
	check=1 ;;
'') ;;
*)
	sed -n 's/^#  *\(KSRC=.*\)/usage: \1/p' "$0" >&2
	exit 2 ;;
esac

if [ ! -e "$ynl" ]; then
	echo "regen: no $ynl, set KSRC to an unpacked kernel source" >&2
	exit 4
fi
if ! "$python" -c 'import jsonschema, yaml' 2> /dev/null; then
	echo "regen: $python has no yaml or no jsonschema, install" \
	     "python3-yaml and python3-jsonschema" >&2
	exit 4
fi

# The generator finds the root of a tree by its MAINTAINERS and puts the
# spec's path under it into what it writes; the schema is in the folder above.
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
mkdir -p "$tmp/$(dirname $spec)" "$tmp/out"
touch "$tmp/MAINTAINERS"
cp "$ksrc/Documentation/netlink/genetlink-legacy.yaml" "$tmp/Documentation/netlink/"
"$python" "$top/tools/regen_spec.py" kernel "$top/$spec" > "$tmp/$spec"

status=0

# install FILE: move out/FILE to its place, or compare it
install_file()
{
	local new=$tmp/out/${1##*/}

	if cmp -s "$new" "$top/$1"; then
		return
	elif [ -n "$check" ]; then
		diff -u --label "$1" --label generated "$top/$1" "$new" || :
		echo "regen: $1 is not what the spec gives, run tools/regen.sh" >&2
		status=1
	else
		cp "$new" "$top/$1"
		echo "regen: $1"
	fi
}

# gen FILE MODE KIND LICENCE [SED]: the generator knows one licence only
gen()
{
	local out=$tmp/out/${1##*/}

	"$python" "$ynl" --mode "$2" "--$3" --spec "$tmp/$spec" -o "$out"
	sed -i -e "1s|: (.*BSD-3-Clause)|: $4|" \
	       -e 's|<uapi/\(linux/rdma_isolate.h\)>|"../uapi/\1"|' \
	       -e "${5-}" "$out"
	install_file "$1"
}

# What the generator does not know: the flags of multicast groups, which are therefore
# written by hand, and where per-op policies have the function that a dump begins with.
groups='/^static const struct genl_multicast_group/,/^};/d'
start='s|^\t\t\.dumpit\t|\t\t.start\t\t= rdma_isolate_nl_dump_start,\n&|'

gen uapi/linux/rdma_isolate.h uapi header "GPL-2.0 WITH Linux-syscall-note"
gen kmod/nl_gen.h kernel header GPL-2.0 \
	"s|^extern const struct nla_policy |extern const struct nla_policy\n|"
gen kmod/nl_gen.c kernel source GPL-2.0 "$groups;$start"
for kind in h c; do
	"$python" "$top/tools/regen_spec.py" names-$kind "$top/$spec" \
		> "$tmp/out/names_gen.$kind"
	install_file tools/rdma-isolate/names_gen.$kind
done
"$python" "$top/tools/regen_spec.py" rst "$top/$spec" > "$tmp/out/rdma_isolate.rst"
install_file Documentation/netlink/rdma_isolate.rst
"$python" "$top/tools/regen_spec.py" json "$top/$spec" \
	> "$tmp/out/rdma-isolate.schema.json"
install_file Documentation/json/rdma-isolate.schema.json

exit $status
