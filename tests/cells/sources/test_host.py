"""The kernel's interfaces are read from the first object on that needs them, and wait for nothing."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from types import SimpleNamespace
from typing import Any, cast

import pytest
from reactivex.subject import Subject

from cells.hive import HealthTree
from cells.sources.host import UNUSED, HostWatch
from resources.host import Host, netlink
from resources.tables import Tables
from statedb import Database
from tests.support.looptime import run


class Node:
    """A watch whose demand and kernel are the test's."""

    def __init__(self, *, needs: bool = False) -> None:
        self.database = Database()
        self.tables = Tables(self.database)
        self.health = HealthTree()
        self.changes: Subject[None] = Subject()
        self.demand = SimpleNamespace(changes=self.changes, needed=False, failures={})
        self.job: Callable[[], Awaitable[None]]
        HostWatch(
            self.database,
            self.tables,
            cast("Any", self.demand),
            cast("Any", ("a need",) if needs else ()),
            self.health,
            cast("Any", SimpleNamespace(add=self._add)),
        )

    def _add(self, _: str, job: Any, **__: object) -> None:  # noqa: ANN401
        self.job = job

    @property
    def state(self) -> tuple[str, str]:
        (status,) = self.health.report()
        return str(status.level), status.message

    @property
    def is_read(self) -> bool:
        return self.tables.host.initialized(self.database.snapshot())

    def hosts(self) -> list[Host]:
        return list(self.tables.host.all(self.database.snapshot()))

    def revision(self) -> int:
        return self.tables.host.revision(self.database.snapshot())


Found = Callable[[Host], None]


def kernel(monkeypatch: pytest.MonkeyPatch, *hosts: Host) -> list[Found]:
    """Have netlink report these hosts; returns the receivers."""
    receivers: list[Found] = []

    async def watch(found: Found) -> None:
        receivers.append(found)
        for host in hosts:
            found(host)
        await asyncio.Event().wait()

    monkeypatch.setattr(netlink, "watch", watch)
    return receivers


async def beside(node: Node, scenario: Callable[[], None] = lambda: None) -> None:
    task = asyncio.ensure_future(node.job())
    await asyncio.sleep(1)
    scenario()
    await asyncio.sleep(1)
    task.cancel()


def test_netlink_is_not_used_until_an_object_refers_to_the_host(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    receivers = kernel(monkeypatch, Host())
    node = Node()

    def refers() -> None:
        assert (receivers, node.state, node.is_read) == ([], ("ok", UNUSED), False)
        node.demand.needed = True
        node.changes.on_next(None)

    run(beside(node, refers))
    assert (len(receivers), node.hosts(), node.is_read) == (1, [Host()], True)
    assert node.state == ("ok", "0 interfaces, 0 default routes")


def test_a_part_that_needs_the_host_has_it_read_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    receivers = kernel(monkeypatch, Host())
    run(beside(Node(needs=True)))
    assert len(receivers) == 1


def test_a_host_that_has_not_changed_is_not_written_again(monkeypatch: pytest.MonkeyPatch) -> None:
    receivers = kernel(monkeypatch, Host())
    node = Node(needs=True)
    revisions: list[int] = []

    def again() -> None:
        revisions.append(node.revision())
        for found in receivers:
            found(Host())

    run(beside(node, again))
    assert revisions == [node.revision()]


def test_a_demand_that_cannot_be_evaluated_is_named_until_it_can(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    kernel(monkeypatch)
    node = Node()
    states: list[tuple[str, str]] = []

    async def scenario() -> None:
        task = asyncio.ensure_future(node.job())
        for failures in ({"frrk8s": ValueError("x")}, {}):
            await asyncio.sleep(1)
            node.demand.failures = failures
            node.changes.on_next(None)
            await asyncio.sleep(1)
            states.append(node.state)
        task.cancel()

    run(scenario())
    assert states == [
        ("degraded", "frrk8s cannot be evaluated: ValueError: x"),
        ("ok", UNUSED),
    ]


def test_where_netlink_fails_what_needs_no_host_does_not_wait(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def watch(_: Found) -> None:
        raise OSError(1, "Operation not permitted")

    monkeypatch.setattr(netlink, "watch", watch)
    node = Node(needs=True)
    with pytest.raises(OSError, match="not permitted"):
        run(cast("Any", node.job()))
    assert (node.is_read, node.hosts()) == (True, [])
