"""The front end of ``waggle``: find the sub-command, import that one alone, run it.

A sub-command is only imported when it is the one that was asked for (or when help lists them
all), so that ``waggle render`` does not pay for a table library or an HTTP server.
"""

from __future__ import annotations

import argparse
import importlib
import importlib.metadata
import os
import sys
from collections.abc import Sequence
from typing import Protocol, cast

from cells.arguments import Parser
from waggle.output import EXIT_INTERRUPTED, EXIT_PIPE

COMMANDS = (
    "status",
    "peers",
    "routes",
    "explain",
    "watch",
    "reconcilers",
    "verify",
    "render",
    "convert",
    "crds",
    "decode",
    "replay",
    "router",
    "demo",
)

EXIT_CODES = """\
exit status:
  0    done
  1    failed, or the agent does not run; verify: something had drifted
  2    wrong usage, or input that cannot be read
  4    what was asked for by name does not exist
  130  interrupted
"""


class Command(Protocol):
    """What a sub-command's module has."""

    def add_parser(self, subparsers: argparse._SubParsersAction[Parser]) -> None:
        """Describe the arguments; imports nothing slow."""

    def run(self, args: argparse.Namespace) -> int:
        """Do it and return the exit status."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run the program; returns its exit status."""
    arguments = sys.argv[1:] if argv is None else list(argv)
    try:
        try:
            status = _dispatch(arguments)
        finally:
            sys.stdout.flush()
    except KeyboardInterrupt:
        return EXIT_INTERRUPTED
    except BrokenPipeError:
        # Whoever read our output has gone (`waggle routes | head`): nothing to complain about.
        # The interpreter would flush once more at exit, so give it somewhere to write to.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return EXIT_PIPE
    return status


def _dispatch(arguments: Sequence[str]) -> int:
    asked = next((word for word in arguments if not word.startswith("-")), None)
    names = (asked,) if asked in COMMANDS else COMMANDS
    parser = Parser(
        prog="waggle",
        description="See what a Waggle agent does, and work on manifests without one.",
        epilog=EXIT_CODES,
    )
    version = importlib.metadata.version("waggle-bgp")
    parser.add_argument("--version", action="version", version=f"waggle {version}")
    subparsers = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    modules = {}
    for name in names:
        module = cast("Command", importlib.import_module(f"waggle.{name}"))
        module.add_parser(subparsers)
        modules[name] = module
    args = parser.parse_args(arguments)
    return modules[args.command].run(args)


if __name__ == "__main__":
    sys.exit(main())
