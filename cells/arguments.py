"""Parsing of command lines for all programs: one sentence for a mistake, with a suggestion.

Never guesses: abbreviations of flags are not accepted, since a new flag could change their
meaning.
"""

from __future__ import annotations

import argparse
import difflib
import math
import os
import re
import sys
import textwrap
from collections.abc import Callable, Sequence
from itertools import islice
from typing import Any, NoReturn

from cells.safe_text import escape
from cells.version import version

EXIT_USAGE = 2


def open_standard_streams() -> bool:
    """Open the standard streams that are closed to nowhere; returns whether the output was closed.

    Otherwise the next file or connection would get the number of one of them, and its lines.
    """
    is_closed = sys.stdout is None
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # gets the lowest free number
            os.set_inheritable(number, True)
    if sys.stdin is None:
        sys.stdin = open(0, encoding="utf-8", closefd=False)  # noqa: SIM115
    if is_closed:
        sys.stdout = open(1, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
    if sys.stderr is None:
        sys.stderr = open(2, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
    return is_closed


def positive(text: str) -> int:
    """Read a number of at least 1, for argparse. Raises ArgumentTypeError."""
    if not text.isascii() or not text.isdigit() or not int(text):
        raise argparse.ArgumentTypeError(f"not a number of at least 1: {text!r}")
    return int(text)


def positive_seconds(text: str) -> float:
    """Read a number of seconds above 0, for argparse. Raises ArgumentTypeError."""
    seconds = _number(text)
    if not 0 < seconds < math.inf:
        raise argparse.ArgumentTypeError(f"not a number of seconds above 0: {text!r}")
    return seconds


def not_negative(text: str) -> float:
    """Read a number of at least 0, for argparse. Raises ArgumentTypeError."""
    number = _number(text)
    if not 0 <= number < math.inf:
        raise argparse.ArgumentTypeError(f"not a number of at least 0: {text!r}")
    return number


def file_descriptor(text: str) -> int:
    """Read the number of an open file, for argparse. Raises ArgumentTypeError."""
    number = _number(text)
    if not number.is_integer() or number < 0:
        raise argparse.ArgumentTypeError(f"not the number of an open file: {text!r}")
    return int(number)


def _number(text: str) -> float:
    """Return the number in a text, and NaN for another text."""
    try:
        return float(text)
    except ValueError:
        return math.nan


class _HelpFormatter(argparse.HelpFormatter):
    """Wraps the paragraphs of descriptions and epilogs, except paragraphs with an indented line.

    Lines are broken at spaces alone: the hyphens of a flag or a name are part of it.
    """

    def _split_lines(self, text: str, width: int) -> list[str]:
        return textwrap.wrap(" ".join(text.split()), width, break_on_hyphens=False)

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        return "\n\n".join(
            part if "\n " in part or part.startswith(" ") else self._filled(part, width, indent)
            for part in text.split("\n\n")
        )

    def _filled(self, text: str, width: int, indent: str) -> str:
        lines = self._split_lines(text, width - len(indent))
        return "\n".join(f"{indent}{line}" for line in lines)


class Parser(argparse.ArgumentParser):
    """`argparse.ArgumentParser` that answers a mistake with one sentence and exit status 2."""

    def __init__(self, *args: Any, **keywords: Any) -> None:  # noqa: ANN401 - argparse's own
        keywords.setdefault("allow_abbrev", False)
        keywords.setdefault("formatter_class", _HelpFormatter)
        super().__init__(*args, **keywords)

    def add_version(self, detail: Callable[[], str] | None = None) -> None:
        """Add ``--version``, which prints program and version, and ``detail`` behind them."""
        text = "show program's version number and exit"
        self.add_argument("-v", "--version", action=_Version, nargs=0, help=text, const=detail)

    def error(self, message: str) -> NoReturn:
        """Print the sentence with a hint at ``--help``, and exit."""
        text = f"{_plain(message)}{self._choices(message)}"
        self.exit(EXIT_USAGE, f"{self.prog}: {escape(text)}; see {self.prog} --help\n")

    def _choices(self, message: str) -> str:
        """Return the choices of a flag that is given without a value."""
        missing = re.fullmatch(r"argument ([^ :]+): expected one argument", message)
        flag = missing[1].split("/")[0] if missing is not None else ""
        action = self._option_string_actions.get(flag)
        choices = ", ".join(map(str, action.choices or ())) if action is not None else ""
        return f" ({choices})" if choices else ""

    def parse_args(  # type: ignore[override]  # argparse's overloads add nothing here
        self, args: Sequence[str] | None = None, namespace: argparse.Namespace | None = None
    ) -> argparse.Namespace:
        """Parse; an undeclared argument is an error that names it."""
        words = self._usual(sys.argv[1:] if args is None else list(args))
        # Looked for first: argparse would complain about what follows an unknown flag instead.
        before = words[: words.index("--") if "--" in words else None]
        commands = _commands(self, before)
        known = [flag for command in commands for flag in command._option_string_actions]  # noqa: SLF001
        for word in before:
            if word.startswith("--") and word.split("=", 1)[0] not in known:
                commands[-1].error(_unknown(word, known))
        parsed, unknown = self.parse_known_args(words, namespace)
        if unknown and not any(word.startswith("-") for word in unknown):
            # argparse fills optional arguments from the first run of words alone.
            parsed, unknown = self.parse_known_args(_flags_first(commands[-1], words), namespace)
        if unknown:
            commands[-1].error(_unknown(unknown[0], known))
        return parsed

    def _usual(self, words: list[str]) -> list[str]:
        """Return the words with `help`, `version` and early flags as this parser has them."""
        if words == ["version"] and "--version" in self._option_string_actions:
            return ["--version"]
        commands = _commands(self, words)
        for at, word in enumerate(words):
            if word == "help" and all(
                word.startswith("-") or word in _names(self) for word in words[:at]
            ):
                return [*words[:at], *words[at + 1 :], "--help"]
            if not word.startswith("-"):
                break
        if len(commands) > 1 and words[-1:] == ["help"] and _names(commands[-1]):
            return [*words[:-1], "--help"]
        return _flags_behind(self, commands[-1], words)


def _names(parser: argparse.ArgumentParser) -> list[str]:
    """Return the sub-commands of a parser."""
    return [
        name
        for action in parser._actions  # noqa: SLF001 - argparse has no public way
        if isinstance(action, argparse._SubParsersAction)  # noqa: SLF001
        for name in action.choices
    ]


def _flags_behind(
    parser: argparse.ArgumentParser, command: argparse.ArgumentParser, words: list[str]
) -> list[str]:
    """Return the words with flags of a sub-command that come before it behind all others."""
    own, of_command = parser._option_string_actions, command._option_string_actions  # noqa: SLF001
    early: list[str] = []
    rest = list(words)
    while rest and rest[0].startswith("--") and command is not parser:
        flag = rest[0].partition("=")[0]
        if flag in own or flag not in of_command:
            break
        takes_value = of_command[flag].nargs is None and "=" not in rest[0]
        early += rest[: 1 + takes_value]
        rest = rest[1 + takes_value :]
    return [*rest, *early] if "--" not in rest else words


class _Version(argparse.Action):
    """Prints the version."""

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> NoReturn:
        detail = f" ({self.const()})" if self.const else ""
        sys.stdout.write(f"{parser.prog} {version()}{detail}\n")
        parser.exit()


def _commands(
    parser: argparse.ArgumentParser, words: Sequence[str]
) -> list[argparse.ArgumentParser]:
    """Return the parsers of the command that the words name: the program's, then the sub-commands'."""
    parsers = [parser]
    for word in words:
        for action in parsers[-1]._actions:  # noqa: SLF001 - argparse has no public way
            if isinstance(action, argparse._SubParsersAction) and word in action.choices:  # noqa: SLF001
                parsers.append(action.choices[word])
                break
    return parsers


def _flags_first(command: argparse.ArgumentParser, words: Sequence[str]) -> list[str]:
    """Return the words with the flags of a sub-command before its other arguments.

    Unchanged where a flag may or may not have a value.
    """
    start = next((at for at, word in enumerate(words) if command.prog.endswith(f" {word}")), -1) + 1
    flags: list[str] = []
    others: list[str] = []
    rest = iter(words[start:])
    for word in rest:
        if word == "--":
            others += [word, *rest]
            break
        action = command._option_string_actions.get(word)  # noqa: SLF001
        if action is not None and action.nargs not in (None, 0):
            return list(words)
        (flags if word.startswith("-") else others).append(word)
        if action is not None and action.nargs is None:
            flags.extend(islice(rest, 1))
    return [*words[:start], *flags, *others]


def _unknown(argument: str, known: Sequence[str]) -> str:
    word = argument.split("=", 1)[0]
    if not word.startswith("-"):
        return f"unexpected argument {argument}"
    names = [flag.removeprefix("--") for flag in known if flag.startswith("--")]
    close = difflib.get_close_matches(word.lstrip("-"), names, n=1)
    return f"unknown flag {word}" + (f" (did you mean --{close[0]}?)" if close else "")


_NUMBERS = {"int": "whole number", "float": "number"}


def _plain(message: str) -> str:
    """Turn argparse's wording into ours."""
    choice = re.fullmatch(r"argument (\S+): invalid choice: (.+) \(choose from (.*)\)", message)
    number = re.fullmatch(r"argument (\S+): invalid (int|float) value: (.+)", message)
    if number is not None:
        return f"{number[1]}: {number[3]} is not a {_NUMBERS[number[2]]}"
    if choice is None:
        return message.removeprefix("argument ")
    what, given, choices = choice[1], choice[2].strip("'"), re.sub("'", "", choice[3])
    close = difflib.get_close_matches(given, choices.split(", "), n=1)
    hint = f"did you mean {close[0]}?" if close else f"one of {choices}"
    return f"{what}: unknown {given} ({hint})"
