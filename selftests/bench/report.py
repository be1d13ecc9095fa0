#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Makes a table and result.json of the figures that phases.sh left."""

import argparse
import json
import pathlib
import statistics
import sys

import agent
import kv

SECTOR = 512

# What a perfect pacer adds to half a round trip on the slow wire, us: a packet takes 334 us
# there, and a message waits for the rest of one.
SLOW_RESIDUAL = {"median": 84, "p99": 166}


class Phases:
    """Medians over the repeats of a phase; None for one that was not run."""

    def __init__(self, out):
        self.out = out
        self.runs = {}
        lines = out / "phases.jsonl"
        if lines.exists():
            for line in lines.read_text().splitlines():
                run = json.loads(line)
                self.runs.setdefault(run["phase"], []).append(run)

    def figures(self, phase, get):
        return [get(run) for run in self.runs.get(phase, [])]

    def median(self, phase, get):
        values = self.figures(phase, get)
        return statistics.median(values) if values else None

    def us(self, phase, key):
        return self.median(phase, lambda r: r["probe"][f"{key}_ns"] / 1000)

    def spread(self, phase, key):
        values = self.figures(phase, lambda r: r["probe"][f"{key}_ns"] / 1000)
        return [min(values), max(values)] if values else None

    def storage(self, phase):
        """MB/s that the disk gave while the probe ran."""
        return self.median(phase, lambda r: watched(r["probe"]))

    def mb_per_s(self, phase, which):
        return self.median(phase, lambda r: r["mb_per_s"][which])

    def loads(self, phase, get):
        """Of what get() makes of the figures of all programs."""
        return self.median(phase, lambda r: get(r["loads"]))

    def small_p99(self, phase):
        return self.median(phase, lambda r: fio_p99(self.out / r["fio"]))


def watched(probe):
    if not probe["watch"]:
        return 0.0
    before, after = (int(probe["watch"][0][w].split()[2])
                     for w in ("before", "after"))
    return (after - before) * SECTOR / 1e6 / (probe["elapsed_ns"] / 1e9)


def fio_p99(path):
    job = json.loads(path.read_text())["jobs"][0]["read"]
    return job["clat_ns"]["percentile"]["99.000000"] / 1000


def dump_seconds(run):
    """An incomplete list is no list."""
    return run["ns"] / 1e9 if run["flows"] >= 1000 else float("inf")


def rates(loads):
    """MB/s of each program."""
    return [load["bytes_per_s"] / 1e6 for load in loads]


def all_mb_per_s(loads):
    return sum(rates(loads))


def first_to_second(loads):
    first, second = rates(loads)
    return first / second


def cpu_per_mb(loads):
    return loads[0]["cpu_us_per_mb"]


def jain(values):
    return sum(values) ** 2 / (len(values) * sum(v * v for v in values))


def device_times(run):
    """What the two programs have used meanwhile, by the module's books."""
    before, after = ({g["comm"]: g["used_ns"] for g in groups if "comm" in g}
                     for groups in run["groups"])
    return [after[comm] - before[comm] for comm in ("rops", "rload")]


def crowd_rate(run, which):
    """Bytes per second that processes were granted."""
    crowd = run["crowds"][which]
    return crowd["bytes"] / (crowd["ns"] / 1e9)


def ratio(a, b):
    return None if a is None or not b else a / b


def minus(a, b):
    return None if a is None or b is None else a - b


def slow_excess(p, key):
    """What bulk adds on the slow wire, over what a perfect pacer would."""
    return ratio(minus(p.us("slow_isolated", key), p.us("slow_alone", key)), SLOW_RESIDUAL[key])


