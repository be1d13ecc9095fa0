#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""
perftest_cases.py pairs|all

Prints cases for perftest, one a line: the size of a message, how many the client
reports, and the command. "all" has each combination of the first six factors that is
possible, and each of the other four alone, one way, with those except the queue
pairs: two if there can be. "pairs" has few of all that are possible, such that any
two values which can be together are so in one of them.
"""

import itertools
import sys

COUNT = 24

FACTORS = {
    "program": ("write_bw", "read_bw", "send_bw", "atomic_bw",
                "write_lat", "read_lat", "send_lat", "atomic_lat"),
    "transport": ("RC", "UC", "UD"),
    "size": (262144, 4096, 8),
    "qps": (1, 2, 4),
    "bidirectional": (False, True),
    "old_api": (False, True),
    "inline": (False, True),
    "list": (False, True),
    "srq": (False, True),
    "events": (False, True),
}
OTHERS = ("inline", "list", "srq", "events")


def is_legal(case):
    """An atomic has 8 bytes, and UD one packet. Shared receive queues by UC and UD,
    send_lat with events, and UC with more than 64 packets out, hang now and then
    without the shim, too."""
    op, kind = case["program"].split("_")
    if case["transport"] == "UC" and (op not in ("write", "send") or
                                      case["size"] > 4096):
        return False
    if case["transport"] == "UD" and (op != "send" or case["size"] > 4096):
        return False
    if kind == "lat" and (case["qps"] > 1 or case["bidirectional"] or case["list"]):
        return False
    if case["inline"] and (op not in ("write", "send") or case["size"] > 8):
        return False
    if case["srq"] and (op != "send" or case["transport"] != "RC"):
        return False
    if case["events"] and (op == "write" or case["program"] == "send_lat"):
        return False
    return op != "atomic" or case["size"] == 8


def is_thorough(case):
    others = sum(case[f] for f in OTHERS)
    qps = 2 if case["program"].endswith("bw") else 1
    return not others or (
        others == 1 and case["qps"] == qps and not case["bidirectional"])


def line(case):
    words = [case["size"], COUNT * case["qps"], "ib_" + case["program"],
             "-n", COUNT, "-c", case["transport"]]
    if not case["program"].startswith("atomic"):
        words += ["-s", case["size"]]
    if case["program"].endswith("bw"):
        words += ["-t", 8, "-q", case["qps"]]
    for factor, option in (("bidirectional", "-b"), ("old_api", "--use_old_post_send"),
                           ("inline", "-I 8"), ("list", "-l 4"), ("srq", "--use-srq"),
                           ("events", "-e")):
        if case[factor]:
            words.append(option)
    return " ".join(map(str, words))


def covering(cases):
    """Each time the first of those with the most pairs that are still missing"""
    index = {}
    masks = []
    for case in cases:
        mask = 0
        for pair in itertools.combinations(case.items(), 2):
            mask |= 1 << index.setdefault(pair, len(index))
        masks.append(mask)
    missing = (1 << len(index)) - 1
    while missing:
        best = max(range(len(cases)),
                   key=lambda i: bin(masks[i] & missing).count("1"))
        yield cases[best]
        missing &= ~masks[best]


def main():
    values = itertools.product(*FACTORS.values())
    cases = [c for c in (dict(zip(FACTORS, v)) for v in values) if is_legal(c)]
    if sys.argv[1:] == ["pairs"]:
        cases = covering(cases)
    elif sys.argv[1:] == ["all"]:
        cases = filter(is_thorough, cases)
    else:
        sys.exit(__doc__)
    for case in cases:
        print(line(case))


main()
