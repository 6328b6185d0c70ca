"""The flag ``--watch``: a command shows its answer again and again, until it is interrupted.

On a terminal each answer replaces the last one. Elsewhere they follow one another: tables with an
empty line between, or JSON lines. An agent that does not answer is a line on standard error, and the
command goes on, so that it outlives a restart of the agent.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from typing import Final

from waggle import output

INTERVAL_SECONDS: Final = 2.0
CLEAR: Final = "\x1b[H\x1b[J"
"""The cursor to the first line, and what is behind it erased (ECMA-48)."""
FORMATS: Final = ("table", "wide", "jsonl")
"""Formats of which several answers can follow one another."""


def add_watch_flag(parser: argparse.ArgumentParser) -> None:
    """Add ``--watch``."""
    parser.add_argument(
        "-w",
        "--watch",
        action="store_true",
        help=f"show it again every {INTERVAL_SECONDS:g} seconds, until interrupted",
    )


def watched(
    args: argparse.Namespace,
    show: Callable[[argparse.Namespace], int],
    sleep: Callable[[float], None] = time.sleep,
) -> int:
    """Show once and return the exit status; with ``--watch`` show until KeyboardInterrupt.

    Wrong usage ends it at once.
    """
    if not args.watch:
        return show(args)
    if args.output not in FORMATS:
        output.complain(args.prog, f"--watch: with -o {', '.join(FORMATS)} only")
        return output.EXIT_USAGE
    redraw = output.terminal_width(sys.stdout) is not None
    between = CLEAR if redraw else "\n" if args.output != "jsonl" else ""
    sys.stdout.write(CLEAR if redraw else "")
    while True:
        # Before what the command writes to standard error, which would be erased otherwise.
        sys.stdout.flush()
        if show(args) == output.EXIT_USAGE:
            return output.EXIT_USAGE  # each answer would be this one
        sys.stdout.flush()
        sleep(INTERVAL_SECONDS)
        sys.stdout.write(between)
