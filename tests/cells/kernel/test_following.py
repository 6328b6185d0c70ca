"""What feeds the reconciler of kernel routes: streams of best paths, sessions, the deferral."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import NamedTuple, cast

import pytest
from opentelemetry.trace import SpanContext
from reactivex.subject import Subject

from cells.hive import Health
from cells.hive.health import HealthTree
from cells.kernel.following import (
    BestPathFollower,
    DeferralJob,
    NextHopFollower,
    SessionFollower,
)
from cells.speaker.events import SpeakerEvents
from reconcilers.kernel.options import FibOptions
from reconcilers.model import Instance, NextHops
from speaker.api import (
    ESTABLISHED,
    NO_PATHS,
    UNREACHABLE,
    BestPathChange,
    BestPathItem,
    Event,
    Multipath,
    SelectionEnd,
    SpeakerPort,
    StateChanged,
    TableBegin,
    TableEnd,
)
from speaker.nlri import IPV4_UNICAST
from tests.cells.kernel.jobs import TestJobs
from tests.reconcilers.kernel.test_reconciler import BOTH, PREFIX, Agent, hops, wire
from tests.support import looptime
from tests.support.wait import until


class Reader:
    """One stream."""

    def __init__(self, items: Sequence[BestPathItem]) -> None:
        self._items = list(items)
        self._more = asyncio.Event()
        self._more.set()
        self.closed = False

    async def wait(self) -> None:
        await self._more.wait()

    def take(self) -> list[BestPathItem]:
        self._more.clear()
        return self._items

    def take_causes(self) -> Sequence[SpanContext]:
        return ()

    def close(self) -> None:
        self.closed = True


class _Family(NamedTuple):
    stale: int


class _Peer(NamedTuple):
    instance: str
    name: str
    families: tuple[_Family, ...]


class Speaker:
    """A speaker with one prefix in each instance."""

    def __init__(self) -> None:
        self.readers: dict[str, Reader] = {}
        self.multipath: list[Multipath] = []
        self.stale = 0
        self.metrics: list[tuple[str, dict[str, int]]] = []

    def follow_best_paths(self, instance: str, multipath: Multipath) -> Reader:
        self.multipath.append(multipath)
        change = BestPathChange(IPV4_UNICAST, NO_PATHS, BOTH, (wire(PREFIX),))
        reader = Reader([TableBegin(), change, TableEnd(), SelectionEnd()])
        self.readers[instance] = reader
        return reader

    def set_next_hop_metrics(self, instance: str, metrics: dict[str, int]) -> None:
        self.metrics.append((instance, metrics))

    def peers(self) -> list[_Peer]:
        return [_Peer("main", "10.88.0.2", (_Family(self.stale),))]


def health() -> Health:
    return HealthTree().scope("kernel")


def test_the_best_paths_of_instances_that_are_installed_are_followed_while_they_exist() -> None:
    agent, speaker, jobs = Agent(), Speaker(), TestJobs()
    options = FibOptions(multipath=8, multipath_relax=True)
    port = cast("SpeakerPort", speaker)
    BestPathFollower(agent.db, agent.intent, port, agent.kernel, options, health(), jobs.given)
    other = Instance("other", None, 64711, "10.88.0.12", dialect="none")

    async def scenario() -> None:
        async with jobs.running():
            agent.instances(other)
            agent.start()
            await until(lambda: "main" in speaker.readers)
            await until(lambda: bool(agent.settle().routes))
            assert agent.routes == {PREFIX: hops("10.88.0.1", "10.88.0.2")}
            with agent.db.write(agent.intent.instances) as txn:
                agent.intent.instances.delete(txn, "main")
            await until(lambda: speaker.readers["main"].closed)
            assert agent.settle().routes == {}

    asyncio.run(scenario())
    assert speaker.multipath == [Multipath(8, relax=True)]
    assert list(speaker.readers) == ["main"]


def test_the_speaker_is_given_the_metrics_of_next_hops_as_they_change() -> None:
    agent, speaker, jobs = Agent().start(), Speaker(), TestJobs()
    port = cast("SpeakerPort", speaker)
    NextHopFollower(agent.db, agent.intent, port, agent.kernel, jobs.given)

    async def scenario() -> None:
        async with jobs.running():
            with agent.db.write(agent.intent.next_hops) as txn:
                row = NextHops("main", "p", ("10.88.0.1", "198.51.100.9"))
                agent.intent.next_hops.upsert(txn, row)
            await until(lambda: agent.settle().kernel.metrics["main"])
            await until(lambda: speaker.metrics)

    asyncio.run(scenario())
    assert speaker.metrics == [("main", {"198.51.100.9": UNREACHABLE})]


class Events(NamedTuple):
    observable: Subject[Event]


def changed(old: str, new: str) -> StateChanged:
    return StateChanged(
        instance="main", peer="10.88.0.2", address="10.88.0.2", old=old, new=new, reason=""
    )


@pytest.mark.parametrize("stale", [0, 1])
def test_a_peer_whose_session_ends_is_used_no_more_unless_its_routes_are_kept(stale: int) -> None:
    agent, speaker, jobs = Agent().start().table(BOTH, PREFIX), Speaker(), TestJobs()
    speaker.stale = stale
    subject: Subject[Event] = Subject()
    events = cast("SpeakerEvents", Events(subject))
    SessionFollower(cast("SpeakerPort", speaker), events, agent.kernel, jobs.given)
    both = {PREFIX: hops("10.88.0.1", "10.88.0.2")}
    subject.on_next(changed(ESTABLISHED, "Idle"))
    agent.writer.run()
    assert agent.routes == (both if stale else {PREFIX: hops("10.88.0.1")})
    # An attempt that fails loses nothing more.
    subject.on_next(changed("OpenSent", "Idle"))
    subject.on_next(changed("OpenConfirm", ESTABLISHED))
    assert agent.settle().routes == both


def test_routes_of_an_earlier_process_are_kept_until_the_intent_is_compiled() -> None:
    agent, speaker, jobs = Agent(deferred=True), Speaker(), TestJobs()
    DeferralJob(agent.db, agent.intent, cast("SpeakerPort", speaker), agent.kernel, jobs.given)
    agent.writer.connect()
    agent.writer.run()
    assert agent.kernel.installed.listed

    async def scenario() -> None:
        async with jobs.running():
            await asyncio.sleep(3600)  # without the API server
            assert agent.kernel.deferred
            agent.settle()
            await asyncio.sleep(10)
            assert not agent.kernel.deferred

    looptime.run(scenario())
