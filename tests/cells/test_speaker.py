"""What happens at sessions reaches the table, the health tree, observers and metrics."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, cast

import msgspec
import pytest
from prometheus_client import CollectorRegistry
from prometheus_client.core import Metric
from prometheus_client.registry import Collector
from structlog.testing import capture_logs

from cells.hive import Health, Level
from cells.hive.jobs import Jobs, Supervisor
from cells.hive.lifecycle import Lifecycle
from cells.options import SpeakerOptions
from cells.speaker.cell import make_speaker
from cells.speaker.events import SpeakerEvents
from cells.speaker.metrics import SpeakerMetrics
from cells.speaker.sessions import Session, Sessions
from reconcilers import overdue
from reconcilers.sliced_work import finish
from speaker.api import (
    CollectorChanged,
    ConnectionsRefused,
    Event,
    FamilyStatus,
    Fault,
    InstanceStatus,
    ListenChanged,
    MessageCounts,
    PeerStatus,
    PrefixLimit,
    RecordingEnded,
    RouteLeftOut,
    SessionError,
    StateChanged,
)
from speaker.nlri import IPV4_UNICAST
from speaker.recording import Player
from speaker.server import Speaker
from statedb import Database
from tests.support import looptime

UP = PeerStatus(
    instance="i",
    name="tor-1",
    address="192.0.2.1",
    interface=None,
    port=179,
    local_address="192.0.2.10",
    local_asn=65000,
    peer_asn=65001,
    state="Established",
    reason="",
    since=1000.0,
    families=(
        FamilyStatus(family=IPV4_UNICAST, negotiated=True, received=5, accepted=3, advertised=7),
    ),
    peer_router_id="192.0.2.1",
    hold_time=90,
    keepalive_time=30,
    retry_in=None,
    capabilities=(),
    last_error=None,
    flaps=2,
    messages_received=10,
    received_by_type=MessageCounts(open=1, route_refresh=2),
    sent_by_type=MessageCounts(open=1, update=3, keepalive=40),
    messages_sent=11,
    updates_received=1,
    updates_sent=1,
    queued_octets=0,
    authentication=None,
    graceful_restart_time=None,
    dynamic=False,
    route_set="a",
)
DOWN = msgspec.structs.replace(UP, state="Active", reason="connection refused")
UP_EVENT = StateChanged(
    instance="i", peer="tor-1", address="192.0.2.1", old="OpenConfirm", new="Established", reason=""
)


class Stub:
    """Stands for the speaker: it only has sessions."""

    def __init__(self, *peers: PeerStatus) -> None:
        self.statuses: Sequence[PeerStatus] = peers

    def peers(self) -> Sequence[PeerStatus]:
        return self.statuses

    def peer_slices(self) -> Iterator[Sequence[PeerStatus]]:
        for status in self.peers():
            yield [status]

    def instances(self) -> Sequence[InstanceStatus]:
        return [
            InstanceStatus(
                name=name,
                local_asn=65000,
                router_id="192.0.2.10",
                vrf=None,
                listening=(),
                listen_error=None,
                peers=1,
                refused=4,
            )
            for name in sorted({status.instance for status in self.statuses})
        ]


class Bench:
    """The cell's parts around a stub."""

    def __init__(self, *peers: PeerStatus) -> None:
        self.stub = Stub(*peers)
        self.database = Database()
        self.health = Health()
        self.events = SpeakerEvents(self.health)
        self.lifecycle = Lifecycle()
        self.errors: list[Exception] = []
        self.supervisor = Supervisor(self.errors.append, random.Random(1))  # noqa: S311
        jobs = Jobs("speaker", self.supervisor, self.lifecycle, self.health)
        speaker = cast("Speaker", self.stub)
        self.now = 1000.0
        self.sessions = Sessions(
            self.database, speaker, self.events, self.health, jobs, now=lambda: self.now
        )

    def refresh(self) -> float | None:
        return finish(self.sessions.refresh())

    def rows(self) -> list[Session]:
        return list(self.sessions.table.all(self.database.snapshot()))

    def levels(self) -> dict[str, Level]:
        return {"/".join(s.path): s.level for s in self.health.report()}


