"""``waggle`` accepts every command that a page has, with its words and flags."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest

from waggle.__main__ import main, whole_parser

ROOT = Path(__file__).parents[2]
PAGES = [
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "SECURITY.md")),
    *sorted((ROOT / "docs").rglob("*.md")),
]
INLINE = re.compile(r"`(?:kubectl )?(waggle [^`]+)`")
BLOCK = re.compile(r"^ *```.*?^ *```", re.MULTILINE | re.DOTALL)
LINE = re.compile(r"^ *(?:\$ )?(?:kubectl (?:.* -- )?)?(waggle (?!\w+:).+)$", re.MULTILINE)
END = re.compile(r"\s(?:#|<|>|\\?\||\|\|)|  |\\$")
"""What follows a command: a comment, a redirection, a pipe, a column of a table."""
SYNOPSIS = re.compile(r"\[|\.\.\.|COMMAND|\\?\|")
"""Marks of a line that describes several commands."""
PLACEHOLDERS = {
    "PREFIX": "192.0.2.0/24",
    "ADDRESS": "192.0.2.1",
    "N": "2",
    "LEVEL": "debug",
    "TABLE": "received",
    "PATH": "/v1/peers",
}


def commands(page: Path) -> Iterator[list[str]]:
    """Yield the words of each command of a page, without the program."""
    text = page.read_text()
    found = [text for block in BLOCK.findall(text) for text in LINE.findall(block)]
    found += INLINE.findall(BLOCK.sub("", text))
    for command in found:
        command = END.split(command)[0]
        if not SYNOPSIS.search(command):
            yield [PLACEHOLDERS.get(word, word) for word in shlex.split(command)[1:]]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_the_commands_of_a_page_are_accepted(
    page: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    parser = whole_parser()
    wrong = []
    for words in commands(page):
        try:
            args = parser.parse_args(words)
        except SystemExit as ended:
            error = capsys.readouterr().err
            # A page may name a command by its first words.
            if ended.code and "required" not in error and "expected" not in error:
                wrong.append(f"{' '.join(words)}: {error}")
            continue
        # The words of a table, a family and a prefix have an order of their own.
        of_agent = args.command == "routes" and not (args.all_nodes or args.from_statuses)
        if of_agent and main([*words, "--socket", str(tmp_path / "none")]) == 2:
            wrong.append(f"{' '.join(words)}: {capsys.readouterr().err}")
    assert wrong == []


def test_commands_are_found_in_lines_and_in_sentences() -> None:
    found = [words for page in PAGES for words in commands(page)]
    assert ["explain", "10.244.0.9", "--peer", "tor-2"] in found
    assert ["peers", "--peer", "PEER", "-o", "wide"] in found
    assert len(found) > 300