def rows(p):
    """What it must show: figure, value, must, aim. A pair is a range."""
    alone = {k: p.us("alone", k) for k in ("median", "p90", "p99")}
    beside = {k: p.us("isolated", k) for k in ("median", "p90", "p99")}
    return [
        ("median beside / alone",
         ratio(beside["median"], alone["median"]), 2.2, 1.7),
        ("99th beside / control's",
         ratio(beside["p99"], p.us("control", "p99")), 2, 1.3),
        ("90th beside / alone",
         ratio(beside["p90"], alone["p90"]), 2.8, 2),
        ("99th beside / alone",
         ratio(beside["p99"], alone["p99"]), 4, 2.5),
        ("99th beside / alone, MaxRate twice the link",
         ratio(p.us("twice_rate", "p99"), alone["p99"]), 4.5, 2.5),
        ("storage kept",
         ratio(p.storage("isolated"), p.storage("beside")),
         (0.88, None), (0.95, None)),
        ("100 Mbit/s: median added / by a perfect pacer",
         slow_excess(p, "median"), 1.2, 1.05),
        ("100 Mbit/s: 99th added / by a perfect pacer",
         slow_excess(p, "p99"), 1.3, 1.1),
        ("100 Mbit/s: storage kept",
         ratio(p.storage("slow_isolated"), p.storage("slow_beside")),
         (0.95, None), None),
        ("99th of 4 KB reads / un-isolated",
         ratio(p.small_p99("small_reads_isolated"),
               p.small_p99("small_reads")), 1, 0.2),
        ("storage kept, no latency flow, CPU-bound",
         ratio(p.mb_per_s("cpu_bound_isolated", 0),
               p.mb_per_s("cpu_bound", 0)), (0.95, None), (0.99, None)),
        ("median added by the module, us",
         minus(p.us("loaded", "median"), p.us("bare", "median")), 0.1, 0),
        ("median added by an enabled device, us",
         minus(p.us("enabled", "median"), p.us("bare", "median")), 0.2, 0.06),
        ("median added by an observed device, us",
         minus(p.us("observed", "median"), p.us("bare", "median")), 0.2, None),
        ("storage kept, observed, CPU-bound",
         ratio(p.mb_per_s("cpu_bound_observe", 0),
               p.mb_per_s("cpu_bound_idle", 0)), (0.97, None), None),
        ("storage kept, with histograms, CPU-bound",
         ratio(p.mb_per_s("cpu_bound_histogram", 0),
               p.mb_per_s("cpu_bound_idle", 0)), (0.94, None), None),
        ("flow show of 1,000 queue pairs, s",
         p.median("dump", dump_seconds), 0.3, None),
        ("two initiators, equal weights",
         ratio(p.mb_per_s("initiators_equal", 0),
               p.mb_per_s("initiators_equal", 1)), (0.95, 1.05), None),
        ("two initiators, weights 3:1",
         ratio(p.mb_per_s("initiators_3to1", 0),
               p.mb_per_s("initiators_3to1", 1)), (2.85, 3.15), None),
    ]


def shim_rows(p):
    """The same of programs with the verbs shim."""
    return [
        ("a program: median beside / alone",
         ratio(p.us("shim_one", "median"), p.us("alone", "median")),
         2.3, None),
        ("a program: 99th beside / control's",
         ratio(p.us("shim_one", "p99"), p.us("shim_one_control", "p99")),
         2, None),
        ("8 programs: median beside / alone",
         ratio(p.us("shim_eight", "median"), p.us("alone", "median")),
         2.6, None),
        ("8 programs: 99th beside / control's",
         ratio(p.us("shim_eight", "p99"), p.us("shim_eight_control", "p99")),
         2.2, None),
        ("one of 8 stopped: the others' bandwidth / before",
         ratio(p.loads("shim_stopped", all_mb_per_s),
               p.loads("shim_before_stop", lambda l: all_mb_per_s(l[:7]))),
         (0.95, None), None),
        ("one of 8 stopped: their bandwidth / all before",
         ratio(p.loads("shim_stopped", all_mb_per_s),
               p.loads("shim_before_stop", all_mb_per_s)),
         None, (0.95, None)),
        ("one of 8 stopped: 99th / before",
         ratio(p.us("shim_stopped", "p99"), p.us("shim_before_stop", "p99")),
         1.1, None),
        ("a program: bandwidth kept",
         ratio(p.loads("shim_one", all_mb_per_s),
               p.loads("shim_plain_one", all_mb_per_s)), (0.9, None), None),
        ("8 programs: bandwidth kept",
         ratio(p.loads("shim_eight", all_mb_per_s),
               p.loads("shim_plain_eight", all_mb_per_s)), (0.9, None), None),
        ("10 KB against 1 MB messages",
         p.loads("shim_sizes", first_to_second), (0.95, 1.05), None),
        ("8 queue pairs against one",
         p.loads("shim_qps", first_to_second), (0.95, 1.05), None),
        ("NVMe-oF against a program",
         ratio(p.mb_per_s("shim_nvme", 0), p.loads("shim_nvme", all_mb_per_s)),
         (0.95, 1.05), None),
        ("16 B against 1 MB messages, device time, Jain",
         p.median("shim_ops", lambda r: jain(device_times(r))),
         (0.98, None), None),
        ("median added by the shim, latency class, us",
         minus(p.us("shim_with", "median"), p.us("shim_without", "median")),
         0.2, None),
        ("bandwidth kept, no latency flow, CPU-bound",
         ratio(p.loads("shim_cpu_bound", all_mb_per_s),
               p.loads("shim_cpu_bound_plain", all_mb_per_s)),
         (0.95, None), None),
        ("CPU per MB, 1 MB by the shim / 4 KB by hand",
         ratio(p.loads("shim_cpu", cpu_per_mb),
               p.loads("shim_cpu_own", cpu_per_mb)), 1.3, None),
    ]


