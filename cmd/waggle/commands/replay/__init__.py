"""``waggle replay``: replays a recording of the speaker and prints the resulting state.

This module declares the command; `program` beside it runs it. docs/operations.md describes how to make
a recording.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from cells.arguments import positive
from waggle import output
from waggle.route_columns import TABLES


def add_parser(subparsers: argparse._SubParsersAction[Any]) -> None:
    """Declare the arguments of ``waggle replay``."""
    parser = subparsers.add_parser(
        "replay",
        help="replay a recording of the speaker",
        description="Replay a recording (waggle router --record, waggle-agent --record-file) through "
        "the speaker, without network, and print the state at its end. Standard error names the "
        "first input with another result than in the recording.",
        epilog=output.exit_statuses(
            {
                output.EXIT_OK: "same results as in the recording",
                output.EXIT_ERROR: "other results",
                output.EXIT_USAGE: "wrong usage, or unreadable recording",
                output.EXIT_NOT_FOUND: "no such peer",
            }
        ),
    )
    parser.add_argument("file", type=Path, metavar="FILE", help="the recording")
    parser.add_argument(
        "--until", type=positive, metavar="SEQ", help="stop after the input with this number"
    )
    parser.add_argument("--peer", metavar="P", help="only this peer, by name or address")
    parser.add_argument(
        "--show",
        choices=("state", "routes", "actions"),
        default="state",
        help="the sessions (default), the routes, or the actions after each input",
    )
    parser.add_argument(
        "--table",
        choices=TABLES,
        help="with --show routes: the table (default: available)",
    )
    output.add_output_flags(parser)


def run(args: argparse.Namespace) -> int:
    """Replay and print; returns the exit status."""
    from waggle.commands.replay.program import main

    return main(args)
