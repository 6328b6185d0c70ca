"""The history on disk: over a restart, after a crash, of another version, and its size."""

from __future__ import annotations

import os
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from msgspec.structs import replace

from cells.api.history import HistoryItem
from cells.history import file
from cells.history.file import FILE, OLDER, append, stored

START = datetime(2026, 1, 1, tzinfo=UTC)


def items(first: int, last: int) -> list[HistoryItem]:
    return [
        HistoryItem(
            event_time=START + timedelta(seconds=number),
            sequence=number,
            type="ADDED",
            kind="Service",
            name=f"shop/{number}",
        )
        for number in range(first, last)
    ]


def test_what_was_appended_is_read_back_in_order(tmp_path: Path) -> None:
    append(tmp_path, items(0, 2))
    append(tmp_path, items(2, 5))
    assert stored(tmp_path, 100).items == items(0, 5)
    assert stored(tmp_path, 2).items == items(3, 5)
    assert (tmp_path / FILE).stat().st_mode & 0o777 == 0o600


def test_without_a_file_there_is_no_history(tmp_path: Path) -> None:
    assert stored(tmp_path, 100).items == []


@pytest.mark.parametrize("cut", [1, 20, 60])
def test_a_line_that_a_crash_has_cut_is_skipped(tmp_path: Path, cut: int) -> None:
    append(tmp_path, items(0, 3))
    path = tmp_path / FILE
    path.write_bytes(path.read_bytes()[:-cut])
    whole = 3 if cut == 1 else 2
    assert stored(tmp_path, 100).items == items(0, whole)
    append(tmp_path, items(3, 4))
    assert stored(tmp_path, 100).items == [*items(0, whole), *items(3, 4)]


def test_a_file_of_another_version_is_not_read(tmp_path: Path) -> None:
    append(tmp_path, items(0, 3))
    path = tmp_path / FILE
    path.write_bytes(path.read_bytes().replace(b"waggle-history/1", b"waggle-history/2", 1))
    assert stored(tmp_path, 100).items == []


@pytest.mark.parametrize(
    "content", [b'{"format":"waggle-history/2"}\n{}\n', bytes(4096), b"\xff\xfe", b"{"]
)
def test_the_entries_of_a_process_are_read_behind_any_other_content(
    tmp_path: Path, content: bytes
) -> None:
    (tmp_path / FILE).write_bytes(content)
    append(tmp_path, items(0, 2), begin=True)
    append(tmp_path, items(2, 3))
    assert stored(tmp_path, 100).items == items(0, 3)


@pytest.mark.parametrize("content", [b"", b"\n", b"\xff\xfe\n\xff", b"[]\n{}\n", b"null"])
def test_other_content_is_no_history(tmp_path: Path, content: bytes) -> None:
    (tmp_path / FILE).write_bytes(content)
    assert stored(tmp_path, 100).items == []


def test_a_file_that_others_may_write_is_rejected(tmp_path: Path) -> None:
    append(tmp_path, items(0, 1))
    (tmp_path / FILE).chmod(0o666)
    assert stored(tmp_path, 100) == ([], {FILE: "others may write to it"})


@pytest.mark.parametrize(("broken", "whole"), [(OLDER, FILE), (FILE, OLDER)])
def test_a_file_that_cannot_be_read_does_not_hide_the_other(
    tmp_path: Path, broken: str, whole: str
) -> None:
    append(tmp_path, items(0, 2))
    (tmp_path / FILE).rename(tmp_path / whole)
    (tmp_path / broken).symlink_to(broken)
    found = stored(tmp_path, 100)
    assert found.items == items(0, 2)
    assert found.unread == {broken: "Too many levels of symbolic links"}


def test_two_files_bound_the_room_on_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(file, "MOST_OCTETS", 2000)
    for number in range(100):
        append(tmp_path, items(number, number + 1))
    sizes = [(tmp_path / name).stat().st_size for name in (FILE, OLDER)]
    assert max(sizes) < 2500
    names = [item.name for item in stored(tmp_path, 1000).items]
    assert names == [f"shop/{number}" for number in range(100 - len(names), 100)]
    assert len(names) > 10


@pytest.mark.parametrize(("beyond", "is_older"), [(0, False), (1, True)])
def test_a_file_of_more_than_4_mib_becomes_the_older_one(
    tmp_path: Path, beyond: int, is_older: bool
) -> None:
    append(tmp_path, items(0, 1))
    os.truncate(tmp_path / FILE, 4 * 1024 * 1024 + beyond)
    append(tmp_path, items(1, 2))
    assert (tmp_path / OLDER).exists() is is_older
    assert (tmp_path / FILE).exists() is not is_older


def test_an_entry_with_a_count_is_read_once(tmp_path: Path) -> None:
    (item,) = items(0, 1)
    counted = [
        replace(item, count=n, first_time=START, event_time=START + timedelta(seconds=n))
        for n in (2, 3)
    ]
    append(tmp_path, [item])
    append(tmp_path, counted)
    assert stored(tmp_path, 100).items == counted[-1:]