def test_sessions_follow_the_speaker_and_leave_with_their_peers() -> None:
    bench = Bench(UP)
    bench.refresh()
    (row,) = bench.rows()
    assert (row.instance, row.peer, row.address) == ("i", "tor-1", "192.0.2.1")
    assert (row.state, row.reason, row.since) == ("Established", "", 1000.0)
    assert bench.levels() == {"i/tor-1": Level.OK}
    bench.stub.statuses = [DOWN]
    bench.refresh()
    assert [(row.state, row.reason) for row in bench.rows()] == [("Active", "connection refused")]
    assert bench.levels() == {"i/tor-1": Level.DEGRADED}
    bench.stub.statuses = []
    bench.refresh()
    assert bench.rows() == []
    assert bench.levels() == {}


def test_health_is_degraded_since_the_loss_whatever_the_state_of_the_attempt() -> None:
    bench = Bench(UP)
    bench.refresh()
    found = []
    for state in ("Idle", "Connect", "Active", "Connect"):
        bench.stub.statuses = (msgspec.structs.replace(DOWN, state=state),)
        bench.refresh()
        (status,) = bench.health.report()
        found.append(status)
    assert found == found[:1] * 4
    assert found[0].message == "not Established: connection refused"


def test_a_session_that_does_not_come_up_is_logged_once_for_each_reason() -> None:
    down = msgspec.structs.replace(DOWN, retry_in=4.0, likely_cause="a cause", failures=1)
    bench = Bench(down)
    with capture_logs() as lines:
        assert bench.refresh() == overdue.DOWN_SECONDS
        assert not bench.rows()[0].overdue
        bench.stub.statuses = [msgspec.structs.replace(down, failures=overdue.FAILURES)]
        assert bench.refresh() == overdue.FAILING_SECONDS
        bench.now += overdue.FAILING_SECONDS
        assert bench.refresh() is None
        bench.now += 600
        bench.refresh()
    assert bench.rows()[0].overdue
    assert lines == [
        {
            "log_level": "warning",
            "event": "session does not come up",
            "event_name": "peer.not_established",
            "instance": "i",
            "peer": "tor-1",
            "peer_address": "192.0.2.1",
            "state": "Active",
            "reason": "connection refused",
            "likely_cause": "a cause",
            "failures": overdue.FAILURES,
            "down_seconds": 10,
        }
    ]
    with capture_logs() as lines:
        bench.stub.statuses = [msgspec.structs.replace(down, reason="no route to host")]
        bench.refresh()
        bench.stub.statuses = [down]
        bench.refresh()
    assert [line["reason"] for line in lines] == ["no route to host"]
    # Up and down again is another outage.
    with capture_logs() as lines:
        for status in (UP, msgspec.structs.replace(down, failures=overdue.FAILURES)):
            bench.stub.statuses = [status]
            bench.refresh()
    assert [line["reason"] for line in lines] == ["connection refused"]


def test_sessions_are_read_and_written_in_slices() -> None:
    names = ["tor-1", "tor-2", "tor-3"]
    bench = Bench(*(msgspec.structs.replace(UP, name=name) for name in names))
    written = [sorted(row.peer for row in bench.rows()) for _ in bench.sessions.refresh()]
    assert written == [names[:1], names[:2], names]


def test_counts_are_deleted_with_a_peer_and_kept_for_a_new_peer() -> None:
    bench = Bench(UP)
    for name in ("tor-1", "192.0.2.77"):
        bench.events.publish(msgspec.structs.replace(UP_EVENT, peer=name))
    bench.refresh()
    assert list(bench.events.counts) == [("i", "tor-1")]
    # A dynamic neighbour comes while the sessions are read.
    for _ in bench.sessions.refresh():
        bench.events.publish(msgspec.structs.replace(UP_EVENT, peer="192.0.2.78"))
    assert list(bench.events.counts) == [("i", "tor-1"), ("i", "192.0.2.78")]


