"""``waggle events``: the Events that a running agent reports on objects, the last one last."""

from __future__ import annotations

import argparse
from datetime import datetime
from typing import Any

from waggle import ask_agent, output
from waggle.output import EXIT_ERROR, EXIT_OK, EXIT_USAGE, NO_AGENT, USAGE, member
from waggle.tables import Column
from waggle.watching import add_watch_flag, watched

OFF = "the agent reports no Events: it has no API server; waggle history has what changes"


def columns(now: datetime) -> tuple[Column, ...]:
    """Return the columns."""
    return (
        Column("LAST-SEEN", output.age_of("lastTime", now), right=True),
        Column("TYPE", member("type"), style=lambda text: "yellow" if text == "Warning" else ""),
        Column("REASON", member("reason")),
        Column("OBJECT", lambda item: output.object_name(item["object"]), minor=2, beneath=True),
        Column("COUNT", member("count", "1"), right=True, minor=3),
        Column("FIRST-SEEN", output.age_of("firstTime", now), right=True, wide=True),
        Column("NODE", member("node"), wide=True),
        Column("MESSAGE", member("message"), minor=1, beneath=True),
    )


def add_parser(subparsers: argparse._SubParsersAction[Any]) -> None:
    """Declare the command and its arguments."""
    parser = subparsers.add_parser(
        "events",
        help="list the Events that the agent reports on objects",
        description="List the Events that a running agent reports, the last one last: also Events that "
        "the API server has not accepted yet, or has deleted. waggle errors explains a REASON.",
        epilog=output.exit_statuses(
            {
                EXIT_OK: "success",
                EXIT_ERROR: f"{NO_AGENT}, or it reports no Events",
                EXIT_USAGE: USAGE,
                output.EXIT_INTERRUPTED: output.WATCH_ENDS,
            }
        ),
    )
    parser.add_argument("--warnings", action="store_true", help="only Events of type Warning")
    ask_agent.add_socket_flag(parser)
    add_watch_flag(parser)
    output.add_output_flags(parser)


def run(args: argparse.Namespace) -> int:
    """Print the Events; returns the exit status."""
    return watched(args, _show)


def _show(args: argparse.Namespace) -> int:
    answer = ask_agent.read(args, "EventList", "/v1/events", {}, OFF)
    if answer is None:
        return EXIT_ERROR
    if args.warnings:
        answer["items"] = [item for item in answer["items"] if item["type"] == "Warning"]
    kind = "Events of type Warning" if args.warnings else "Events"
    empty = f"no {kind} since the agent started"
    output.show(answer, columns(output.read_time(answer["generatedAt"])), args, empty)
    return EXIT_OK
