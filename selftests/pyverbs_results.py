#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""
pyverbs_results.py DIR DEVICE GID-INDEX OUT [MODULE]...

Runs the tests of pyverbs that lie in DIR/tests, all or those of some modules, and writes a
line for each to OUT: its name and what came of it, with the reason of a skip. What the tests
print goes to the standard output.
"""

import sys
import unittest


class Result(unittest.TestResult):
    """Tells what came of each test, as soon as it has ended."""

    def __init__(self, out):
        super().__init__()
        self.out = out

    def tell(self, test, *words):
        print(test.id(), *words, file=self.out, flush=True)

    def addSuccess(self, test):
        self.tell(test, "ok")

    def addFailure(self, test, err):
        super().addFailure(test, err)
        self.tell(test, "fails")
        print(test.id(), self.failures[-1][1])

    def addError(self, test, err):
        super().addError(test, err)
        self.tell(test, "fails")
        print(test.id(), self.errors[-1][1])

    def addSkip(self, test, reason):
        self.tell(test, "skipped:", reason)


def main():
    if len(sys.argv) < 5:
        sys.exit(__doc__)
    where, device, gid, out, *modules = sys.argv[1:]
    sys.path[:0] = [where, where + "/tests"]
    from args_parser import parser
    sys.argv = ["run_tests.py", "--dev", device, "--port", "1", "--gid", gid]
    parser.parse_args()
    names = ["tests." + m for m in modules] or ["tests"]
    suite = unittest.TestLoader().loadTestsFromNames(names)
    with open(out, "w", encoding="utf-8") as f:
        suite.run(Result(f))


main()
