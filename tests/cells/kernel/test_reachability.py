"""Routes with which a node does not reach its cluster are removed, and wait for approval."""

from __future__ import annotations

import asyncio
import contextlib
import errno
from collections.abc import AsyncIterator, Awaitable, Callable

import pytest
from structlog.testing import capture_logs

from cells.api.resource import NoBody
from cells.hive.health import HealthTree, Level
from cells.kernel import reachability
from cells.kernel.api import approve_action
from cells.kernel.reachability import ReachabilityCheck, is_reached
from cells.options import NodeOptions
from cells.state.node import ThisNode
from reconcilers.kernel.options import FibOptions
from reconcilers.kernel.reachability import Target
from resources.core import Node as KubernetesNode
from resources.kind import Kinds
from resources.meta import ObjectMeta
from resources.tables import Tables
from tests.cells.kernel.jobs import TestJobs
from tests.reconcilers.kernel.reconciler.reconciler_in_memory import (
    MAIN,
    ONE,
    PREFIX,
    Agent,
    hops,
    wire,
)
from tests.support import looptime
from tests.support.wait import until

API = Target("the API server", "10.0.0.1", 6443)
DNS = Target("the DNS server", "10.0.0.53", 53)
BAD = "10.0.0.0/24"


class Node:
    """An agent whose cluster is reached, unless a route leads elsewhere."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *, quick: bool = True) -> None:
        self.agent = Agent().start()
        self.health = HealthTree()
        self.jobs = TestJobs()
        self.is_down = False
        """Whether the API server is down, whatever the routes."""
        self.targets = [API, DNS]
        self.tables = Tables(self.agent.db, Kinds())
        monkeypatch.setattr(reachability, "targets", lambda *_: self.targets)
        if quick:
            monkeypatch.setattr(reachability, "ADDRESSES_SECONDS", 0.0)
            monkeypatch.setattr(reachability, "INTERVAL_SECONDS", 0.0)
        self.check = ReachabilityCheck(
            self.agent.db,
            self.tables,
            self.agent.kernel,
            None,
            ThisNode(NodeOptions(name="n1")),
            FibOptions(),
            self.health.scope("kernel"),
            self.jobs.given,
        )
        self.check._is_reached = self.is_reached
        if quick:
            self.check._settle = self.check._pause = 0.01

        async def here(function: Callable[[], str]) -> str:
            return function()

        # Virtual time goes on while a thread does.
        monkeypatch.setattr(asyncio, "to_thread", here)

    async def is_reached(self, target: Target) -> bool:
        return target is not API or not (
            self.is_down or (MAIN, wire(BAD)) in self.agent.writer.kernel
        )

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        async def reconcile() -> None:
            while True:
                self.agent.settle()
                await asyncio.sleep(0.001)

        self.jobs.add("reconcile", reconcile)
        async with self.jobs.running():
            await until(lambda: len(self.check.reached) == 2)
            yield

    @property
    def status(self) -> tuple[Level, str]:
        (found,) = self.health.report()
        return found.level, found.message


def test_routes_that_cut_the_node_off_wait_for_approval(monkeypatch: pytest.MonkeyPatch) -> None:
    node = Node(monkeypatch)
    agent, withheld = node.agent, node.agent.kernel.withheld
    approve = approve_action(ThisNode(NodeOptions(name="n1")), agent.kernel, node.check)

    async def scenario() -> None:
        async with node.running():
            agent.table(ONE, PREFIX)
            await until(lambda: not withheld.is_due)
            await asyncio.sleep(0.1)
            agent.change(ONE, BAD)
            await until(lambda: withheld.count)
            await until(lambda: node.status[0] is Level.DEGRADED)
            await until(lambda: agent.routes == {PREFIX: hops("10.88.0.1")})
            assert (
                "not installed: 1 route, with which the node does not reach the API server"
                in (node.status[1])
            )
            (item,) = await approve.perform(NoBody())
            assert item.prefix == BAD
            await until(lambda: BAD in agent.routes)
            # The API server is not reached: what is reached now is as it is.
            await until(lambda: node.check.reached == {DNS})
            assert BAD in agent.routes
            assert await approve.perform(NoBody()) == []

    looptime.run(scenario())


def test_routes_that_are_not_the_cause_are_installed_again(monkeypatch: pytest.MonkeyPatch) -> None:
    node = Node(monkeypatch)

    async def scenario() -> None:
        async with node.running():
            node.is_down = True
            node.agent.table(ONE, PREFIX)
            await until(lambda: node.check.reached == {DNS})
            await until(lambda: PREFIX in node.agent.routes)
            await until(lambda: node.status[0] is Level.OK)
            assert not node.agent.kernel.withheld.count

    looptime.run(scenario())


def test_a_server_that_restarts_during_a_check_removes_no_route(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    node = Node(monkeypatch)
    withheld, answers = node.agent.kernel.withheld, [False] * 3
    removed: list[int] = []

    async def restarting(target: Target) -> bool:
        if target is DNS or not answers:
            return True
        if not withheld.count:
            return answers.pop()
        # It is back just while the routes are removed.
        removed.append(withheld.count)
        return True

    async def scenario() -> None:
        async with node.running():
            node.check._is_reached = restarting
            node.agent.table(ONE, PREFIX)
            await until(lambda: removed or not answers)
            await until(lambda: not withheld.is_due and PREFIX in node.agent.routes)
            await asyncio.sleep(0.1)
            assert not withheld.count
            assert node.status[0] is Level.OK

    looptime.run(scenario())


def test_routes_that_wait_for_approval_are_not_installed_with_others_that_were_checked(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    node = Node(monkeypatch)
    withheld = node.agent.kernel.withheld

    async def scenario() -> None:
        async with node.running():
            node.agent.table(ONE, BAD)
            await until(lambda: withheld.count)
            await until(lambda: node.status[0] is Level.DEGRADED)
            node.is_down = True
            node.agent.change(ONE, PREFIX)
            await until(lambda: node.check.reached == {DNS})
            await until(lambda: PREFIX in node.agent.routes)
            assert withheld.routes(MAIN) == {wire(BAD)}

    looptime.run(scenario())


def test_what_unchecked_routes_cut_off_is_noticed_by_the_next_check(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    node = Node(monkeypatch)

    async def scenario() -> None:
        await node.check.probe()
        node.agent.table(ONE, BAD)
        node.agent.settle()
        assert (MAIN, wire(BAD)) in node.agent.writer.kernel
        await node.check.probe()
        assert API in node.check.reached
        node.agent.kernel.withheld.take_unchecked()
        await node.check.probe()
        assert node.check.reached == {DNS}

    looptime.run(scenario())


def test_a_check_that_loses_nothing_lists_no_routes(monkeypatch: pytest.MonkeyPatch) -> None:
    """There may be very many, and the sessions of peers wait meanwhile."""
    node = Node(monkeypatch)
    monkeypatch.delattr(reachability, "routes_of")

    async def scenario() -> None:
        await node.check.probe()
        node.agent.table(ONE, PREFIX)
        await node.check.check()
        assert not node.agent.kernel.withheld.is_due

    looptime.run(scenario())


def test_a_node_that_is_known_later_is_among_what_has_to_be_reached(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    node = Node(monkeypatch)
    other = Target("the node", "10.0.0.2", 10250)

    async def scenario() -> None:
        async with node.running():
            node.targets.append(other)
            with node.agent.db.write(node.tables.nodes) as txn:
                node.tables.nodes.upsert(txn, KubernetesNode(metadata=ObjectMeta(name="n2")))
            await until(lambda: other in node.check.reached)

    looptime.run(scenario())


def test_a_host_that_refuses_is_reached(monkeypatch: pytest.MonkeyPatch) -> None:
    async def unreachable(*_: object) -> None:
        raise OSError(errno.EHOSTUNREACH, "no route")

    async def scenario() -> tuple[bool, bool, bool]:
        server = await asyncio.start_server(lambda _, writer: writer.close(), "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        accepted = await is_reached(Target("", "127.0.0.1", port))
        server.close()
        await server.wait_closed()
        refused = await is_reached(Target("", "127.0.0.1", port))
        monkeypatch.setattr(asyncio, "open_connection", unreachable)
        return accepted, refused, await is_reached(Target("", "127.0.0.1", port))

    assert asyncio.run(scenario()) == (True, True, False)


def test_a_host_that_resets_the_connection_as_it_is_closed_is_reached(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Reset:
        closed = False

        def close(self) -> None:
            self.closed = True

        async def wait_closed(self) -> None:
            assert self.closed
            raise ConnectionResetError

    async def connected(*_: object) -> tuple[None, Reset]:
        return None, Reset()

    monkeypatch.setattr(asyncio, "open_connection", connected)
    assert asyncio.run(is_reached(Target("", "127.0.0.1", 1)))


def test_a_host_that_does_not_answer_within_a_second_is_not_reached(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def silent(*_: object) -> None:
        await asyncio.Event().wait()

    async def scenario() -> float:
        began = asyncio.get_running_loop().time()
        assert not await is_reached(Target("", "192.0.2.1", 1))
        return asyncio.get_running_loop().time() - began

    monkeypatch.setattr(asyncio, "open_connection", silent)
    assert looptime.run(scenario()) == 1


class Clocked:
    """An agent whose checks are in virtual time, with the pauses of a program."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.node = Node(monkeypatch, quick=False)
        self.probes: list[tuple[float, str]] = []
        self.lost: set[str] = set()
        self.node.check._is_reached = self.is_reached

    async def reconcile(self) -> None:
        while True:
            self.node.agent.settle()
            await asyncio.sleep(0.01)

    async def is_reached(self, target: Target) -> bool:
        self.probes.append((asyncio.get_running_loop().time(), target.address))
        return target.address not in self.lost

    def times(self, address: str) -> list[float]:
        return [round(at, 2) for at, of in self.probes if of == address]

    def run(self, scenario: Callable[[], Awaitable[None]]) -> None:
        async def main() -> None:
            began = asyncio.get_running_loop().time()
            async with self.node.jobs.running():
                await scenario()
            self.probes[:] = [(at - began, of) for at, of in self.probes]

        looptime.run(main())


