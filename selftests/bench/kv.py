# SPDX-License-Identifier: GPL-2.0
"""The table of the phases of kv.inc."""

# A hand-off is in time if it takes no longer than so many times the median alone.
IN_TIME = 2

ROWS = [("kv_alone", "alone"),
        ("kv_shared", "beside offload and NVMe-oF reads"),
        ("kv_isolated", "the same, isolated"),
        ("kv_control", "control: isolated, on another wire")]


def in_time(p, phase, limit_us):
    """The share of hand-offs that took no longer"""
    samples = [ns for run in p.runs[phase] for ns in run["probe"]["samples_ns"]]
    return sum(ns <= limit_us * 1000 for ns in samples) / len(samples)


def offload_mb_per_s(loads):
    """What the one program has moved"""
    return loads[0]["bytes_per_s"] / 1e6


def figures(p, phase, limit_us):
    """Of one phase"""
    entry = {key: p.us(phase, key) for key in ("median", "p90", "p99")}
    entry["in_time"] = in_time(p, phase, limit_us)
    if "loads" in p.runs[phase][0]:
        entry["offload_mb_per_s"] = p.loads(phase, offload_mb_per_s)
        entry["storage_mb_per_s"] = p.storage(phase)
    return entry


def print_row(title, entry, shared):
    """Latencies also as ratios to what it takes without isolation"""
    print(f"{title:36}" + "".join(f"{entry[k]:9.0f}" for k in ("median", "p90", "p99"))
          + "".join(f"{entry[k] / shared[k]:9.3f}" for k in ("median", "p99"))
          + f"{100 * entry['in_time']:8.1f} %"
          + ("{offload_mb_per_s:9.1f}{storage_mb_per_s:9.1f}".format(**entry)
             if "offload_mb_per_s" in entry else ""))


def rows(p):
    """What it must show: figure, value, must, aim."""
    isolated, control = p.us("kv_isolated", "p99"), p.us("kv_control", "p99")
    value = isolated / control if isolated and control else None
    return [("99th of hand-offs, isolated / control's", value, 2, 1.3)]


def print_table(p, result):
    """All phases that were run"""
    alone = p.us("kv_alone", "median")
    if alone is None or "kv_shared" not in p.runs:
        return
    result["handoff_us"] = {phase: figures(p, phase, IN_TIME * alone)
                            for phase, _ in ROWS if phase in p.runs}
    result["in_time_us"] = IN_TIME * alone
    limit = f"{result['in_time_us'] / 1000:.1f} ms"
    print(f"{'64 KB hand-off of a key-value cache':36}{'median':>9}{'90th':>9}{'99th':>9}"
          f"{'median':>9}{'99th':>9}{'within':>10}{'offload':>9}{'NVMe-oF':>9}")
    print(f"{'':36}{'us':>9}{'us':>9}{'us':>9}{'/shared':>9}{'/shared':>9}{limit:>10}"
          f"{'MB/s':>9}{'MB/s':>9}")
    for phase, title in ROWS:
        if phase in result["handoff_us"]:
            print_row(title, result["handoff_us"][phase], result["handoff_us"]["kv_shared"])
    print()
