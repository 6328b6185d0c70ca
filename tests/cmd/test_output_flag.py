"""``-o table|json|yaml`` in every command; the running programs print logs, in the form of a flag."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import Final

import pytest

from cells.options import LoggingOptions
from waggle.__main__ import whole_parser
from waggle.dialects import DIALECTS

RUNNING: Final = "router"
"""The command that runs a program until a signal ends it; its actions have the flag."""


def commands(parser: argparse.ArgumentParser, name: str = "") -> Iterator[tuple[str, list[str]]]:
    """Yield each command with the formats of its flag, of programs with subcommands as well."""
    given = [action for action in parser._actions if "-o" in action.option_strings]
    below = [a for a in parser._actions if isinstance(a, argparse._SubParsersAction)]
    if name and (given or not below or name == RUNNING):
        yield name, [str(choice) for action in given for choice in action.choices or ()]
    for action in below:
        for word, subparser in action.choices.items():
            yield from commands(subparser, f"{name} {word}".strip())


ALL: Final = dict(commands(whole_parser()))


@pytest.mark.parametrize("command", sorted(ALL.keys() - {RUNNING}))
def test_every_command_has_table_json_and_yaml(command: str) -> None:
    assert {"table", "json", "yaml", "jsonpath="} <= set(ALL[command])


def test_the_form_of_the_log_of_a_running_program_has_one_flag() -> None:
    """The flag of the router has the values and the default of the agent and the operator."""
    args = whole_parser().parse_args(["router", "-c", "router.yaml", "--log-format", "json"])
    assert args.log_format == "json"
    assert whole_parser().parse_args(["router", "-c", "f"]).log_format == LoggingOptions().format
    assert ALL[RUNNING] == []


def test_the_commands_are_all_commands_also_of_dialects() -> None:
    assert len(ALL) > 40
    assert DIALECTS.subcommands.keys() <= ALL.keys()
    assert "antrea" in ALL
