"""One process at a time has a lock file, and none is left in the way of another user's process."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from cells.lock_file import lock, unlock


def test_a_locked_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    first = lock(path)
    with pytest.raises(BlockingIOError):
        lock(path)
    unlock(path, first)


def test_no_file_is_left_for_another_user_to_be_refused_at(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    unlock(path, lock(path))
    assert list(tmp_path.iterdir()) == []


def test_the_file_of_a_process_that_was_killed_is_locked_again(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    os.close(lock(path))
    assert path.exists()
    unlock(path, lock(path))


def test_a_file_that_is_removed_while_it_is_opened_is_not_taken_for_the_lock(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "lock"
    first = lock(path)
    opened = os.open

    def open_then_end(*arguments: object, **options: object) -> int:
        descriptor = opened(*arguments, **options)  # type: ignore[arg-type]
        monkeypatch.setattr(os, "open", opened)
        unlock(path, first)
        return descriptor

    monkeypatch.setattr(os, "open", open_then_end)
    second = lock(path)
    with pytest.raises(BlockingIOError):
        lock(path)
    unlock(path, second)


def test_the_former_owner_does_not_remove_the_file_of_the_next_one(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    first = lock(path)
    path.unlink()
    second = lock(path)
    unlock(path, first)
    assert path.exists()
    unlock(path, second)
