"""The output of all sub-commands: tables for people, JSON and YAML for programs, safe text for both.

On a terminal a table fits the width and may have colours, which only repeat a word of the row.
Elsewhere it is plain aligned columns, complete, without colours (`waggle.tables`). Data is escaped:
peers choose some of this text.
"""

from __future__ import annotations

import argparse
import errno
import json
import os
import shutil
import socket
import sys
import textwrap
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from itertools import chain, islice
from typing import Any, TextIO

from cells.safe_text import escape
from waggle.format_flag import JSONPATH, add_format_flag
from waggle.tables import NONE, Column, Layout, fitted, plain, styled, text_width, wrap

EXIT_OK = 0
EXIT_ERROR = 1
EXIT_USAGE = 2
EXIT_INCOMPLETE = 3
EXIT_NOT_FOUND = 4
EXIT_INTERRUPTED = 130
EXIT_PIPE = 141

USAGE = "wrong usage"
INCOMPLETE = "with --all-nodes: nodes without an answer, which are in errors"
NO_AGENT = "no agent runs, or it does not answer"
WATCH_ENDS = "interrupted: the end of --watch"
"""Meanings of exit statuses that several commands have."""

API_VERSION = "cli.waggle/v1"
FORMATS = ("table", "wide", "json", "jsonl", "yaml")
TABLES = ("table", "wide")
DOCUMENTS = ("json", "jsonl", "yaml")
COLORS = ("auto", "always", "never")
GROUP_ROWS = 500
"""Rows of a table that are printed together, with one width for each column: some screenfuls."""


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
    items: Iterable[Any],
    args: argparse.Namespace,
    *,
    stream: TextIO | None = None,
) -> None:
    """Print a table as the flags of `add_output_flags` have it, a group of rows at a time.

    Of each item the columns compute their cells.
    """
    stream = stream or sys.stdout
    wide = args.output == "wide"
    head = [column for column in columns if wide or not column.wide]
    cells = (row(head, item) for item in items)
    layout = Layout(color=use_color(args.color, stream), headers=not args.no_headers)
    if getattr(args, "has_wide", False):
        layout = layout._replace(all_columns="-o wide")
    if (width := terminal_width(stream)) is not None:
        if not (stream.encoding or "ascii").lower().startswith("utf"):
            cells = (
                [text.encode("ascii", "backslashreplace").decode() for text in row] for row in cells
            )
        groups = fitted(head, _groups(cells), layout, width=width, complete=wide)
    else:
        groups = plain(head, _groups(cells), layout)
    for lines in groups:
        stream.write("".join(f"{line}\n" for line in lines))
        stream.flush()


def show(
    answer: dict[str, Any], columns: Sequence[Column], args: argparse.Namespace, empty: str = ""
) -> None:
    """Print an answer in the format of the flags; ``empty`` is printed in place of an empty table."""
    if args.output not in TABLES:
        dump(answer, args.output)
    elif answer["items"] or not empty:
        table(columns, answer["items"], args)
    else:
        complain(args.prog, empty)


def row(columns: Sequence[Column], item: object) -> list[str]:
    """Return the cells of an item, safe to print."""
    return [escape(column.cell(item)) or NONE for column in columns]


def terminal_width(stream: TextIO) -> int | None:
    """Return the width of a terminal in columns; None for anything else."""
    if not stream.isatty() or os.environ.get("TERM") == "dumb":
        return None
    return shutil.get_terminal_size().columns


def line(text: str, indent: int, stream: TextIO | None = None, *, style: str = "") -> None:
    """Print a line of text; on a terminal it is broken at spaces, and goes on behind ``indent``.

    ``style``: the name of its colour.
    """
    stream = stream or sys.stdout
    text, width = escape(text), terminal_width(stream)
    if width is not None and text_width(text) > width > 2 * indent:
        parts = wrap(text[indent:], width - indent)
        text = text[:indent] + f"\n{' ' * indent}".join(parts)
    stream.write(styled(text, style, Layout(color=bool(style))) + "\n")


def _groups(rows: Iterable[list[str]]) -> Iterator[list[list[str]]]:
    """Yield the rows in groups; the first one, which may be empty, decides on the layout."""
    remaining = iter(rows)
    yield list(islice(remaining, GROUP_ROWS))
    while group := list(islice(remaining, GROUP_ROWS)):
        yield group


