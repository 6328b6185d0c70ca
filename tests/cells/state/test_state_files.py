"""Files for the next process: an unusable or unwritable file stops nothing, and is named once."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from cells.state.state_files import LogLines, StateFile
from resources.state_file import StateFileError, read
from tests.support.wait import until

LINES = LogLines("waggle.test", "the file", "test.unusable", "test.unwritten")


def rejected(octets: bytes) -> int:
    raise StateFileError(f"it has {len(octets)} octets")


def test_what_is_written_is_decoded_and_a_missing_file_is_nothing(tmp_path: Path) -> None:
    file = StateFile(tmp_path / "state" / "file", LINES)
    assert asyncio.run(file.read(len)) is None
    assert asyncio.run(file.write([b"abc", b"de"]))
    assert asyncio.run(file.read(len)) == 5
    assert file.trouble == ""


def test_a_file_that_is_rejected_is_trouble_until_it_is_written(tmp_path: Path) -> None:
    file = StateFile(tmp_path / "file", LINES)
    file.path.write_bytes(b"abc")
    assert asyncio.run(file.read(rejected)) is None
    assert file.trouble == f"{file.path} is not used: it has 3 octets"
    assert asyncio.run(file.write([b"x"]))
    assert file.trouble == ""


def test_the_same_trouble_is_one_line_of_the_log(tmp_path: Path) -> None:
    (tmp_path / "state").write_text("a file where the directory should be")
    file = StateFile(tmp_path / "state" / "file", LINES)
    with capture_logs() as lines:
        for _ in range(3):
            assert not asyncio.run(file.write([b"x"]))
    (line,) = lines
    assert (line["event_name"], line["reason"]) == ("test.unwritten", file.trouble)


def test_a_write_that_has_begun_ends_before_the_next_one(tmp_path: Path) -> None:
    """A stop cancels the job that writes, and writes itself: the last content is the stop's."""
    file = StateFile(tmp_path / "file", LINES)
    begun, go_on = threading.Event(), threading.Event()

    def slow() -> Iterator[bytes]:
        begun.set()
        go_on.wait()
        yield b"old"

    def last() -> Iterator[bytes]:
        yield b"new" if go_on.is_set() else b"too early"

    async def run() -> None:
        job = asyncio.create_task(file.write(slow()))
        await until(begun.is_set)
        job.cancel()
        with pytest.raises(asyncio.CancelledError):
            await job
        stop = asyncio.create_task(file.write(last()))
        for _ in range(10):  # another thread has had the time that the stop's needs
            await asyncio.to_thread(bool)
        go_on.set()
        assert await stop

    asyncio.run(run())
    assert read(file.path) == b"new"
