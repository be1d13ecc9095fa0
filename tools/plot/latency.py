#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Latency of a message before and after bulk arrives, as one picture.

    latency.py FILE >out.svg

FILE is the result.json that selftests/bench/run.sh leaves, or latency.json or kv.json of
Documentation/results. The message is the bench's probe of 16 bytes, or the hand-off of a
key-value cache where there is no probe. The scale is logarithmic. A dot is the median and a
ring is the 99th percentile. The picture has a background of its own for light and for
dark screens.
"""
import collections
import html
import json
import math
import sys

Picture = collections.namedtuple("Picture", "title message bulk rows slow ticks")
TICKS = [(10, "10 us"), (100, "100 us"), (1000, "1 ms"), (10000, "10 ms"), (100000, "100 ms")]
# By what the result has. The rows in "slow" are red.
PICTURES = {
    "probe_us": Picture("Latency of a 16-byte message beside NVMe-oF reads",
                        "16-byte message, half a round trip", "1 MB NVMe-oF reads",
                        [("alone", "no bulk"),
                         ("beside", "beside bulk, without rdma_isolate"),
                         ("isolated", "beside bulk, with rdma_isolate")],
                        "beside", TICKS[:4]),
    "handoff_us": Picture("Latency of a 64 KB hand-off beside offloads and NVMe-oF reads",
                          "64 KB hand-off by Mooncake", "1 MB offloads and NVMe-oF reads",
                          [("kv_alone", "no bulk"),
                           ("kv_shared", "beside bulk, without rdma_isolate"),
                           ("kv_isolated", "beside bulk, with rdma_isolate"),
                           ("kv_control", "control: that bulk on another wire")],
                          "kv_shared", TICKS[2:]),
}
LEFT, WIDTH, TOP, STEP = 250, 340, 62, 38
STYLE = """text{font:13px sans-serif;fill:#24292f}.dim{fill:#57606a}
.back{fill:#ffffff}.grid{stroke:#d0d7de}.mark{stroke:#0969da;fill:#0969da;stroke-width:2}
.ring{stroke:#0969da;fill:#ffffff;stroke-width:2}.slow{stroke:#cf222e}.dot.slow{fill:#cf222e}
@media(prefers-color-scheme:dark){text{fill:#e6edf3}.dim{fill:#9198a1}.back{fill:#0d1117}
.grid{stroke:#3d444d}.mark{stroke:#4493f8;fill:#4493f8}.ring{stroke:#4493f8;fill:#0d1117}
.slow{stroke:#f85149}.dot.slow{fill:#f85149}}"""


def x_of(us, ticks):
    """Where a time is on the scale."""
    first, last = math.log10(ticks[0][0]), math.log10(ticks[-1][0])
    return LEFT + WIDTH * (math.log10(us) - first) / (last - first)


def text(x, y, words, anchor="start", kind=""):
    """One line of text."""
    return (f'<text x="{x:.0f}" y="{y:.0f}" text-anchor="{anchor}" class="{kind}">'
            f'{html.escape(words)}</text>')


def row(y, title, phase, ticks, slow):
    """A dot, a ring, and their figures at the right."""
    median, p99 = x_of(phase["median"], ticks), x_of(phase["p99"], ticks)
    kind = " slow" if slow else ""
    return [text(LEFT - 14, y + 4, title, "end"),
            f'<path d="M{median:.1f},{y}H{p99:.1f}" class="mark{kind}"/>',
            f'<circle cx="{p99:.1f}" cy="{y}" r="6" class="ring{kind}"/>',
            f'<circle cx="{median:.1f}" cy="{y}" r="4" class="mark dot{kind}"/>',
            text(LEFT + WIDTH + 80, y + 4, f'{phase["median"]:,.0f} us', "end"),
            text(LEFT + WIDTH + 160, y + 4, f'{phase["p99"]:,.0f} us', "end")]


def draw(result):
    """The picture of a result, line by line."""
    key = next(key for key in PICTURES if result.get(key))
    picture = PICTURES[key]
    bottom = TOP + STEP * len(picture.rows)
    size = f'width="{LEFT + WIDTH + 180}" height="{bottom + 50}"'
    svg = [f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img">',
           "<!-- SPDX-License-Identifier: GPL-2.0 -->",
           f"<title>{picture.title}</title>",
           f"<style>{STYLE}</style>",
           '<rect width="100%" height="100%" rx="6" class="back"/>',
           text(LEFT - 14, 24, picture.message, "end"),
           text(LEFT + WIDTH + 80, 24, "median", "end", "dim"),
           text(LEFT + WIDTH + 160, 24, "99th", "end", "dim")]
    for us, label in picture.ticks:
        x = x_of(us, picture.ticks)
        svg.append(f'<path d="M{x:.1f},{TOP - 24}V{bottom - 14}" class="grid"/>')
        svg.append(text(x, bottom + 4, label, "middle", "dim"))
    for i, (phase, title) in enumerate(picture.rows):
        svg += row(TOP + STEP * i, title, result[key][phase], picture.ticks,
                   phase == picture.slow)
    note = (f'Linux {result["kernel"]}, {result["link"]}; bulk is {picture.bulk}. '
            "Dot: median. Ring: 99th percentile.")
    return svg + [text(20, bottom + 34, note, kind="dim"), "</svg>"]


def main():
    """Reads the figures and writes the picture."""
    if len(sys.argv) != 2:
        sys.exit("usage: latency.py FILE >out.svg")
    with open(sys.argv[1], encoding="utf-8") as file:
        print("\n".join(draw(json.load(file))))


main()
