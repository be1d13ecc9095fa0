#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""
What links.sh has measured, as ratios to the run without the module: one line for each
figure, with what it must be and the aim. Leaves the same in result.json.
"""
import argparse
import json
import pathlib
import re
import statistics
import sys

# A chunk takes so long on the wire, so a small message may wait for the rest of one.
CHUNK_US = 10
# Timers are late by what they should be, and a little more. The mean is of the last ones.
LATE_PART = 0.9


class Runs:
    """The runs by name and by how they were made."""

    def __init__(self, path):
        self.runs = {}
        self.statistics = {}
        self.failed = []
        for line in path.read_text().splitlines():
            run = json.loads(line)
            self.runs[run["name"], run["how"]] = run["result"]
            if run.get("failed"):
                self.failed.append(f"{run['name']}, {run['how']}")
            if run["statistics"]:
                self.statistics[run["name"]] = run["statistics"][0]

    def get(self, name, how):
        return self.runs.get((name, how))

    def has(self, name):
        """Was it planned?"""
        return any(known == name for known, _ in self.runs)

    def statistic(self, name, counter):
        """A counter of the device, since the module was loaded for this run"""
        return self.statistics[name][counter]

    def names(self, pattern):
        """The names that match, with the groups of the pattern, in order, each once."""
        seen = {}
        for name, _ in self.runs:
            match = re.fullmatch(pattern, name)
            if match:
                seen[name] = match.groups()
        return seen.items()


def rate(window, group=None):
    """Bytes per second of a window, of one group or of all."""
    keys = ("bytes0", "bytes1") if group is None else (f"bytes{group}",)
    return sum(window.get(k, 0) for k in keys) / (window["ns"] / 1e9)


def was_held(runs, name):
    """Was the bulk held back?"""
    told = runs.statistics.get(name)
    return told and told["throttle_clock"] + told["throttle_window"] > 0


def was_shaped(runs, name):
    """Was it, and did next to nothing of it pass?"""
    told = runs.statistics.get(name)
    return was_held(runs, name) and \
        told["passed_wrs"] <= (told["chunk_posted"] + told["whole_posted"]) / 10


def kept(runs, name, window=0, base=None, beside=True):
    """What was kept, beside a latency flow or not; None if the module did nothing there"""
    plain, isolated = runs.get(base or name, "plain"), runs.get(name, "isolated")
    if beside and not was_shaped(runs, name):
        return None
    if not plain or not isolated or len(isolated["windows"]) <= window or \
            len(plain["windows"]) <= window or not rate(plain["windows"][window]):
        return None
    return rate(isolated["windows"][window]) / rate(plain["windows"][window])


def added(runs, name, base):
    """Instructions that a post and the poll for it cost more."""
    run, plain = runs.get(name, "isolated"), runs.get(base, "plain")
    if not run or not plain:
        return None
    return sum(run[k] - plain[k] for k in ("post_ns", "poll_ns"))


def count_posts(runs, cpus, how):
    """Posts per second, the median of all rounds"""
    rounds = [runs.get(name, how) for name, _ in runs.names(rf"posts {cpus} \d+")]
    rates = [w["posts"] / (w["ns"] / 1e9) for run in rounds if run for w in run["windows"]]
    return statistics.median(rates) if rates else None


def read_cost(run):
    """Bytes per second that storage gave, and CPU time for each byte"""
    if not run:
        return None
    speed = run["bytes"] / (run["us"] / 1e6)
    window = run["load"]["windows"][0]
    return speed, (1 - window["idle_us"] * 1000 / window["ns"]) / speed


def longest(runs, name, kind):
    """Longest time that was seen, beyond what is measured of nothing of that kind, us"""
    run = runs.get(name, "isolated")
    if not run or not run["value"]:
        return None
    empty = run["empty_lock_ns" if kind == "lock" else "empty_call_ns"]
    return max(run["value"] - empty, 0) / 1000


def over(runs, figure, one, many):
    """A figure of two arguments, with the second ones over that with the first ones"""
    few, lots = figure(runs, *one), figure(runs, *many)
    return lots / few if few and few > 0 and lots is not None else None


def per_chunk(runs, size, where):
    """Instructions that each chunk of a message of 1 MB costs beyond what the adapter takes"""
    whole, parts = runs.get(f"1 MB {where}", "plain"), runs.get(f"{size} {where}", "plain")
    run = runs.get(f"{size} {where}", "isolated")
    if not whole or not parts or not run or f"{size} {where}" not in runs.statistics:
        return None
    chunks = runs.statistic(f"{size} {where}", "chunk_posted") / run["rounds"]
    adapter = (parts["busy_ns"] - whole["busy_ns"]) / (parts["count"] - 1)
    return (run["busy_ns"] - whole["busy_ns"]) / chunks - adapter


def small_p99(runs, name, how):
    """99th percentile of small messages, ns; None if none of them came back"""
    run = runs.get(name, how)
    return run["p99_ns"] if run and run["samples"] else None


def beyond_residual(runs, name, alone):
    """99th percentile of small messages beyond alone and the rest of a chunk, us"""
    isolated, plain = small_p99(runs, name, "isolated"), small_p99(runs, alone, "plain")
    if isolated is None or plain is None:
        return None
    return (isolated - plain) / 1000 - CHUNK_US


def kept_late(runs, mbps, ms, safe):
    """What was kept; None if the timers of the module were not as late as they should be"""
    name = f"late {mbps} {ms} {safe}"
    timers = runs.get(f"timers of {name}", "isolated")
    if not timers or not timers["value"] or name not in runs.statistics or \
            runs.statistic(name, "late_ns") < int(ms) * 1e6 * LATE_PART:
        return None
    return kept(runs, name, base=f"late {mbps}")


def rows(runs):
    """Figure, value, must, aim: upper bounds, or lower ones if they are tuples, or none"""
    out = [
        (f"instructions of post and poll: {title}", added(runs, name, base), must, aim)
        for title, name, base, must, aim in (
            ("latency flow", "latency", "cost", 60, 40),
            ("latency flow, CQ shared with a managed one", "latency, shared CQ", "cost",
             60, 40),
            ("managed, device open", "managed, open", "cost", 120, 60),
            ("managed, device open, chains of 8", "managed, open, of 8", "cost of 8",
             120, 60),
            ("held, alone", "managed, shaped", "cost of one held", 400, 250))
        if runs.has(base)
    ]
    # Two chunks of 120 KB are out at a time at most, so they go one by one, not in batches.
    for _, (size, mbps) in runs.names(r"(4 KB|120 KB) (\d+) 0"):
        out.append((f"instructions of a chunk of {size}: {int(mbps) // 1000} Gbit/s",
                    per_chunk(runs, size, f"{mbps} 0"),
                    *((400, 250) if size == "4 KB" else (None, None))))
    if runs.has("cost 1000"):
        out.append(("a chunk beside 1,000 idle flows / one",
                    over(runs, per_chunk, ("4 KB", "100000 0"), ("4 KB", "100000 1000")),
                    1.2, 1))
        for name in ("latency", "managed, open"):
            out.append((f"added to post and poll, 1,000 idle flows / one: {name}",
                        over(runs, added, (f"{name} 0", "cost 0"),
                             (f"{name} 1000", "cost 1000")), 1.2, 1))
    for name, (kind, qps) in runs.names(r"(managed )?users ([1-9]\d*)"):
        title = "managed, open" if kind else "latency"
        out.append((f"added to post and poll, {int(qps):,} user queue pairs / none: {title}",
                    over(runs, added, (f"{kind or ''}users 0", "users 0"),
                         (name, f"users {qps}")), 1.2, 1))
    for name, (sched, mbps, qps) in runs.names(r"busy (\w+) (\d+) (\d+)"):
        title = f"{int(mbps) // 1000} Gbit/s, {sched}, {qps} queue pairs"
        out.append((f"kept: {title}", kept(runs, name), (0.95,), (0.98,)))
        out.append((f"99th beyond a chunk, us: {title}",
                    beyond_residual(runs, name, f"alone {sched} {mbps}"), 10, 5))
    for name, (mbps, qps) in runs.names(r"no latency flow (\d+) (\d+)"):
        out.append((f"kept: no latency flow, {int(mbps) // 1000} Gbit/s, {qps} queue pairs",
                    kept(runs, name, beside=False), (0.97,), None))
    for name, (mbps, _, us) in runs.names(r"moderated (\d+) (\d+) (\d+)"):
        out.append((f"kept: events {int(us):,} us late, {int(mbps) // 1000} Gbit/s",
                    kept(runs, name), (0.95 if int(us) < 1000 else 0.9,), None))
    for name, (mbps, rtt, read, qps) in runs.names(r"far (\d+) (\d+) (\d) (\d+)"):
        title = (f"round trip {rtt} us, {show_rate(mbps)}, "
                 f"{'READ' if read == '1' else 'WRITE'}, {qps}")
        plain = runs.get(name, "plain")
        for second in (0, 2, 5):
            if plain and len(plain["windows"]) <= second:
                break
            out.append((f"kept in second {second + 1}: {title}",
                        kept(runs, name, second), (0.95,), (0.98,)))
    for name, (weight,) in runs.names(r"groups (\d+)"):
        run = runs.get(name, "isolated")
        out.append((f"kept: two groups, weights {weight}:100",
                    kept(runs, name, beside=False), (0.97,), None))
        share = None
        if run and run["windows"]:
            share = rate(run["windows"][0], 1) / max(rate(run["windows"][0], 0), 1)
            share /= int(weight) / 100
        out.append((f"share of two groups / weights {weight}:100", share, (0.98, 1.02), None))
    for name, (mbps,) in runs.names(r"wrong (\d+)"):
        title = f"100 Gbit/s, MaxRate {int(mbps) // 1000} Gbit/s"
        plain, isolated = small_p99(runs, "wrong", "plain"), small_p99(runs, name, "isolated")
        out.append((f"kept: {title}", kept(runs, name, base="wrong"), (0.9,), None))
        out.append((f"99th / un-isolated: {title}",
                    isolated / plain if plain and isolated else None, 0.5, None))
    for _, (mbps, ms, safe) in runs.names(r"late (\d+) (\d+) (\w+)"):
        out.append((f"kept: timers {ms} ms late, {show_rate(mbps)}, SafeUtil {safe}",
                    kept_late(runs, mbps, ms, safe), (0.9,), (0.95,)))
    for name, (mbps,) in runs.names(r"oversubscribed (\d+)"):
        out.append((f"kept: processor oversubscribed twice, {show_rate(mbps)}",
                    kept(runs, name), (0.9,), (0.95,)))
    for name, (kind, safe) in runs.names(r"irqs off, (timer|call|lock), (\w+)"):
        title = "lock held" if kind == "lock" else kind
        out.append((f"interrupts off, longest, us: {title}, SafeUtil {safe}",
                    longest(runs, name, kind), 50, 20))
    for name, (mbps, beside) in runs.names(r"nvme (\d+) (\w+)"):
        title = "NVMe reads" + (" beside small ones" if beside == "beside" else "")
        plain, isolated = (read_cost(runs.get(name, how)) for how in ("plain", "isolated"))
        # Reads pass until there are small messages beside them.
        if beside == "beside" and not was_held(runs, name):
            isolated = None
        out.append((f"kept: {title}, {show_rate(mbps)}",
                    isolated[0] / plain[0] if plain and isolated else None, (0.97,), None))
        out.append((f"CPU per MB / un-isolated: {title}, {show_rate(mbps)}",
                    isolated[1] / plain[1] if plain and isolated else None, 1.03, None))
    one = count_posts(runs, 1, "isolated")
    for cpus in (1, 2, 8):
        plain, isolated = (count_posts(runs, cpus, how) for how in ("plain", "isolated"))
        if plain and isolated:
            out.append((f"posts/s kept: device open, processors: {cpus}", isolated / plain,
                        (0.9,), (0.97,)))
        if cpus > 1 and one and isolated:
            out.append((f"posts/s isolated, over those of one processor: {cpus}",
                        isolated / one, (1,), None))
    if runs.has("slow and wrong"):
        out.append(("kept: 400 Mbit/s, MaxRate 40 Mbit/s", kept(runs, "slow and wrong"),
                    (0.9,), None))
    return out


def show_rate(mbps):
    return f"{int(mbps) // 1000} Gbit/s" if int(mbps) >= 1000 else f"{mbps} Mbit/s"


def holds(value, bound):
    if not isinstance(bound, tuple):
        return value <= bound
    return value >= bound[0] and (len(bound) == 1 or value <= bound[1])


def show(bound):
    if bound is None:
        return ""
    if not isinstance(bound, tuple):
        return f"<= {bound:g}"
    return f">= {bound[0]:g}" if len(bound) == 1 else f"{bound[0]:g}-{bound[1]:g}"


def main():
    parser = argparse.ArgumentParser()
    for name in ("kernel", "commit", "clock"):
        parser.add_argument(f"--{name}", required=True)
    parser.add_argument("out", type=pathlib.Path)
    args = parser.parse_args()

    figures = []
    runs = Runs(args.out / "links.jsonl")
    print(f"Linux {args.kernel}, {args.commit}: the test adapter nullrdma; {args.clock}\n")
    print(f"{'':66}{'measured':>9}  {'must':11}aim")
    missing = False
    for title, value, must, aim in rows(runs):
        if value is None:
            verdict, shown = "NOT MEASURED", "-"
            missing = True
        else:
            verdict = ("" if must is None
                       else "aim" if aim is not None and holds(value, aim)
                       else "ok" if holds(value, must) else "MISSED")
            shown = f"{value:.3f}"
        figures.append({"figure": title, "value": value, "must": must, "aim": aim,
                        "verdict": verdict})
        print(f"{title:66}{shown:>9}  {show(must):11}{show(aim):10}{verdict}")
    for name in runs.failed:
        print(f"FAILED: {name}")
    (args.out / "result.json").write_text(json.dumps(
        {"kernel": args.kernel, "commit": args.commit, "clock": args.clock,
         "figures": figures}, indent=1, allow_nan=False))
    return 0 if figures and not runs.failed and not missing else 1


if __name__ == "__main__":
    sys.exit(main())
