"""The lock of a demo: one process has it, its file names the process, and another command ends it."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path
from typing import Any

import pytest

from waggle.commands.demo import lock, program
from waggle.commands.demo.lock import DemoLock, RunsAlreadyError
from waggle.commands.demo.report import Report


class Holder:
    """A demo that has the lock, and ends some polls after its SIGTERM."""

    def __init__(self, path: Path, monkeypatch: pytest.MonkeyPatch, polls: int) -> None:
        self.now, self._polls = 0.0, polls
        self.signals: list[tuple[int, int]] = []
        self.lock = DemoLock(path)
        self.lock.take()
        monkeypatch.setattr(os, "kill", lambda pid, number: self.signals.append((pid, number)))
        monkeypatch.setattr(time, "monotonic", lambda: self.now)
        monkeypatch.setattr(time, "sleep", self._sleep)

    def _sleep(self, seconds: float) -> None:
        self.now += seconds
        self._polls -= 1
        if not self._polls:
            self.lock.release()


def assert_free(path: Path) -> None:
    another = DemoLock(path)
    another.take()
    another.release()


def test_the_file_of_the_lock_names_the_process_that_has_it(tmp_path: Path) -> None:
    path = tmp_path / "run" / "agent.sock"
    first, second = DemoLock(path), DemoLock(path)
    first.take()
    assert path.parent.stat().st_mode & 0o777 == 0o700
    assert path.with_suffix(".demo").read_text() == str(os.getpid())
    with pytest.raises(RunsAlreadyError, match=f"process {os.getpid()}") as raised:
        second.take()
    assert raised.value.pid == os.getpid()
    first.release()
    first.release()
    second.take()
    second.release()


def test_where_no_demo_runs_none_is_ended_and_the_lock_is_free(tmp_path: Path) -> None:
    stopping = DemoLock(tmp_path / "agent.sock")
    assert not stopping.stop_holder()
    assert_free(tmp_path / "agent.sock")


@pytest.mark.parametrize("polls", [1, 5])
def test_a_demo_is_ended_and_waited_for(
    polls: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "agent.sock"
    holder = Holder(path, monkeypatch, polls)
    assert DemoLock(path).stop_holder()
    assert holder.signals == [(os.getpid(), signal.SIGTERM)]
    assert holder.now == pytest.approx(polls * lock.POLL_INTERVAL_SECONDS)
    assert_free(path)


def test_a_demo_that_has_just_begun_is_waited_for_until_its_file_names_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Signals of ID 0 would end the command, and the shell script around it."""
    path = tmp_path / "agent.sock"
    holder = Holder(path, monkeypatch, polls=3)
    path.with_suffix(".demo").write_text("")
    note, sleep = holder.lock.note, time.sleep

    def begin(seconds: float) -> None:
        monkeypatch.setattr(time, "sleep", sleep)
        note()
        sleep(seconds)

    monkeypatch.setattr(time, "sleep", begin)
    assert DemoLock(path).stop_holder()
    assert holder.signals == [(os.getpid(), signal.SIGTERM)]


def test_a_demo_that_does_not_end_is_waited_for_no_longer_than_its_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "agent.sock"
    holder = Holder(path, monkeypatch, polls=10_000)
    with pytest.raises(TimeoutError):
        DemoLock(path).stop_holder()
    assert holder.now == pytest.approx(40.0, abs=0.1)
    holder.lock.release()


@pytest.mark.parametrize(
    ("outcome", "status", "out", "err"),
    [
        (True, 0, "The demo is ended: the agent and the router.\n", ""),
        (False, 1, "", "waggle demo: no demo runs\n"),
        (TimeoutError(), 1, "", "waggle demo: the demo does not end; it was sent SIGTERM\n"),
        (
            PermissionError(1, "Operation not permitted"),
            1,
            "",
            "waggle demo: cannot end the demo: Operation not permitted\n",
        ),
    ],
)
def test_stop_says_what_it_did(
    outcome: bool | OSError, status: int, out: str, err: str, capsys: pytest.CaptureFixture[str]
) -> None:
    class Stopping:
        def stop_holder(self) -> bool:
            if isinstance(outcome, OSError):
                raise outcome
            return outcome

    stopping: Any = Stopping()
    assert program._stop(stopping, Report("table", is_endless=False)) == status
    assert capsys.readouterr() == (out, err)
