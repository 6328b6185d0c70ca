"""``waggle top``: a live screen of one agent: sessions, rates, queue, CPU, the last changes."""

from __future__ import annotations

import argparse
from typing import Any

from cells.arguments import positive, positive_seconds
from waggle import ask_agent, output
from waggle.format_flag import add_format_flag
from waggle.live import INTERVAL_SECONDS, live
from waggle.output import EXIT_ERROR, EXIT_INTERRUPTED, EXIT_OK, EXIT_USAGE, NO_AGENT


def add_parser(subparsers: argparse._SubParsersAction[Any]) -> None:
    """Declare the command and its arguments."""
    parser = subparsers.add_parser(
        "top",
        help="show sessions, rates, CPU and the last changes of the agent, live",
        description="A screen of the agent that follows it: sessions (down first), "
        "UPDATEs a second, octets that wait to be sent, CPU, and the last changes. q ends it, p "
        "holds it. Where standard output is no terminal, a line is printed each time. With -o json "
        "and yaml one reading is printed: process, sessions and the last changes.",
        epilog=output.exit_statuses(
            {
                EXIT_OK: "ended by q, or after --count",
                EXIT_ERROR: f"{NO_AGENT} at the start",
                EXIT_USAGE: output.USAGE,
                output.EXIT_NOT_FOUND: "no such peer or instance",
                EXIT_INTERRUPTED: "interrupted",
            }
        ),
    )
    parser.add_argument(
        "--interval",
        type=positive_seconds,
        default=INTERVAL_SECONDS,
        metavar="SECONDS",
        help="seconds between two readings (default: %(default)g)",
    )
    parser.add_argument("--count", type=positive, metavar="N", help="end after N readings")
    ask_agent.add_socket_flag(parser)
    parser.add_argument("--peer", metavar="P", help="only this peer, by name, address or object")
    parser.add_argument("--instance", metavar="I", help="only peers of this instance")
    add_format_flag(parser, ("table", "json", "yaml"), "table")


def run(args: argparse.Namespace) -> int:
    """Show the screen, or print one reading; returns the exit status."""
    if args.count is not None and args.output not in output.TABLES:
        text = "--count: with -o table only, other formats have one reading"
        output.complain(args.prog, text)
        return EXIT_USAGE
    return live(args, args.interval, args.count)