def test_a_silent_peer_is_logged_without_another_event() -> None:
    bench = Bench(msgspec.structs.replace(DOWN, retry_in=4.0, reason="connecting"))

    async def scenario() -> None:
        async with asyncio.TaskGroup() as group:
            bench.supervisor.bind(group)
            started = asyncio.get_running_loop().time()
            bench.sessions._now = lambda: 1000.0 + asyncio.get_running_loop().time() - started
            await bench.lifecycle.start()
            await asyncio.sleep(overdue.DOWN_SECONDS - 1)
            assert not bench.rows()[0].overdue
            await asyncio.sleep(2)
            assert bench.rows()[0].overdue
            await bench.lifecycle.stop()

    looptime.run(scenario())
    assert bench.errors == []


def test_nothing_is_written_when_nothing_has_changed() -> None:
    bench = Bench(UP)
    bench.refresh()
    before = bench.sessions.table.revision(bench.database.snapshot())
    bench.refresh()
    assert bench.sessions.table.revision(bench.database.snapshot()) == before


def test_a_storm_of_events_costs_few_refreshes() -> None:
    bench = Bench(UP)
    revisions: list[int] = []
    bench.sessions.table.observable.subscribe(revisions.append)

    async def scenario() -> None:
        async with asyncio.TaskGroup() as group:
            bench.supervisor.bind(group)
            await bench.lifecycle.start()
            for number in range(1000):
                bench.stub.statuses = [msgspec.structs.replace(UP, since=float(number))]
                bench.events.publish(UP_EVENT)
                await asyncio.sleep(0.001)
            await asyncio.sleep(1)
            await bench.lifecycle.stop()

    looptime.run(scenario())
    assert bench.rows()[0].since == 999.0
    assert len(revisions) < 15
    assert bench.errors == []


@pytest.mark.parametrize(
    "event",
    [
        UP_EVENT,
        SessionError(instance="i", peer="tor-1", address=None, sent=True, code=6, subcode=2,
                     text="Cease / Administrative Shutdown: \x1b[2J"),
        Fault(instance="i", peer=None, where="timer", error="ValueError: x"),
        ListenChanged(instance="i", address="127.0.0.1", port=179, error="address already in use"),
        ListenChanged(instance="i", address="127.0.0.1", port=179, error=None),
        ConnectionsRefused(instance="i", address="192.0.2.66", reason="dynamic is full", count=4),
    ],
)  # fmt: skip
def test_every_kind_of_event_reaches_the_observers(event: Event) -> None:
    bench = Bench()
    seen: list[Event] = []
    bench.events.observable.subscribe(seen.append)
    bench.events.publish(event)
    assert seen == [event]


@pytest.mark.parametrize(
    ("received", "ended", "message"),
    [
        (75, False, "peer is near its prefix limit"),
        (101, True, "peer exceeds its prefix limit"),
    ],
)
def test_a_prefix_limit_is_logged_before_and_when_it_is_exceeded(
    received: int, ended: bool, message: str
) -> None:
    event = PrefixLimit(
        instance="main",
        peer="tor-1",
        family=IPV4_UNICAST,
        received=received,
        limit=100,
        ended=ended,
    )
    with capture_logs() as logs:
        Bench().events.publish(event)
    (line,) = logs
    assert (line["event"], line["log_level"]) == (message, "warning")
    assert (line["received"], line["limit"], line["ended"]) == (received, 100, ended)


