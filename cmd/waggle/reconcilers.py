"""``waggle reconcilers``: the reconcilers of a running agent, in their order, with their last run."""

from __future__ import annotations

import argparse
from datetime import datetime
from typing import Any

from waggle import ask_agent, output
from waggle.tables import NONE, Column

COLUMNS = (
    Column("ORDER", right=True, minor=3),
    Column("RECONCILER"),
    Column("TARGET", minor=2),
    Column("NEEDS", minor=4),
    Column("OBJECTS", right=True),
    Column("ERRORS", right=True, style=lambda text: "green" if text == "0" else "red"),
    Column("WAITING", right=True),
    Column("DRIFTED", right=True),
    Column("LAST-RUN", right=True),
    Column("DURATION", right=True, minor=1),
    Column("SUMMARY", wide=True, minor=5, beneath=True),
)


def add_parser(subparsers: argparse._SubParsersAction[Any]) -> None:
    """Declare the arguments of ``waggle reconcilers``."""
    parser = subparsers.add_parser(
        "reconcilers",
        help="list the reconcilers of the agent and their last run",
        description="List the reconcilers of a running agent in their order. WAITING counts objects "
        "that are still to be reconciled, failed ones included. DRIFTED counts the objects and routes "
        "that full verifications found to differ since the agent started.",
        epilog=output.exit_statuses(
            {
                output.EXIT_OK: "success",
                output.EXIT_ERROR: output.NO_AGENT,
                output.EXIT_USAGE: output.USAGE,
            }
        ),
    )
    ask_agent.add_socket_flag(parser)
    output.add_output_flags(parser)


def run(args: argparse.Namespace) -> int:
    """Print the reconcilers; returns the exit status."""
    answer = ask_agent.read("reconcilers", "ReconcilerList", args, "/v1/reconcilers", {})
    if answer is None:
        return output.EXIT_ERROR
    if args.output not in ("table", "wide"):
        output.dump(answer, args.output)
        return output.EXIT_OK
    now = output.read_time(answer["generatedAt"])
    rows = [row(item, now) for item in answer["items"]]
    output.table(COLUMNS, rows, args)
    return output.EXIT_OK


def row(item: dict[str, Any], now: datetime) -> list[str]:
    """Return the cells of one reconciler, in the order of `COLUMNS`."""
    since = output.read_time(item["lastRunTime"]) if "lastRunTime" in item else None
    seconds = item.get("durationSeconds")
    return [
        str(item["order"]),
        item["name"],
        item["target"],
        ",".join(item["tables"]),
        *(str(item.get(name, NONE)) for name in ("objects", "errors", "waiting", "drifted")),
        output.age(since, now),
        NONE if seconds is None else f"{seconds * 1000:.1f}ms",
        item["summary"],
    ]
