"""What becomes an entry: changes of objects and routes with their cause, sessions, and storms."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Generator
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any, cast

import pytest
from msgspec.structs import replace
from reactivex.subject import Subject

from cells.history.events import entry_of
from cells.history.following import BURST, BUSY_SECONDS, Commits, HistoryFollower
from cells.history.log import HistoryLog
from cells.history.rows import recorded_tables
from reconcilers.intent_tables import IntentTables
from reconcilers.model import Attributes, Contribution, ObjectRef, Origin, ReconcileStatus, Route
from resources.core import Secret, Service
from resources.meta import ObjectMeta
from resources.secret_value import SecretValue
from resources.tables import Tables
from speaker.api import ESTABLISHED, Event, SessionError, StateChanged
from speaker.nlri import IPV4_UNICAST, prefix_to_wire
from statedb import ChangeIterator, Database
from tests.reconcilers.apply.intent_rows import PEER
from tests.support.looptime import run as run_in_virtual_time

Job = Callable[[], Coroutine[Any, Any, None]]
NOW = datetime(2026, 1, 1, tzinfo=UTC)
WEB = ObjectRef("Service", "shop", "web")
API = ObjectRef("Service", "shop", "api")
RULE = ObjectRef("CiliumBGPAdvertisement", "", "services")


class Stand:
    """A follower of tables that a test writes, in virtual time."""

    def __init__(self) -> None:
        self.db = Database()
        self.tables = Tables(self.db)
        self.intent = IntentTables(self.db)
        self.events: Subject[Event] = Subject()
        self.log = HistoryLog("n", 2000)
        self.intent_loop = SimpleNamespace(done=Subject(), complete=False)
        self.job: Job

        def add(_name: str, job: Job, **_: object) -> None:
            self.job = job

        HistoryFollower(
            self.db,
            self.tables,
            self.intent,
            cast("Any", self.intent_loop),
            cast("Any", SimpleNamespace(observable=self.events)),
            self.log,
            cast("Any", SimpleNamespace(add=add)),
            clock=lambda: 0.0,
            wall=lambda: NOW.timestamp() + asyncio.get_running_loop().time(),
        )

    def service(self, name: str, **metadata: Any) -> None:  # noqa: ANN401
        row = Service(metadata=ObjectMeta(name=name, namespace="shop", **metadata))
        self.write(self.tables.services, row)

    def write(self, table: Any, *rows: object) -> None:  # noqa: ANN401
        with self.db.write(table) as txn:
            for row in rows:
                table.upsert(txn, row)

    def entries(self) -> list[tuple[str, str, str]]:
        return [(of.type, of.kind, of.name) for of in reversed(list(self.log.newest_first()))]


def route(prefix: str, *origins: ObjectRef, preference: int | None = None) -> Route:
    family, nlri = prefix_to_wire(prefix)
    attributes = Attributes(local_preference=preference)
    contributions = tuple(Contribution(Origin(of, RULE), attributes) for of in origins)
    return Route("set", family, nlri, attributes, contributions)


def run(scenario: Callable[[Stand], Awaitable[None]]) -> Stand:
    """Run a scenario beside the follower, which has begun."""
    stand = Stand()

    async def main() -> None:
        task = asyncio.create_task(stand.job())
        await asyncio.sleep(0)
        stand.intent_loop.complete = True
        stand.intent_loop.done.on_next(None)
        await asyncio.sleep(1)
        await scenario(stand)
        await settled()
        task.cancel()

    run_in_virtual_time(main())
    return stand


async def settled() -> None:
    """Wait until the follower has read what was written."""
    await asyncio.sleep(BUSY_SECONDS + 1)


async def life_of_a_route(stand: Stand) -> None:
    stand.service("web")
    stand.write(stand.intent.routes, route("198.51.100.10/32", WEB))
    await settled()
    stand.service("web", labels={"expose": "no"})
    with stand.db.write(stand.intent.routes) as txn:
        stand.intent.routes.delete_all(txn)
    await settled()


def test_a_change_of_an_object_comes_before_the_route_that_follows_from_it() -> None:
    stand = run(life_of_a_route)
    assert stand.entries() == [
        ("OCCURRED", "Agent", "start"),
        ("ADDED", "Service", "shop/web"),
        ("ADDED", "Route", "198.51.100.10/32"),
        ("MODIFIED", "Service", "shop/web"),
        ("DELETED", "Route", "198.51.100.10/32"),
    ]
    for of_route in (of for of in stand.log.newest_first() if of.kind == "Route"):
        assert of_route.causes == ("Service/shop/web", "CiliumBGPAdvertisement/services")
        assert of_route.route_set == "set"
    (modified,) = (of for of in stand.log.newest_first() if of.type == "MODIFIED")
    (change,) = modified.changes
    assert (change.field, change.old, change.new) == ("metadata.labels.expose", None, "no")


def test_an_entry_has_the_time_of_the_commit_and_not_that_of_the_reading() -> None:
    committed: list[timedelta] = []

    async def scenario(stand: Stand) -> None:
        for name in ("web", "api", "web"):
            committed.append(timedelta(seconds=asyncio.get_running_loop().time()))
            stand.service(name, labels={"of": str(len(committed))})
            await asyncio.sleep(0.05)

    entries = {of.name: of.event_time for of in run(scenario).log.newest_first()}
    assert entries["shop/api"] - NOW == pytest.approx(committed[1], abs=timedelta(milliseconds=1))
    assert entries["shop/web"] - NOW == pytest.approx(
        committed[2], abs=timedelta(milliseconds=1)
    ), "the last of its changes"


def test_changes_that_go_on_are_read_together_and_each_is_an_entry_in_the_order_of_the_commits(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    readings: list[float] = []
    take = Commits.take

    def taken(commits: Commits) -> Any:  # noqa: ANN401
        readings.append(asyncio.get_running_loop().time())
        return take(commits)

    async def scenario(stand: Stand) -> None:
        monkeypatch.setattr(Commits, "take", taken)
        for number in range(7):
            stand.service("web", labels={"number": str(number)})
            stand.write(stand.intent.routes, route("10.0.0.0/8", WEB, preference=number))
            await asyncio.sleep(0.3)

    entries = list(reversed(list(run(scenario).log.newest_first())))[1:]
    first = readings[0]
    assert readings == pytest.approx([first, first + BUSY_SECONDS])
    of_change = [(of.kind, of.changes[-1].new) for of in entries if of.type == "MODIFIED"]
    kinds = ("Service", "Route")
    assert of_change == [(kind, str(number)) for number in range(1, 7) for kind in kinds]
    assert [of.event_time for of in entries] == sorted(of.event_time for of in entries)
    assert all(of.changes[-1].old == str(number) for number, of in enumerate(entries[2::2]))


def test_changes_of_a_row_that_follow_each_other_at_once_are_one_between_others() -> None:
    async def scenario(stand: Stand) -> None:
        stand.write(stand.intent.routes, route("10.0.0.0/8", WEB))
        await asyncio.sleep(0.5)
        for preference, pause in ((100, 0.1), (200, 0.4), (300, 0.1), (400, 0.4)):
            stand.write(stand.intent.routes, route("10.0.0.0/8", WEB, preference=preference))
            await asyncio.sleep(pause)

    entries = [of for of in run(scenario).log.newest_first() if of.type == "MODIFIED"]
    assert [(of.changes[0].old, of.changes[0].new) for of in entries] == [
        ("200", "400"),
        (None, "200"),
    ]


def test_a_session_stands_behind_the_changes_that_were_before_it() -> None:
    lost = StateChanged(
        instance="main", peer="tor-1", address=None, old=ESTABLISHED, new="Idle", reason="lost"
    )

    async def scenario(stand: Stand) -> None:
        stand.service("web")
        await settled()
        stand.service("web", labels={"expose": "no"})
        stand.events.on_next(lost)
        await asyncio.sleep(0.01)
        assert stand.entries()[-2:] == [
            ("MODIFIED", "Service", "shop/web"),
            ("MODIFIED", "Session", "main/tor-1"),
        ], "without a wait"

    run(scenario)


def test_changes_of_several_tables_wake_it_once_and_other_tables_cost_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    turns: list[None] = []
    touched: list[Any] = []
    take, release = Commits.take, ChangeIterator.release

    def taken(commits: Commits) -> Any:  # noqa: ANN401
        turns.append(None)
        return take(commits)

    def released(iterator: ChangeIterator[Any]) -> Any:  # noqa: ANN401
        touched.append(iterator)
        return release(iterator)

    async def scenario(stand: Stand) -> None:
        monkeypatch.setattr(Commits, "take", taken)
        monkeypatch.setattr(ChangeIterator, "release", released)
        stand.service("web")
        await asyncio.sleep(0.1)
        stand.write(stand.intent.routes, route("198.51.100.10/32", WEB))

    stand = run(scenario)
    assert len(stand.log) == 3, "the start, the Service and the route"
    assert (len(turns), len(touched)) == (1, 2)


def test_the_cause_of_a_changed_route_is_the_object_that_contributes_something_else() -> None:
    async def scenario(stand: Stand) -> None:
        stand.write(stand.intent.routes, route("10.0.0.0/8", WEB))
        await settled()
        stand.write(stand.intent.routes, route("10.0.0.0/8", WEB, API))
        await settled()
        stand.write(stand.intent.routes, route("10.0.0.0/8", WEB, API, preference=200))

    preference, origins, _added = [
        of for of in run(scenario).log.newest_first() if of.kind == "Route"
    ]
    assert origins.causes == ("Service/shop/api", "CiliumBGPAdvertisement/services")
    assert [(c.field, c.old, c.new) for c in origins.changes] == [
        ("origins", "Service/shop/web", "Service/shop/web, Service/shop/api")
    ]
    assert [(c.field, c.old, c.new) for c in preference.changes] == [
        ("localPreference", None, "200")
    ]
    assert preference.causes[:2] == ("Service/shop/web", "Service/shop/api")


def test_an_object_that_came_and_went_is_no_change() -> None:
    async def scenario(stand: Stand) -> None:
        stand.service("web")
        with stand.db.write(stand.tables.services) as txn:
            stand.tables.services.delete_all(txn)

    assert run(scenario).entries() == [("OCCURRED", "Agent", "start")]


def test_a_secret_is_named_without_its_content() -> None:
    async def scenario(stand: Stand) -> None:
        for value in (b"hunter1", b"hunter2"):
            metadata = ObjectMeta(name="password", namespace="shop")
            row = Secret(metadata=metadata, data={"password": SecretValue(value)})
            stand.write(stand.tables.secrets, row)
            await settled()

    stand = run(scenario)
    assert stand.entries()[1:] == [
        ("ADDED", "Secret", "shop/password"),
        ("MODIFIED", "Secret", "shop/password"),
    ]
    assert "hunter" not in repr(list(stand.log.newest_first()))
    assert not any(of.changes for of in stand.log.newest_first())


def test_a_storm_of_changes_is_listed_in_part_and_counted() -> None:
    async def scenario(stand: Stand) -> None:
        stand.service("quiet")
        await settled()
        rows = [
            Route("set", IPV4_UNICAST, b"\x20" + number.to_bytes(4, "big"), Attributes(), ())
            for number in range(10_000)
        ]
        stand.write(stand.intent.routes, *rows)

    stand = run(scenario)
    entries = [of for of in stand.log.newest_first() if of.kind == "Route"]
    assert len(entries) == BURST + 1
    assert sum(of.count for of in entries) == 10_000
    assert entries[0].name == ""
    assert ("ADDED", "Service", "shop/quiet") in stand.entries()


def test_between_the_slices_of_a_storm_the_sessions_have_their_turns(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    steps: list[int] = []
    read, release = ChangeIterator.read, ChangeIterator.release

    def counted(iterator: Any, snapshot: Any, **options: Any) -> Any:  # noqa: ANN401
        for changes in read(iterator, snapshot, 100, **options):
            steps.append(len(turns))
            yield changes

    def released(iterator: Any) -> Any:  # noqa: ANN401
        for _ in release(iterator, 100):
            steps.append(len(turns))
            yield

    turns: list[None] = []

    async def noted(slices: Generator[None, None, None]) -> None:
        for turn in slices:
            turns.append(turn)
            await asyncio.sleep(0)
        turns.append(None)

    async def scenario(stand: Stand) -> None:
        rows = [route(f"10.0.{number >> 8}.{number & 255}/32") for number in range(2000)]
        monkeypatch.setattr(ChangeIterator, "read", counted)
        monkeypatch.setattr(ChangeIterator, "release", released)
        monkeypatch.setattr("cells.history.following.in_slices", noted)
        stand.write(stand.intent.routes, *rows)
        await asyncio.sleep(1)

    run(scenario)
    assert len(steps) > 55, "the search for changes, the changes, the release of the rows of before"
    assert len(set(steps)) == len(steps), "no two slices in a turn"


def test_a_storm_goes_on_as_one_entry_and_other_kinds_are_listed() -> None:
    async def scenario(stand: Stand) -> None:
        for wave in range(4):
            rows = [route(f"10.{wave}.{number >> 8}.{number & 255}/32") for number in range(500)]
            stand.write(stand.intent.routes, *rows)
            await asyncio.sleep(0.3)
        stand.service("web")

    stand = run(scenario)
    assert len(stand.log) <= 2000
    assert ("ADDED", "Service", "shop/web") in stand.entries()
    assert sum(of.count for of in stand.log.newest_first() if of.kind == "Route") == 2000


def test_sessions_are_listed_as_they_come_and_failed_attempts_are_counted() -> None:
    async def scenario(stand: Stand) -> None:
        def state(old: str, new: str, reason: str = "") -> None:
            stand.events.on_next(
                StateChanged(
                    instance="main",
                    peer="tor-1",
                    address="192.0.2.1",
                    old=old,
                    new=new,
                    reason=reason,
                )
            )

        state("OpenConfirm", ESTABLISHED)
        state(ESTABLISHED, "Idle", "hold timer expired")
        for _ in range(50):
            state("Idle", "Connect")
            state("Connect", "Idle", "connection refused")

    stand = run(scenario)
    refused, down, up, _start = stand.log.newest_first()
    assert [(c.old, c.new) for c in up.changes] == [("OpenConfirm", ESTABLISHED)]
    assert (down.message, down.address) == ("hold timer expired", "192.0.2.1")
    assert (refused.message, refused.count) == ("not Established: connection refused", 50)


def test_the_causes_of_a_session_are_the_objects_that_configure_it_also_of_a_removed_one() -> None:
    config = ObjectRef("CiliumBGPPeerConfig", "", "tor")
    peer = replace(PEER, origins=(config,))
    lost = StateChanged(
        instance=peer.instance,
        peer=peer.name,
        address=peer.address,
        old=ESTABLISHED,
        new="Idle",
        reason="hold timer expired",
    )

    async def scenario(stand: Stand) -> None:
        stand.write(stand.intent.peers, peer)
        stand.events.on_next(lost)
        await settled()
        with stand.db.write(stand.intent.peers) as txn:
            stand.intent.peers.delete_all(txn)
        stand.events.on_next(replace(lost, reason="Peer De-configured"))
        await settled()
        stand.events.on_next(replace(lost, reason="not known any more"))

    sessions = [of for of in run(scenario).log.newest_first() if of.kind == "Session"]
    known = ("CiliumBGPPeerConfig/tor",)
    assert [of.causes for of in sessions] == [(), known, known]


def test_an_error_of_a_reconciler_is_listed_and_its_next_attempt_is_not() -> None:
    async def scenario(stand: Stand) -> None:
        for error, attempts in ((None, 0), ("no room", 1), ("no room", 2), (None, 0)):
            row = ReconcileStatus("peer", "main/tor-1", error, attempts)
            stand.write(stand.intent.reconcile_statuses, row)
            await settled()

    entries = [of for of in run(scenario).log.newest_first() if of.kind == "Reconciler"]
    assert [(c.old, c.new) for of in entries for c in of.changes] == [
        ("no room", None),
        (None, "no room"),
    ]


@pytest.mark.parametrize(
    ("sent", "survived", "text"),
    [
        (True, False, "NOTIFICATION sent: Cease"),
        (False, False, "NOTIFICATION received: Cease"),
        (True, True, "malformed UPDATE: Cease"),
    ],
)
def test_an_error_of_a_session_has_its_sender(sent: bool, survived: bool, text: str) -> None:
    event = SessionError(
        instance="i", peer="p", address=None, sent=sent, code=6, subcode=0, text="Cease",
        survived=survived,
    )  # fmt: skip
    item = entry_of(event, NOW)
    assert item is not None
    assert (item.name, item.message) == ("i/p", text)


def test_every_kind_is_recorded_once() -> None:
    db = Database()
    tables = Tables(db)
    recorded = recorded_tables(tables, IntentTables(db))
    assert {of.table for of in recorded} >= set(tables.resources)
    assert len({of.kind for of in recorded}) == len(recorded)
