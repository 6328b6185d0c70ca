"""A sub-command of ``waggle`` that the entry of an API dialect adds (`Subcommand`)."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Mapping
from typing import Any, Final

from cells.api.client import AgentError
from cells.safe_text import escape
from reconcilers.dialect import Answer, Ask, Command, CommandError
from reconcilers.dialect_entry import Subcommand
from waggle import ask_agent, output
from waggle.format_flag import add_format_flag

FORMATS: Final = ("table", "json", "yaml")
STATUSES: Final = {"NotFound": output.EXIT_NOT_FOUND, "BadRequest": output.EXIT_USAGE}
"""Exit statuses of the codes of errors; of the others `output.EXIT_ERROR`."""


def add_parser(
    subparsers: argparse._SubParsersAction[Any], subcommand: Subcommand
) -> Callable[[argparse.Namespace], int]:
    """Add the command with its flags, ``-o`` and ``--socket``; returns the function that runs it."""
    command = subcommand.load()
    parser = subparsers.add_parser(
        subcommand.name,
        help=subcommand.help,
        description=subcommand.help,
        epilog=output.exit_statuses(
            {
                output.EXIT_OK: "success",
                output.EXIT_ERROR: output.NO_AGENT,
                output.EXIT_USAGE: output.USAGE,
                output.EXIT_NOT_FOUND: "an object named does not exist",
            }
        ),
    )
    command.add_flags(parser)
    native = (command.native_format,) if command.native_format else ()
    add_format_flag(parser, (*FORMATS, *native), FORMATS[0])
    ask_agent.add_socket_flag(parser)

    def run(args: argparse.Namespace) -> int:
        client = ask_agent.client(args)

        def ask(path: str, query: Mapping[str, str]) -> Answer:
            return Answer(*client.get_plain(path, dict(query)))

        return _run(command, args, ask)

    return run


def _run(command: Command, args: argparse.Namespace, ask: Ask) -> int:
    """Print what a command shows, or its error, in the format of ``--output``."""
    native = args.output == command.native_format
    try:
        listing = command.read(args, ask)
    except (AgentError, CommandError) as error:
        output.fail(args, "ErrorList", error.code, str(error))
        return STATUSES.get(error.code, output.EXIT_ERROR)
    if native:
        output.dump_value(listing.native, "json")
    elif args.output == "table":
        sys.stdout.write("".join(f"{escape(line)}\n" for line in listing.lines))
    else:
        output.dump(output.document(listing.kind, list(listing.items)), args.output)
    return output.EXIT_OK
