"""A picture of fan-out: how time grows with the number of peers, as an SVG drawn by hand.

Both axes are logarithmic. Colours are readable on light and dark ground.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from bench.speed.report import NAMES, Outcome, number

WIDTH, HEIGHT = 400, 330
LEFT, RIGHT, TOP, BOTTOM = 58, 78, 40, 44
COLOURS = {
    "waggle": "#d97706", "bird": "#2563eb", "frr": "#059669", "openbgpd": "#9333ea",
    "gobgp": "#0891b2", "exabgp": "#dc2626",
}  # fmt: skip
PANELS = (
    ("P1a", "peers come up (P1a)"),
    ("P1b", "10,000 prefixes arrive (P1b)"),
    ("P2", "N x 10,000 to a monitor (P2)"),
)

Series = dict[str, list[tuple[int, float]]]


def series(outcomes: Iterable[Outcome], scenario: str) -> Series:
    """Return median times by contender and number of peers."""
    series: Series = {}
    for outcome in outcomes:
        case = outcome.case
        if case.scenario != scenario or not case.size.startswith("N="):
            continue
        for contender in case.repetitions:
            median = outcome.median(contender, "time")
            if median is not None:
                series.setdefault(contender, []).append((int(case.size[2:]), median))
    return series


def draw(outcomes: Sequence[Outcome]) -> str:
    """Return the picture."""
    panels = [(title, series(outcomes, scenario)) for scenario, title in PANELS]
    panels = [(title, lines) for title, lines in panels if lines]
    width = WIDTH * max(1, len(panels))
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {HEIGHT}"',
        '  font-family="sans-serif" font-size="11">',
        f'<rect width="{width}" height="{HEIGHT}" fill="#ffffff"/>',
    ]
    for index, (title, lines) in enumerate(panels):
        parts.append(f'<g transform="translate({index * WIDTH} 0)">')
        parts += _panel(title, lines)
        parts.append("</g>")
    parts.append("</svg>")
    return "\n".join(parts) + "\n"


def _panel(title: str, lines: Series) -> list[str]:
    peers = sorted({x for points in lines.values() for x, _ in points})
    times = [y for points in lines.values() for _, y in points]
    low = 10 ** math.floor(math.log10(min(times)))
    high = 10 ** math.ceil(math.log10(max(times)))

    def across(x: float) -> float:
        share = math.log(x / peers[0]) / max(math.log(peers[-1] / peers[0]), 1e-9)
        return LEFT + share * (WIDTH - LEFT - RIGHT)

    def up(y: float) -> float:
        return HEIGHT - BOTTOM - math.log(y / low) / math.log(high / low) * (HEIGHT - TOP - BOTTOM)

    parts = [f'<text x="{LEFT}" y="22" font-size="13" font-weight="bold">{title}</text>']
    tick = low
    while tick <= high:
        y = up(tick)
        parts.append(
            f'<path d="M{LEFT} {y:.1f}H{WIDTH - RIGHT}" stroke="#d4d4d8" stroke-width="1"/>'
            f'<text x="{LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{tick:g}</text>'
        )
        tick *= 10
    parts += [
        f'<text x="{across(count):.1f}" y="{HEIGHT - BOTTOM + 16}" text-anchor="middle">'
        f"{count}</text>"
        for count in peers
    ]
    parts.append(
        f'<text x="{(LEFT + WIDTH - RIGHT) / 2}" y="{HEIGHT - 8}" text-anchor="middle">'
        "peers</text>"
        f'<text x="14" y="{(TOP + HEIGHT - BOTTOM) / 2}" text-anchor="middle" '
        f'transform="rotate(-90 14 {(TOP + HEIGHT - BOTTOM) / 2})">milliseconds</text>'
    )
    ends: list[float] = []
    for contender, points in sorted(lines.items(), key=lambda item: -item[1][-1][1]):
        colour = COLOURS[contender]
        path = " ".join(f"{across(x):.1f},{up(y):.1f}" for x, y in points)
        thick = 3 if contender == "waggle" else 1.5
        x, y = points[-1]
        place = up(y) + 4
        while any(abs(place - other) < 12 for other in ends):
            place += 1
        ends.append(place)
        parts.append(
            f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="{thick}"/>'
        )
        parts += [
            f'<circle cx="{across(px):.1f}" cy="{up(py):.1f}" r="2.5" fill="{colour}">'
            f"<title>{NAMES[contender]}, {px} peers: {number(py)} ms</title></circle>"
            for px, py in points
        ]
        parts.append(
            f'<text x="{across(x) + 6:.1f}" y="{place:.1f}" fill="{colour}">'
            f"{NAMES[contender]}</text>"
        )
    return parts
