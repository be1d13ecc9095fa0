#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""
The two things that the kernel's YNL generator does not do for this project.

  kernel SPEC        the spec as the generator can use it for struct genl_ops,
                     which has one policy for do and dump: the dump's request,
                     which must be a part of the do's, is left out
  names-h, names-c   tables of attributes and enumerators for the rdma-isolate
                     tool, so that its words are those of the spec
"""

import sys

import yaml

BANNER = '''{spdx}
/* Do not edit directly, auto-generated from: */
/*	Documentation/netlink/specs/rdma_isolate.yaml */
/* by tools/regen.sh */
'''

NAMES_H = '''
#ifndef RDMA_ISOLATE_NAMES_GEN_H
#define RDMA_ISOLATE_NAMES_GEN_H

enum name_type {
	NAME_PAD,
	NAME_STRING,
	NAME_U32,
	NAME_U64,
	NAME_NEST,
};

/* an enumerator: its word and what it means */
struct name_value {
	const char *name;
	const char *doc;
};

/* an enum, its values count from 0 */
struct name_enum {
	const struct name_value *values;
	unsigned int n;
};

/* an attribute; its number is its place in the set */
struct name_attr {
	const char *name;
	enum name_type type;
	const struct name_enum *words;
};

/* the attributes of an object */
struct name_set {
	const struct name_attr *attrs;
	unsigned int max;
};

'''


def c_id(name):
    return name.replace('-', '_')


def c_string(text):
    return '"' + ' '.join(text.split()).replace('"', '\\"') + '"'


def kernel_spec(spec):
    for op in spec['operations']['list']:
        request = op.get('dump', {}).pop('request', None)
        if request and not set(request['attributes']) <= \
                set(op['do']['request']['attributes']):
            sys.exit(f"{op['name']}: the dump takes more than the do")
    return spec


def names_h(spec):
    out = BANNER.format(spdx='/* SPDX-License-Identifier: GPL-2.0 */') + NAMES_H
    for const in spec['definitions']:
        if const['type'] == 'enum':
            out += f"extern const struct name_enum name_{c_id(const['name'])};\n"
    for attrs in spec['attribute-sets']:
        out += f"extern const struct name_set name_set_{c_id(attrs['name'])};\n"
    return out + '\n#endif /* RDMA_ISOLATE_NAMES_GEN_H */\n'


def names_c(spec):
    out = BANNER.format(spdx='// SPDX-License-Identifier: GPL-2.0')
    out += '\n#include "names_gen.h"\n'
    for const in spec['definitions']:
        if const['type'] != 'enum':
            continue
        name = c_id(const['name'])
        out += f'\nstatic const struct name_value {name}_values[] = {{\n'
        for entry in const['entries']:
            out += f"\t{{ {c_string(entry['name'])}, {c_string(entry['doc'])} }},\n"
        out += '};\n\n'
        out += f'const struct name_enum name_{name} = {{\n'
        out += f"\t{name}_values, {len(const['entries'])},\n}};\n"
    for attrs in spec['attribute-sets']:
        name = c_id(attrs['name'])
        out += f'\nstatic const struct name_attr {name}_attrs[] = {{\n'
        for number, attr in enumerate(attrs['attributes'], 1):
            words = f"&name_{c_id(attr['enum'])}" if 'enum' in attr else '0'
            out += f"\t[{number}] = {{ {c_string(c_id(attr['name']))}, " \
                   f"NAME_{attr['type'].upper()}, {words} }},\n"
        out += '};\n\n'
        out += f'const struct name_set name_set_{name} = {{\n'
        out += f"\t{name}_attrs, {len(attrs['attributes'])},\n}};\n"
    return out


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    with open(sys.argv[2], encoding='utf-8') as file:
        spdx = file.readline()
        spec = yaml.safe_load(file)
    if sys.argv[1] == 'kernel':
        print(spdx, end='')
        yaml.safe_dump(kernel_spec(spec), sys.stdout, sort_keys=False)
    elif sys.argv[1] == 'names-h':
        print(names_h(spec), end='')
    elif sys.argv[1] == 'names-c':
        print(names_c(spec), end='')
    else:
        sys.exit(__doc__)


if __name__ == '__main__':
    main()
