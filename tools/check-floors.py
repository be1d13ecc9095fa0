#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""
Does no source of kmod/ or userspace/shim/ reach upward?

Documentation/design/floors.rst lists the floors of each, the highest first. A source may use
what another source on its own floor or below defines. Sources of one floor may not use each other
in a circle.

The arrows are read from the text, without comments and strings:
- a source owns the functions and variables that it defines at column 0 without "static";
- a source that names what another one owns has an arrow to it, whether it calls a function
  or takes its address, but the tag of a structure is not its variable;
- a header that names a function other than to declare it, in an inline function, has an arrow
  for every source that includes it;
- a header that includes another one has an arrow to it. Headers have structures, and are on
  no floor, but they may not include each other in a circle.

What is allowed, with the reason:
- nl_gen.c, which is generated from the netlink specification. It is a table of handlers, which
  reaches up to them, and has the policies that they read.
- riso_nl_family, from every floor. It is a handle, as generic netlink wants one for each
  message; who uses it calls nothing of netlink.c.
"""
import collections
import pathlib
import re
import sys

TOP = pathlib.Path(__file__).resolve().parent.parent
FLOORS = TOP / 'Documentation' / 'design' / 'floors.rst'
# In the order of their literal blocks
TREES = ('kmod', 'userspace/shim')
GENERATED = 'nl_gen'
ALLOWED = {'riso_nl_family'}
# A directory with what is linked with the sources, and is none of them
LINKED = 'link'


def read_floors():
    """The floors, from each literal block: name -> number, 1 for the highest."""
    levels = []
    for line in FLOORS.read_text().splitlines():
        found = re.fullmatch(r'    +(\d+)  +(\S.*)', line)
        if found:
            if found[1] == '1':
                levels.append({})
            levels[-1] |= {name: int(found[1]) for name in found[2].split()}
    return levels


def strip(text):
    """Without comments and strings."""
    text = re.sub(r'/\*.*?\*/|//[^\n]*', ' ', text, flags=re.S)
    return re.sub(r'"(?:\\.|[^"\\\n])*"', '""', text)


def find_owned(text):
    """The functions and variables that a source defines for others."""
    skip = r'(?!static|extern|typedef|return)'
    names = set(re.findall(rf'^{skip}[a-z][\w \t*]*?\b(\w+)\([^;{{}}]*\)\n\{{', text, re.M))
    return names | set(re.findall(
        rf'^{skip}(?:const )?(?:struct |enum |\w+ )[\w \t*]*?\b(\w+)(?:\[[^\]\n]*\])*'
        r'(?: __\w+)*(?: =|;)', text, re.M))


def find_circle(arrows):
    """The names in a circle: those that are left when the ones that nobody uses are gone."""
    left = set(arrows) | {name for targets in arrows.values() for name in targets}
    while True:
        free = {name for name in left
                if not any(name in arrows.get(other, ()) for other in left - {name})}
        if not free:
            return left
        left -= free


def check(tree, level):
    """Check the sources of a directory. Returns 0, or 1 after it has told what is wrong."""
    top = TOP / tree
    raw = {path: path.read_text() for path in sorted(top.rglob('*.[ch]'))
           if path.parent.name != LINKED}
    name_of = {path: str(path.relative_to(top).with_suffix('')) for path in raw}
    sources = {name_of[path]: strip(text) for path, text in raw.items() if path.suffix == '.c'}
    headers = {path: strip(text) for path, text in raw.items() if path.suffix == '.h'}
    status = 0

    def wrong(what):
        nonlocal status
        print(f'floors: {tree}: {what}', file=sys.stderr)
        status = 1

    sources.pop(GENERATED, None)
    for name in sorted(set(sources) - set(level)):
        wrong(f'{name}.c is on no floor of {FLOORS.relative_to(TOP)}')
    for name in sorted(set(level) - set(sources)):
        wrong(f'{FLOORS.relative_to(TOP)} has {name}, which is not there')
    if status:
        return status

    owner = {name: source for source, text in sources.items()
             for name in find_owned(text) - ALLOWED}
    includes = {path: {(path.parent / header).resolve()
                       for header in re.findall(r'^#include "([^"]+)"', text, re.M)} & set(raw)
                for path, text in raw.items()}

    def uses(text):
        text = re.sub(r'\b(?:struct|enum) +\w+', ' ', text)
        return {name for name in re.findall(r'\b\w+\b', text) if name in owner}

    # A header declares with a line that ends in ");" at column 0 on its first line.
    inline = {path: uses(re.sub(r'^(?!static|\t| )[^\n;{}]*(?:\n[\t ][^\n;{}]*)*;', '', text,
                                flags=re.M))
              for path, text in headers.items()}

    arrows = collections.defaultdict(set)
    for path in raw:
        source = name_of[path]
        if path.suffix != '.c' or source not in sources:
            continue
        used = uses(sources[source])
        for header in includes[path]:
            used |= inline.get(header, set())
        for name in used:
            if owner[name] != source:
                arrows[source, owner[name]].add(name)

    beside = collections.defaultdict(set)
    for (source, target), names in sorted(arrows.items()):
        if level[source] > level[target]:
            wrong(f'{source}.c (floor {level[source]}) reaches up to {target}.c '
                  f'(floor {level[target]}): ' + ', '.join(sorted(names)))
        elif level[source] == level[target]:
            beside[source].add(target)
    circle = find_circle(beside)
    if circle:
        wrong('a circle on one floor: ' + ', '.join(sorted(circle)))
    circle = find_circle({path: includes[path] for path in headers})
    if circle:
        wrong('headers in a circle: ' + ', '.join(sorted(path.name for path in circle)))
    if not status:
        print(f'ok floors: {tree}: {len(sources)} sources on {max(level.values())} floors, '
              f'{len(arrows)} arrows, none upward')
    return status


def main():
    levels = read_floors()
    if len(levels) != len(TREES):
        print(f'floors: {FLOORS.relative_to(TOP)} has {len(levels)} blocks, not {len(TREES)}',
              file=sys.stderr)
        return 1
    return max([check(tree, level) for tree, level in zip(TREES, levels)])


sys.exit(main())
