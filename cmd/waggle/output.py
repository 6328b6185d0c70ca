"""The output of all sub-commands: tables for people, JSON and YAML for programs, safe text for both.

On a terminal a table fits the width and may have colours, which only repeat a word of the row.
Elsewhere it is plain aligned columns, complete, without colours. Data is escaped and never parsed as
markup: peers choose some of this text.
"""

from __future__ import annotations

import argparse
import io
import json
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Literal, NamedTuple, TextIO

from cells.text import escape

EXIT_OK = 0
EXIT_ERROR = 1
EXIT_USAGE = 2
EXIT_NOT_FOUND = 4
EXIT_INTERRUPTED = 130
EXIT_PIPE = 141

USAGE = "wrong usage"
NO_AGENT = "no agent runs, or it does not answer"
"""Meanings of exit statuses that several commands have."""

API_VERSION = "cli.waggle/v1"
FORMATS = ("table", "wide", "json", "jsonl", "yaml")
COLORS = ("auto", "always", "never")
NONE = "-"
"""The cell of an absent value."""

Color = Literal["auto", "always", "never"]


class Column(NamedTuple):
    """A column: its title, whether only ``wide`` shows it, alignment, and a style by value."""

    title: str
    wide: bool = False
    right: bool = False
    style: Callable[[str], str] | None = None


def use_color(choice: str, stream: TextIO, environ: dict[str, str] | None = None) -> bool:
    """Decide on colours: ``--color``, then NO_COLOR (no-color.org), then TERM and the terminal."""
    env = os.environ if environ is None else environ
    if choice != "auto":
        return choice == "always"
    if env.get("NO_COLOR") or env.get("TERM") == "dumb":
        return False
    return stream.isatty()


def table(
    columns: Sequence[Column],
    rows: Sequence[Sequence[str]],
    *,
    wide: bool = False,
    color: str = "auto",
    stream: TextIO | None = None,
) -> None:
    """Print a table; ``rows`` have a cell for every column, wide ones too."""
    stream = stream or sys.stdout
    shown = [index for index, column in enumerate(columns) if wide or not column.wide]
    head = [columns[index] for index in shown]
    cells = [[escape(row[index]) or NONE for index in shown] for row in rows]
    if stream.isatty() and os.environ.get("TERM") != "dumb":
        _rich(head, cells, stream, color=use_color(color, stream))
    else:
        stream.write(_plain(head, cells, color=use_color(color, stream)))


def add_output_flags(parser: argparse.ArgumentParser) -> None:
    """Add ``-o`` and ``--color``."""
    parser.add_argument(
        "-o", "--output", choices=FORMATS, default="table", help="the format (default: table)"
    )
    parser.add_argument(
        "--color",
        choices=COLORS,
        default="auto",
        help="colours; auto: on a terminal, unless NO_COLOR is set or TERM=dumb",
    )


def exit_statuses(meanings: Mapping[int, str], notes: str = "") -> str:
    """Return the epilog of a command's help: notes, then the exit statuses."""
    lines = [f"  {status:<3}  {meaning}" for status, meaning in meanings.items()]
    return "\n".join([*([notes, ""] if notes else []), "exit status:", *lines])


def document(kind: str, items: list[Any], errors: Sequence[dict[str, str]] = ()) -> dict[str, Any]:
    """Return the envelope of every JSON answer, with items and errors."""
    return {
        "apiVersion": API_VERSION,
        "kind": kind,
        "generatedAt": datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z"),
        "items": items,
        "errors": list(errors),
    }


def dump(answer: dict[str, Any], form: str, stream: TextIO | None = None) -> None:
    """Print an answer as ``json``, as ``jsonl`` (one item a line) or as ``yaml``."""
    stream = stream or sys.stdout
    if form == "yaml":
        import yaml

        yaml.safe_dump(answer, stream, sort_keys=False, allow_unicode=False)
    elif form == "jsonl":
        for item in answer["items"] or answer["errors"]:
            stream.write(safe_json(item) + "\n")
    else:
        stream.write(safe_json(answer, indent=2) + "\n")


