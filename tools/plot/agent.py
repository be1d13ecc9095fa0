#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""What the agent does over time, as one picture.

    agent.py DIR PHASE >out.svg

DIR has what selftests/bench/run.sh -p agent left. From above: SafeUtil and what was
sent, in percent of MaxRate; Current99 and the 99th percentile of a latency flow (per
100 ms), in targets, up to four of them. Marks say what was done when.
"""
import html
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "selftests" / "bench"), str(ROOT / "tools" / "plot")]

# pylint: disable=wrong-import-position
from agent import Recording  # noqa: E402
from aimd import HEIGHT, LEFT, TOP, WIDTH, axis, curve  # noqa: E402

COLOURS = {"SafeUtil": "#2050b0", "sent": "#209050", "Current99": "#b04020",
           "99th of a latency flow": "#444444"}


def mark_lines(marks, begin, end, bottom):
    """A line across both panels for each mark, with what it says."""
    for text, when in marks.items():
        x = LEFT + WIDTH * (when - begin) / (end - begin)
        # Near the right edge it has room on the left only.
        shift, anchor = (-3, "end") if x > LEFT + 0.85 * WIDTH else (3, "start")
        yield f'<path d="M{x:.1f},{TOP}V{bottom}" stroke="#bbbbbb"/>'
        yield (f'<text x="{x + shift:.1f}" y="{TOP + 12}" text-anchor="{anchor}" '
               f'fill="#777777">{html.escape(text)}</text>')


def main():
    """Reads the recording and writes the picture."""
    if len(sys.argv) != 3:
        sys.exit("usage: agent.py DIR PHASE >out.svg")
    out, phase = pathlib.Path(sys.argv[1]), sys.argv[2]
    r, target = Recording.with_target(out, phase)
    begin, end = 0, max(r.rates[-1][0], r.samples[-1][0])
    max_rate = r.settings[-1][1]["max_rate"]
    below = TOP + HEIGHT + 20
    svg = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{LEFT + WIDTH + 20}" '
           f'height="{below + HEIGHT + 50}" font-family="sans-serif" font-size="12">',
           '<rect width="100%" height="100%" fill="white"/>',
           f'<text x="{LEFT + WIDTH}" y="18" text-anchor="end">'
           f'{html.escape(phase)}, target {target / 1000:.0f} us</text>']
    for i, (name, colour) in enumerate(COLOURS.items()):
        svg.append(f'<text x="{LEFT + 90 * i}" y="18" fill="{colour}">{name}</text>')
    svg += axis(TOP, [(0, "0 %"), (0.5, "50 %"), (1, "100 %")])
    svg += axis(below, [(0, "0"), (0.25, "target"), (0.5, "2 x"), (1, "4 x")])
    svg += mark_lines(r.marks, begin, end, below + HEIGHT)
    svg.append(curve(r.rates, begin, end, TOP, max_rate, COLOURS["sent"]))
    settings = [(t, s) for t, s in r.settings if t >= begin]
    svg.append(curve([(t, s["safe_util"]) for t, s in settings],
                     begin, end, TOP, max_rate, COLOURS["SafeUtil"]))
    svg.append(curve([(t, p99) for t, p99 in r.slices()], begin, end, below,
                     4 * target, COLOURS["99th of a latency flow"]))
    svg.append(curve([(t, s["current99_ns"]) for t, s in settings],
                     begin, end, below, 4 * target, COLOURS["Current99"]))
    for second in range(0, int(end / 1e9) + 1, 5):
        x = LEFT + WIDTH * second * 1e9 / end
        svg.append(f'<text x="{x:.1f}" y="{below + HEIGHT + 18}" '
                   f'text-anchor="middle">{second} s</text>')
    print("\n".join(svg + ["</svg>"]))


main()
