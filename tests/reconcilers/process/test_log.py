"""The log of a process beside the agent, which waits for no reader."""

from __future__ import annotations

import contextlib
import os
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from reconcilers.process.log import MAX_LINE, log

TIMEOUT_SECONDS = 60
PIPE_OCTETS = 1 << 20
"""More than a pipe holds."""


@contextlib.contextmanager
def read_by_test(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[int, int]]:
    """Have a pipe as standard error; yields both ends. Not a fixture: pytest has its own by phase."""
    reading, writing = os.pipe()
    with os.fdopen(writing, "w", encoding="utf-8") as file:
        monkeypatch.setattr(sys, "stderr", file)
        yield reading, writing
    monkeypatch.undo()
    os.close(reading)


def test_a_reader_that_stands_still_does_not_stop_the_process(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Sessions would be lost by a log that is not read: a full disk, a runtime that hangs."""
    with read_by_test(monkeypatch) as (reading, writing):
        os.set_blocking(writing, False)
        full = os.write(writing, bytes(PIPE_OCTETS))
        os.set_blocking(writing, True)
        writer = threading.Thread(target=log, args=("info", "lost"), daemon=True)
        writer.start()
        writer.join(TIMEOUT_SECONDS)
        stands_still = writer.is_alive()
        os.read(reading, full)
        writer.join()
        assert not stands_still
        log("error", "written")
        assert os.read(reading, 4096) == b"error: written\n"


def test_a_line_is_short(monkeypatch: pytest.MonkeyPatch) -> None:
    with read_by_test(monkeypatch) as (reading, _):
        log("info", "v" * 10_000)
        assert len(os.read(reading, 10_000)) == len("info: \n") + MAX_LINE


def test_a_file_is_always_written(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    with (tmp_path / "log").open("w") as file:
        monkeypatch.setattr(sys, "stderr", file)
        log("info", "line")
    monkeypatch.undo()
    assert (tmp_path / "log").read_text() == "info: line\n"
