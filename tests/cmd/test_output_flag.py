"""``-o table|json|yaml`` in every command that answers with data."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import Final

import pytest

from waggle.__main__ import whole_parser

WITHOUT: Final = {
    "api": "prints the answer of a path as it is",
    "completion": "prints a script of a shell",
    "demo": "is a program",
    "router": "is a program",
    "ui": "is a program",
}
"""Commands without the flag, and why."""


def commands(parser: argparse.ArgumentParser, name: str = "") -> Iterator[tuple[str, list[str]]]:
    """Yield each command with the formats of its flag, of programs with subcommands as well."""
    given = [action for action in parser._actions if "-o" in action.option_strings]
    below = [a for a in parser._actions if isinstance(a, argparse._SubParsersAction)]
    if name and (given or not below or name in WITHOUT):
        yield name, [str(choice) for action in given for choice in action.choices or ()]
    for action in below:
        for word, subparser in action.choices.items():
            yield from commands(subparser, f"{name} {word}".strip())


ALL: Final = dict(commands(whole_parser()))


@pytest.mark.parametrize("command", sorted(ALL))
def test_every_command_has_table_json_and_yaml(command: str) -> None:
    if command in WITHOUT:
        assert ALL[command] == []
    else:
        assert {"table", "json", "yaml", "jsonpath="} <= set(ALL[command])


def test_exceptions_are_commands() -> None:
    assert WITHOUT.keys() <= ALL.keys()
    assert len(ALL) > 30
