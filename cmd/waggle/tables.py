"""The layout of tables: plain aligned columns, or, on a terminal, columns that fit its width.

On a terminal long texts are wrapped within their column. Where that is not enough, the columns that
declare it are left out, and a last line names them; where that is not enough either, and always with
``wide``, each row is a block of lines, one for each column. Elsewhere every column has its full width.

Rows come in groups, and the lines of a group are returned before the next one is read: a table of a
million rows begins at once. The first group decides on the layout. In a later one a column that is
not limited by a terminal grows where a text is longer.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain
from typing import NamedTuple, TypeAlias

MIN_WIDTH = 16
"""A column is not made narrower than its longest word, or this width where the word is longer."""
GAP = "  "
_ANSI = {"green": "32", "yellow": "33", "red": "31", "dim": "2"}
_BREAKS = "/,-.:"
"""A word that is longer than its column is broken after one of these."""


class Column(NamedTuple):
    """A column: its title, whether only ``wide`` shows it, alignment, and a style by value."""

    title: str
    wide: bool = False
    right: bool = False
    style: Callable[[str], str] | None = None
    minor: int = 0
    """Other than 0: left out of a terminal that is too narrow; 1 first, then 2 ..."""


Rows: TypeAlias = Sequence[Sequence[str]]


def plain(columns: Sequence[Column], groups: Iterable[Rows], layout: Layout) -> Iterator[list[str]]:
    """Yield the lines of each group of a table with columns of their full widths."""
    widths = [1] * len(columns)
    for rows in groups:
        natural = _natural(columns, rows, layout)
        widths = [max(pair) for pair in zip(widths, natural, strict=True)]
        yield _aligned(columns, rows, widths, layout)
        layout = layout._replace(headers=False)


def fitted(
    columns: Sequence[Column],
    groups: Iterable[Rows],
    layout: Layout,
    *,
    width: int,
    complete: bool,
) -> Iterator[list[str]]:
    """Yield the lines of each group of a table that is at most ``width`` wide.

    ``complete`` keeps all columns.
    """
    others = iter(groups)
    first = next(others, [])
    fit = _fit(columns, first, layout, width=width, complete=complete)
    if fit is None:
        for rows in chain([first], others):
            yield _blocks(columns, rows, layout, width, apart=rows is not first)
        return
    chosen = [columns[at] for at in fit.shown]
    for rows in chain([first], others):
        yield _aligned(chosen, [[row[at] for at in fit.shown] for row in rows], fit.widths, layout)
        layout = layout._replace(headers=False)
    missing = [column.title for at, column in enumerate(columns) if at not in fit.shown]
    if missing:
        note = f"({', '.join(missing)}: not shown at this width; -o wide shows all columns)"
        yield [_styled(line, "dim", layout) for line in wrap(note, width)]


class Fit(NamedTuple):
    """The columns that are shown, and their widths."""

    shown: list[int]
    widths: list[int]


def _fit(
    columns: Sequence[Column], rows: Rows, layout: Layout, *, width: int, complete: bool
) -> Fit | None:
    """Decide on the columns by these rows; None if no columns fit."""
    natural = _natural(columns, rows, layout)
    least = [
        _least(column, [row[at] for row in rows], natural[at], layout)
        for at, column in enumerate(columns)
    ]
    shown = list(range(len(columns)))
    minor = [] if complete else sorted(at for at in shown if columns[at].minor)
    for at in sorted(minor, key=lambda at: columns[at].minor):
        if _total(least[at] for at in shown) <= width:
            break
        shown.remove(at)
    if _total(least[at] for at in shown) > width:
        return None
    return Fit(shown, _shrink([natural[at] for at in shown], [least[at] for at in shown], width))


class Layout(NamedTuple):
    """What all tables of an answer have in common."""

    color: bool = False
    headers: bool = True


def text_width(text: str) -> int:
    """Return the number of terminal columns that a text takes."""
    if text.isascii():
        return len(text)
    return sum(
        0 if unicodedata.combining(char) else 2 if unicodedata.east_asian_width(char) in "WF" else 1
        for char in text
    )


def wrap(text: str, width: int) -> list[str]:
    """Break a text into lines of at most ``width`` columns: at spaces, else within a word."""
    lines, line = [], ""
    for word in text.split(" "):
        joined = f"{line} {word}" if line else word
        if text_width(joined) <= width:
            line = joined
            continue
        if line:
            lines.append(line)
        line = word
        while text_width(line) > width:
            cut = _cut(line, width)
            lines.append(line[:cut])
            line = line[cut:]
    return [*lines, line]


def _cut(word: str, width: int) -> int:
    """Return the number of characters before a break of a word."""
    most = max(1, width)
    while most > 1 and text_width(word[:most]) > width:
        most -= 1
    best = max(word[:most].rfind(char) for char in _BREAKS) + 1
    return best if best > most // 2 else most


def _natural(columns: Sequence[Column], rows: Rows, layout: Layout) -> list[int]:
    return [
        max((*(text_width(row[at]) for row in rows), len(column.title) * layout.headers, 1))
        for at, column in enumerate(columns)
    ]


def _least(column: Column, values: Iterable[str], natural: int, layout: Layout) -> int:
    """Return the smallest width of a column: numbers and states are never broken."""
    if column.right or column.style is not None:
        return min(natural, 2 * MIN_WIDTH)
    longest = max((text_width(word) for value in values for word in value.split(" ")), default=1)
    return max(min(longest, MIN_WIDTH), len(column.title) * layout.headers)


def _total(widths: Iterable[int]) -> int:
    found = list(widths)
    return sum(found) + len(GAP) * (len(found) - 1)


def _shrink(widths: list[int], least: Sequence[int], width: int) -> list[int]:
    """Take from the widest column until all fit; ``least`` fits."""
    while (excess := _total(widths) - width) > 0:
        at = max(
            (at for at in range(len(widths)) if widths[at] > least[at]), key=lambda at: widths[at]
        )
        others = [widths[other] for other in range(len(widths)) if widths[other] < widths[at]]
        floor = max(least[at], max(others, default=0), widths[at] - excess)
        widths[at] = min(floor, widths[at] - 1)
    return widths


def _aligned(
    columns: Sequence[Column],
    rows: Rows,
    widths: Sequence[int],
    layout: Layout,
) -> list[str]:
    lines = []
    if layout.headers:
        titles = [[column.title] for column in columns]
        lines += _row(columns, titles, widths, [""] * len(columns), layout)
    for row in rows:
        cells = [wrap(value, width) for value, width in zip(row, widths, strict=True)]
        styles = [
            column.style(value) if column.style else ""
            for column, value in zip(columns, row, strict=True)
        ]
        lines += _row(columns, cells, widths, styles, layout)
    return lines


def _row(
    columns: Sequence[Column],
    cells: Sequence[Sequence[str]],
    widths: Sequence[int],
    styles: Sequence[str],
    layout: Layout,
) -> list[str]:
    lines = []
    for number in range(max(map(len, cells))):
        parts = []
        for at, column in enumerate(columns):
            text = cells[at][number] if number < len(cells[at]) else ""
            padding = " " * (widths[at] - text_width(text))
            padded = padding + text if column.right else text + padding
            parts.append(_styled(padded, styles[at], layout))
        lines.append(GAP.join(parts).rstrip())
    return lines


def _blocks(
    columns: Sequence[Column], rows: Rows, layout: Layout, width: int, *, apart: bool
) -> list[str]:
    """Return each row as a block of lines, ``TITLE  value``; ``apart`` from those before."""
    head = max(len(column.title) for column in columns) * layout.headers
    lines: list[str] = []
    for row in rows:
        if lines or apart:
            lines.append("")
        for column, value in zip(columns, row, strict=True):
            style = column.style(value) if column.style else ""
            parts = wrap(value, max(MIN_WIDTH, width - head - len(GAP)))
            for number, part in enumerate(parts):
                title = column.title if layout.headers and number == 0 else ""
                text = _styled(part, style, layout)
                lines.append(f"{title:<{head}}{GAP}{text}" if layout.headers else text)
    return lines


def _styled(text: str, style: str, layout: Layout) -> str:
    code = _ANSI.get(style, "") if layout.color and text.strip() else ""
    return f"\x1b[{code}m{text}\x1b[0m" if code else text
