"""``waggle verify``: a full verification of the speaker's state against the intent, with repair."""

from __future__ import annotations

import argparse
from typing import Any

from waggle import ask_agent, output
from waggle.tables import NONE, Column

COLUMNS = (
    Column("RECONCILER"),
    Column("OBJECT", minor=2, beneath=True),
    Column("MISSING", right=True),
    Column("UNEXPECTED", right=True),
    Column("DIFFERENT", right=True),
    Column("REPAIRED", style=lambda text: "green" if text == "yes" else "red"),
    Column("DETAILS", minor=1, beneath=True),
)


def add_parser(subparsers: argparse._SubParsersAction[Any]) -> None:
    """Declare the arguments of ``waggle verify``."""
    parser = subparsers.add_parser(
        "verify",
        help="compare the speaker's state with the intent, and repair drift",
        description="Run a full verification in a running agent: compare every instance, route, "
        "import policy and peer of the speaker with the intent, and repair the differences.",
        epilog=output.exit_statuses(
            {
                output.EXIT_OK: "no drift",
                output.EXIT_ERROR: "drift, repaired or not; or no agent runs",
                output.EXIT_USAGE: output.USAGE,
            }
        ),
    )
    ask_agent.add_socket_flag(parser)
    output.add_output_flags(parser)


def run(args: argparse.Namespace) -> int:
    """Request a verification and print the drift; returns the exit status."""
    socket = args.socket or ask_agent.default_socket()
    found = ask_agent.answer(
        "verify", "DriftList", args, lambda: ask_agent.post(socket, "/v1/verify")
    )
    if found is None:
        return output.EXIT_ERROR
    items = found["items"]
    if args.output not in ("table", "wide"):
        output.dump(found, args.output)
    elif items:
        output.table(COLUMNS, list(map(row, items)), args)
    else:
        print("no drift")
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
