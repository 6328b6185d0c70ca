"""Routes with which a node does not reach its cluster are removed, and wait for approval."""

from __future__ import annotations

import asyncio
import contextlib
import errno
from collections.abc import AsyncIterator

import pytest

from cells.api.resource import NoBody
from cells.hive.health import HealthTree, Level
from cells.kernel import reachability
from cells.kernel.api import approve_action
from cells.kernel.reachability import ReachabilityCheck, is_reached
from cells.node import ThisNode
from cells.options import NodeOptions
from reconcilers.kernel.options import FibOptions
from reconcilers.kernel.reachability import Target
from resources.core import Node as KubernetesNode
from resources.kind import Kinds
from resources.meta import ObjectMeta
from resources.tables import Tables
from tests.cells.kernel.jobs import TestJobs
from tests.reconcilers.kernel.reconciler.agent import MAIN, ONE, PREFIX, Agent, hops, wire
from tests.support.wait import until

API = Target("the API server", "10.0.0.1", 6443)
DNS = Target("the DNS server", "10.0.0.53", 53)
BAD = "10.0.0.0/24"


class Node:
    """An agent whose cluster is reached, unless a route leads elsewhere."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.agent = Agent().start()
        self.health = HealthTree()
        self.jobs = TestJobs()
        self.is_down = False
        """Whether the API server is down, whatever the routes."""
        self.targets = [API, DNS]
        self.tables = Tables(self.agent.db, Kinds())
        monkeypatch.setattr(reachability, "targets", lambda *_: self.targets)
        monkeypatch.setattr(reachability, "FACTS_SECONDS", 0.0)
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
        self.check._settle = self.check._pause = 0.01

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
                "1 routes are not installed, as the node does not reach the API server"
                in (node.status[1])
            )
            (item,) = await approve.run(NoBody())
            assert item.prefix == BAD
            await until(lambda: BAD in agent.routes)
            # The API server is not reached: what is reached now is as it is.
            await until(lambda: node.check.reached == {DNS})
            assert BAD in agent.routes
            assert await approve.run(NoBody()) == []

    asyncio.run(scenario())


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

    asyncio.run(scenario())


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

    asyncio.run(scenario())


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

    asyncio.run(scenario())


def test_what_unchecked_routes_cut_off_is_noticed_by_the_next_check(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    node = Node(monkeypatch)

    async def scenario() -> None:
        await node.check.look()
        node.agent.table(ONE, BAD)
        node.agent.settle()
        assert (MAIN, wire(BAD)) in node.agent.writer.kernel
        await node.check.look()
        assert API in node.check.reached
        node.agent.kernel.withheld.take_unchecked()
        await node.check.look()
        assert node.check.reached == {DNS}

    asyncio.run(scenario())


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

    asyncio.run(scenario())


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
