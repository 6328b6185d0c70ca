"""``--watch`` of peers, routes and status: the answer again and again."""

from __future__ import annotations

import argparse
import io
import sys
from pathlib import Path

import pytest

from tests.support.api import MadeUp, serving, session_item
from waggle import output, watching
from waggle.__main__ import main
from waggle.watching import CLEAR, watched

PEER = session_item(node="a", instance="i", name="tor-1", state="Established", families=[])


class EndedError(Exception):
    """The end of the test, in place of an interrupt."""


def watch(times: int, form: str = "table") -> None:
    """Watch a counter until it has been shown some times."""
    shown = 0

    def show(_: argparse.Namespace) -> int:
        nonlocal shown
        shown += 1
        sys.stdout.write(f"{shown}\n")
        return 1  # an agent that does not answer does not end it

    def sleep(seconds: float) -> None:
        assert seconds == watching.INTERVAL_SECONDS
        if shown == times:
            raise EndedError

    with pytest.raises(EndedError):
        watched(argparse.Namespace(watch=True, output=form, prog="waggle x"), show, sleep)


def test_answers_follow_one_another_in_a_pipe(capsys: pytest.CaptureFixture[str]) -> None:
    watch(3)
    assert capsys.readouterr().out == "1\n\n2\n\n3\n"
    watch(2, "jsonl")
    assert capsys.readouterr().out == "1\n2\n"


def test_an_answer_replaces_the_last_answer_on_a_terminal(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(output, "terminal_width", lambda _: 80)
    watch(2)
    assert capsys.readouterr().out == f"{CLEAR}1\n{CLEAR}2\n"


def test_a_terminal_is_cleared_before_an_error_is_printed_not_after(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Screen(io.StringIO):
        """A terminal, whose output is kept until it is flushed; standard error is not."""

        shown = ""

        def flush(self) -> None:
            self.shown = self.getvalue()

    screen = Screen()
    monkeypatch.setattr(sys, "stdout", screen)
    monkeypatch.setattr(output, "terminal_width", lambda _: 80)
    cleared: list[str] = []

    def sleep(_: float) -> None:
        if len(cleared) == 2:
            raise EndedError

    def show(_: argparse.Namespace) -> int:
        cleared.append(screen.shown)
        return 1

    with pytest.raises(EndedError):
        watched(argparse.Namespace(watch=True, output="table", prog="waggle x"), show, sleep)
    assert cleared == [CLEAR, 2 * CLEAR]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("routes nothing", "nothing is neither a table"),
        ("routes kernel --count", "--count are for routes of BGP"),
        ("routes kernel --approve", "--approve installs routes once"),
    ],
)
def test_wrong_usage_is_reported_once(
    words: str, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*words.split(), "-w", "--socket", "none"]) == output.EXIT_USAGE
    (line,) = capsys.readouterr().err.splitlines()
    assert message in line


@pytest.mark.parametrize("command", ["peers", "routes", "status"])
def test_a_command_goes_on_until_it_is_interrupted(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    command: str,
) -> None:
    def interrupt(_: float) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(watching.watched, "__defaults__", (interrupt,))
    path = tmp_path / "agent.sock"
    with serving(path, MadeUp([PEER])):
        assert main([command, "-w", "--socket", str(path)]) == output.EXIT_INTERRUPTED
    assert "Traceback" not in capsys.readouterr().err


def test_watch_rejects_formats_of_a_single_document(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["peers", "-w", "-o", "json"]) == 2
    assert capsys.readouterr().err == "waggle peers: --watch: with -o table, wide, jsonl only\n"
