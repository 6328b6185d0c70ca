"""What programs print of themselves: the cells and what they need, reconcilers, completion.

tests/cmd/printed has the texts; ``python -m tests.cmd.printed_pages`` writes them.
"""

from __future__ import annotations

import pytest

from tests.cmd.printed_pages import COMMANDS, PRINTED, file_of, printed


@pytest.mark.parametrize("command", COMMANDS)
def test_what_a_command_prints(command: str) -> None:
    assert printed(command) == file_of(command).read_text()


def test_there_is_a_text_for_each_command_and_no_other() -> None:
    assert set(PRINTED.iterdir()) == {file_of(command) for command in COMMANDS}