def test_what_is_reached_is_found_every_half_minute(monkeypatch: pytest.MonkeyPatch) -> None:
    it = Clocked(monkeypatch)

    async def scenario() -> None:
        await asyncio.sleep(70)

    it.run(scenario)
    assert it.times(API.address) == it.times(DNS.address) == [0, 30, 60]


def test_new_addresses_are_tried_two_seconds_after_the_last_ones(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    it = Clocked(monkeypatch)
    node = it.node

    async def scenario() -> None:
        await asyncio.sleep(0.5)
        for number in (2, 3):
            node.targets.append(Target("the node", f"10.0.0.{number}", 10250))
            with node.agent.db.write(node.tables.nodes) as txn:
                row = KubernetesNode(metadata=ObjectMeta(name=f"n{number}"))
                node.tables.nodes.upsert(txn, row)
            await asyncio.sleep(1)
        await asyncio.sleep(10)

    it.run(scenario)
    assert it.times("10.0.0.2") == it.times("10.0.0.3") == [2]
    # Addresses that were known are not tried again.
    assert it.times(DNS.address) == [0]


def test_routes_are_checked_when_they_have_settled_three_times_half_a_second_apart(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    it = Clocked(monkeypatch)
    agent = it.node.agent
    it.node.jobs.add("reconcile", it.reconcile)

    async def scenario() -> None:
        await asyncio.sleep(10)
        it.lost.add(API.address)
        agent.table(ONE, PREFIX)
        await asyncio.sleep(1.2)
        assert not agent.kernel.withheld.count
        with capture_logs() as logs:
            await asyncio.sleep(5)
        (line,) = [line for line in logs if line["event_name"] == "kernel.unreached"]
        assert line["addresses"] == str(API)
        # It is lost without these routes as well.
        assert not agent.kernel.withheld.count

    it.run(scenario)
    with_routes, without = it.times(API.address)[1:4], it.times(API.address)[4:7]
    assert with_routes == [10.3, 10.8, 11.3]
    assert without == [11.6, 12.1, 12.6]
