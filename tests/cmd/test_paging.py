"""The pager and the progress of commands on a terminal."""

from __future__ import annotations

import argparse
import io
import os
import re
import sys
from pathlib import Path

import pytest

from tests.cmd.terminal import Terminal
from tests.support.wait import eventually
from waggle.__main__ import main
from waggle.paging import on_terminal, pager_command
from waggle.progress import ERASE, Progress


def on_screen(monkeypatch: pytest.MonkeyPatch) -> Terminal:
    """Direct both streams to a terminal; not as a fixture, after which pytest sets them again."""
    terminal = Terminal()
    monkeypatch.setattr(sys, "stdout", terminal)
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setenv("TERM", "xterm")
    return terminal


@pytest.mark.parametrize(
    ("environ", "command"),
    [
        ({"PAGER": "more -d"}, "more -d"),
        ({"PAGER": "more", "WAGGLE_PAGER": "sort"}, "sort"),
        ({"PAGER": "cat"}, None),
        ({"PAGER": ""}, None),
        ({"PAGER": "no-such-pager"}, None),
    ],
)
def test_the_pager_is_one_of_the_environment(environ: dict[str, str], command: str | None) -> None:
    assert pager_command(environ) == command


def test_output_on_a_terminal_and_its_notes_go_through_the_pager(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    terminal = on_screen(monkeypatch)
    paged = tmp_path / "paged"
    monkeypatch.setenv("PAGER", f"tee {paged} > {tmp_path / 'screen'}; echo $LESS >> {paged}")
    monkeypatch.delenv("LESS", raising=False)
    assert main(["docs", "none"]) == 4
    assert main(["docs", "router"]) == 0
    assert paged.read_text() == (Path("docs") / "router.md").read_text() + "FRX\n"
    assert terminal.getvalue() == ""


@pytest.mark.parametrize("flags", ["--no-pager docs router", "docs router --no-pager"])
def test_no_pager_prints_on_the_terminal(
    flags: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    terminal = on_screen(monkeypatch)
    monkeypatch.setenv("PAGER", f"tee {tmp_path / 'paged'}")
    assert main(flags.split()) == 0
    assert terminal.getvalue() == (Path("docs") / "router.md").read_text()
    assert not (tmp_path / "paged").exists()


def test_output_into_a_pipe_has_no_pager(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PAGER", f"tee {tmp_path / 'paged'}")
    assert main(["docs", "router"]) == 0
    assert capsys.readouterr().out == (Path("docs") / "router.md").read_text()
    assert not (tmp_path / "paged").exists()


def test_a_reader_that_leaves_ends_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = on_screen(monkeypatch)
    monkeypatch.setenv("PAGER", "true")
    args = argparse.Namespace(pager=True, prog="waggle docs")
    with pytest.raises(BrokenPipeError), on_terminal(args):
        sys.stdout.write("x" * 1_000_000)
    assert sys.stdout is terminal


def test_progress_is_drawn_after_two_seconds_and_erased(monkeypatch: pytest.MonkeyPatch) -> None:
    now, terminal = 0.0, on_screen(monkeypatch)
    progress = Progress("waggle verify", terminal, lambda: now)
    progress.draw()
    assert terminal.getvalue() == ""
    now = 3.2
    progress.set_step("waits for the agent")
    progress.draw()
    assert terminal.getvalue() == f"{ERASE}waggle verify: waits for the agent (3s)"
    progress.stop()
    progress.draw()
    assert terminal.getvalue().endswith(f"(3s){ERASE}")


def whole_line(terminal: Terminal) -> str:
    assert terminal.getvalue().endswith(")")
    return terminal.getvalue()


def test_progress_ends_with_the_first_output(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = on_screen(monkeypatch)
    monkeypatch.setattr("waggle.progress.QUIET_SECONDS", 0.0)
    monkeypatch.setattr("waggle.progress.REDRAW_SECONDS", 3600.0)
    args = argparse.Namespace(pager=True, prog="waggle verify")
    with on_terminal(args):
        drawn = eventually(lambda: whole_line(terminal))
        sys.stdout.write("no drift\n")
        assert terminal.getvalue() == f"{drawn}{ERASE}no drift\n"
    assert re.fullmatch(rf"{re.escape(ERASE)}waggle verify: working \(\d+s\)", drawn)


def test_elsewhere_steps_are_lines_of_which_each_is_two_seconds_after_the_last() -> None:
    now, stream = 0.0, io.StringIO()
    progress = Progress("waggle plan", stream, lambda: now)
    for done in range(5):
        progress.report(f"{done} of 5 nodes")
        now += 1.0
    progress.draw()
    assert stream.getvalue() == "waggle plan: 2 of 5 nodes\nwaggle plan: 4 of 5 nodes\n"


def test_an_answer_that_is_shown_again_and_again_has_no_pager(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    terminal = on_screen(monkeypatch)
    args = argparse.Namespace(pager=True, watch=True)
    with on_terminal(args, {**os.environ, "PAGER": "false"}):
        assert sys.stdout is terminal
