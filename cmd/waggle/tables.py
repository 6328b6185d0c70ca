"""The layout of tables: plain aligned columns, or, on a terminal, columns that fit its width.

On a terminal long texts are wrapped within their column, at spaces and behind commas: a name is never
broken. Where that is not enough, columns that declare it (``minor``) make room one after the other:
they move to lines of their own beneath the row, or are hidden, and a last line names them. Where
that is not enough either, each row is a block of lines, one for each column. With ``wide`` no column
is hidden. Elsewhere every column has its full width.

Rows come in groups, and the lines of a group are returned before the next one is read: a table of a
million rows begins at once. The first group decides on the layout. In a later one a column that is
not limited by a terminal grows where a text is longer.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain
from typing import Any, NamedTuple, TypeAlias

MIN_WIDTH = 12
"""The minimum width of a text in a line of its own."""
TEXT_WIDTH = 30
"""The minimum width of a wrapped column whose text fits beneath its row, or its longest word."""
GAP = "  "
NONE = "-"
"""The cell of an absent value."""
_ANSI = {"green": "32", "yellow": "33", "red": "31", "dim": "2"}
_BREAKS = "/-.:"
"""A word that is longer than a line is broken after one of these."""
_WORDS = re.compile(r"[^ ,]*,|[^ ,]+")


class Column(NamedTuple):
    """A column: its title, its cell of an item, and how it is shown."""

    title: str
    cell: Callable[[Any], str]
    """The text of an item; empty where it has none."""
    wide: bool = False
    """Whether only ``wide`` shows it."""
    right: bool = False
    style: Callable[[str], str] | None = None
    minor: int = 0
    """Other than 0: makes room on a terminal that is too narrow; 1 first, then 2 ..."""
    beneath: bool = False
    """Makes room by lines of its own beneath the row; otherwise it is hidden."""
    whole: bool = False
    """Whether its texts are not wrapped at spaces either, such as a time."""


Rows: TypeAlias = Sequence[Sequence[str]]


def plain(columns: Sequence[Column], groups: Iterable[Rows], layout: Layout) -> Iterator[list[str]]:
    """Yield the lines of each group of a table with columns of their full widths."""
    widths = [1] * len(columns)
    for rows in groups:
        natural = _natural(columns, rows, layout)
        widths = [max(pair) for pair in zip(widths, natural, strict=True)]
        yield _header(columns, widths, layout) + [
            line for row in rows for line in _lines(columns, row, widths, layout)
        ]
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
    chosen = [columns[at] for at in fit.beside]
    for rows in chain([first], others):
        lines = _header(chosen, fit.widths, layout)
        for row in rows:
            lines += _lines(chosen, [row[at] for at in fit.beside], fit.widths, layout)
            lines += _beneath(columns, row, fit.beneath, layout, width)
        yield lines
        layout = layout._replace(headers=False)
    if fit.left_out:
        titles = ", ".join(columns[at].title for at in fit.left_out)
        note = f"({titles}: not shown at this width; {layout.all_columns} shows all columns)"
        yield [styled(line, "dim", layout) for line in wrap(note, width)]


class Fit(NamedTuple):
    """The columns of a row and their widths, the columns beneath it, and the hidden columns."""

    beside: list[int]
    widths: list[int]
    beneath: list[int]
    left_out: list[int]


def _fit(
    columns: Sequence[Column], rows: Rows, layout: Layout, *, width: int, complete: bool
) -> Fit | None:
    """Decide on the columns by these rows; None if no columns fit."""
    natural = _natural(columns, rows, layout)
    least = [
        _least(column, [row[at] for row in rows], natural[at], layout)
        for at, column in enumerate(columns)
    ]
    beside = list(range(len(columns)))
    minor = [at for at in beside if columns[at].minor and (columns[at].beneath or not complete)]
    minor.sort(key=lambda at: -columns[at].minor)
    while minor and _total(least[at] for at in beside) > width:
        beside.remove(minor.pop())
    if _total(least[at] for at in beside) > width:
        return None
    widths = _shrink([natural[at] for at in beside], [least[at] for at in beside], width)
    others = [at for at in range(len(columns)) if at not in beside]
    return Fit(
        beside,
        widths,
        [at for at in others if columns[at].beneath],
        [at for at in others if not columns[at].beneath],
    )


class Layout(NamedTuple):
    """The layout of all tables of an answer."""

    color: bool = False
    headers: bool = True
    all_columns: str = "a wider terminal"
    """The remedy for hidden columns, in the note below the table."""


def text_width(text: str) -> int:
    """Return the number of terminal columns that a text takes."""
    if text.isascii():
        return len(text)
    return sum(
        0 if unicodedata.combining(char) else 2 if unicodedata.east_asian_width(char) in "WF" else 1
        for char in text
    )


def wrap(text: str, width: int) -> list[str]:
    """Break a text into lines of at most ``width`` columns: at spaces and behind commas.

    Only a word that is longer than a line is broken elsewhere.
    """
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
    if comma := word[:most].rfind(",") + 1:
        return comma
    best = max(word[:most].rfind(char) for char in _BREAKS) + 1
    return best if best > most // 2 else most


def _natural(columns: Sequence[Column], rows: Rows, layout: Layout) -> list[int]:
    return [
        max((*(text_width(row[at]) for row in rows), len(column.title) * layout.headers, 1))
        for at, column in enumerate(columns)
    ]


def _least(column: Column, values: Iterable[str], natural: int, layout: Layout) -> int:
    """Return the smallest width of a column, in which no word, number or state is broken."""
    if column.right or column.whole:
        return natural
    longest = max(
        (text_width(word) for value in values for word in _WORDS.findall(value)), default=1
    )
    readable = TEXT_WIDTH if column.beneath or column.style is not None else 1
    return max(longest, min(natural, readable), len(column.title) * layout.headers)


def _total(widths: Iterable[int]) -> int:
    shrunk = list(widths)
    return sum(shrunk) + len(GAP) * (len(shrunk) - 1)


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


def _header(columns: Sequence[Column], widths: Sequence[int], layout: Layout) -> list[str]:
    """Return the line of titles, if there is to be one."""
    titles = [[column.title] for column in columns]
    return _row(columns, titles, widths, [""] * len(columns), layout) if layout.headers else []


def _lines(
    columns: Sequence[Column], row: Sequence[str], widths: Sequence[int], layout: Layout
) -> list[str]:
    """Return the lines of a row."""
    cells = [wrap(value, width) for value, width in zip(row, widths, strict=True)]
    styles = [
        column.style(value) if column.style else ""
        for column, value in zip(columns, row, strict=True)
    ]
    return _row(columns, cells, widths, styles, layout)


def _beneath(
    columns: Sequence[Column],
    row: Sequence[str],
    beneath: Iterable[int],
    layout: Layout,
    width: int,
) -> list[str]:
    """Return the lines beneath a row: a column each, with its title; none for absent values."""
    present = [at for at in beneath if row[at] not in ("", NONE)]
    head = max((len(columns[at].title) for at in present), default=0)
    lines = []
    for at in present:
        style = columns[at].style
        for number, part in enumerate(wrap(row[at], max(MIN_WIDTH, width - head - 2 * len(GAP)))):
            title = "" if number else columns[at].title
            text = styled(part, style(row[at]) if style else "", layout)
            lines.append(f"{GAP}{title:<{head}}{GAP}{text}")
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
            shown = styled(text, styles[at], layout)
            parts.append(padding + shown if column.right else shown + padding)
        lines.append(GAP.join(parts).rstrip())
    return lines


def _blocks(
    columns: Sequence[Column], rows: Rows, layout: Layout, width: int, *, apart: bool
) -> list[str]:
    """Return each row as a block of lines, ``TITLE  value``; ``apart`` from the lines before."""
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
                text = styled(part, style, layout)
                lines.append(f"{title:<{head}}{GAP}{text}" if layout.headers else text)
    return lines


def styled(text: str, style: str, layout: Layout) -> str:
    """Return a text in a colour, if there are colours."""
    code = _ANSI.get(style, "") if layout.color and text.strip() else ""
    return f"\x1b[{code}m{text}\x1b[0m" if code else text
