"""A sub-command of ``waggle`` that an API dialect adds (`reconcilers.dialect.Command`)."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping
from typing import Any

from cells.api.client import AgentError
from reconcilers.dialect import Answer, Command
from waggle import ask_agent, output


def add_parser(
    subparsers: argparse._SubParsersAction[Any], command: Command
) -> Callable[[argparse.Namespace], int]:
    """Add the command with its flags and ``--socket``; returns the function that runs it."""
    parser = subparsers.add_parser(
        command.name,
        help=command.help,
        description=command.help,
        epilog=output.exit_statuses(
            {
                output.EXIT_OK: "success",
                output.EXIT_ERROR: output.NO_AGENT,
                output.EXIT_NOT_FOUND: "an object named does not exist",
            }
        ),
    )
    command.add_flags(parser)
    ask_agent.add_socket_flag(parser)

    def run(args: argparse.Namespace) -> int:
        client = ask_agent.client(args)

        def ask(path: str, query: Mapping[str, str]) -> Answer:
            return Answer(*client.get_plain(path, dict(query)))

        try:
            return command.run(args, ask)
        except AgentError as error:
            output.complain(f"waggle {command.name}", str(error))
            return output.EXIT_ERROR

    return run
