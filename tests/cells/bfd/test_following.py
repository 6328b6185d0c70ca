"""The tables of BFD follow the process: what they have is never older than the connection."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from itertools import pairwise
from types import SimpleNamespace
from typing import Any, cast

import pytest
from msgspec.structs import replace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from reactivex.subject import Subject
from structlog.testing import capture_logs

from cells.bfd import following
from cells.bfd.following import SILENT_SECONDS, START_SECONDS, BfdClient, BfdFollower
from cells.hive import Health
from reconcilers.bfd.process.process_messages import (
    CODEC,
    Change,
    Changes,
    Hello,
    Message,
    ProcessStatus,
    Statuses,
)
from reconcilers.bfd.reconciler import BfdReconciler
from reconcilers.bfd.rows import NO_PROCESS
from reconcilers.bfd_session import UNKNOWN, UP, BfdSession
from reconcilers.intent_tables import IntentTables
from reconcilers.model import Instance, ObjectRef, Peer
from resources.tables import Tables
from speaker.api import BfdProfile, PathDown, StateChanged
from speaker.bfd.session_values import Diagnostic, SessionKey, State
from statedb import Database
from tests.reconcilers.bfd.build import status_of
from tests.support import looptime

INSTANCE = Instance("i", None, 65001, "192.0.2.1", None, ObjectRef("Router", "", "r"))
PEER = Peer("i", "p", "192.0.2.9", None, 65010, bfd=BfdProfile())
KEY = SessionKey("192.0.2.9", "")


class Node:
    """A follower between a process and a speaker that are the test's."""

    def __init__(self) -> None:
        self.now = 100.0
        self.down: list[tuple[str, str, str, bool | None]] = []
        """The peers whose paths are down."""
        self.calls = 0
        """Whether the speaker no longer has the peer."""
        self.observable: Subject[Any] = Subject()
        self.health = Health()
        self.job: Callable[[], Awaitable[None]] | None = None
        database = self.database = Database()
        self.intent = IntentTables(database)
        self.client: BfdClient = BfdClient(CODEC, Hello("test"))
        sessions = BfdReconciler(
            database, self.intent, Tables(database), self.client.send, lambda: self.now
        )
        this = cast("Any", self)
        self.follower = BfdFollower(
            database,
            self.intent,
            this,
            this,
            self.client,
            sessions,
            self.health,
            this,
            lambda: self.now,
        )
        with database.write(self.intent.instances, self.intent.peers) as txn:
            self.intent.instances.upsert(txn, INSTANCE)
            self.intent.peers.upsert(txn, PEER)

    def connect(self) -> None:
        """Have a process with the session of the peer."""
        self.client.connection_made(cast("Any", self))
        self.receive(Hello("waggle-bfd"))
        self.receive(Statuses((status_of(KEY),)))
        self.receive(Statuses((), last=True))
        self.follower.refresh()

    def receive(self, message: Message) -> None:
        self.client.data_received(CODEC.encode(message))

    @property
    def row(self) -> BfdSession:
        (row,) = self.intent.bfd_sessions.all(self.database.snapshot())
        return row

    @property
    def connected(self) -> bool:
        (row,) = self.intent.bfd_process.all(self.database.snapshot())
        return row.connected

    # The speaker, the jobs and the connection

    def paths_down(self, paths: Sequence[PathDown]) -> None:
        self.calls += 1
        self.down += [(path.instance, path.peer, path.reason, path.independent) for path in paths]

    def peers(self) -> list[Any]:
        return []

    def add(self, _: str, job: Callable[[], Awaitable[None]]) -> None:
        self.job = job

    def write(self, _: bytes) -> None:
        """Take what is sent."""

    def close(self) -> None:
        """End the connection."""


def test_a_lost_connection_is_a_change_of_the_rows() -> None:
    node = Node()

    async def lose() -> None:
        assert node.job is not None
        job = asyncio.ensure_future(node.job())
        await asyncio.sleep(0)
        node.connect()
        assert (node.row.state, node.connected) == (UP, True)
        # What the connection has changed is written: nothing but its loss wakes the job.
        while node.follower._signal.is_raised:  # noqa: ASYNC110  the job makes it so
            await asyncio.sleep(0.01)
        node.client.connection_lost(None)
        while node.connected:  # noqa: ASYNC110  the job makes it so
            await asyncio.sleep(0.01)
        job.cancel()

    asyncio.run(asyncio.wait_for(lose(), 60))
    assert node.row.state == UNKNOWN


