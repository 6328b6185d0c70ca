"""`waggle convert`: converts objects of one API to objects of another, offline."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING, Any

from waggle.dialects import Dialects
from waggle.output import (
    EXIT_ERROR,
    EXIT_OK,
    EXIT_USAGE,
    complain,
    exit_statuses,
    safe_json,
)

if TYPE_CHECKING:
    from reconcilers.model import Problem

NAME = "convert"


def add_parser(
    subparsers: argparse._SubParsersAction[argparse.ArgumentParser], dialects: Dialects
) -> None:
    """Declare the command and its arguments."""
    parser = subparsers.add_parser(
        NAME,
        help="convert objects of one API to objects of another",
        description="Convert objects of manifests to the equivalent objects of another API or "
        "version, and print them; writes nothing to a cluster. Other objects among the manifests "
        "(Nodes, pools) make the result more exact. Settings without an equivalent are omitted, with "
        "a note on standard error. docs/cli.md lists the conversions.",
        epilog=exit_statuses(
            {
                EXIT_OK: "success, also with notes",
                EXIT_ERROR: "notes and --strict, an invalid object, or no object to convert",
                EXIT_USAGE: "wrong usage, unreadable input, or unknown --to",
            }
        ),
    )
    parser.add_argument(
        "-f",
        "--filename",
        action="append",
        required=True,
        metavar="PATH",
        nargs="+",
        help="a file or a directory tree of YAML or JSON, or - for standard input; may be repeated",
    )
    parser.add_argument(
        "-o",
        "--output",
        choices=("yaml", "json"),
        default="yaml",
        help="the format (default: %(default)s)",
    )
    parser.add_argument(
        "--to",
        default="",
        metavar="API",
        help="the API of the result; by default the present version of the API of the objects",
    )
    parser.add_argument("--strict", action="store_true", help="exit 1 when there are notes")
    parser.set_defaults(dialects=dialects)


def run(args: argparse.Namespace) -> int:
    """Convert and print; returns the exit status."""
    from reconcilers.offline import kinds_of
    from resources.manifests import UnreadablePathError, load

    chosen = args.dialects.load()
    known = [one for dialect in chosen for one in dialect.converters]
    converters = [one for one in known if one.target == args.to]
    if not converters:
        targets = ", ".join(sorted({one.target for one in known if one.target})) or "none"
        complain("waggle convert", f"--to: no conversion to {args.to}; the targets are: {targets}")
        return EXIT_USAGE
    kinds = {kind.name for converter in converters for kind in converter.kinds}
    paths = [path for group in args.filename for path in group]
    try:
        loaded = load(paths, kinds_of(chosen), sys.stdin.buffer)
    except UnreadablePathError as error:
        complain("waggle convert", str(error))
        return EXIT_USAGE
    unread = [p for p in loaded.problems if p.object is None or p.object.kind in kinds]
    for problem in unread:
        complain("waggle convert", str(problem))
    rows = {kind.name: event.objects for kind, event in loaded.replacements}
    objects: list[dict[str, Any]] = []
    notes: list[Problem] = []
    for converter in converters:
        converted, remarks = converter.convert(rows)
        objects += converted
        notes += remarks
    for note in notes:
        parts = (str(note.objects[0]), note.field, note.message)
        complain("waggle convert: note", ": ".join(part for part in parts if part))
    if args.output == "json":
        print(safe_json({"apiVersion": "v1", "kind": "List", "items": objects}, indent=2))
    elif objects:
        import yaml

        print(yaml.safe_dump_all(objects, sort_keys=False, allow_unicode=False), end="")
    if not objects:
        named = ", ".join(sorted(kinds))
        complain("waggle convert", f"no {named} to convert in {', '.join(paths)}")
    if unread or not objects or (args.strict and notes):
        return EXIT_ERROR
    return EXIT_OK
