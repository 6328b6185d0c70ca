"""Files that a user names: a named pipe without a writer is an error, and no wait."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from resources import given_file
from resources.given_file import is_named_pipe, open_given, read_given

SILENT = "it is a named pipe, silent for 0.01 seconds"


@pytest.fixture(autouse=True)
def _short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(given_file, "WRITER_SECONDS", 0.01)


@pytest.fixture
def fifo(tmp_path: Path) -> Path:
    path = tmp_path / "fifo"
    os.mkfifo(path)
    return path


@pytest.fixture
def anonymous() -> Iterator[tuple[Path, int]]:
    """What a shell gives for ``<(command)``, and the end of the command."""
    reading, writing = os.pipe()
    yield Path(f"/dev/fd/{reading}"), writing
    os.close(reading)


def test_a_regular_file_is_read(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"content")
    assert read_given(path) == read_given(str(path)) == b"content"
    assert not is_named_pipe(path)


def test_a_named_pipe_without_a_writer_is_an_error_that_names_it(fifo: Path) -> None:
    with pytest.raises(OSError, match="silent") as caught:
        read_given(fifo)
    assert (caught.value.strerror, caught.value.filename) == (SILENT, str(fifo))


def test_a_link_to_a_named_pipe_is_one(fifo: Path) -> None:
    link = fifo.with_name("link")
    link.symlink_to(fifo)
    assert is_named_pipe(link)
    with pytest.raises(OSError, match=SILENT):
        open_given(link)


def test_no_descriptor_remains_of_a_file_that_is_not_read(fifo: Path, tmp_path: Path) -> None:
    before = os.listdir("/proc/self/fd")  # noqa: PTH208
    for path in (fifo, tmp_path):
        with pytest.raises(OSError, match=r"silent|directory"):
            open_given(path)
    assert os.listdir("/proc/self/fd") == before  # noqa: PTH208


def test_a_named_pipe_is_read_to_the_end_of_its_writer(
    fifo: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(given_file, "WRITER_SECONDS", 60)
    writer = threading.Thread(target=fifo.write_bytes, args=(bytes(200_000),))
    writer.start()
    assert len(read_given(fifo)) == 200_000
    writer.join()


def test_the_pipe_of_a_process_is_read_however_late_it_writes(
    anonymous: tuple[Path, int],
) -> None:
    path, writing = anonymous

    def write() -> None:
        time.sleep(5 * given_file.WRITER_SECONDS)
        with os.fdopen(writing, "wb") as file:
            file.write(b"late")

    writer = threading.Thread(target=write)
    writer.start()
    assert not is_named_pipe(path)
    assert read_given(path) == b"late"
    writer.join()


def test_a_process_that_wrote_nothing_has_an_empty_pipe(anonymous: tuple[Path, int]) -> None:
    path, writing = anonymous
    os.close(writing)
    assert read_given(path) == b""


def test_a_device_without_end_is_not_read_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(given_file, "LARGEST", 1 << 20)
    with pytest.raises(OSError, match="more than 1 MiB are not read"):
        read_given("/dev/zero")
