"""When the history is read and written: once a second, at the end, and what a disk that fails costs."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from structlog.testing import capture_logs

from cells.api.history import HistoryItem
from cells.history import file
from cells.history.file import FILE, HEAD, HistoryFile, append, stored
from cells.history.log import HistoryLog
from cells.hive import HealthTree
from cells.options import HistoryOptions
from tests.support.looptime import run

START = datetime(2026, 1, 1, tzinfo=UTC)


def item(number: int, message: str | None = None) -> HistoryItem:
    return HistoryItem(
        event_time=START + timedelta(seconds=number),
        type="ADDED",
        kind="Service",
        name=f"shop/{number}",
        message=message,
    )


class Stand:
    """A history whose hooks and job a test runs."""

    def __init__(self, directory: Path | None, *, on_disk: bool = True) -> None:
        self.log = HistoryLog("n", 10)
        self.health = HealthTree()
        self.hooks: dict[str, Any] = {}
        self.job: Callable[[], Coroutine[Any, Any, None]] | None = None
        HistoryFile(
            cast("Any", SimpleNamespace(path=directory)),
            HistoryOptions(entries=10, on_disk=on_disk),
            self.log,
            self.health,
            cast("Any", SimpleNamespace(append=self._append)),
            cast("Any", SimpleNamespace(add=self._add)),
        )

    def _append(self, _: str, **hooks: object) -> None:
        self.hooks = hooks

    def _add(self, _: str, job: Any, **__: object) -> None:  # noqa: ANN401
        self.job = job

    @property
    def state(self) -> tuple[str, str]:
        (status,) = self.health.report()
        return str(status.level), status.message

    def names(self) -> list[str]:
        return [of.name for of in self.log.newest_first()]


@pytest.fixture(autouse=True)
def _without_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    """Read and write in the loop, whose time goes on while a thread does."""

    async def here(function: Callable[..., object], *arguments: object, **named: object) -> object:
        return function(*arguments, **named)

    monkeypatch.setattr(asyncio, "to_thread", here)


def beside(stand: Stand, scenario: Callable[[], Awaitable[None]]) -> None:
    """Run a scenario beside the job, in virtual time."""

    async def main() -> None:
        assert stand.job is not None
        task = asyncio.create_task(stand.job())
        await scenario()
        task.cancel()

    run(main())


def test_off_and_without_a_directory_nothing_is_read_or_written(tmp_path: Path) -> None:
    off = Stand(tmp_path, on_disk=False)
    assert (off.hooks, off.job) == ({}, None)
    assert off.state == ("ok", "kept in memory only (--history-on-disk is not set)")
    without = Stand(None)
    assert (without.hooks, without.job) == ({}, None)
    assert without.state == ("ok", "kept in memory only (--state-directory is not set)")


def test_entries_of_earlier_processes_are_read_first(tmp_path: Path) -> None:
    append(tmp_path, [item(1), item(2)])
    stand = Stand(tmp_path)
    stand.log.add(item(3))
    run(stand.hooks["start"]())
    assert stand.names() == ["shop/3", "shop/2", "shop/1"]
    assert stand.state == ("ok", f"kept in {tmp_path}")


def test_no_more_entries_are_read_than_the_log_has(tmp_path: Path) -> None:
    append(tmp_path, map(item, range(20)))
    stand = Stand(tmp_path)
    run(stand.hooks["start"]())
    assert stand.names() == [f"shop/{number}" for number in range(19, 9, -1)]


def test_new_entries_are_appended_once_a_second(tmp_path: Path) -> None:
    stand = Stand(tmp_path)
    stand.log.add(item(1))

    async def scenario() -> None:
        await asyncio.sleep(0.9)
        assert not (tmp_path / FILE).exists()
        await asyncio.sleep(0.2)
        assert [of.name for of in stored(tmp_path, 10).items] == ["shop/1"]
        stand.log.add(item(2))
        await asyncio.sleep(1)

    beside(stand, scenario)
    assert [of.name for of in stored(tmp_path, 10).items] == ["shop/1", "shop/2"]
    assert (tmp_path / FILE).read_bytes().count(HEAD) == 1
    assert stand.state == ("ok", f"kept in {tmp_path}")


def test_the_last_entries_are_written_at_the_end(tmp_path: Path) -> None:
    stand = Stand(tmp_path)
    run(stand.hooks["stop"]())
    assert not (tmp_path / FILE).exists()
    stand.log.add(item(1))
    run(stand.hooks["stop"]())
    assert [of.name for of in stored(tmp_path, 10).items] == ["shop/1"]


def test_the_final_count_of_an_entry_is_written(tmp_path: Path) -> None:
    stand = Stand(tmp_path)
    for _ in range(5):
        stand.log.add(item(1, "refused"))
        stand.log.add(item(2))
    run(stand.hooks["stop"]())
    assert [(of.name, of.count) for of in stored(tmp_path, 10).items] == [
        ("shop/1", 5),
        ("shop/2", 5),
    ]
    assert (tmp_path / FILE).read_bytes().count(b"shop/1") == 1


def test_a_history_that_cannot_be_read_is_named_once_and_goes_on(tmp_path: Path) -> None:
    append(tmp_path, [item(1)])
    (tmp_path / FILE).chmod(0o666)
    stand = Stand(tmp_path)
    with capture_logs() as logs:
        run(stand.hooks["start"]())
    (line,) = logs
    assert (line["event_name"], line["log_level"]) == ("history.unkept", "warning")
    assert line["reason"].startswith("the history is not read: ")
    assert stand.state == ("degraded", line["reason"])
    assert stand.names() == []


def test_a_disk_that_fails_is_named_once_and_tried_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stand = Stand(tmp_path)

    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    with capture_logs() as logs, monkeypatch.context() as patch:
        patch.setattr(file, "append", full)
        for number in range(3):
            stand.log.add(item(number))
            run(stand.hooks["stop"]())
    assert [line["reason"] for line in logs] == [
        "the history is not written: No space left on device"
    ]
    assert stand.state == ("degraded", "the history is not written: No space left on device")
    stand.log.add(item(3))
    run(stand.hooks["stop"]())
    assert stand.state == ("ok", f"kept in {tmp_path}")
    assert (tmp_path / FILE).read_bytes().startswith(HEAD)
    assert [of.name for of in stored(tmp_path, 10).items] == ["shop/3"]


def test_the_directory_is_made_with_its_parents_for_this_user_alone(tmp_path: Path) -> None:
    directory = tmp_path / "var" / "lib"
    append(directory, [item(1)])
    append(directory, [item(2)])
    assert [of.name for of in stored(directory, 10).items] == ["shop/1", "shop/2"]
    assert directory.stat().st_mode & 0o777 == 0o700
    assert (directory / FILE).stat().st_mode & 0o777 == 0o600
