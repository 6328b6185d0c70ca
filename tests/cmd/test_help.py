"""The help of each command names each argument, its value and its default.

tests/cmd/help has the texts; ``python -m tests.cmd.help_pages`` writes them.
"""

from __future__ import annotations

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