def test_a_process_that_stands_still_is_unknown() -> None:
    node = Node()
    node.connect()
    node.now += SILENT_SECONDS - 1
    assert node.follower.refresh() == 1
    assert node.row.state == UP
    node.now += 1
    assert node.follower.refresh() == START_SECONDS
    assert (node.row.state, node.row.problem, node.connected) == (UNKNOWN, "", False)
    node.now += START_SECONDS
    node.follower.refresh()
    assert node.row.problem == NO_PROCESS
    node.receive(Statuses((status_of(KEY),)))
    node.follower.refresh()
    assert (node.row.state, node.row.problem, node.connected) == (UP, "", True)


@pytest.mark.parametrize("independent", [True, False])
def test_a_path_that_goes_down_ends_the_session_with_the_c_bit_of_the_neighbor(
    independent: bool,
) -> None:
    """Without the C bit a peer with graceful restart keeps its routes (RFC 5882 section 4.3)."""
    node = Node()
    node.connect()
    with capture_logs() as logs:
        node.receive(
            Changes(
                (
                    Change(
                        KEY,
                        State.UP,
                        State.DOWN,
                        Diagnostic.CONTROL_DETECTION_TIME_EXPIRED,
                        State.UP,
                        0,
                        independent,
                        local_discriminator=7,
                        detection_time=900_000,
                    ),
                )
            )
        )
    (down,) = node.down
    assert down[:2] == ("i", "p")
    assert down[3] is independent
    assert [(line["peer"], line["reason"]) for line in logs if line["log_level"] == "warning"] == [
        ("p", down[2])
    ]


def test_paths_that_are_lost_together_are_one_call_of_the_speaker() -> None:
    node = Node()
    with node.database.write(node.intent.peers) as txn:
        node.intent.peers.upsert(txn, replace(PEER, name="q"))
    node.connect()
    lost = Change(KEY, State.UP, State.DOWN, 1, State.UP, 0, True, 7, 900_000)
    node.receive(Changes((lost,)))
    assert [name for _, name, *_ in node.down] == ["p", "q"]
    assert node.calls == 1


def process(least: int, *problems: str) -> ProcessStatus:
    return ProcessStatus(
        realtime=not problems,
        memory_locked=True,
        least_interval=least,
        lateness=0,
        problems=problems,
    )


def test_health_has_the_missing_permissions_of_the_process() -> None:
    node = Node()
    node.connect()
    for status, state in (
        (process(0), ("ok", "scheduled before ordinary processes")),
        (process(0, "no memory lock"), ("degraded", "no memory lock")),
        (
            process(300_000, "not permitted", "no memory lock"),
            (
                "degraded",
                "not permitted; no memory lock; intervals below 300 ms are raised to that",
            ),
        ),
    ):
        node.receive(status)
        (reported,) = node.health.report()
        assert (str(reported.level), reported.message) == state
        assert reported.path == ("scheduling",)


def test_a_change_is_a_line_of_the_log_and_the_path_a_warning() -> None:
    node = Node()
    node.connect()
    node.observable.on_next(
        StateChanged(instance="i", peer="p", address=None, old="", new="Established", reason="")
    )
    detected = int(Diagnostic.CONTROL_DETECTION_TIME_EXPIRED)
    change = Change(KEY, State.UP, State.DOWN, detected, State.INIT, 0, True, 7, 150_000)
    with capture_logs() as logs:
        node.receive(Changes((change,)))
    changed = next(line for line in logs if line["event_name"] == "bfd.changed")
    assert changed == {
        "event": "BFD session changed",
        "event_name": "bfd.changed",
        "log_level": "info",
        "neighbor": KEY.peer,
        "device": KEY.device,
        "before": "Up",
        "after": "Down",
        "diagnostic": "Control Detection Time Expired",
        "neighbor_state": "Init",
    }
    (down,) = (line for line in logs if line["event_name"] == "bfd.path_down")
    assert (down["log_level"], down["instance"], down["peer"]) == ("warning", "i", "p")
    assert [name for _, name, *_ in node.down] == ["p"]


