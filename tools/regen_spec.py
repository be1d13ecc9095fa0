#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""
The things that the kernel's YNL generators do not do for this project.

  kernel SPEC        the spec as the generator can use it for struct genl_ops,
                     which has one policy for do and dump: the dump's request,
                     which must be a part of the do's, is left out
  names-h, names-c   tables of attributes and enumerators for the rdma-isolate
                     tool, so that its words are those of the spec
  rst SPEC           the reference of the family; the kernel's leaves out
                     numbers and limits, and links as Sphinx alone does
  json SPEC          the JSON Schema of what the rdma-isolate tool prints
"""

import json
import re
import sys
import textwrap

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
    out += f'/* version of the JSON output */\n#define NAME_JSON "{JSON_VERSION}"\n\n'
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


def numbered(entries, first):
    """Each with its number: the one after that before it, or its own"""
    number = first - 1
    for entry in entries:
        number = entry.get('value', number + 1)
        yield number, entry


def rst_head(title, line, label=None):
    target = f'.. _{label}:\n\n' if label else ''
    return f'\n{target}{title}\n{line * len(title)}\n\n'


def rst_entry(term, *lines):
    """An entry of a list of definitions"""
    text = '\n'.join(line.strip() for line in lines if line)
    return f"{term}\n{textwrap.indent(text, '  ')}\n\n"


def rst_link(kind, name):
    return f'`{name} <{kind}-{name}_>`__'


def rst_names(part):
    names = (part or {}).get('attributes', [])
    return ', '.join(f'``{name}``' for name in names) or 'nothing'


def rst_text(text, consts):
    """A paragraph, with the values of the constants in it"""
    text = re.sub(r'[\w-]+', lambda word: f'{word[0]} ({consts[word[0]]})'
                  if word[0] in consts else word[0], text)
    return textwrap.fill(' '.join(text.split()), 78)


def rst_limit(attr, consts):
    """What the policy says of an attribute"""
    checks = {key: consts.get(val, val)
              for key, val in attr.get('checks', {}).items()}
    if 'enum' in attr:
        return f"One of {rst_link('enum', attr['enum'])}."
    if 'nested-attributes' in attr:
        return f"Holds {rst_link('set', attr['nested-attributes'])}."
    if 'max-len' in checks:
        return f"Policy: at most {checks['max-len']} bytes and a NUL."
    if 'max' in checks:
        return f"Policy: {checks.get('min', 0)} to {checks['max']}."
    if 'min' in checks:
        return f"Policy: {checks['min']} or more."
    return ''


def rst_set(family, attrs, consts):
    out = rst_head(attrs['name'], '-', 'set-' + attrs['name'])
    out += f"{attrs['doc'].strip()}\n\nAttributes ``{family}_A_" \
           f"{c_id(attrs['name']).upper()}_*``:\n\n"
    for number, attr in numbered(attrs['attributes'], 1):
        kind = attr['type']
        if attr.get('multi-attr'):
            kind += ', any number of them'
        out += rst_entry(f"``{attr['name']}`` : {number}, {kind}",
                         rst_text(attr.get('doc', 'Aligns what follows.'),
                                  consts),
                         rst_limit(attr, consts))
    return out


def rst_op(family, number, op):
    out = rst_head(op['name'], '-', 'op-' + op['name'])
    out += f":Number: {number}, ``{family}_CMD_{c_id(op['name']).upper()}``\n"
    if 'notify' in op:
        out += f":Event: of group ``{op['mcgrp']}``, with what " \
               f"{rst_link('op', op['notify'])} answers\n"
    else:
        out += f":Attributes: {rst_link('set', op['attribute-set'])}\n"
    reply = None
    for how in 'do', 'dump':
        if how not in op:
            continue
        same = reply and reply == op[how].get('reply')
        reply = op[how].get('reply')
        out += f":{how}: takes {rst_names(op[how].get('request'))}; answers " \
               f"{'the same' if same else rst_names(reply)}\n"
    return out + '\n' + op['doc'].strip() + '\n'


def rst(spec, spdx):
    family = spec['name'].upper()
    consts = {const['name']: const['value'] for const in spec['definitions']
              if const['type'] == 'const'}
    title = f"Netlink family {spec['name']}"
    out = f"{spdx.replace('#', '..', 1)}" \
          '.. Do not edit directly, auto-generated from\n' \
          '   Documentation/netlink/specs/rdma_isolate.yaml\n' \
          '   by tools/regen.sh\n\n' \
          f"{'=' * len(title)}\n{title}\n{'=' * len(title)}\n\n" \
          f"{spec['doc'].strip()}\n\n" \
          f"Generic netlink, version {spec['version']}; the constants are in " \
          f"``{spec['uapi-header']}``.\n\n" \
          '.. contents::\n   :local:\n   :depth: 2\n'

    out += rst_head('Operations', '=')
    out += 'A *do* asks for one object, a *dump* for all.\n'
    for number, op in numbered(spec['operations']['list'], 1):
        out += rst_op(family, number, op)

    out += rst_head('Attributes', '=')
    out += 'The text says what the kernel takes. *Policy* is the part of it ' \
           'that is checked\nbefore the operation looks at anything.\n'
    for attrs in spec['attribute-sets']:
        out += rst_set(family, attrs, consts)

    out += rst_head('Enumerations', '=')
    for enum in spec['definitions']:
        if enum['type'] != 'enum':
            continue
        prefix = c_id(enum['name-prefix']).upper()
        out += rst_head(enum['name'], '-', 'enum-' + enum['name'])
        out += f"{enum['doc'].strip().capitalize()}: ``{prefix}*``.\n\n"
        for number, entry in numbered(enum['entries'], 0):
            out += rst_entry(f"``{entry['name']}`` : {number}", entry['doc'])

    out += rst_head('Constants', '=')
    for const in spec['definitions']:
        if const['type'] == 'const':
            out += rst_entry(f"``{const['name']}`` : {const['value']}, "
                             f"``{family}_{c_id(const['name']).upper()}``",
                             const['doc'])
    return re.sub('\n{3,}', '\n\n', out).strip('\n') + '\n'


# Grows when a key of the tool's output goes away or gets another meaning. The first release
# has version 1.
JSON_VERSION = 1

# What the tool prints in another way than the attribute's type says
JSON_BOOL = {'around', 'calibrated', 'managed', 'shim', 'over-target'}
JSON_AUTO = {'chunk-bytes', 'token-bytes', 'token-ops', 'inflight-bytes', 'target99-ns'}
JSON_PERCENT = {'avg10', 'avg60', 'avg300'}
JSON_WORD = {'qp-type', 'qp-state'}

# Commands that print what an operation answers, and what is always there
JSON_COMMANDS = {
    'dev show': ('dev-get', ['dev', 'index', 'state']),
    'flow show': ('flow-get', ['dev', 'qpn', 'managed', 'reason']),
    'group show': ('group-get', ['dev', 'id', 'weight', 'behind']),
    'budget show': ('budget-get', ['dev', 'safe_util', 'lease_ns']),
    'path show': ('path-get', ['dev', 'peer', 'dir', 'bytes', 'waits']),
    'rule show': ('rule-get', ['id', 'class', 'weight']),
    'rule add': ('rule-add', ['id']),
    'statistic show': ('stat-get', ['dev']),
    'statistic histogram': ('hist-get', ['dev', 'class']),
}

JSON_EVENTS = {
    'dev-ntf': 'device', 'flow-ntf': 'flow', 'flow-del-ntf': 'flow-gone',
    'flow-error-ntf': 'flow-error', 'budget-ntf': 'lease-expired',
    'group-fault-ntf': 'group-fault', 'ctrl-ntf': 'control',
}

# Keys that explain takes from flows, groups and devices, top from budgets, and their own
JSON_WHY = ['qpn', 'class', 'managed', 'reason', 'queued', 'wait-ns']
JSON_WAIT = ['weight', 'flows', 'held', 'avg10', 'avg60', 'avg300', 'stall-ns',
             'clock-ns', 'window-ns', 'path-ns', 'own-ns']
JSON_RATES = ['max-rate', 'believed-rate', 'believed-from']
JSON_TOP = ['dev', 'safe-util', 'lease-ns', 'agent-pid', 'ctrl-state',
            'current99-ns', 'latency-groups', 'bandwidth-groups',
            'throughput-groups']
JSON_WHO = {'type': 'string',
            'description': 'Name of a group: its upper layer protocol and the '
                           'peer, or its task and process.'}


def json_object(properties, required, counters=None):
    """With counters, whose names begin with the word, or are any other"""
    out = {'type': 'object', 'required': required, 'properties': properties}
    number = {'type': 'integer', 'minimum': 0}
    if counters:
        out['patternProperties'] = {f'^{counters}_': number}
    elif counters == '':
        out['additionalProperties'] = number
    return out


def json_value(attr, sets):
    """The type of what an attribute is printed as"""
    name = attr['name']
    doc = attr['doc']
    if name in JSON_BOOL:
        out = {'type': 'boolean'}
        doc = doc.replace('1 when', 'True when').replace('0 ', 'false ')
    elif name in JSON_PERCENT:
        out = {'type': 'number', 'minimum': 0, 'maximum': 100}
        doc = f'Share of the last {name[3:]} s in which it had something to ' \
              'post and nothing of it was being posted, in percent.'
    elif name in JSON_WORD:
        out = {'type': ['string', 'integer']}
        doc = 'As the rdma tool shows it; a number if it is not known.'
    elif 'enum' in attr:
        # what a newer module knows and the tool does not is a number
        out = {'type': ['string', 'integer']}
    elif attr['type'] == 'string':
        out = {'type': 'string'}
    elif attr['type'] == 'nest':
        nested = json_attrs(sets[attr['nested-attributes']], sets, None)[0]
        out = {'type': 'array', 'items': json_object(nested, list(nested))}
    else:
        out = {'type': 'integer', 'minimum': 0}
        if name in JSON_AUTO:
            out = {'anyOf': [out, {'const': 'auto'}]}
    out['description'] = ' '.join(doc.split())
    return out


def json_attrs(attrs, sets, names):
    """Properties for the named attributes, and how names of counters begin"""
    properties, counters = {}, None
    for attr in attrs['attributes']:
        if attr['type'] == 'pad' or (names and attr['name'] not in names):
            continue
        if attr.get('nested-attributes') == 'counter':
            counters = 'size' if attr['name'] == 'size' else ''
        else:
            properties[c_id(attr['name'])] = json_value(attr, sets)
    return properties, counters


def json_explain(sets):
    flow = json_attrs(sets['flow'], sets, JSON_WHY)[0]
    group = json_attrs(sets['group'], sets, JSON_WAIT)[0]
    rates = json_attrs(sets['dev'], sets, JSON_RATES)[0]
    rule = json_attrs(sets['rule'], sets, None)[0]
    dev = json_attrs(sets['flow'], sets, ['dev', 'group'])[0]
    dev['who'] = JSON_WHO
    share = {'type': 'number', 'minimum': 0, 'maximum': 100,
             'description': 'Its part of the device time that all other groups '
                            'used meanwhile, in percent.'}
    behind = json_attrs(sets['behind'], sets, None)[0]
    behind.update(who=JSON_WHO, share=share)
    group['behind'] = {
        'type': 'array', 'maxItems': 3,
        'items': json_object(behind, list(behind)),
        'description': 'Who used the device meanwhile, the worst first.'}
    limit = json_attrs(sets['path'], sets, ['peer', 'dir', 'rate', 'lease-ns'])[0]
    limit['set_by'] = {'enum': ['agent', 'operator'],
                       'description': 'agent if the limit has a lease, else operator.'}
    group['waits_for'] = {
        'type': 'array', 'items': json_object(limit, list(limit)),
        'description': 'If path_ns is not 0: limits in force of its peers, in directions '
                       'that it uses; of a flow, those of its own peer. Absent if there are '
                       'none, and without CAP_NET_ADMIN.'}
    whole = {'type': 'array', 'maxItems': 1, 'items': json_object(rule, ['id']),
             'description': 'The rule that gave class and weight, if any did.'}
    return {
        'explain flow': json_object({**dev, **flow, 'rule': whole, **group, **rates},
                                    ['dev', 'qpn', 'rule', *rates]),
        'explain group': json_object({**dev, **group, **rates},
                                     ['dev', 'group', 'who', 'behind', *rates]),
    }


def json_top_paths(sets):
    path = json_attrs(sets['path'], sets, ['peer', 'dir', 'lease-ns'])[0]
    number = {'type': 'integer', 'minimum': 0}
    path.update(
        used={'type': 'number', 'minimum': 0, 'maximum': 100,
              'description': 'rate as a part of limit, in percent.'},
        rate={**number, 'description': 'Bytes per second on the wire that were posted in '
                                       'the interval.'},
        limit={**number, 'description': 'What flows to the peer may use together in this '
                                        'direction, in bytes per second on the wire. 0 '
                                        'means no limit: messages are only cut.'},
        waits={**number, 'description': 'How often a flow, or a program, had to wait for the '
                                        'limit in the interval.'})
    return {'type': 'array', 'items': json_object(path, list(path)),
            'description': 'The limits of peers, those that are used most first. Absent '
                           'without CAP_NET_ADMIN.'}


def json_top(sets):
    budget = json_attrs(sets['budget'], sets, JSON_TOP)[0]
    dev = json_attrs(sets['dev'], sets, ['state', 'max-rate', 'target99-ns'])[0]
    interval = {'type': 'integer', 'minimum': 0,
                'description': 'Time since the sample before, in nanoseconds.'}
    percent = {'type': 'number', 'minimum': 0, 'maximum': 100}
    group = {
        'id': json_attrs(sets['group'], sets, ['id'])[0]['id'],
        'who': JSON_WHO,
        'class': {'type': 'string',
                  'description': 'Classes of its flows, with a + between two. '
                                 'Absent if it has none.'},
        'share': {**percent,
                  'description': 'Its part of the device time that all groups '
                                 'used in the interval, in percent.'},
        'rate': {'type': 'integer', 'minimum': 0,
                 'description': 'Bytes per second that it posted in the '
                                'interval, in both directions.'},
        'wait': {**percent,
                 'description': 'Part of the interval in which it had something '
                                'to post and nothing of it was being posted, in '
                                'percent.'},
    }
    required = [key for key in group if key != 'class']
    whole = {'type': 'array', 'items': json_object(group, required),
             'description': 'The groups, those with the largest share first.'}
    properties = {'dev': budget.pop('dev'), 'interval_ns': interval, **dev,
                  **budget, 'group': whole}
    return json_object({**properties, 'path': json_top_paths(sets)}, list(properties))


def json_doctor():
    text = {
        'check': 'What was looked at.',
        'verdict': 'ok, hint, or bad: what the module cannot work with.',
        'found': 'What is the case.',
        'fix': 'What would mend it.',
    }
    return json_object({key: {'type': 'string', 'description': doc}
                        for key, doc in text.items()},
                       ['check', 'verdict', 'found'])


def json_calibrate():
    def number(doc):
        return {'type': 'integer', 'minimum': 0, 'description': doc}

    out = {
        'dev': {'type': 'string', 'description': 'The device.'},
        'peer': {'type': 'string',
                 'description': 'The agent at the other end.'},
        'p50_ns': number('Median time of a reference message without load.'),
        'p99_ns': number('99th percentile of them.'),
        'rtt_min_ns': number('The shortest of them.'),
        'max_rate': number('What messages of 1 MB reach, in bytes per second of '
                           'wire, headers included.'),
        'safe_util': number('97 % of max_rate, or what somebody has chosen, in bytes per '
                            'second of wire.'),
        'max_ops': number('Small messages per second.'),
        'chunk_bytes': {'anyOf': [number('A chunk in bytes.'), {'const': 'auto'}],
                        'description': 'auto, if it is as large as the smallest chunk that '
                                       'reaches 95 % of max_rate. Else that one, or the '
                                       'best if none does.'},
        'target99_ns': number('Four times the 99th percentile without load.'),
        'applied': {'type': 'boolean',
                    'description': 'True when these were set and are kept, except max_ops.'},
    }
    size = {
        'chunk_bytes': number('Size of a piece.'),
        'rate': number('With pieces of that size, bytes per second of the wire.'),
    }
    required = list(out) + ['sizes']
    out['sizes'] = {'type': 'array', 'items': json_object(size, list(size)),
                    'description': 'The sizes that were tried.'}
    return json_object(out, required)


def json_schema(spec):
    sets = {attrs['name']: attrs for attrs in spec['attribute-sets']}
    ops = {op['name']: op for op in spec['operations']['list']}

    def answer(name):
        op = ops[name]
        return json_attrs(sets[op['attribute-set']], sets,
                          op['do']['reply']['attributes'])

    objects = {}
    for command, (name, required) in JSON_COMMANDS.items():
        properties, counters = answer(name)
        objects[command] = json_object(properties, required, counters)
    objects.update(json_explain(sets))
    objects['doctor show'] = json_doctor()
    objects['calibrate'] = json_calibrate()
    defs = {command: {'type': 'array', 'items': value}
            for command, value in objects.items()}
    events = []
    for name, event in JSON_EVENTS.items():
        properties, counters = answer(ops[name]['notify'])
        events.append(json_object({'event': {'const': event,
                                             'description': ' '.join(
                                                 ops[name]['doc'].split())},
                                   **properties}, ['event'], counters))
    defs['monitor show'] = {'anyOf': events}
    defs['top'] = json_top(sets)
    return json.dumps({
        '$schema': 'https://json-schema.org/draft/2020-12/schema',
        '$id': f'urn:rdma-isolate:json:{JSON_VERSION}',
        'title': f'What rdma-isolate -j prints, version {JSON_VERSION}',
        '$comment': 'SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause. '
                    'Generated by tools/regen.sh from the netlink spec.',
        'description': 'One definition for each command; of monitor and top, '
                       'of each line. Keys may be added within a version, and words; '
                       'none is taken away or gets another meaning.',
        '$defs': defs,
    }, indent=1) + '\n'


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
    elif sys.argv[1] == 'json':
        print(json_schema(spec), end='')
    elif sys.argv[1] == 'rst':
        print(rst(spec, spdx), end='')
    else:
        sys.exit(__doc__)


if __name__ == '__main__':
    main()