def add_output_flags(
    parser: argparse.ArgumentParser,
    formats: Sequence[str] = FORMATS,
    default: str = "table",
    *,
    headers: bool = True,
    ends: bool = True,
) -> None:
    """Add ``-o``, ``--color``, and where tables have ``headers`` also ``--no-headers``.

    An output that ``ends`` has a pager and a progress on a terminal, and ``--no-pager``.
    """
    add_format_flag(parser, formats, default)
    if headers:
        parser.add_argument(
            "--no-headers", action="store_true", help="tables without the line of titles"
        )
    parser.add_argument(
        "--color",
        choices=COLORS,
        default="auto",
        help="colours; auto: on a terminal, unless NO_COLOR is set or TERM=dumb",
    )
    if ends:
        parser.set_defaults(prog=parser.prog)
        parser.add_argument(
            "--no-pager", dest="pager", action="store_false", help="on a terminal: no pager"
        )


def is_template(form: str) -> bool:
    """Return whether a value of ``--output`` is a template."""
    return form.startswith(JSONPATH)


def is_document(form: str) -> bool:
    """Return whether a value of ``--output`` is for programs: JSON, YAML or a template."""
    return form in DOCUMENTS or is_template(form)


def exit_statuses(meanings: Mapping[int, str], notes: str = "") -> str:
    """Return the epilog of a command's help: notes, then the exit statuses."""
    lines = [
        textwrap.fill(
            meaning,
            78,
            initial_indent=f"  {status:<3}  ",
            subsequent_indent=" " * 7,
            break_on_hyphens=False,
        )
        for status, meaning in meanings.items()
    ]
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
    """Print an answer as ``json``, as ``jsonl`` (one item a line), as ``yaml`` or by a template."""
    names = list(answer)
    at = names.index("items")
    head = {name: answer[name] for name in names[:at]}
    rest = {name: answer[name] for name in names[at + 1 :]}
    dump_list(head, answer["items"], lambda: rest, form, stream)


def dump_list(
    head: Mapping[str, Any],
    items: Iterable[Any],
    rest: Callable[[], Mapping[str, Any]],
    form: str,
    stream: TextIO | None = None,
) -> None:
    """Print an answer as `dump`, each item as it comes; ``rest`` is called behind the last one."""
    stream = stream or sys.stdout
    if is_template(form):
        dump_value({**head, "items": list(items), **rest()}, form, stream)
        return
    remaining = iter(items)
    first = next(remaining, None)
    parts = chain(() if first is None else (first,), remaining)
    if form == "jsonl":
        for item in parts:
            stream.write(safe_json(item) + "\n")
        for error in {**head, **rest()}["errors"] if first is None else ():
            stream.write(safe_json(error) + "\n")
    elif form == "yaml":
        _dump_yaml(head, parts, rest, stream)
    else:
        _dump_json(head, parts, rest, stream)


def dump_value(value: object, form: str, stream: TextIO | None = None) -> None:
    """Print a document that is no list of items as ``json``, as ``yaml`` or by a template."""
    stream = stream or sys.stdout
    if is_template(form):
        from waggle.jsonpath import Template

        text = Template(form.removeprefix(JSONPATH)).render(value, escape)
        # As kubectl prints it; only the prompt of a shell needs a line of its own.
        stream.write(text + "\n" * (stream.isatty() and not text.endswith("\n")))
        errors = value.get("errors") if isinstance(value, dict) else None
        for error in errors if isinstance(errors, list) else ():
            # A template seldom has the errors: without them an outage would be an empty list.
            complain("waggle", ": ".join(filter(None, (error.get("node"), error["message"]))))
    elif form == "yaml":
        import yaml

        yaml.safe_dump(value, stream, sort_keys=False, allow_unicode=False)
    else:
        stream.write(safe_json(value, indent=None if form == "jsonl" else 2) + "\n")


def fail(args: argparse.Namespace, kind: str, code: str, message: str) -> None:
    """Print an error in the form of ``--output``: as an answer without items, or as a sentence."""
    if is_document(args.output):
        dump(document(kind, [], [{"code": code, "message": message}]), args.output)
    else:
        complain(args.prog, message)


