"""A sub-command of ``waggle`` that the entry of an API dialect adds (`Subcommand`)."""

from __future__ import annotations

import argparse
import io
import json
from collections.abc import Callable, Mapping
from contextlib import redirect_stdout
from typing import Any

from cells.api.client import AgentError
from reconcilers.dialect import Answer, Ask, Command
from reconcilers.dialect_entry import Subcommand
from waggle import ask_agent, output


def add_parser(
    subparsers: argparse._SubParsersAction[Any], subcommand: Subcommand
) -> Callable[[argparse.Namespace], int]:
    """Add the command with its flags and ``--socket``; returns the function that runs it."""
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
    if command.formats:
        output.add_format_flag(parser, command.formats, command.formats[0])
    ask_agent.add_socket_flag(parser)

    def run(args: argparse.Namespace) -> int:
        client = ask_agent.client(args)

        def ask(path: str, query: Mapping[str, str]) -> Answer:
            return Answer(*client.get_plain(path, dict(query)))

        try:
            if output.is_template(getattr(args, "output", "")):
                return _rendered(command, args, ask)
            return command.run(args, ask)
        except AgentError as error:
            output.complain(f"waggle {subcommand.name}", str(error))
            return output.EXIT_ERROR

    return run


def _rendered(command: Command, args: argparse.Namespace, ask: Ask) -> int:
    """Run a command for its JSON, and print that by the template of ``--output``."""
    printed, form = io.StringIO(), args.output
    args.output = "json"
    with redirect_stdout(printed):
        status = command.run(args, ask)
    if status == output.EXIT_OK:
        output.dump_value(json.loads(printed.getvalue()), form)
    return status
