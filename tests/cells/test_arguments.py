"""Command lines of all programs: where flags are allowed, and the sentence for each mistake."""

from __future__ import annotations

import argparse
import importlib.metadata
import os
import sys
from typing import Any

import pytest

from cells import arguments
from cells.arguments import EXIT_USAGE, Parser, open_standard_streams

PARAGRAPHS = """A first paragraph, which is long enough that it is wrapped
at another width than it has here: that of the terminal.

Examples:
  toy run one two

  toy show
"""


def parser() -> Parser:
    """Return the parser of a program with two commands, one of which has commands of its own."""
    toy = Parser(prog="toy", description=PARAGRAPHS)
    toy.add_version(lambda: "with a table")
    toy.add_argument("--color", choices=("always", "never"))
    commands = toy.add_subparsers(dest="command")
    run = commands.add_parser("run")
    run.add_argument("names", nargs="*")
    run.add_argument("--limit", type=int)
    run.add_argument("--rate", type=float)
    run.add_argument("--all", action="store_true")
    run.add_argument("--output", nargs="?", const="json")
    show = commands.add_parser("show")
    parts = show.add_subparsers(dest="part")
    parts.add_parser("tree").add_argument("--depth", type=int)
    return toy


def parsed(*words: str) -> dict[str, Any]:
    """Return what a command line sets."""
    values = vars(parser().parse_args(words))
    return {name: value for name, value in values.items() if value not in (None, False, [])}


@pytest.mark.parametrize(
    ("line", "values"),
    [
        ("", {}),
        ("run", {"command": "run"}),
        ("run one two", {"command": "run", "names": ["one", "two"]}),
        ("run --limit 3 one", {"command": "run", "names": ["one"], "limit": 3}),
        ("run one --limit 3 two", {"command": "run", "names": ["one", "two"], "limit": 3}),
        ("run one --limit=3 --all two", {
            "command": "run", "names": ["one", "two"], "limit": 3, "all": True,
        }),
        ("run --all -- one --two", {"command": "run", "names": ["one", "--two"], "all": True}),
        ("--limit 3 run one", {"command": "run", "names": ["one"], "limit": 3}),
        ("--limit=3 --all run one", {
            "command": "run", "names": ["one"], "limit": 3, "all": True,
        }),
        ("--color never run one", {"command": "run", "names": ["one"], "color": "never"}),
        ("run one --output json", {"command": "run", "names": ["one"], "output": "json"}),
        ("show tree --depth 2", {"command": "show", "part": "tree", "depth": 2}),
        ("--depth 2 show tree", {"command": "show", "part": "tree", "depth": 2}),
        ("show --depth 2 tree", None),
        ("run run", {"command": "run", "names": ["run"]}),
        ("run one help", {"command": "run", "names": ["one", "help"]}),
        ("run version", {"command": "run", "names": ["version"]}),
    ],
)  # fmt: skip
def test_flags_stand_before_a_command_among_its_arguments_or_behind(
    line: str, values: dict[str, Any] | None
) -> None:
    if values is None:
        with pytest.raises(SystemExit):
            parsed(*line.split())
    else:
        assert parsed(*line.split()) == values


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        ("--colour=always", "toy: unknown flag --colour (did you mean --color?); see toy --help"),
        ("run --limt 3", "toy run: unknown flag --limt (did you mean --limit?); see toy run --help"),
        ("run --xyzzy", "toy run: unknown flag --xyzzy; see toy run --help"),
        ("run --lim 3", "toy run: unknown flag --lim (did you mean --limit?); see toy run --help"),
        ("run -x", "toy run: unknown flag -x; see toy run --help"),
        ("show tree one", "toy show tree: unexpected argument one; see toy show tree --help"),
        ("run --limit x", "toy run: --limit: 'x' is not a whole number; see toy run --help"),
        ("run --rate x", "toy run: --rate: 'x' is not a number; see toy run --help"),
        ("run --limit", "toy run: --limit: expected one argument; see toy run --help"),
        ("--color", "toy: --color: expected one argument (always, never); see toy --help"),
        ("--color alway", "toy: --color: unknown alway (did you mean always?); see toy --help"),
        ("--color x", "toy: --color: unknown x (one of always, never); see toy --help"),
        ("shw", "toy: command: unknown shw (did you mean show?); see toy --help"),
        ("show branch", "toy show: part: unknown branch (one of tree); see toy show --help"),
        ("run --a\x1b", "toy run: unknown flag --a\\x1b; see toy run --help"),
    ],
)  # fmt: skip
def test_a_mistake_is_one_sentence_with_a_suggestion(
    capsys: pytest.CaptureFixture[str], line: str, sentence: str
) -> None:
    with pytest.raises(SystemExit) as caught:
        parsed(*line.split(" "))
    assert caught.value.code == EXIT_USAGE == 2
    assert capsys.readouterr().err == f"{sentence}\n"