def _dump_json(
    head: Mapping[str, Any],
    items: Iterable[Any],
    rest: Callable[[], Mapping[str, Any]],
    stream: TextIO,
) -> None:
    def member(name: str, value: object) -> str:
        return safe_json({name: value}, indent=2)[2:-2]

    stream.write("{\n" + "".join(f"{member(*of)},\n" for of in head.items()) + '  "items": [')
    before, after = "\n", "]"
    opening, closing = safe_json({"items": [0]}, indent=2).split("    0")
    for item in items:
        text = safe_json({"items": [item]}, indent=2)
        stream.write(before + text.removeprefix(opening).removesuffix(closing))
        before, after = ",\n", "\n  ]"
    stream.write(after + "".join(f",\n{member(*of)}" for of in rest().items()) + "\n}\n")


def _dump_yaml(
    head: Mapping[str, Any],
    items: Iterable[Any],
    rest: Callable[[], Mapping[str, Any]],
    stream: TextIO,
) -> None:
    import yaml

    def dump(value: object) -> None:
        yaml.safe_dump(value, stream, sort_keys=False, allow_unicode=False)

    if head:
        dump(dict(head))
    remaining = iter(items)
    first = next(remaining, None)
    if first is None:
        stream.write("items: []\n")
    else:
        dump({"items": [first]})
    for item in remaining:
        dump([item])
    if after := rest():
        dump(dict(after))


def safe_json(value: object, indent: int | None = None) -> str:
    r"""Encode as JSON that is safe to print: other characters are escaped as ``\uXXXX``."""
    text = json.dumps(value, ensure_ascii=False, indent=indent)
    # Only what is between its lines has line feeds, and hardly ever it has anything else to escape.
    if text.replace("\n", "").isprintable():
        return text
    return "".join(
        char if char.isprintable() or char == "\n" else json.dumps(char)[1:-1] for char in text
    )


def address_order(text: str | None) -> tuple[int, bytes, int]:
    """Return the sort key of an address or a prefix: IPv4, IPv6, then everything else.

    Of two prefixes with one address the shorter one is first.
    """
    address, _, length = (text or "").partition("/")
    address = address.partition("%")[0]
    version, family = (6, socket.AF_INET6) if ":" in address else (4, socket.AF_INET)
    try:
        packed = socket.inet_pton(family, address)
        return version, packed, int(length) if length else 8 * len(packed)
    except (OSError, ValueError):
        return 7, b"", 0


def peer_order(item: dict[str, Any]) -> tuple[Any, ...]:
    """Return the sort key of a session: its instance, its address, its name."""
    return item["instance"], *address_order(item.get("address")), item["name"]


def complain(program: str, message: str) -> None:
    """Print an error or a remark as one line on standard error."""
    print(f"{program}: {escape(message)}", file=sys.stderr)


_OF_OUTPUT = frozenset({errno.EPIPE, errno.ENOSPC, errno.EDQUOT, errno.EFBIG})


def is_of_output(error: BaseException | None) -> bool:
    """Return whether an error is that of a write to standard output: no file has its name.

    Commands leave it to `waggle.__main__`, also where they handle errors of what they read.
    """
    return isinstance(error, OSError) and error.errno in _OF_OUTPUT and error.filename is None


def reason_of(error: OSError) -> str:
    """Return the error of the operating system as a sentence: the file, and what is wrong."""
    text = error.strerror or str(error)
    return f"{error.filename}: {text}" if error.filename else text


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


def member(name: str, missing: str = "") -> Callable[[Mapping[str, Any]], str]:
    """Return the cell of a member of an item, as text."""

    def cell(item: Mapping[str, Any]) -> str:
        value = item.get(name)
        return missing if value is None else str(value)

    return cell


def age_of(name: str, now: datetime) -> Callable[[Mapping[str, Any]], str]:
    """Return the cell of the time since a member of an item."""
    return lambda item: age(read_time(item[name]) if name in item else None, now)


def object_name(ref: Mapping[str, Any] | None) -> str:
    """Return a reference to an object as tables have it: ``Service/shop/web``; empty without one."""
    parts = () if ref is None else (ref["kind"], ref.get("namespace"), ref["name"])
    return "/".join(filter(None, parts))


def short_family(family: str) -> str:
    """Return the short form of a family in tables: ``v4``, ``v6``; others unchanged."""
    return {"ipv4-unicast": "v4", "ipv6-unicast": "v6"}.get(family, family)