AT_PEER = {"instance": "i", "peer": "tor-1", "peer_address": "192.0.2.1"}
LINES: list[tuple[Event, str, str, dict[str, object]]] = [
    (
        UP_EVENT,
        *("info", "peer.up"),
        {**AT_PEER, "from": "OpenConfirm", "to": "Established", "reason": None},
    ),
    (
        msgspec.structs.replace(
            UP_EVENT, old="Established", new="Idle", reason="hold timer expired"
        ),
        *("warning", "peer.down"),
        {**AT_PEER, "from": "Established", "to": "Idle", "reason": "hold timer expired"},
    ),
    (
        msgspec.structs.replace(UP_EVENT, old="Idle", new="Connect"),
        *("debug", "peer.state"),
        {**AT_PEER, "from": "Idle", "to": "Connect", "reason": None},
    ),
    (
        SessionError(
            instance="i",
            peer="tor-1",
            address="192.0.2.1",
            sent=True,
            code=6,
            subcode=2,
            text="Cease",
        ),
        *("warning", "peer.error"),
        {**AT_PEER, "sent": True, "code": 6, "subcode": 2, "text": "Cease"}
        | {"data": None, "survived": None},
    ),
    (
        SessionError(
            instance="i",
            peer="tor-1",
            address="192.0.2.1",
            sent=False,
            code=3,
            subcode=1,
            text="malformed",
            data="00ff",
            survived=True,
        ),
        *("warning", "peer.error"),
        {**AT_PEER, "sent": False, "code": 3, "subcode": 1, "text": "malformed"}
        | {"data": "00ff", "survived": True},
    ),
    (
        Fault(instance="i", peer="tor-1", where="timer", error="ValueError: x"),
        *("error", "speaker.fault"),
        {"instance": "i", "peer": "tor-1", "where": "timer", "error": "ValueError: x"},
    ),
    (
        ListenChanged(instance="i", address="127.0.0.1", port=179, error="in use"),
        *("error", "speaker.listen_failed"),
        {"instance": "i", "address": "127.0.0.1", "port": 179, "reason": "in use"},
    ),
    (
        ListenChanged(instance="i", address="127.0.0.1", port=179, error=None),
        *("info", "speaker.listening"),
        {"instance": "i", "address": "127.0.0.1", "port": 179},
    ),
    (
        ConnectionsRefused(instance="i", address="192.0.2.66", reason="range is full", count=4),
        *("warning", "listener.refused"),
        {"instance": "i", "peer_address": "192.0.2.66", "reason": "range is full", "count": 4},
    ),
    (
        CollectorChanged(
            name="station", address="192.0.2.9", port=11019, connected=False, reason="no answer"
        ),
        *("info", "collector.changed"),
        {"collector": "station", "connected": False, "reason": "no answer"},
    ),
    (
        RecordingEnded(reason="its size is 256 MiB"),
        *("warning", "speaker.recording_ended"),
        {"reason": "its size is 256 MiB"},
    ),
    (
        PrefixLimit(
            instance="i", peer="tor-1", family=IPV4_UNICAST, received=101, limit=100, ended=True
        ),
        *("warning", "peer.prefix_limit"),
        {"instance": "i", "peer": "tor-1", "family": "ipv4-unicast"}
        | {"received": 101, "limit": 100, "ended": True},
    ),
    (
        RouteLeftOut(
            instance="i",
            peers=("tor-1", "tor-2"),
            family=IPV4_UNICAST,
            prefix="10.9.0.0/24",
            count=4,
            reason="its attributes do not fit a message",
        ),
        *("warning", "peer.route_left_out"),
        {"instance": "i", "peers": ("tor-1", "tor-2"), "family": "ipv4-unicast"}
        | {"prefix": "10.9.0.0/24", "count": 4, "reason": "its attributes do not fit a message"},
    ),
]


@pytest.mark.parametrize(
    ("event", "level", "name", "values"), LINES, ids=[f"{line[2]} {line[1]}" for line in LINES]
)
def test_an_event_is_one_line_with_its_values(
    event: Event, level: str, name: str, values: dict[str, object]
) -> None:
    with capture_logs() as logs:
        Bench().events.publish(event)
    (line,) = logs
    assert (line.pop("log_level"), line.pop("event_name")) == (level, name)
    assert line.pop("event")
    assert line == values


def test_a_prefix_count_at_its_limit_is_not_above_it() -> None:
    event = PrefixLimit(
        instance="i", peer="tor-1", family=IPV4_UNICAST, received=100, limit=100, ended=False
    )
    with capture_logs() as logs:
        Bench().events.publish(event)
    assert logs[0]["event"] == "peer is near its prefix limit"


def test_a_listener_that_cannot_listen_shows_in_health() -> None:
    bench = Bench()
    event = ListenChanged(instance="i", address="127.0.0.1", port=179, error="in use")
    bench.events.publish(event)
    assert bench.levels() == {"i/listener 127.0.0.1:179": Level.DEGRADED}
    bench.events.publish(msgspec.structs.replace(event, error=None))
    assert bench.levels() == {"i/listener 127.0.0.1:179": Level.OK}


PEER = {"instance": "i", "peer": "tor-1", "peer_address": "192.0.2.1"}


