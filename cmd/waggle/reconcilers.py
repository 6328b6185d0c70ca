"""``waggle reconcilers``: the reconcilers of a running agent, in their order, with their last run."""

from __future__ import annotations

import argparse
from datetime import datetime
from typing import Any

from waggle import agent, output
from waggle.output import NONE, Column
from waggle.peers import add_output_flags, ask, read_time

COLUMNS = (
    Column("ORDER", right=True),
    Column("RECONCILER"),
    Column("TARGET"),
    Column("NEEDS"),
    Column("OBJECTS", right=True),
    Column("ERRORS", right=True, style=lambda text: "green" if text == "0" else "red"),
    Column("WAITING", right=True),
    Column("DRIFTED", right=True),
    Column("LAST-RUN", right=True),
    Column("DURATION", right=True),
    Column("SUMMARY", wide=True),
)


def add_parser(subparsers: argparse._SubParsersAction[Any]) -> None:
    """Describe the arguments of ``waggle reconcilers``."""
    parser = subparsers.add_parser(
        "reconcilers",
        help="the agent's reconcilers and their last run",
        description="List the reconcilers of a running agent in their order.",
        epilog="WAITING objects are to be reconciled, failed ones included; DRIFTED counts what "
        "full verifications have found to differ since the agent's start.",
    )
    agent.add_socket_flag(parser)
    add_output_flags(parser)


def run(args: argparse.Namespace) -> int:
    """Read the list from the agent and print it."""
    answer = ask("reconcilers", "ReconcilerList", args, "/v1/reconcilers", {})
    if answer is None:
        return output.EXIT_ERROR
    if args.output not in ("table", "wide"):
        output.dump(answer, args.output)
        return output.EXIT_OK
    now = read_time(answer["generatedAt"])
    rows = [row(item, now) for item in answer["items"]]
    output.table(COLUMNS, rows, wide=args.output == "wide", color=args.color)
    return output.EXIT_OK


def row(item: dict[str, Any], now: datetime) -> list[str]:
    """Return the cells of one reconciler, in the order of `COLUMNS`."""
    since = read_time(item["lastRunTime"]) if "lastRunTime" in item else None
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
