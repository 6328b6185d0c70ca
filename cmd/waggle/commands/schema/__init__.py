"""``waggle schema``: the JSON Schema of the answers of a kind."""

from __future__ import annotations

import argparse
from typing import Any

from waggle import output
from waggle.output import EXIT_NOT_FOUND, EXIT_OK, EXIT_USAGE, USAGE, member
from waggle.tables import Column

COLUMNS = (
    Column("KIND", member("kind")),
    Column("ID", lambda item: item["schema"]["$id"], minor=1, beneath=True),
)


def add_parser(subparsers: argparse._SubParsersAction[Any]) -> None:
    """Declare the command and its arguments."""
    parser = subparsers.add_parser(
        "schema",
        help="print the JSON Schema of the answers of a kind",
        description="Print the JSON Schema (draft 2020-12) of what commands print with -o json, by the "
        "kind in it; RenderDocument, CheckDocument and WatchItem are of render, check and watch. "
        "Without KIND: the kinds. Within cli.waggle/v1 members are only added.",
        epilog=output.exit_statuses(
            {EXIT_OK: "success", EXIT_USAGE: USAGE, EXIT_NOT_FOUND: "no such kind"},
            "example:\n  waggle schema PeerList > peers.schema.json",
        ),
    )
    parser.add_argument(
        "kind",
        nargs="?",
        metavar="KIND",
        help="a kind, in any case: PeerList (default: list the kinds)",
    )
    output.add_output_flags(parser)


def run(args: argparse.Namespace) -> int:
    """Print the schema, or the kinds; returns the exit status."""
    from waggle.commands.schema import schemas
    from waggle.commands.schema.schemas import schema

    kinds = schemas.kinds()
    if args.kind is None:
        items = [{"kind": kind, "schema": schema(kind)} for kind in kinds]
        output.show(output.document("SchemaList", items), COLUMNS, args)
        return EXIT_OK
    kind = next((name for name in kinds if name.lower() == args.kind.lower()), None)
    if kind is None:
        from resources.schema import did_you_mean

        hint = did_you_mean(args.kind, kinds) or "; waggle schema lists the kinds"
        output.fail(args, "SchemaList", "NotFound", f"there is no kind {args.kind!r}{hint}")
        return EXIT_NOT_FOUND
    # A schema is no table: as JSON, unless a flag selects another form.
    form = "json" if args.output in output.TABLES else args.output
    output.dump_value(schema(kind), form)
    return EXIT_OK