class OneCollector(Collector):
    """Reads the speaker's collector, as the metrics cell does."""

    def __init__(self, metrics: SpeakerMetrics) -> None:
        self._metrics = metrics

    def collect(self) -> Iterable[Metric]:
        return filter(None, self._metrics.collect())


def scraped(bench: Bench) -> CollectorRegistry:
    registry = CollectorRegistry()
    registry.register(OneCollector(SpeakerMetrics(cast("Speaker", bench.stub), bench.events)))
    return registry


def test_metrics_of_a_session() -> None:
    bench = Bench(UP)
    bench.events.publish(UP_EVENT)
    value = scraped(bench).get_sample_value
    asns = {"peer_asn": "65001", "local_asn": "65000"}
    assert value("waggle_bgp_session_up", PEER | asns) == 1
    assert value("waggle_bgp_session_state", PEER | {"state": "Established"}) == 1
    assert value("waggle_bgp_session_established_timestamp_seconds", PEER) == 1000
    assert value("waggle_bgp_session_drops_total", PEER) == 2
    assert value("waggle_bgp_messages_sent_total", PEER | {"type": "update"}) == 3
    assert value("waggle_bgp_messages_received_total", PEER | {"type": "route_refresh"}) == 2
    assert value("waggle_bgp_malformed_updates", PEER) == 0
    family = PEER | {"family": "ipv4-unicast"}
    assert value("waggle_bgp_advertised_routes", family) == 7
    assert value("waggle_bgp_received_routes", family | {"status": "accepted"}) == 3
    assert value("waggle_bgp_received_routes", family | {"status": "filtered"}) == 2
    assert value("waggle_bgp_connections_refused_total", {"instance": "i"}) == 4
    change = {"instance": "i", "peer": "tor-1", "from": "OpenConfirm", "to": "Established"}
    assert value("waggle_bgp_session_transitions_total", change) == 1


def session_error(**fields: Any) -> SessionError:  # noqa: ANN401
    """Return the event of a session error that the peer reported."""
    return SessionError(instance="i", peer="tor-1", address=None, sent=False, **fields)


def test_unassigned_error_codes_of_a_peer_are_one_label() -> None:
    bench = Bench(UP)
    for code in range(1, 256):
        for subcode in (0, 1, 200):
            bench.events.publish(session_error(code=code, subcode=subcode, text="x"))
    value = scraped(bench).get_sample_value
    label = {"instance": "i", "peer": "tor-1"}
    name = "waggle_bgp_notifications_received_total"
    assert value(name, label | {"code": "6", "subcode": "1"}) == 1
    assert len(bench.events.counts["i", "tor-1"].notifications) < 20
    assert (value(name, label | {"code": "0", "subcode": "0"}) or 0) > 700


def test_an_update_that_was_survived_is_no_notification() -> None:
    bench = Bench(UP)
    bench.events.publish(
        session_error(
            code=3,
            subcode=5,
            text="malformed UPDATE",
            data="c00801ff",
            survived=True,
        )
    )
    assert not bench.events.counts


def test_a_session_that_is_down_has_no_route_counts() -> None:
    value = scraped(Bench(DOWN)).get_sample_value
    assert value("waggle_bgp_session_up", PEER | {"peer_asn": "65001", "local_asn": "65000"}) == 0
    assert value("waggle_bgp_session_established_timestamp_seconds", PEER) is None
    assert value("waggle_bgp_advertised_routes", PEER | {"family": "ipv4-unicast"}) is None


def test_a_recording_is_written_where_it_is_enabled_and_only_at_the_start(tmp_path: Path) -> None:
    path = tmp_path / "recording"
    lifecycle, health = Lifecycle(), Health()
    events = SpeakerEvents(health)
    options = SpeakerOptions(record_file=str(path), record_limit=1)
    make_speaker(lifecycle, health, events, options)
    assert not path.exists()

    async def live() -> None:
        await lifecycle.start()
        assert path.exists()
        await lifecycle.stop()

    asyncio.run(live())
    with path.open("rb") as file:
        player = Player(file)
        steps = list(player.play())
    assert [type(step.item).__name__ for step in steps] == ["Shutdown"]
    assert player.header.restarting
    assert player.end == "stopped"
