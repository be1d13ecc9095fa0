#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""
What hosts.sh has measured, as ratios to the runs without the module: a table, one line for each
figure with what it must be and the aim, and the same in result.json.
"""
import argparse
import json
import pathlib

# At 400 Mbit/s, us; with a slower link in proportion
MUST_US, AIM_US = 400, 200
HOWS = ("alone", "shared", "isolated", "control")


def jain(rates):
    """Jain's index: 1 if all have the same"""
    squares = sum(r * r for r in rates)
    return sum(rates) ** 2 / (len(rates) * squares) if squares else 0


class Runs:
    """The runs by part and by how they were made."""

    def __init__(self, path):
        self.runs = {}
        for line in path.read_text().splitlines():
            run = json.loads(line)
            self.runs[run["phase"], run["how"]] = run

    def parts(self):
        """Names of parts, in order"""
        return list(dict.fromkeys(part for part, _ in self.runs))

    def us(self, part, how, which):
        """A percentile of the latency flow, in us"""
        return self.runs[part, how]["probe"][f"{which}_ns"] / 1000

    def mbit(self):
        """Mbit/s of a link"""
        return next(iter(self.runs.values()))["mbit"]

    def rates(self, part, how):
        """Bytes per second of each program"""
        return [load["bytes"] * 1e9 / load["elapsed_ns"]
                for load in self.runs[part, how].get("loads", [])]


def figures(runs):
    """Name, value, must, aim; None for no bound. Larger is better where must is negative."""
    scale = 400 / runs.mbit()
    for part in runs.parts():
        if (part, "isolated") not in runs.runs:
            continue
        own = runs.us(part, "isolated", "p99")
        rates = runs.rates(part, "isolated")
        if part.startswith("own"):
            states = runs.runs[part, "isolated"]["states"]
            yield f"{part}: hosts that are not-local", states.count("not-local"), 0, 0
            yield f"{part}: use of the link", sum(rates) / runs.mbit() / 125000, None, None
        elif part.startswith("incast"):
            yield (f"{part}: 99th beyond alone, us", own - runs.us(part, "alone", "p99"),
                   MUST_US * scale, AIM_US * scale)
            yield f"{part}: Jain's index of the senders", jain(rates), -0.98, -0.99
            yield f"{part}: use of the link", sum(rates) / runs.mbit() / 125000, -0.90, -0.95
        else:
            yield f"{part}: bulk kept", sum(rates) / sum(runs.rates(part, "shared")), -0.88, -0.95
        if (part, "control") in runs.runs:
            yield (f"{part}: 99th / control's", own / runs.us(part, "control", "p99"),
                   None if part.startswith("incast") else 1.5,
                   None if part.startswith("incast") else 1.3)


def is_met(value, bound):
    """Does a figure keep to a bound of figures()?"""
    return value >= -bound if bound < 0 else value <= bound


def told(bound):
    """A bound as text"""
    return "" if bound is None else f">= {-bound:g}" if bound < 0 else f"<= {bound:g}"


def main():
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kernel", default="?")
    parser.add_argument("--clock", default="?")
    parser.add_argument("--commit", default="?")
    parser.add_argument("dir", type=pathlib.Path)
    args = parser.parse_args()
    runs = Runs(args.dir / "phases.jsonl")

    print(f"Linux {args.kernel}, {args.commit}: hosts over rxe and a switch, "
          f"{runs.mbit()} Mbit/s; {args.clock}\n")
    print(f"{'16-byte probe, half round trip, us':<36}{'median':>9}{'90th':>10}{'99th':>10}"
          "    idle %  MB/s of each")
    for part in runs.parts():
        for how in HOWS:
            if (part, how) not in runs.runs:
                continue
            row = [runs.us(part, how, which) for which in ("median", "p90", "p99")]
            rates = " ".join(f"{r / 1e6:.2f}" for r in runs.rates(part, how))
            print(f"{part + ', ' + how:<36}{row[0]:>9.1f}{row[1]:>10.1f}{row[2]:>10.1f}"
                  f"{runs.runs[part, how]['idle_percent']:>10}  {rates}")
    print(f"\n{'':<44}{'measured':>10}  {'must':<10}{'aim':<10}")
    result = []
    for name, value, must, aim in figures(runs):
        word = "" if must is None else \
            "aim" if is_met(value, aim) else "ok" if is_met(value, must) else "MISSED"
        print(f"{name:<44}{value:>10.3f}  {told(must):<10}{told(aim):<10}{word}")
        result.append({"name": name, "value": value, "must": must, "aim": aim})
    (args.dir / "result.json").write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
