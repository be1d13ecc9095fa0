# SPDX-License-Identifier: GPL-2.0
"""What the phases of agent.inc recorded, over time."""

import json
import re
import statistics

SLICE_NS = 100_000_000
# Of the slices from some point on, so many have to be inside the target
STAYS = 0.95
# A program that comes disturbs this long
COMES_NS = 500_000_000


def nearest_rank(ordered, percent):
    """A percentile of what is sorted"""
    return ordered[(percent * len(ordered) - 1) // 100]


class Recording:
    """Marks, settings, samples and bytes of a phase; times in ns from its begin."""

    def __init__(self, out, phase):
        self.marks = {}
        self.settings = []
        begin = None
        for line in (out / f"{phase}.trace").read_text().splitlines():
            found = re.search(r" (\d+)\.(\d{6}): (\w+): (.*)", line)
            if not found:
                continue
            when = (int(found[1]) * 1_000_000 + int(found[2])) * 1000
            if found[3] == "tracing_mark_write":
                begin = begin or when
                self.marks[found[4].strip()] = when - begin
            elif "dev=rxe1 " in found[4] and begin:
                values = dict(re.findall(r"(\w+)=(\d+)", found[4]))
                self.settings.append((when - begin,
                                      {k: int(v) for k, v in values.items()}))
        self.samples = [(int(a) - begin, int(b)) for a, b in
                        (line.split() for line in
                         (out / f"{phase}.log").read_text().splitlines())]
        wire = [(int(float(a) * 1e9) - begin, int(b)) for a, b in
                (line.split() for line in
                 (out / f"{phase}.bytes").read_text().splitlines())]
        self.rates = [(t, (b - b0) * 1e9 / (t - t0))
                      for (t0, b0), (t, b) in zip(wire, wire[1:]) if t > t0]

    @classmethod
    def with_target(cls, out, phase):
        """A phase of the bench, and the target that it had, in ns"""
        runs = map(json.loads, (out / "phases.jsonl").read_text().splitlines())
        target = next(run["target_ns"] for run in runs if run["phase"] == phase)
        return cls(out, phase), target

    def slices(self):
        """The 99th percentile of each 100 ms, with the time that it ends at."""
        byslice = {}
        for when, ns in self.samples:
            byslice.setdefault(when // SLICE_NS, []).append(ns)
        return [((n + 1) * SLICE_NS, nearest_rank(sorted(v), 99))
                for n, v in sorted(byslice.items())]

    def settled_ms(self, mark, target):
        """From a mark until the 99th is inside the target and stays there."""
        begin = self.marks[mark]
        inside = [(t, p99 <= target) for t, p99 in self.slices() if t > begin]
        for n, (when, ok) in enumerate(inside):
            rest = [i for _, i in inside[n:]]
            if ok and sum(rest) >= STAYS * len(rest):
                return max(0, when - SLICE_NS - begin) / 1e6
        return float("inf")

    def inside(self, programs, target):
        """Of the slices with so many programs, the part that is inside the target"""
        begin = self.marks[f"bulk {programs}"] + COMES_NS
        end = self.marks[f"start {programs + 1}"]
        of = [p99 <= target for t, p99 in self.slices() if begin + SLICE_NS <= t <= end]
        return sum(of) / len(of)

    def variation(self, begin, end):
        """Of SafeUtil between two marks, weighted by time."""
        begin, end = self.marks[begin], self.marks[end]
        total = weighted = squares = 0
        for (t, s), (following, _) in zip(self.settings,
                                          self.settings[1:] + [(end, None)]):
            width = min(following, end) - max(t, begin)
            if width > 0:
                total += width
                weighted += width * s["safe_util"]
                squares += width * s["safe_util"] ** 2
        mean = weighted / total
        return (max(0, squares / total - mean ** 2)) ** 0.5 / mean

    def open_ms(self):
        """From the last latency flow's end until SafeUtil is MaxRate."""
        gone = None
        for when, s in self.settings:
            if s["latency_flows"]:
                gone = None
            elif gone is None:
                gone = when
            if gone is not None and s["safe_util"] == s["max_rate"]:
                return (when - gone) / 1e6
        return float("inf")


def rows(p, plain):
    """What it must show; @plain is the un-isolated rate of one program, MB/s."""
    def of(phase, get):
        if phase not in p.runs:
            return None
        return statistics.median(
            get(Recording(p.out, phase), run) for run in p.runs[phase])

    def cpu(phase):
        return p.median(phase, lambda r: 100 * r["cpu_ns"] / r["ns"])

    def part(a, b):
        return None if a is None or not b else a / b

    def rate(phase):
        return p.loads(phase, lambda ls: sum(l["bytes_per_s"] for l in ls) / 1e6)

    half = None if plain is None else plain / 2
    return [
        ("a program comes: 99th inside the target, ms",
         of("agent_start",
            lambda r, run: r.settled_ms("bulk", run["target_ns"])), 1000, 100),
        ("bandwidth kept by the agent",
         part(rate("agent_start"), plain), (0.85, None), (0.95, None)),
        ("SafeUtil, coefficient of variation",
         of("agent_start",
            lambda r, run: r.variation("steady", "latency flow gone")), 0.1, 0.03),
        ("the last latency flow goes: MaxRate, ms",
         of("agent_start", lambda r, run: r.open_ms()), 50, 5),
        *((f"{n} programs: part of 100 ms inside the target",
           of("agent_grow", lambda r, run, n=n: r.inside(n, run["target_ns"])),
           (0.95, None), (0.99, None)) for n in range(2, 9)),
        ("unattainable target: part of the guarantee",
         part(rate("agent_unattainable"), half), (0.97, 1.03), (0.99, 1.01)),
        ("answers 2 ms late: bandwidth kept",
         part(rate("agent_delay"), rate("agent_delay_free")),
         (0.95, None), (0.99, None)),
        ("a real-time hog: bandwidth kept",
         part(rate("agent_hog"), rate("agent_hog_free")),
         (0.95, None), (0.99, None)),
        ("agent's CPU, %", cpu("agent_cpu"), 12, 6),
        ("agent's CPU, no latency flow, %", cpu("agent_idle"), 0.1, None),
        ("messages sent then",
         p.median("agent_idle", lambda r: r["packets"]), 0, None),
        ("reference messages: median of a latency flow",
         part(p.us("agent_on", "median"), p.us("agent_off", "median")),
         1.03, 1.01),
        ("reference messages: its 99th",
         part(p.us("agent_on", "p99"), p.us("agent_off", "p99")), 1.25, 1.05),
    ]
