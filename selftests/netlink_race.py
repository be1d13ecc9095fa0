#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""
Writers that race: what a device has is always what one of them has given.

usage: netlink_race.py DEV COMMANDS

Some processes set all of a set of values at once, or try to with one of them out
of range; one lends budgets; one adds and deletes rules; one turns the device on
and off; one writes a file of sysfs. Meanwhile the values are read: they have to
belong together. Run by netlink_race.sh, which sets up the device.
"""

import os
import random
import sys

from netlink_messages import (
    BUDGET_CHUNK_BYTES, BUDGET_DEV, BUDGET_GET, BUDGET_LEASE, BUDGET_SAFE_UTIL,
    BUDGET_SET, DEV_CHUNK_BYTES, DEV_GET, DEV_MAX_RATE, DEV_MODE, DEV_DEV,
    DEV_SAFE_UTIL, DEV_SET, RULE_ADD, RULE_CLASS, RULE_DEL, RULE_ID, RULE_UID,
    Ktap, Netlink, attr, attrs_of, text, u32, u64)

SETTERS = 3
RATE = 10 ** 9
CHUNKS = 1024


def values_of(number):
    """max-rate, safe-util and chunk-bytes that one command gives together"""
    return RATE + number, RATE // 2 + number, CHUNKS + number % 4096


def setter(netlink, dev, rand):
    number = rand.randrange(1, 10 ** 6)
    rate, util, chunk = values_of(number)
    wrong = rand.randrange(6)
    if wrong == 0:
        chunk = 2 ** 20 + 1
    elif wrong == 1:
        util = rate + 1
    elif wrong == 2:
        rate = 99999
    answer = netlink.ask(DEV_SET, text(DEV_DEV, dev) +
                         u64(DEV_MAX_RATE, rate) + u64(DEV_SAFE_UTIL, util) +
                         u32(DEV_CHUNK_BYTES, chunk))
    return (answer.errno != 0) == (wrong < 3)


def lender(netlink, dev, rand):
    number = rand.randrange(1, 10 ** 6)
    _, util, chunk = values_of(number)
    wrong = rand.randrange(4) == 0
    lease = 0 if wrong else rand.randrange(10 ** 6, 10 ** 8)
    answer = netlink.ask(BUDGET_SET, text(BUDGET_DEV, dev) +
                         u64(BUDGET_SAFE_UTIL, util) +
                         u32(BUDGET_CHUNK_BYTES, chunk) + u64(BUDGET_LEASE, lease))
    return (answer.errno != 0) == wrong


def ruler(netlink, dev, rand):
    answer = netlink.ask(RULE_ADD, u32(RULE_UID, rand.randrange(10 ** 6)) +
                         u32(RULE_CLASS, rand.randrange(3)))
    if answer.errno:
        return False
    rule = attrs_of(answer.messages[0])[RULE_ID]
    return netlink.ask(RULE_DEL, attr(RULE_ID, rule)).errno == 0 and \
        netlink.ask(RULE_DEL, attr(RULE_ID, rule)).errno != 0


def switcher(netlink, dev, rand):
    """Refused while it drains, at any other time done"""
    answer = netlink.ask(DEV_SET, text(DEV_DEV, dev) +
                         u32(DEV_MODE, rand.randrange(3)))
    return answer.errno == 0 or 'draining' in answer.text


def filer(netlink, dev, rand):
    path = f'/sys/class/infiniband/{dev}/rdma_isolate/max_ops'
    good = rand.randrange(2)
    word = str(rand.randrange(1000)) if good else rand.choice(
        ('', '-1', 'x', '1x', '99999999999999999999'))
    try:
        with open(path, 'w', encoding='ascii') as file:
            file.write(word)
    except OSError:
        return not good
    return bool(good) or not word


def run(what, dev, seed, commands):
    """In a child: how many of the answers were wrong"""
    netlink = Netlink()
    rand = random.Random(seed)
    wrong = 0
    for _ in range(commands):
        wrong += not what(netlink, dev, rand)
    return min(wrong, 255)


def number_of(found, kind):
    return int.from_bytes(found[kind], sys.byteorder)


def belong_together(rate, util, chunk):
    number = util - RATE // 2
    return (rate is None or rate == RATE + number) and \
        chunk == CHUNKS + number % 4096


def check_settings(netlink, dev):
    found = attrs_of(netlink.ask(DEV_GET, text(DEV_DEV, dev)).messages[0])
    return belong_together(number_of(found, DEV_MAX_RATE),
                           number_of(found, DEV_SAFE_UTIL),
                           number_of(found, DEV_CHUNK_BYTES))


def check_budget(netlink, dev):
    found = attrs_of(netlink.ask(BUDGET_GET, text(BUDGET_DEV, dev)).messages[0])
    return belong_together(None, number_of(found, BUDGET_SAFE_UTIL),
                           number_of(found, BUDGET_CHUNK_BYTES))


def main():
    dev, commands = sys.argv[1], int(sys.argv[2])
    netlink = Netlink()
    setter(netlink, dev, random.Random(1))
    rate, util, chunk = values_of(1)
    netlink.ask(DEV_SET, text(DEV_DEV, dev) + u64(DEV_MAX_RATE, rate) +
                u64(DEV_SAFE_UTIL, util) + u32(DEV_CHUNK_BYTES, chunk))

    writers = [setter] * SETTERS + [lender, ruler, switcher, filer]
    children = {}
    for seed, what in enumerate(writers):
        pid = os.fork()
        if pid == 0:
            os._exit(run(what, dev, seed, commands // len(writers)))
        children[pid] = what.__name__

    ktap = Ktap(2 + len(writers))
    reads = torn = torn_budget = 0
    results = []
    while children:
        reads += 1
        torn += not check_settings(netlink, dev)
        torn_budget += not check_budget(netlink, dev)
        pid, status = os.waitpid(-1, os.WNOHANG)
        if pid:
            results.append((children.pop(pid),
                            os.waitstatus_to_exitcode(status)))
    ktap.result(torn == 0, 'settings belong together',
                f'{torn} of {reads} do not')
    ktap.result(torn_budget == 0, 'what is in force belongs together',
                f'{torn_budget} of {reads} does not')
    for name, wrong in results:
        ktap.result(wrong == 0, f'answers to a {name}', f'{wrong} are wrong')
    print(f'# {reads} reads beside {commands} commands')
    print(f'# Totals: pass:{ktap.count - ktap.failed} fail:{ktap.failed} '
          'xfail:0 xpass:0 skip:0 error:0')
    return 1 if ktap.failed else 0


if __name__ == '__main__':
    sys.exit(main())
