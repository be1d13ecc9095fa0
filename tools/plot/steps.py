#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""A trace for userspace/tests/replay_aimd, of a phase that was recorded.

    steps.py DIR PHASE >trace

DIR has what selftests/bench/run.sh -p agent left. The latencies are those of the latency
flow of the phase, read once in a RefPeriod: the windows of the agent are not recorded.
The marks say how many programs there are, each a group. The first line has MaxRate and the
target.
"""
import bisect
import collections
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "selftests" / "bench"))

# pylint: disable=wrong-import-position
from agent import Recording, nearest_rank  # noqa: E402

# As the agent has them by default
PERIOD_NS = 500_000
WINDOW, SHORT_WINDOW, ENOUGH = 10000, 200, 50


class Latest:
    """The value that was in force at a time, of (time, value) in order; 0 before all."""

    def __init__(self, points):
        self.points = iter(points)
        self.coming = next(self.points, None)
        self.value = 0

    def at(self, now):
        """Times may only grow."""
        while self.coming and self.coming[0] <= now:
            self.value = self.coming[1]
            self.coming = next(self.points, None)
        return self.value


class Window:
    """Percentiles of the last samples."""

    def __init__(self, size):
        self.size = size
        self.ring = collections.deque()
        self.sorted = []

    def add(self, ns):
        """The oldest goes when it is full."""
        if len(self.ring) == self.size:
            del self.sorted[bisect.bisect_left(self.sorted, self.ring.popleft())]
        self.ring.append(ns)
        bisect.insort(self.sorted, ns)

    def get(self, percent):
        """The nearest rank"""
        return nearest_rank(self.sorted, percent)


def steps(r):
    """What a law would have been given: now_ns L B T current99 short99 short95."""
    window, short = Window(WINDOW), Window(SHORT_WINDOW)
    latency = Latest(r.samples)
    flows = Latest((when, s["latency_flows"]) for when, s in r.settings)
    groups = Latest((when, int(text[len("bulk"):] or 1))
                    for text, when in r.marks.items() if text.startswith("bulk"))
    for now in range(0, r.settings[-1][0], PERIOD_NS):
        ns = latency.at(now)
        if ns:
            window.add(ns)
            short.add(ns)
        if len(window.ring) >= ENOUGH:
            yield (now, int(flows.at(now) > 0), groups.at(now), 0,
                   window.get(99), short.get(99), short.get(95))


def main():
    """Reads the recording and writes the trace."""
    if len(sys.argv) != 3:
        sys.exit("usage: steps.py DIR PHASE >trace")
    out, phase = pathlib.Path(sys.argv[1]), sys.argv[2]
    r, target = Recording.with_target(out, phase)
    print("#", r.settings[-1][1]["max_rate"], target)
    for step in steps(r):
        print(*step)


main()