@pytest.mark.parametrize(
    ("line", "program"),
    [
        ("--help", "toy"),
        ("help", "toy"),
        ("help run", "toy run"),
        ("run help", None),
        ("show help", "toy show"),
        ("help show tree", "toy show tree"),
        ("--color=never help", "toy"),
    ],
)
def test_help_is_a_command_of_programs_with_commands(
    capsys: pytest.CaptureFixture[str], line: str, program: str | None
) -> None:
    if program is None:
        assert parsed(*line.split()) == {"command": "run", "names": ["help"]}
        return
    with pytest.raises(SystemExit) as caught:
        parsed(*line.split())
    assert caught.value.code in (0, None)
    assert capsys.readouterr().out.startswith(f"usage: {program} [-h]")


@pytest.mark.parametrize("word", ["--version", "-v", "version"])
def test_the_version_is_printed_with_its_detail(
    capsys: pytest.CaptureFixture[str], word: str
) -> None:
    with pytest.raises(SystemExit) as caught:
        parsed(word)
    assert caught.value.code in (0, None)
    version = importlib.metadata.version("waggle-bgp")
    assert capsys.readouterr().out == f"toy {version} (with a table)\n"
    plain = Parser(prog="plain")
    plain.add_version()
    with pytest.raises(SystemExit):
        plain.parse_args([word])
    assert capsys.readouterr().out == f"plain {version}\n"


def test_a_program_without_a_version_has_no_such_word(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        Parser(prog="toy").parse_args(["version"])
    assert capsys.readouterr().err == "toy: unexpected argument version; see toy --help\n"


def test_arguments_default_to_the_command_line_of_the_process(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sys, "argv", ["toy", "run", "one"])
    namespace = argparse.Namespace(other=1)
    assert parser().parse_args(namespace=namespace).names == ["one"]
    assert namespace.other == 1


def test_paragraphs_are_wrapped_and_examples_are_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    text = parser().format_help()
    assert "A first paragraph, which is long enough that it is wrapped\nat another" in text
    assert "\n\nExamples:\n  toy run one two\n\n  toy show\n" in text
    monkeypatch.setenv("COLUMNS", "100")
    assert "it is wrapped at another width than" in parser().format_help()


@pytest.mark.parametrize("closed", [(), ("stdin",), ("stdout",), ("stderr",), ("stdin", "stdout")])
def test_standard_streams_that_are_closed_lead_nowhere(
    monkeypatch: pytest.MonkeyPatch, closed: tuple[str, ...]
) -> None:
    numbers = {"stdin": 0, "stdout": 1, "stderr": 2}
    opened: list[object] = []

    def fstat(number: int) -> None:
        if number in map(numbers.__getitem__, closed):
            raise OSError

    def open_stream(number: int, mode: str = "r", **named: object) -> str:
        assert named == {"encoding": "utf-8", "closefd": False}
        return f"{number} {mode}"

    system: Any = type(
        "os",
        (),
        {
            "fstat": staticmethod(fstat),
            "open": staticmethod(lambda path, flags: opened.append((path, flags))),
            "set_inheritable": staticmethod(lambda number, value: opened.append((number, value))),
            "devnull": os.devnull,
            "O_RDWR": os.O_RDWR,
        },
    )
    with monkeypatch.context() as patch:
        patch.setattr(arguments, "os", system)
        patch.setattr(arguments, "open", open_stream, raising=False)
        for name in numbers:
            patch.setattr(sys, name, None if name in closed else name)
        result = open_standard_streams()
        streams = {name: getattr(sys, name) for name in numbers}
    assert result is ("stdout" in closed)
    modes = {"stdin": "0 r", "stdout": "1 w", "stderr": "2 w"}
    assert streams == {name: modes[name] if name in closed else name for name in numbers}
    assert opened == [
        entry for name in closed for entry in ((os.devnull, os.O_RDWR), (numbers[name], True))
    ]


def test_a_help_is_broken_at_spaces_alone(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A flag or a name that is broken at its hyphens cannot be copied."""
    monkeypatch.setenv("COLUMNS", "40")
    text = " ".join(f"one-name-of-{number}-parts" for number in range(9))
    toy = Parser(prog="toy", description=text, epilog=text)
    toy.add_argument("--flag", help=text)
    with pytest.raises(SystemExit):
        toy.parse_args(["--help"])
    printed = capsys.readouterr().out
    for number in range(9):
        assert printed.count(f"one-name-of-{number}-parts") == 3
