"""When the last valid objects of manifests are read and written, in virtual time."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from structlog.testing import capture_logs

from cells.hive import HealthTree
from cells.state import last_valid_manifests
from cells.state.last_valid_manifests import FILE, LastValidObjects
from resources.core.kinds import NODE
from resources.tables import Tables
from statedb import Database, ReadTxn, Table
from tests.reconcilers.build import node
from tests.support import looptime


class Stand:
    """The file of a state directory, and what is written to it at which time."""

    def __init__(self, *, directory: bool = True) -> None:
        self.path = Path("/state") / FILE
        self.stored: Any = None
        self.is_writable = True
        self.writes: list[float] = []
        self.restored: object = None
        self.tree = HealthTree()
        self.hooks: dict[str, Any] = {}
        self.job: Callable[[], Awaitable[None]] | None = None
        self.database = Database()
        self.tables = Tables(self.database)
        self.initializers = [table.register_initializer("test") for table in self.tables.resources]
        this = cast("Any", self)
        LastValidObjects(
            self.database,
            self.tables,
            this,
            this if directory else None,
            self.tree.scope("manifests"),
            cast("Any", SimpleNamespace(append=self.append)),
            cast("Any", SimpleNamespace(add=self.add)),
        )

    def read_all(self) -> None:
        with self.database.write(*self.tables.resources) as txn:
            for done in self.initializers:
                done(txn)

    def put(self, name: str) -> None:
        with self.database.write(self.tables.nodes) as txn:
            self.tables.nodes.upsert(txn, NODE.decode(node(name)))

    # The directory, the file, the source, the hooks and the jobs

    def file(self, name: str, lines: Any) -> Stand:  # noqa: ANN401
        assert (name, lines.logger) == ("manifests", "waggle.manifests")
        return self

    async def read(self, decode: object) -> Any:  # noqa: ANN401
        assert callable(decode)
        return self.stored

    async def write_in_turns(self, pieces: object) -> bool:
        assert pieces == ["encoded", "kept"]
        self.writes.append(asyncio.get_running_loop().time())
        return self.is_writable

    def report(self, health: Any) -> None:  # noqa: ANN401
        health.ok(f"{len(self.writes)} writes")

    def restore(self, files: object) -> None:
        self.restored = files

    def kept(self) -> str:
        return "kept"

    def append(self, name: str, **hooks: object) -> None:
        assert name == "manifests-last-valid"
        self.hooks = hooks

    def add(self, name: str, job: Callable[[], Awaitable[None]]) -> None:
        assert name == "write-last-valid"
        self.job = job

    @property
    def health(self) -> tuple[tuple[str, ...], str]:
        (status,) = self.tree.report()
        return status.path, status.message


@pytest.fixture(autouse=True)
def _encoded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(last_valid_manifests, "encode", lambda kept: ["encoded", kept])


def test_without_a_directory_nothing_is_kept() -> None:
    stand = Stand(directory=False)
    assert (stand.hooks, stand.job) == ({}, None)


def test_the_objects_of_the_last_process_are_restored_before_the_manifests_are_read() -> None:
    stand = Stand()
    with capture_logs() as logs:
        looptime.run(stand.hooks["start"]())
        assert stand.restored is None
        stand.stored = SimpleNamespace(files={"a.yaml": ()}, unread=())
        looptime.run(stand.hooks["start"]())
    assert logs == []
    assert stand.restored == {"a.yaml": ()}
    assert stand.health == (("manifests", "last-valid"), "0 writes")


def test_objects_of_another_release_are_named() -> None:
    stand = Stand()
    stand.stored = SimpleNamespace(files={}, unread=("Node/a: x", "Node/b: y"))
    with capture_logs() as logs:
        looptime.run(stand.hooks["start"]())
    assert logs == [
        {
            "event": "last valid objects are of another release and are not used",
            "event_name": "manifests.last_valid_unread",
            "log_level": "warning",
            "file": "/state/manifests",
            "reason": "Node/a: x; Node/b: y",
        }
    ]


def test_changes_are_written_every_half_minute_once_all_is_read_and_at_the_end() -> None:
    stand = Stand()

    async def scenario() -> None:
        assert stand.job is not None
        began = asyncio.get_running_loop().time()
        task = asyncio.ensure_future(stand.job())
        stand.put("a")
        await asyncio.sleep(100)
        assert stand.writes == []
        stand.read_all()
        await asyncio.sleep(10)
        stand.put("b")
        await asyncio.sleep(10)
        stand.put("c")
        await asyncio.sleep(80)
        assert [at - began for at in stand.writes] == [100, 130]
        # Nothing has changed since.
        await stand.hooks["stop"]()
        assert len(stand.writes) == 2
        stand.put("d")
        await stand.hooks["stop"]()
        assert len(stand.writes) == 3
        assert stand.health[1] == "3 writes"
        task.cancel()

    looptime.run(scenario())


def test_a_write_that_fails_is_repeated_by_the_next_one() -> None:
    stand = Stand()
    stand.read_all()
    stand.is_writable = False
    for _ in range(2):
        looptime.run(stand.hooks["stop"]())
    stand.is_writable = True
    for _ in range(2):
        looptime.run(stand.hooks["stop"]())
    assert len(stand.writes) == 3


def test_once_all_is_read_no_table_is_asked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    stand = Stand()
    asked: list[str] = []
    initialized = Table.initialized

    def recorded(table: Table[Any], txn: ReadTxn) -> bool:
        asked.append(table.name)
        return initialized(table, txn)

    monkeypatch.setattr(Table, "initialized", recorded)
    looptime.run(stand.hooks["stop"]())
    assert asked != []
    stand.read_all()
    looptime.run(stand.hooks["stop"]())
    assert len(stand.writes) == 1
    asked.clear()
    stand.put("a")
    looptime.run(stand.hooks["stop"]())
    assert (len(stand.writes), asked) == (2, [])