def hostile_rows(p):
    """Beside threads that ask the module, and beside such that ask the kernel."""
    return [
        ("64 threads that ask: storage kept",
         ratio(p.storage("hostile_module"), p.storage("hostile_kernel")),
         (0.95, None), None),
        ("64 threads that ask: median / beside the kernel's",
         ratio(p.us("hostile_module", "median"), p.us("hostile_kernel", "median")),
         1.1, None),
        ("64 threads that ask: storage / beside the same at the kernel",
         ratio(p.storage("hostile_module"), p.storage("hostile_same")),
         None, (0.95, None)),
    ] + [
        (f"8 processes that {what}: storage / beside an honest one",
         ratio(p.mb_per_s(f"crowd_{kind}", 0), p.mb_per_s("crowd_honest", 0)),
         (0.95, None), None)
        for kind, what in (("grasp", "post nothing"), ("mute", "neither call"),
                           ("debt", "lie in debt"))
    ] + [
        ("share cgroup: 8 processes against one of another",
         p.median("crowd_cgroups", lambda r: crowd_rate(r, 0) / crowd_rate(r, 1)),
         (0.95, 1.05), None),
        ("beside two that complete nothing / beside two honest ones",
         ratio(p.median("crowd_keep", lambda r: crowd_rate(r, 0)),
               p.median("crowd_fair", lambda r: crowd_rate(r, 0))),
         (0.95, None), None),
    ]


def holds(value, bound):
    low, high = bound if isinstance(bound, tuple) else (None, bound)
    return ((low is None or value >= low) and (high is None or value <= high))


def bound_text(bound):
    if bound is None:
        return ""
    if not isinstance(bound, tuple):
        return f"<= {bound:g}"
    low, high = bound
    return f">= {low:g}" if high is None else f"{low:g}-{high:g}"


PROBES = [
    ("alone", "alone"),
    ("beside", "beside NVMe-oF"),
    ("bare", "alone, in turns with these:"),
    ("loaded", "alone, module loaded"),
    ("enabled", "alone, device enabled"),
    ("observed", "alone, device observed"),
    ("isolated", "beside NVMe-oF, isolated"),
    ("control", "control: on another wire"),
    ("twice_rate", "isolated, MaxRate twice"),
    ("slow_alone", "100 Mbit/s: alone"),
    ("slow_beside", "  beside NVMe-oF"),
    ("slow_isolated", "  isolated"),
    ("shim_plain_one", "beside a program"),
    ("shim_one", "beside a program, shim"),
    ("shim_one_control", "control: on another wire"),
    ("shim_plain_eight", "beside 8 programs"),
    ("shim_eight", "beside 8 programs, shim"),
    ("shim_eight_control", "control: on another wire"),
    ("shim_before_stop", "beside 8, once more"),
    ("shim_stopped", "beside 8, one is stopped"),
    ("shim_without", "alone, in turns with this:"),
    ("shim_with", "alone, probe with the shim"),
    ("hostile_kernel", "64 threads ask the kernel"),
    ("hostile_same", "  the same of it as the module"),
    ("hostile_module", "64 threads ask the module"),
    ("agent_off", "alone, in turns with this:"),
    ("agent_on", "alone, beside reference messages"),
]


def print_probes(p, result):
    print(f"{'16-byte probe, half round trip, us':36}"
          f"{'median':>9}{'90th':>9}{'99th':>9}{'99.9th':>9}{'MB/s':>8}")
    for phase, title in PROBES:
        if phase not in p.runs:
            continue
        keys = ("median", "p90", "p99", "p99_9")
        entry = {k: p.us(phase, k) for k in keys}
        entry["spread"] = {k: p.spread(phase, k) for k in keys}
        entry["repeats"] = len(p.runs[phase])
        entry["samples"] = p.runs[phase][0]["probe"]["samples"]
        entry["storage_mb_per_s"] = p.storage(phase)
        result["probe_us"][phase] = entry
        mb = entry["storage_mb_per_s"]
        print(f"{title:36}" + "".join(f"{entry[k]:9.1f}" for k in keys)
              + (f"{mb:8.1f}" if mb else ""))
        if entry["repeats"] > 1:
            print(f"{'  lowest-highest of %d' % entry['repeats']:36}"
                  + "".join("{:>9}".format("{:.0f}-{:.0f}".format(
                      *entry["spread"][k])) for k in keys))
    print()


