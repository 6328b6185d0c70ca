"""`waggle convert`: converts objects of one API to objects of another, offline."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Collection, Iterable, Sequence
from typing import TYPE_CHECKING, Any

from resources.pages import reference
from waggle import output
from waggle.dialects import Dialects
from waggle.manifest_flag import add_manifest_flag, complain_of_input, manifest_paths
from waggle.output import (
    EXIT_ERROR,
    EXIT_OK,
    EXIT_USAGE,
    complain,
    exit_statuses,
)
from waggle.tables import Column

if TYPE_CHECKING:
    from reconcilers.dialect import Conversion
    from resources.errors import ObjectName

NAME = "convert"
COLUMNS = (
    Column("API", output.member("apiVersion"), minor=1, beneath=True),
    Column("KIND", output.member("kind")),
    Column("NAMESPACE", lambda value: value["metadata"].get("namespace", ""), minor=2),
    Column("NAME", lambda value: value["metadata"].get("name", "")),
)


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
        f"a note on standard error. {reference('cli')} lists the conversions.",
        epilog=exit_statuses(
            {
                EXIT_OK: "success, also with notes",
                EXIT_ERROR: "notes and --strict, an invalid object, or no object to convert",
                EXIT_USAGE: "wrong usage, unreadable input, or unknown --to",
            }
        ),
    )
    add_manifest_flag(parser)
    output.add_output_flags(parser, ("yaml", "json", "table"), "yaml")
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
    from reconcilers.compile_manifests import kinds_of
    from reconcilers.dialect import Conversion
    from resources.manifests.load import UnreadablePathError, load

    chosen = args.dialects.load()
    known = [conversion for dialect in chosen for conversion in dialect.each(Conversion)]
    conversions = [conversion for conversion in known if conversion.target == args.to]
    if not conversions:
        targets = ", ".join(sorted({conversion.target for conversion in known} - {""})) or "none"
        complain_of_input(args, f"--to: no conversion to {args.to}; the targets are: {targets}")
        return EXIT_USAGE
    rewriter = _Rewriter(conversions)
    kinds = {kind.name for conversion in conversions for kind in conversion.kinds}
    paths = manifest_paths(args)
    try:
        loaded = load(paths, kinds_of(chosen), sys.stdin.buffer, rewriter)
    except UnreadablePathError as error:
        complain_of_input(args, str(error))
        return EXIT_USAGE
    unread = [p for p in loaded.problems if _concerns(p.object, kinds, rewriter)]
    for problem in unread:
        complain("waggle convert", str(problem))
    rows = {kind.name: event.objects for kind, event in loaded.replacements}
    objects, notes = rewriter.objects, rewriter.notes
    for conversion in conversions:
        if conversion.rows is not None:
            objects += conversion.rows(rows, notes)
    for note in notes.problems:
        parts = (str(note.objects[0]), note.field, note.message)
        complain("waggle convert: note", ": ".join(part for part in parts if part))
    if args.output not in ("yaml", "table"):
        output.dump_value({"apiVersion": "v1", "kind": "List", "items": objects}, args.output)
    elif objects and args.output == "table":
        output.table(COLUMNS, objects, args)
    elif objects:
        import yaml

        print(yaml.safe_dump_all(objects, sort_keys=False, allow_unicode=False), end="")
    if not objects:
        drafts = (conversion.drafts for conversion in conversions)
        names = [*sorted(kinds), *filter(None, drafts)]
        named = " or ".join(filter(None, (", ".join(names[:-1]), names[-1])))
        text = f"no {named} to convert in {', '.join(paths)}{_other_targets(known, args.to)}"
        complain("waggle convert", text)
    if unread or not objects or (args.strict and notes.problems):
        return EXIT_ERROR
    return EXIT_OK


def _other_targets(known: Iterable[Conversion], chosen: str) -> str:
    """Return the end of a sentence: what ``--to`` another target converts; empty without any."""
    hints = {
        f"--to {conversion.target} converts {', '.join(kind.name for kind in conversion.kinds)}"
        for conversion in known
        if conversion.target not in ("", chosen)
    }
    return "".join(f"; {hint}" for hint in sorted(hints))


class _Rewriter:
    """Replaces drafts among the objects that are read, and collects what replaces them."""

    def __init__(self, conversions: Sequence[Conversion]) -> None:
        from reconcilers.dialect import Notes

        self._drafts = [known.draft for known in conversions if known.draft is not None]
        self.objects: list[dict[str, Any]] = []
        self.notes = Notes()

    def __call__(self, value: Any) -> Sequence[Any]:  # noqa: ANN401  JSON
        for convert in self._drafts if isinstance(value, dict) else ():
            objects = convert(value, self.notes)
            if objects is not None:
                self.objects += objects
                return objects
        return (value,)


def _concerns(name: ObjectName | None, kinds: Collection[str], rewriter: _Rewriter) -> bool:
    """Whether a problem of the input is one of the objects that are converted."""
    return (
        name is None
        or name.kind in kinds
        or any(
            (name.kind, name.name) == (content["kind"], (content["metadata"] or {}).get("name"))
            for content in rewriter.objects
        )
    )
