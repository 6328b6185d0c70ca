"""``waggle verify``: compare everything that the speaker holds with the intent, and repair it."""

from __future__ import annotations

import argparse
from typing import Any

from waggle import agent, output
from waggle.output import NONE, Column
from waggle.peers import add_output_flags, answer

COLUMNS = (
    Column("RECONCILER"),
    Column("OBJECT"),
    Column("MISSING", right=True),
    Column("UNEXPECTED", right=True),
    Column("DIFFERENT", right=True),
    Column("REPAIRED", style=lambda text: "green" if text == "yes" else "red"),
    Column("DETAILS"),
)


def add_parser(subparsers: argparse._SubParsersAction[Any]) -> None:
    """Describe the arguments of ``waggle verify``."""
    parser = subparsers.add_parser(
        "verify",
        help="compare what the speaker holds with the intent, and repair it",
        description="Run a full verification in a running agent: compare every instance, route, "
        "import policy and peer of the speaker with the intent, and repair what differs.",
        epilog="Exit status 0 when nothing had drifted, 1 when something had, repaired or not.",
    )
    agent.add_socket_flag(parser)
    add_output_flags(parser)


def run(args: argparse.Namespace) -> int:
    """Request a verification and print what drifted."""
    socket = args.socket or agent.default_socket()
    found = answer("verify", "DriftList", args, lambda: agent.post(socket, "/v1/verify"))
    if found is None:
        return output.EXIT_ERROR
    items = found["items"]
    if args.output not in ("table", "wide"):
        output.dump(found, args.output)
    elif items:
        output.table(COLUMNS, list(map(row, items)), color=args.color)
    else:
        print("nothing had drifted")
    return output.EXIT_ERROR if items else output.EXIT_OK


def row(item: dict[str, Any]) -> list[str]:
    """Return the cells of one object, in the order of `COLUMNS`."""
    counts = [item.get(name, 0) for name in ("missing", "unexpected", "different")]
    total, details = sum(counts), item.get("details", [])
    text = ", ".join(details)
    if details and total > len(details):
        text += f" (and {total - len(details)} more)"
    return [
        item["reconciler"],
        item["object"],
        *map(str, counts),
        "yes" if item["repaired"] else f"no: {item.get('error', 'unknown')}",
        text or NONE,
    ]
