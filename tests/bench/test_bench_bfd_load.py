"""The loads of the bench of BFD under load: each runs, and a load that ends of an error is none."""

from __future__ import annotations

import contextlib
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import cast

import pytest

from bench import bench_bfd_load
from bench.bench_bfd_load import MemoryGroup, Runs, loaded
from tests.support.wait import eventually


class Group:
    """The test's own control group, whose memory is not short."""

    @contextlib.contextmanager
    def entered(self) -> Iterator[None]:
        yield


@contextlib.contextmanager
def running(
    load: str, program: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Runs]:
    """Run a program as a load."""
    command = [sys.executable, "-c", program]
    monkeypatch.setattr(bench_bfd_load, "commands", lambda *_: [command])
    with loaded([load], folder, cast("MemoryGroup", Group())) as (runs,):
        yield runs


def test_a_load_that_has_done_its_work_runs_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with running("table", "", tmp_path, monkeypatch) as runs:
        eventually(lambda: _is(runs.started >= 3))
    assert (runs.missed, runs.error) == (0, "")


def test_a_goal_that_a_load_misses_is_no_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with running("objects", "print('MISSED'); exit(1)", tmp_path, monkeypatch) as runs:
        eventually(lambda: _is(runs.missed >= 2))
    assert runs.error == ""
    assert str(runs) == f"objects: {runs.started} runs, {runs.missed} missed a goal"


@pytest.mark.parametrize(
    ("load", "program", "error"),
    [
        ("table", "raise TimeoutError('no routes')", "status 1: TimeoutError: no routes"),
        ("objects", "print('usage'); exit(2)", "status 2: usage"),
        ("objects", "import os; os.kill(os.getpid(), 9)", "status -9: "),
        ("busy", "", "status 0: "),
        ("busy", "exit(1)", "status 1: "),
        ("memory", "raise OSError('no file')", "status 1: OSError: no file"),
    ],
)
def test_a_load_that_ends_of_an_error_is_named_and_not_started_again(
    load: str, program: str, error: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with running(load, program, tmp_path, monkeypatch) as runs:
        eventually(lambda: _is(runs.error))
    assert (runs.started, runs.error) == (1, error)
    assert str(runs) == f"{load}: 1 runs, FAILED, {error}"


def test_a_program_that_fills_the_memory_is_ended_by_the_kernel_and_runs_again() -> None:
    runs = Runs("memory", started=1)
    runs.ended(-signal.SIGKILL, b"")
    assert (runs.out_of_memory, runs.error) == (1, "")


def test_a_load_that_the_bench_ends_has_no_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with running("busy", "while True: pass", tmp_path, monkeypatch) as runs:
        eventually(lambda: _is(runs.started))
    assert str(runs) == "busy: 1 runs"


def _is(value: object) -> None:
    assert value