def safe_json(value: object, indent: int | None = None) -> str:
    r"""Encode as JSON that is safe to print: other characters are escaped as ``\uXXXX``."""
    text = json.dumps(value, ensure_ascii=False, indent=indent)
    if text.isprintable():
        return text
    return "".join(
        char if char.isprintable() or char == "\n" else json.dumps(char)[1:-1] for char in text
    )


def complain(program: str, message: str) -> None:
    """Print an error or a remark as one line on standard error."""
    print(f"{program}: {escape(message)}", file=sys.stderr)


def read_time(text: str) -> datetime:
    """Parse a time of the API (RFC 3339)."""
    return datetime.fromisoformat(text)


def age(since: datetime | None, now: datetime) -> str:
    """Return the time since then in the form of kubectl: ``45s``, ``5m12s``, ``3h7m``, ``12d``."""
    return NONE if since is None else duration((now - since).total_seconds())


def duration(seconds: float) -> str:
    """Format a duration with at most two units."""
    whole = max(0, int(seconds))
    minutes, second = divmod(whole, 60)
    hours, minute = divmod(minutes, 60)
    days, hour = divmod(hours, 24)
    if days >= 10:
        return f"{days}d"
    for big, small, names in ((days, hour, "dh"), (hours, minute, "hm"), (minutes, second, "ms")):
        if big:
            return f"{big}{names[0]}{small}{names[1]}" if small else f"{big}{names[0]}"
    return f"{second}s"


def short_family(family: str) -> str:
    """Return the short form of a family in tables: ``v4``, ``v6``; others unchanged."""
    return {"ipv4-unicast": "v4", "ipv6-unicast": "v6"}.get(family, family)


def _plain(head: Sequence[Column], cells: Sequence[Sequence[str]], *, color: bool) -> str:
    widths = [
        max(len(column.title), *(len(row[place]) for row in cells))
        for place, column in enumerate(head)
    ]
    out = io.StringIO()

    def line(values: Sequence[str], styles: Sequence[str]) -> None:
        parts = []
        for place, value in enumerate(values):
            padded = value.rjust(widths[place]) if head[place].right else value.ljust(widths[place])
            code = _ANSI.get(styles[place], "") if color else ""
            parts.append(f"\x1b[{code}m{padded}\x1b[0m" if code else padded)
        out.write("  ".join(parts).rstrip() + "\n")

    line([column.title for column in head], [""] * len(head))
    for row in cells:
        line(row, [column.style(row[at]) if column.style else "" for at, column in enumerate(head)])
    return out.getvalue()


def _rich(
    head: Sequence[Column], cells: Sequence[Sequence[str]], stream: TextIO, *, color: bool
) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    console = Console(
        file=stream,
        color_system="auto" if color else None,
        highlight=False,
        markup=False,
        emoji=False,
        legacy_windows=False,
    )
    unicode = console.encoding.lower().startswith("utf")
    drawn = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for place, column in enumerate(head):
        natural = max(len(column.title), *(len(row[place]) for row in cells))
        drawn.add_column(
            column.title,
            # On a narrow terminal long texts are shortened, states and numbers are not.
            min_width=min(natural, 16),
            no_wrap=True,
            overflow="ellipsis" if unicode else "crop",
            justify="right" if column.right else "left",
        )
    for row in cells:
        values = [
            value if unicode else value.encode("ascii", "backslashreplace").decode()
            for value in row
        ]
        # Text objects, not strings: square brackets in data stay square brackets.
        drawn.add_row(
            *(
                Text(value, style=(column.style(value) if column.style else ""))
                for column, value in zip(head, values, strict=True)
            )
        )
    console.print(drawn)


_ANSI = {"green": "32", "yellow": "33", "red": "31", "dim": "2"}
