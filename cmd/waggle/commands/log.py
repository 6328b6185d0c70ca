"""``waggle log``: the log level of a running agent, and its change until the agent ends."""

from __future__ import annotations

import argparse
from typing import Any

from waggle import ask_agent, output
from waggle.output import EXIT_ERROR, EXIT_OK, EXIT_USAGE, NO_AGENT, USAGE, member
from waggle.tables import Column

LEVELS = ("debug", "info", "warning", "error", "none")
DEFAULT = "default"


def _set_by(item: dict[str, Any]) -> str:
    return "waggle log" if item["chosen"] else ",".join(item.get("setBy", ())) or "configuration"


COLUMNS = (
    Column("LEVEL", member("level")),
    Column("SET-BY", _set_by),
    Column("CONFIGURED", member("configured")),
)


def add_parser(subparsers: argparse._SubParsersAction[Any]) -> None:
    """Declare the command and its arguments."""
    parser = subparsers.add_parser(
        "log",
        help="show the log level of the agent, or set it until the agent ends",
        description="Show the log level of a running agent, or set it for this agent until it ends. "
        "It takes precedence over the configuration and over objects that set a level.",
        epilog=output.exit_statuses(
            {EXIT_OK: "success", EXIT_ERROR: NO_AGENT, EXIT_USAGE: USAGE},
            "example:\n  waggle log debug",
        ),
    )
    parser.add_argument(
        "level",
        nargs="?",
        metavar="LEVEL",
        choices=(*LEVELS, DEFAULT),
        help=f"{', '.join(LEVELS)}; {DEFAULT} is that of the configuration again. Without LEVEL the "
        "present one is shown",
    )
    ask_agent.add_socket_flag(parser)
    output.add_output_flags(parser)


def run(args: argparse.Namespace) -> int:
    """Show or set the level; returns the exit status."""
    if args.level is None:
        answer = ask_agent.read(args, "LogLevelList", "/v1/log", {})
    else:
        level = None if args.level == DEFAULT else args.level
        answer = ask_agent.act(args, "LogLevelList", "/v1/log", {"level": level})
    if answer is None:
        return EXIT_ERROR
    output.show(answer, COLUMNS, args)
    return EXIT_OK
