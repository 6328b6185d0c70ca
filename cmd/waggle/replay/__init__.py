"""``waggle replay``: play a recording of the speaker again, and see what it came to.

This module only declares the command; the work is in `waggle.replay.program`. docs/operations.md
says how a recording is made.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from waggle.peers import add_output_flags
from waggle.routes import TABLES


def add_parser(subparsers: argparse._SubParsersAction[Any]) -> None:
    """Describe the arguments."""
    parser = subparsers.add_parser(
        "replay",
        help="a recorded speaker, played again",
        description="Play a recording (waggle router --record, waggle-agent --record-file) through "
        "the speaker again, without network, and print the state that it ends in.",
        epilog="Exit status 1 says that the speaker does otherwise than when it was recorded; "
        "standard error says from which input on.",
    )
    parser.add_argument("file", type=Path, metavar="FILE", help="the recording")
    parser.add_argument("--until", type=int, metavar="SEQ", help="stop after the input of a number")
    parser.add_argument("--peer", metavar="P", help="only this peer, by name or address")
    parser.add_argument(
        "--show",
        choices=("state", "routes", "actions"),
        default="state",
        help="the sessions (default), the routes, or what came of each input",
    )
    parser.add_argument(
        "--table",
        choices=TABLES,
        default="available",
        help="which routes, with --show routes (default: %(default)s)",
    )
    add_output_flags(parser)


def run(args: argparse.Namespace) -> int:
    """Play and print; the exit status."""
    from waggle.replay.program import main

    return main(args)
