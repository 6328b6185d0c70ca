"""``waggle reconcilers``: the reconcilers of a running agent, in their order, with their last run."""

from __future__ import annotations

import argparse
from datetime import datetime
from typing import Any

from waggle import ask_agent, output
from waggle.output import member
from waggle.tables import Column


def columns(now: datetime) -> tuple[Column, ...]:
    """Return the columns."""
    return (
        Column("ORDER", member("order"), right=True, minor=3),
        Column("RECONCILER", member("name")),
        Column("TARGET", member("target"), minor=2),
        Column("NEEDS", lambda item: ",".join(item["tables"]), minor=4),
        Column("OBJECTS", member("objects"), right=True),
        Column(
            "ERRORS",
            member("errors"),
            right=True,
            style=lambda text: "green" if text == "0" else "red",
        ),
        Column("WAITING", member("waiting"), right=True),
        Column("DRIFTED", member("drifted"), right=True),
        Column("LAST-RUN", output.age_of("lastRunTime", now), right=True),
        Column("DURATION", _duration, right=True, minor=1),
        Column("SUMMARY", member("summary"), wide=True, minor=5, beneath=True),
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
    answer = ask_agent.read(args, "ReconcilerList", "/v1/reconcilers", {})
    if answer is None:
        return output.EXIT_ERROR
    output.show(answer, columns(output.read_time(answer["generatedAt"])), args)
    return output.EXIT_OK


def _duration(item: dict[str, Any]) -> str:
    seconds = item.get("durationSeconds")
    return "" if seconds is None else f"{seconds * 1000:.1f}ms"
