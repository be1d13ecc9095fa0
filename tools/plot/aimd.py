#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""SafeUtil under both laws of userspace/lib/aimd.c, as one picture.

    replay_aimd MAX_RATE TARGET99_NS <trace | aimd.py MAX_RATE TARGET99_NS >out.svg

Above SafeUtil in percent of MaxRate, below the short window's 99th in targets, up to
four of them; each step as wide as the time to the next.
"""
import sys

WIDTH, HEIGHT, LEFT, TOP = 900, 180, 60, 30
COLOURS = {"paper": "#b04020", "default": "#2050b0", "short 99th": "#444444"}


def curve(points, begin, end, top, full, colour):
    """A step line, without the points that add nothing to it."""
    path, last = [], None
    for when, value in points:
        x = LEFT + WIDTH * (when - begin) / max(1, end - begin)
        y = top + HEIGHT * (1 - min(1, value / full))
        spot = f"{x:.1f},{y:.1f}"
        if last is None:
            path.append("M" + spot)
        elif f"{y:.1f}" != last:
            path.append(f"H{x:.1f}V{y:.1f}")
        last = f"{y:.1f}"
    path.append(f"H{LEFT + WIDTH}")
    return f'<path d="{"".join(path)}" fill="none" stroke="{colour}"/>'


def axis(top, marks):
    """A frame, with (part of the height, label) at its left."""
    out = [f'<rect x="{LEFT}" y="{top}" width="{WIDTH}" height="{HEIGHT}" '
           'fill="none" stroke="#999999"/>']
    for part, label in marks:
        y = top + HEIGHT * (1 - part)
        out.append(f'<text x="{LEFT - 5}" y="{y + 4}" text-anchor="end">{label}</text>')
        out.append(f'<path d="M{LEFT},{y}h{WIDTH}" stroke="#dddddd"/>')
    return out


def main():
    """Reads the table and writes the picture."""
    if len(sys.argv) != 3:
        sys.exit("usage: aimd.py MAX_RATE TARGET99_NS <table >out.svg")
    max_rate, target = int(sys.argv[1]), int(sys.argv[2])
    rows = [line.split() for line in sys.stdin if not line.startswith("#")]
    if not rows:
        sys.exit("aimd.py: no steps")
    times = [int(row[0]) for row in rows]
    begin, end = times[0], times[-1]
    below = TOP + HEIGHT + 20
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{LEFT + WIDTH + 20}" '
           f'height="{below + HEIGHT + 40}" font-family="sans-serif" font-size="12">',
           '<rect width="100%" height="100%" fill="white"/>']
    for i, (name, colour) in enumerate(COLOURS.items()):
        out.append(f'<text x="{LEFT + 100 * i}" y="18" fill="{colour}">{name}</text>')
    out += axis(TOP, [(0, "0 %"), (0.5, "50 %"), (1, "100 %")])
    out += axis(below, [(0, "0"), (0.25, "target"), (0.5, "2 x"), (1, "4 x")])
    for column, name in ((3, "paper"), (5, "default")):
        points = zip(times, (int(row[column]) for row in rows))
        out.append(curve(points, begin, end, TOP, max_rate, COLOURS[name]))
    points = zip(times, (int(row[2]) for row in rows))
    out.append(curve(points, begin, end, below, 4 * target, COLOURS["short 99th"]))
    out.append(f'<text x="{LEFT + WIDTH}" y="{below + HEIGHT + 18}" text-anchor="end">'
               f"{(end - begin) / 1e9:.1f} s</text></svg>")
    print("\n".join(out))


if __name__ == "__main__":
    main()