def state(old: str, new: str) -> StateChanged:
    return StateChanged(instance="i", peer="p", address=None, old=old, new=new, reason="")


def test_a_down_that_follows_the_end_of_bgp_is_judged_again_later() -> None:
    detected = int(Diagnostic.CONTROL_DETECTION_TIME_EXPIRED)
    change = Change(KEY, State.UP, State.DOWN, detected, State.INIT, 0, True, 7, 150_000)
    node = Node()
    node.connect()
    node.observable.on_next(state("OpenConfirm", "Established"))
    node.observable.on_next(state("Established", "Idle"))
    node.observable.on_next(state("OpenConfirm", "Established"))
    # Another event of the speaker has nothing to do with it.
    node.observable.on_next(object())
    node.receive(Changes((change,)))
    assert node.down == []
    assert node.follower.refresh() == 5
    node.now += 5
    node.follower.refresh()
    assert [name for _, name, *_ in node.down] == ["p"]


def test_a_change_is_an_event_of_its_span(monkeypatch: pytest.MonkeyPatch) -> None:
    provider, exporter = TracerProvider(shutdown_on_exit=False), InMemorySpanExporter()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    monkeypatch.setattr(following, "_tracer", provider.get_tracer("test"))
    node = Node()
    node.connect()
    detected = int(Diagnostic.CONTROL_DETECTION_TIME_EXPIRED)
    node.receive(
        Changes((Change(KEY, State.UP, State.DOWN, detected, State.INIT, 0, True, 7, 150_000),))
    )
    (span,) = exporter.get_finished_spans()
    assert span.name == "bfd.change"
    (event,) = span.events
    assert event.name == "bfd.changed"
    assert dict(event.attributes or {}) == {
        "network.peer.address": KEY.peer,
        "network.interface.name": KEY.device,
        "waggle.bfd.former_state": "Up",
        "waggle.bfd.state": "Down",
        "waggle.bfd.diagnostic": "Control Detection Time Expired",
        "waggle.bfd.neighbor_state": "Init",
    }


def test_the_row_of_a_peer_goes_with_its_bfd_settings() -> None:
    node = Node()
    node.connect()
    assert node.row.state == UP
    with node.database.write(node.intent.peers) as txn:
        node.intent.peers.upsert(txn, replace(PEER, bfd=None))
    node.follower.refresh()
    snapshot = node.database.snapshot()
    assert list(node.intent.bfd_sessions.all(snapshot)) == []
    assert list(node.intent.bfd_counters.all(snapshot)) == []
    revision = node.intent.bfd_sessions.revision(snapshot)
    node.follower.refresh()
    assert node.intent.bfd_sessions.revision(node.database.snapshot()) == revision


def test_rows_are_written_at_most_ten_times_a_second(monkeypatch: pytest.MonkeyPatch) -> None:
    node = Node()
    written: list[float] = []

    async def scenario() -> None:
        loop = asyncio.get_running_loop()
        monkeypatch.setattr(node.follower, "refresh", lambda: written.append(loop.time()))
        assert node.job is not None
        job = asyncio.ensure_future(node.job())
        for _ in range(100):
            await asyncio.sleep(0.01)
            node.follower._signal.raise_flag()
        job.cancel()

    looptime.run(scenario())
    pauses = [later - at for at, later in pairwise(written)]
    assert len(pauses) >= 9
    assert all(0.1 <= round(pause, 6) < 0.12 for pause in pauses)


def test_neighbors_on_an_interface_have_an_address(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    node = Node()
    found: list[object] = []

    def peer(name: str, interface: str | None, address: str | None) -> Any:  # noqa: ANN401
        return SimpleNamespace(instance="i", name=name, interface=interface, address=address)

    peers = [
        peer("on-eth0", "eth0", "fe80::1"),
        peer("not-found", "eth1", None),
        peer("by-address", None, "192.0.2.9"),
    ]
    monkeypatch.setattr(node, "peers", lambda: peers)
    monkeypatch.setattr(node.follower._sessions, "neighbors_found", found.append)
    node.follower._find_neighbors()
    assert found == [{("i", "on-eth0"): "fe80::1"}]
