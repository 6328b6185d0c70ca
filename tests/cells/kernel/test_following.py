"""What feeds the reconciler of kernel routes: streams of best paths, sessions, the deferral."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Sequence
from typing import NamedTuple, cast
from unittest.mock import Mock

import pytest
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanContext
from reactivex.subject import Subject

from cells.hive import Health
from cells.hive.health import HealthTree
from cells.kernel import following
from cells.kernel.following import (
    BestPathFollower,
    DeferralJob,
    HostFollower,
    NextHopFollower,
    SessionFollower,
)
from cells.speaker.events import SpeakerEvents
from reconcilers.kernel.deferral import DEFERRAL_SECONDS
from reconcilers.kernel.options import FibOptions
from reconcilers.model import Instance, NextHops, Peer, PrefixRule
from resources.host import Host
from resources.tables import Tables
from resources.trace_links import UNSAMPLED
from resources.trace_sampling import ROOTS
from speaker import server
from speaker.api import (
    ESTABLISHED,
    NO_PATHS,
    UNREACHABLE,
    BestPathChange,
    BestPathItem,
    Event,
    Multipath,
    PathDown,
    SelectionEnd,
    SpeakerPort,
    StateChanged,
    StreamClosed,
    TableBegin,
    TableEnd,
)
from speaker.nlri import IPV4_UNICAST
from tests.cells.kernel.jobs import TestJobs
from tests.reconcilers.kernel.build import path, paths
from tests.reconcilers.kernel.reconciler.reconciler_in_memory import (
    BOTH,
    MAIN,
    NUMBERED,
    ONE,
    PREFIX,
    RED,
    TWO,
    Agent,
    hops,
    wire,
)
from tests.speaker.server import speaker_pair
from tests.speaker.server.speaker_pair import NAME
from tests.support import looptime
from tests.support.wait import until

GATEWAYS = {"10.88.0.1": "b", "10.88.0.2": "other"}
"""Peers by next hop: the first one has a session."""


class Reader:
    """One stream."""

    def __init__(self, items: Sequence[BestPathItem]) -> None:
        self._items = list(items)
        self._more = asyncio.Event()
        self._more.set()
        self.closed = False
        self.on_few: Callable[[Sequence[BestPathItem]], None] | None = None

    def give(self, batch: Sequence[BestPathItem]) -> None:
        """Have a batch of few prefixes arrive."""
        self._items = list(batch)
        assert self.on_few is not None
        self.on_few(batch)

    async def wait(self) -> None:
        await self._more.wait()
        if self.closed:
            raise StreamClosed

    def take(self) -> list[BestPathItem]:
        self._more.clear()
        return self._items

    def take_causes(self) -> Sequence[SpanContext]:
        return ()

    def close(self) -> None:
        self.closed = True
        self._more.set()


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


def test_a_single_route_is_handed_to_the_writer_within_the_turn_in_which_it_arrives() -> None:
    agent, speaker, jobs = Agent(), Speaker(), TestJobs()
    port = cast("SpeakerPort", speaker)
    BestPathFollower(agent.db, agent.intent, port, agent.kernel, FibOptions(), health(), jobs.given)

    async def scenario() -> None:
        async with jobs.running():
            agent.start()
            await until(lambda: "main" in speaker.readers)
            await until(lambda: bool(agent.settle().routes))
            reader = speaker.readers["main"]
            reader.give([BestPathChange(IPV4_UNICAST, BOTH, NO_PATHS, (wire(PREFIX),))])
            agent.writer.run()
            assert agent.routes == {}
            # An error is that of the job, which its supervisor starts again, and not the speaker's.
            wrong = cast("tuple[bytes, ...]", None)
            reader.give([BestPathChange(IPV4_UNICAST, NO_PATHS, BOTH, wrong)])
            await until(lambda: reader.closed)

    asyncio.run(scenario())


def test_the_speaker_is_given_the_metrics_of_next_hops_as_they_change() -> None:
    agent, speaker, jobs = Agent().start(), Speaker(), TestJobs()
    port = cast("SpeakerPort", speaker)
    NextHopFollower(agent.db, agent.intent, port, agent.kernel, jobs.given)

    async def scenario() -> None:
        async with jobs.running():
            with agent.db.write(agent.intent.next_hops) as txn:
                row = NextHops("main", "p", ("10.88.0.1", "198.51.100.9"))
                agent.intent.next_hops.upsert(txn, row)
            await until(lambda: agent.settle() and speaker.metrics)

    asyncio.run(scenario())
    assert speaker.metrics == [("main", {"198.51.100.9": UNREACHABLE})]


def test_a_single_route_is_no_cause_of_a_later_round() -> None:
    agent, speaker, jobs = Agent(), Speaker(), TestJobs()
    port = cast("SpeakerPort", speaker)
    BestPathFollower(agent.db, agent.intent, port, agent.kernel, FibOptions(), health(), jobs.given)
    provider = TracerProvider(shutdown_on_exit=False)

    async def scenario() -> None:
        async with jobs.running():
            agent.start()
            await until(lambda: "main" in speaker.readers)
            await until(lambda: bool(agent.settle().routes))
            agent.kernel.causes.take()
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(following, "_tracer", provider.get_tracer("test"))
                change = BestPathChange(IPV4_UNICAST, BOTH, NO_PATHS, (wire(PREFIX),))
                speaker.readers["main"].give([change])
            assert agent.kernel.causes.take()[0] == []

    asyncio.run(scenario())


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


def test_routes_are_moved_in_the_turn_in_which_bfd_finds_the_path_down() -> None:
    """The speaker, its events and the follower are real: between the two there is no other turn."""
    agent, jobs, events, ends = Agent(), TestJobs(), SpeakerEvents(health()), speaker_pair.Pair()
    ends.a = server.Speaker(on_event=events.publish)
    SessionFollower(ends.a, events, agent.kernel, jobs.given)
    agent.start().instances(Instance(NAME, None, 64710, "10.88.0.11", dialect="frr")).settle()
    of_b, of_other = (path(gateway, peer=peer, instance=NAME) for gateway, peer in GATEWAYS.items())
    agent.table(paths(of_b, of_other), PREFIX, instance=NAME)
    assert agent.routes == {PREFIX: hops(*GATEWAYS)}

    async def scenario() -> None:
        await ends.start()
        try:
            ends.connect()
            await until(lambda: ends.up)
            ends.a.paths_down([PathDown(NAME, "b", "Control Detection Time Expired")])
            # Nothing is awaited: what was put off to another turn is not with the writer.
            agent.writer.run()
            assert agent.routes == {PREFIX: hops("10.88.0.2")}
            assert not ends.a.peers()[0].established
        finally:
            await ends.a.stop()
            await ends.b.stop()

    asyncio.run(scenario())


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


def test_routes_of_an_earlier_process_in_a_vrf_are_kept_until_the_host_is_known() -> None:
    """Its table is not known before: how long that takes, and whether it fails at first."""
    agent, speaker, jobs = Agent(deferred=True), Speaker(), TestJobs()
    before = {PREFIX: hops("10.99.0.1", interface=3)}
    agent.writer.kernel[RED, wire(PREFIX)] = before[PREFIX]
    agent.kernel.host_changed(None)
    DeferralJob(agent.db, agent.intent, cast("SpeakerPort", speaker), agent.kernel, jobs.given)
    agent.instances(Instance("red", "red", 64710, "10.99.0.11", dialect="frr"))
    agent.writer.connect()
    agent.settle()
    announced = paths(path("10.99.0.1", instance="red"))
    agent.table(announced, PREFIX, instance="red")

    async def scenario() -> None:
        async with jobs.running():
            await asyncio.sleep(2 * DEFERRAL_SECONDS)
            assert agent.settle().of(RED) == before
            agent.kernel.host_changed(NUMBERED)
            await asyncio.sleep(10)
            assert not agent.kernel.deferred
            assert agent.settle().of(RED) == before

    looptime.run(scenario())
    assert not agent.writer.batches


def test_the_span_of_a_batch_of_best_paths_has_its_prefixes_and_the_peers_that_sent_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    provider, exporter = TracerProvider(shutdown_on_exit=False), InMemorySpanExporter()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    monkeypatch.setattr(following, "_tracer", provider.get_tracer("test"))
    agent, speaker, jobs = Agent(), Speaker(), TestJobs()
    scope = health()
    port = cast("SpeakerPort", speaker)
    BestPathFollower(agent.db, agent.intent, port, agent.kernel, FibOptions(), scope, jobs.given)

    async def scenario() -> None:
        async with jobs.running():
            agent.start()
            await until(lambda: bool(exporter.get_finished_spans()))

    looptime.run(scenario())
    (span,) = exporter.get_finished_spans()
    assert span.name == "bgp.best_paths"
    assert span.attributes == {
        "bgp.instance": "main",
        "bgp.prefix_count": 1,
        "bgp.peers": ("10.88.0.1", "10.88.0.2"),
        "bgp.peer_count": 2,
    }
    # What the routes of the batch lead to belongs to its trace.
    contexts, _ = agent.kernel.causes.take()
    assert contexts == [span.context]
    assert [status.message for status in scope.report()] == ["1 instance"]


def test_best_paths_of_an_update_that_is_not_traced_begin_no_trace(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(ROOTS, "share", 0.99)
    monkeypatch.setattr(random, "random", lambda: 0.0)
    tracer = Mock()
    monkeypatch.setattr(following, "_tracer", tracer)
    agent, speaker, jobs = Agent(), Speaker(), TestJobs()
    port = cast("SpeakerPort", speaker)
    BestPathFollower(agent.db, agent.intent, port, agent.kernel, FibOptions(), health(), jobs.given)

    async def scenario() -> None:
        async with jobs.running():
            agent.start()
            await until(lambda: agent.kernel.wanted_tables.route(MAIN, wire(PREFIX)))

    looptime.run(scenario())
    assert tracer.mock_calls == []
    assert agent.kernel.causes.take()[0] == [UNSAMPLED]


def test_without_tracing_no_change_is_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    described: list[object] = []
    monkeypatch.setattr(following, "_describe", lambda *given: described.append(given))
    agent, speaker, jobs = Agent(), Speaker(), TestJobs()
    port = cast("SpeakerPort", speaker)
    BestPathFollower(agent.db, agent.intent, port, agent.kernel, FibOptions(), health(), jobs.given)

    async def scenario() -> None:
        async with jobs.running():
            agent.start()
            await until(lambda: agent.kernel.wanted_tables.route(MAIN, wire(PREFIX)))

    looptime.run(scenario())
    assert described == []


def test_the_span_has_the_peers_whose_paths_are_new_or_gone() -> None:
    provider, exporter = TracerProvider(shutdown_on_exit=False), InMemorySpanExporter()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    for before, after in ((BOTH, TWO), (TWO, BOTH), (NO_PATHS, BOTH), (ONE, TWO)):
        change = BestPathChange(IPV4_UNICAST, before, after, (wire(PREFIX),))
        with provider.get_tracer("test").start_as_current_span("s") as span:
            following._describe(span, "main", [change])
    found = [span.attributes or {} for span in exporter.get_finished_spans()]
    both = ("10.88.0.1", "10.88.0.2")
    assert [each["bgp.peers"] for each in found] == [both[:1], both[:1], both, both]
    assert [each.get("network.peer.address") for each in found] == [*both[:1] * 2, None, None]


def test_changes_of_the_host_reach_the_reconciler(monkeypatch: pytest.MonkeyPatch) -> None:
    agent, jobs = Agent(), TestJobs()
    tables = Tables(agent.db)
    hosts: list[Host | None] = []
    monkeypatch.setattr(agent.kernel, "host_changed", hosts.append)
    HostFollower(agent.db, tables, agent.kernel, jobs.given)

    async def scenario() -> None:
        async with jobs.running():
            await asyncio.sleep(1)
            with agent.db.write(tables.host) as txn:
                tables.host.upsert(txn, NUMBERED)
            await asyncio.sleep(1)

    looptime.run(scenario())
    assert hosts == [None, NUMBERED]


def test_a_failure_that_follows_from_an_event_of_a_session_ends_the_job(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    agent, speaker, jobs = Agent().start(), Speaker(), TestJobs()
    subject: Subject[Event] = Subject()
    events = cast("SpeakerEvents", Events(subject))
    SessionFollower(cast("SpeakerPort", speaker), events, agent.kernel, jobs.given)
    lost: list[str] = []

    def fails(_: str, peer: str) -> None:
        lost.append(peer)
        raise ValueError("no such peer")

    monkeypatch.setattr(agent.kernel, "session_lost", fails)

    async def scenario() -> None:
        job = asyncio.ensure_future(jobs.jobs["sessions"]())
        subject.on_next(changed(ESTABLISHED, "Idle"))
        with pytest.raises(ValueError, match="no such peer"):
            await job
        # The job runs again, and waits for the next failure.
        again = asyncio.ensure_future(jobs.jobs["sessions"]())
        await asyncio.sleep(1)
        assert not again.done()
        again.cancel()

    looptime.run(scenario())
    assert lost == ["10.88.0.2"]


@pytest.mark.parametrize(
    ("accept", "waits"),
    [
        pytest.param(None, True, id="all routes"),
        pytest.param((PrefixRule("0.0.0.0/0"),), True, id="some routes"),
        pytest.param((), False, id="no route"),
    ],
)
def test_the_deferral_waits_for_peers_whose_routes_are_imported(
    accept: tuple[PrefixRule, ...] | None,
    *,
    waits: bool,
) -> None:
    agent, speaker, jobs = Agent(deferred=True), Speaker(), TestJobs()
    DeferralJob(agent.db, agent.intent, cast("SpeakerPort", speaker), agent.kernel, jobs.given)
    agent.instances(Instance("main", None, 64710, "10.88.0.11", dialect="frr"))
    # Peers of an instance whose routes are not installed announce nothing for the kernel.
    agent.instances(Instance("other", None, 64711, "10.88.0.12", dialect="none"))
    with agent.db.write(agent.intent.peers) as txn:
        for instance, rules in (("main", accept), ("other", None)):
            row = Peer(instance, "10.88.0.9", "10.88.0.9", None, 64701, accept=rules)
            agent.intent.peers.upsert(txn, row)
    agent.writer.connect()
    agent.settle()
    agent.table(ONE, PREFIX)

    async def scenario() -> None:
        async with jobs.running():
            await asyncio.sleep(20)
            assert agent.kernel.deferred is waits
            await asyncio.sleep(DEFERRAL_SECONDS)
            assert not agent.kernel.deferred

    looptime.run(scenario())
