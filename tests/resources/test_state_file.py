"""The file: whole or as before, for its owner only, and not believed where others could write it."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from resources.state_file import StateFileError, read, write


def test_a_written_snapshot_is_readable_by_its_owner_only(tmp_path: Path) -> None:
    path = tmp_path / "state" / "snapshot"
    write(path, [b"one", b"two"])
    assert read(path) == b"onetwo"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert list(path.parent.iterdir()) == [path]


def test_a_missing_snapshot_is_none(tmp_path: Path) -> None:
    assert read(tmp_path / "snapshot") is None
    assert read(tmp_path / "no" / "such" / "folder") is None


def test_a_failed_write_leaves_the_old_snapshot(tmp_path: Path) -> None:
    path = tmp_path / "snapshot"
    write(path, [b"old"])

    def pieces() -> Iterator[bytes]:
        yield b"new"
        raise OSError(28, "No space left on device")

    with pytest.raises(OSError, match="No space"):
        write(path, pieces())
    assert read(path) == b"old"
    assert list(tmp_path.iterdir()) == [path]


def test_a_file_left_by_a_crash_is_replaced(tmp_path: Path) -> None:
    path = tmp_path / "snapshot"
    (tmp_path / ".snapshot.new").write_bytes(b"half")
    write(path, [b"whole"])
    assert read(path) == b"whole"


def test_a_symbolic_link_is_replaced_and_not_followed(tmp_path: Path) -> None:
    path, other = tmp_path / "snapshot", tmp_path / "other"
    other.write_bytes(b"mine")
    path.symlink_to(other)
    with pytest.raises(OSError, match="symbolic links"):
        read(path)
    write(path, [b"new"])
    assert other.read_bytes() == b"mine"
    assert read(path) == b"new"


def _writable(path: Path) -> None:
    path.write_bytes(b"")
    path.chmod(0o660)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (_writable, "others may write"),
        (os.mkfifo, "not a regular file"),
        (Path.mkdir, "not a regular file"),
    ],
    ids=["writable", "pipe", "directory"],
)
def test_a_file_that_is_no_snapshot_of_ours_is_rejected(
    tmp_path: Path, make: Callable[[Path], None], message: str
) -> None:
    path = tmp_path / "snapshot"
    make(path)
    with pytest.raises(StateFileError, match=message):
        read(path)


def test_a_snapshot_of_another_user_is_rejected(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "snapshot"
    write(path, [b"x"])
    owner = path.stat().st_uid
    if owner == 0:
        os.chown(path, 4711, -1)
    else:
        monkeypatch.setattr(os, "geteuid", lambda: owner + 1)
    with pytest.raises(StateFileError, match="belongs to another user"):
        read(path)
