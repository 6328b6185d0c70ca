"""``waggle docs``: the pages, and how messages refer to them."""

from __future__ import annotations

import io
import re
import sys
from pathlib import Path

import pytest

from resources import pages as references
from waggle import __main__ as front_end
from waggle import pages
from waggle.__main__ import main
from waggle.output import EXIT_PIPE

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("name", ["router", "router.md", "docs/router.md"])
def test_a_page_is_printed_as_it_is(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["docs", name]) == 0
    assert capsys.readouterr().out == (ROOT / "docs" / "router.md").read_text()


def test_without_a_name_the_pages_are_listed_with_their_titles(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["docs", "--no-headers"]) == 0
    listed = dict(
        re.split(" {2,}", line, maxsplit=1) for line in capsys.readouterr().out.splitlines()
    )
    assert listed.keys() == {path.stem for path in (ROOT / "docs").glob("*.md")}
    assert listed["install"] == "Installation"


@pytest.mark.parametrize("words", [["docs"], ["docs", "router"]])
def test_a_reader_that_closes_the_pipe_is_no_error_of_the_pages(
    words: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    class Closed(io.StringIO):
        def write(self, _: str) -> int:
            raise BrokenPipeError

    with monkeypatch.context() as patch:
        patch.setattr(sys, "stdout", Closed())
        patch.setattr(front_end, "_discard_output", lambda: None)
        assert main(words) == EXIT_PIPE
    assert capsys.readouterr().err == ""


def test_an_unknown_page_is_an_error_with_a_similar_one(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["docs", "operation"]) == 4
    text = "waggle docs: there is no page 'operation'; did you mean operations?\n"
    assert capsys.readouterr().err == text


def test_a_message_refers_to_a_page_by_the_command_or_its_url(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert references.reference("router") == "waggle docs router"
    monkeypatch.setattr(references, "BASE_URL", "https://waggle.example/docs/")
    assert references.reference("router") == "https://waggle.example/docs/router.md"


def test_no_message_refers_to_a_file_of_a_checkout() -> None:
    names = set(pages.names(ROOT / "docs"))
    for room in ("cells", "cmd", "reconcilers", "resources", "speaker"):
        for path in (ROOT / room).rglob("*.py"):
            text = path.read_text()
            # Docstrings and comments are for readers of the source.
            code = re.sub(r'""".*?"""', "", text, flags=re.DOTALL)
            code = re.sub(r"#.*", "", code)
            assert not re.search(r"docs/[\w-]+\.md", code), path
            for name in re.findall(r"reference\(['\"]([\w/-]+)['\"]\)", code):
                assert name in names, path
