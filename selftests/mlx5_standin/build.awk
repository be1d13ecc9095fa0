# SPDX-License-Identifier: GPL-2.0
#
# awk -v newest=1.24 -v want=map|stubs -f build.awk symbols
#
# From the list of what libmlx5 exports, up to the version node MLX5_newest: the version script of
# the stand-in, or weak functions, for what it does not have itself. Those do nothing and say that
# they are not supported: by NULL where their name says that they return an object, else by an
# error.

function is_newer(node, a, b)
{
	split(substr(node, 6), a, ".")
	split(newest, b, ".")
	return a[2] > b[2] + 0
}

BEGIN {
	if (want == "stubs")
		print "#include <errno.h>\n\n#define WEAK __attribute__((weak))\n"
}

/^#/ || is_newer($1) { next }

want == "map" && $1 != node {
	if (node)
		print "}" (before ? " " before : "") ";"
	before = node
	node = $1
	print node " {\n\tglobal:"
}

want == "map" { print "\t\t" $2 ";" }

want == "stubs" && !($2 in seen) {
	seen[$2]
	object = $2 ~ /_(alloc|create|reg)(_|$)|_import$|_list$/ && $2 !~ /qpn_alloc$/
	if (object)
		print "WEAK void *" $2 "(void)\n{\n\terrno = EOPNOTSUPP;\n\treturn 0;\n}\n"
	else
		print "WEAK int " $2 "(void)\n{\n\terrno = EOPNOTSUPP;\n\treturn EOPNOTSUPP;\n}\n"
}

END {
	if (want == "map")
		print "\tlocal:\n\t\t*;\n}" (before ? " " before : "") ";"
}
