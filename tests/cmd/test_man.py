"""``waggle docs --man``: a page for each command, which man can format."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.cmd.help_pages import page
from waggle.__main__ import COMMANDS, main, whole_parser
from waggle.commands.docs.man import pages


def test_each_command_has_a_page(tmp_path: Path) -> None:
    assert main(["docs", "--man", str(tmp_path / "man1")]) == 0
    names = {path.name for path in (tmp_path / "man1").iterdir()}
    assert names == {"waggle.1", "waggle-antrea.1", *(f"waggle-{name}.1" for name in COMMANDS)}


def test_a_page_has_the_flags_of_the_help_and_the_actions_below() -> None:
    text = dict(pages(whole_parser(), "1.2"))["waggle-router.1"].replace("\\-", "-")
    assert text.startswith(
        '.TH WAGGLE-ROUTER 1 "" "waggle 1.2" "Waggle"\n.SH NAME\nwaggle-router - '
    )
    for command in ("waggle router", "waggle router announce"):
        for flag in re.findall(r"^ +(?:-\w, )?(--[\w-]+)", page(command), re.MULTILINE):
            assert f"\\fB{flag}\\fR" in text
    assert '.SH "WAGGLE ROUTER ANNOUNCE"' in text


def test_a_page_is_the_same_with_any_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WAGGLE_API_SOCKET", "/somewhere/agent.sock")
    assert not [name for name, text in pages(whole_parser(), "1.2") if "/somewhere" in text]


@pytest.mark.skipif(shutil.which("groff") is None, reason="no groff")
def test_groff_formats_all_pages_without_a_warning() -> None:
    texts = "".join(text for _, text in pages(whole_parser(), "1.2"))
    done = subprocess.run(
        ["groff", "-man", "-Tutf8", "-ww", "-z"],
        input=texts, capture_output=True, text=True, check=True, timeout=60,
    )  # fmt: skip
    assert done.stderr == ""


def test_a_folder_that_cannot_be_written_is_an_error(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").write_text("")
    assert main(["docs", "--man", str(tmp_path / "file")]) == 1
    assert capsys.readouterr().err == f"waggle docs: {tmp_path / 'file'}: File exists\n"
    assert main(["docs", "router", "--man", str(tmp_path)]) == 2
