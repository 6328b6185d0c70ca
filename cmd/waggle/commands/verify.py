"""``waggle verify``: a full verification of the speaker's state against the intent, with repair."""

from __future__ import annotations

import argparse
from typing import Any

from waggle import ask_agent, output
from waggle.output import member
from waggle.tables import Column


def _repaired(item: dict[str, Any]) -> str:
    return "yes" if item["repaired"] else f"no: {item.get('error', 'unknown')}"


def _details(item: dict[str, Any]) -> str:
    details = item.get("details", [])
    others = sum(item.get(name, 0) for name in ("missing", "unexpected", "different")) - len(
        details
    )
    text = ", ".join(details)
    return f"{text} (and {others} more)" if details and others > 0 else text


COLUMNS = (
    Column("RECONCILER", member("reconciler")),
    Column("OBJECT", member("object"), minor=2, beneath=True),
    Column("MISSING", member("missing", "0"), right=True),
    Column("UNEXPECTED", member("unexpected", "0"), right=True),
    Column("DIFFERENT", member("different", "0"), right=True),
    Column("REPAIRED", _repaired, style=lambda text: "green" if text == "yes" else "red"),
    Column("DETAILS", _details, minor=1, beneath=True),
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
    drift = ask_agent.act(args, "DriftList", "/v1/verify")
    if drift is None:
        return output.EXIT_ERROR
    items = drift["items"]
    if args.output not in output.TABLES:
        output.dump(drift, args.output)
    elif items:
        output.table(COLUMNS, items, args)
    else:
        print("no drift")
    return output.EXIT_ERROR if items else output.EXIT_OK
