"""The help of each command names each argument, its value and its default.

tests/cmd/help has the texts; ``python -m tests.cmd.help_pages`` writes them.
"""

from __future__ import annotations

import re

import pytest

from tests.cmd.help_pages import ACTIONS, PAGE_NAMES, PAGES, file_of, page
from waggle.__main__ import main


@pytest.mark.parametrize("name", PAGE_NAMES)
def test_the_help_of_a_command(name: str) -> None:
    assert page(name) == file_of(name).read_text()


def test_there_is_a_text_for_each_command_and_no_other() -> None:
    assert set(PAGES.rglob("*.txt")) == {file_of(name) for name in PAGE_NAMES}


def test_there_is_a_text_for_each_action_of_the_router(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["router", "no-action"])
    assert f"(one of {', '.join(ACTIONS)})" in capsys.readouterr().err


@pytest.mark.parametrize("name", PAGE_NAMES)
def test_a_help_has_the_exit_statuses_of_its_command(name: str) -> None:
    text = file_of(name).read_text()
    statuses = set(re.findall(r"^  (\d+) ", text.partition("exit status:")[2], re.MULTILINE))
    assert "2" in statuses, "wrong usage is possible everywhere"
    if "--watch " in text:
        assert "130" in statuses, "the end of --watch"


@pytest.mark.parametrize("name", PAGE_NAMES)
def test_a_help_has_no_empty_default(name: str) -> None:
    assert re.findall(r".*default:? [\])]", file_of(name).read_text()) == []