def print_storage(p, result):
    named = [("cpu_bound", "1 MB reads, no slow link"),
             ("cpu_bound_isolated", "  isolated"),
             ("cpu_bound_idle", "  idle, in turns with these:"),
             ("cpu_bound_observe", "  observed"),
             ("cpu_bound_histogram", "  observed, with histograms"),
             ("initiators", "two initiators, 1 MB and 64 KB reads"),
             ("initiators_equal", "  isolated, equal weights"),
             ("initiators_3to1", "  isolated, weights 3:1")]
    for phase, title in named:
        if phase in p.runs:
            values = p.runs[phase][0]["mb_per_s"]
            result["storage_mb_per_s"][phase] = values
            print(f"{title:40}" + "  ".join(f"{v:7.1f}" for v in values)
                  + "  MB/s")
    for phase, title in [("small_reads", "4 KB reads beside 1 MB reads"),
                         ("small_reads_isolated", "  isolated")]:
        if phase in p.runs:
            value = p.small_p99(phase)
            result["small_reads_p99_us"][phase] = value
            print(f"{title:40}{value:9.1f} us 99th")
    print()


def print_loads(p, result):
    named = [("shim_plain_one", "a program, 1 MB messages"),
             ("shim_one", "  shim"),
             ("shim_plain_eight", "8 programs, 1 MB messages"),
             ("shim_eight", "  shim"),
             ("shim_before_stop", "  once more"),
             ("shim_stopped", "  one is stopped"),
             ("shim_sizes", "10 KB and 1 MB messages"),
             ("shim_qps", "8 queue pairs and one"),
             ("shim_nvme", "beside NVMe-oF"),
             ("shim_ops", "16 B and 1 MB messages"),
             ("shim_cpu_bound_plain", "1 MB messages, no slow link"),
             ("shim_cpu_bound", "  shim"),
             ("shim_cpu_own", "4 KB messages by hand"),
             ("shim_cpu", "1 MB messages cut by the shim")]
    for phase, title in named:
        if phase in p.runs:
            loads = p.runs[phase][0]["loads"]
            result["load_mb_per_s"][phase] = rates(loads)
            print(f"{title:32}" + " ".join(f"{v:5.1f}" for v in rates(loads))
                  + f" MB/s {loads[0]['messages_per_s']:8.0f} messages/s"
                  f" {cpu_per_mb(loads):7.1f} us/MB")
    if result["load_mb_per_s"]:
        print()


def print_rows(p, result):
    plain = p.loads("shim_plain_one", all_mb_per_s)
    measured = [row for row in rows(p) + shim_rows(p) + hostile_rows(p) +
                agent.rows(p, plain) + kv.rows(p)
                if row[1] is not None]
    if measured:
        print(f"{'':60}{'measured':>9}  {'must':10}aim")
    for title, value, must, aim in measured:
        verdict = ("aim" if aim is not None and holds(value, aim)
                   else "ok" if holds(value, must) else "MISSED")
        result["figures"].append({"figure": title, "value": value,
                                  "must": must, "aim": aim,
                                  "verdict": verdict})
        print(f"{title:60}{value:9.3f}  {bound_text(must):10}"
              f"{bound_text(aim):10}{verdict}")


def print_demo(p):
    def line(title, phase):
        median, p99 = p.us(phase, "median"), p.us(phase, "p99")
        if median is None:
            return
        mb, whole = p.storage(phase), p.storage("beside")
        print(f"{title:40}{median:9.1f}{p99:9.1f}"
              f"{median / p.us('alone', 'median'):8.1f}x"
              f"{p99 / p.us('alone', 'p99'):8.1f}x"
              + (f"{mb:9.1f}{100 * mb / whole:7.0f} %" if mb else ""))

    print(f"{'16-byte message, half round trip':40}{'median':>9}{'99th':>9}"
          f"{'median':>9}{'99th':>9}{'storage':>9}{'kept':>9}")
    print(f"{'':40}{'us':>9}{'us':>9}{'/ alone':>9}{'/ alone':>9}{'MB/s':>9}")
    line("alone", "alone")
    line("beside NVMe-oF 1 MB reads", "beside")
    line("the same, isolated", "isolated")


def main():
    parser = argparse.ArgumentParser()
    for name in ("kernel", "plan", "commit", "clock"):
        parser.add_argument(f"--{name}", required=True)
    parser.add_argument("out", type=pathlib.Path)
    args = parser.parse_args()

    p = Phases(args.out)
    result = {"kernel": args.kernel, "commit": args.commit,
              "link": "rxe over veth, netem 400 Mbit/s, MTU 4096",
              "clock": args.clock,
              "probe_us": {}, "storage_mb_per_s": {}, "load_mb_per_s": {},
              "small_reads_p99_us": {}, "figures": []}
    print(f"Linux {args.kernel}, {args.commit}: {result['link']};"
          f" {result['clock']}\n")
    if args.plan == "demo":
        print_demo(p)
    else:
        if p.runs.keys() & dict(PROBES).keys():
            print_probes(p, result)
        kv.print_table(p, result)
        print_storage(p, result)
        print_loads(p, result)
        print_rows(p, result)
        (args.out / "result.json").write_text(json.dumps(result, indent=1))
    return 0 if p.runs else 1


if __name__ == "__main__":
    sys.exit(main())
