"""``/v1/live`` in virtual time: which revision changes with which view, and how often."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import aclosing
from datetime import UTC, datetime
from itertools import pairwise
from types import SimpleNamespace
from typing import Any, cast
from unittest.mock import patch

import pytest
from msgspec.structs import replace

from cells.api.history import HistoryItem
from cells.history.log import HistoryLog
from cells.hive import HealthTree
from cells.page.live import BUSY_SECONDS, LEAST_SECONDS, MOST_SECONDS, LiveItem, live_stream
from reconcilers.bfd_session import BfdSession
from reconcilers.intent_tables import IntentTables
from reconcilers.model import Attributes, Problem, Route
from speaker.nlri import prefix_to_wire
from statedb import Database, Index
from tests.support.looptime import run

Stream = AsyncGenerator[Sequence[LiveItem]]


class Stand:
    """The views of a page, which a test changes."""

    def __init__(self, *, history: bool = True) -> None:
        self.db = Database()
        self.intent = IntentTables(self.db)
        key = Index("key", key=lambda row: row)
        self.sessions: Any = self.db.table("sessions", primary=cast("Any", key))
        self.health = HealthTree()
        self.log = HistoryLog("n", 10) if history else None
        sessions = cast("Any", SimpleNamespace(table=self.sessions))
        self.path = live_stream(self.db, sessions, self.intent, self.health, self.log)

    def route(self, prefix: str) -> None:
        family, nlri = prefix_to_wire(prefix)
        with self.db.write(self.intent.routes) as txn:
            self.intent.routes.upsert(txn, Route("set", family, nlri, Attributes(), ()))

    def session(self, name: str) -> None:
        with self.db.write(self.sessions) as txn:
            self.sessions.upsert(txn, name)

    def bfd(self, state: str) -> None:
        with self.db.write(self.intent.bfd_sessions) as txn:
            row = BfdSession(instance="main", peer="tor-1", state=state)
            self.intent.bfd_sessions.upsert(txn, row)

    def problem(self) -> None:
        with self.db.write(self.intent.problems) as txn:
            self.intent.problems.upsert(txn, Problem((), "spec", "is wrong"))

    def entry(self) -> None:
        assert self.log is not None
        now = datetime(2026, 1, 1, tzinfo=UTC)
        self.log.add(HistoryItem(event_time=now, type="ADDED", kind="Route"))


def following(scenario: Callable[[Stand, Stream], Awaitable[None]], **options: bool) -> None:
    async def main() -> None:
        stand = Stand(**options)
        async with aclosing(cast("Stream", stand.path.read({}))) as stream:
            await scenario(stand, stream)

    run(main())


def now() -> float:
    return asyncio.get_running_loop().time()


CHANGES_OF_THE_HEAD: dict[str, Callable[[Stand], None]] = {
    "a session": lambda stand: stand.session("tor-1"),
    "a BFD session": lambda stand: stand.bfd("Down"),
    "a problem": lambda stand: stand.problem(),
    "a level of health": lambda stand: stand.health.scope("kernel").degraded("ill"),
}
of_the_head = pytest.mark.parametrize("what", CHANGES_OF_THE_HEAD)


async def enter_all_the_time(stand: Stand) -> None:
    while True:
        stand.entry()
        await asyncio.sleep(0.1)


def test_the_path_is_that_which_the_page_reads() -> None:
    assert Stand().path.path == "/v1/live"


def test_each_view_has_a_revision_of_its_own() -> None:
    async def scenario(stand: Stand, stream: Stream) -> None:
        stand.route("192.0.2.0/24")
        (before,) = await anext(stream)
        changes: dict[str, Callable[[], None]] = {
            "routes": lambda: stand.route("192.0.2.1/32"),
            "sessions": lambda: stand.session("tor-1"),
            "history": stand.entry,
        }
        for name, change in changes.items():
            began = now()
            change()
            (after,) = await anext(stream)
            assert now() - began < MOST_SECONDS, "the change is what wakes it"
            differing = {
                field for field in LiveItem.__struct_fields__
                if getattr(before, field) != getattr(after, field)
            }  # fmt: skip
            assert differing == ({name, "state"} if name == "sessions" else {name})
            before = after

    following(scenario)


def test_the_first_group_is_at_once_and_later_ones_a_second_behind_a_change() -> None:
    async def scenario(stand: Stand, stream: Stream) -> None:
        stand.route("192.0.2.0/24")
        began = now()
        assert len(await anext(stream)) == 1
        assert now() == began
        stand.route("192.0.2.1/32")
        stand.entry()
        (item,) = await anext(stream)
        assert (now() - began, item.history) == (1.0, 1)

    following(scenario)


def test_without_a_change_an_empty_group_shows_that_the_connection_stands() -> None:
    async def scenario(stand: Stand, stream: Stream) -> None:
        began = now()
        assert len(await anext(stream)) == 1
        assert now() == began
        for number in (1, 2):
            assert await anext(stream) == []
            assert now() - began == number * 11.0

    following(scenario)


def test_health_is_read_with_the_next_group() -> None:
    async def scenario(stand: Stand, stream: Stream) -> None:
        scope = stand.health.scope("kernel")
        scope.ok("well")
        (first,) = await anext(stream)
        scope.degraded("ill")
        (second,) = await anext(stream)
        scope.ok("well")
        (third,) = await anext(stream)
        assert first.health < second.health < third.health
        assert first.state < second.state < third.state

    following(scenario)


def test_a_bfd_session_that_changes_is_an_event_of_the_head_alone() -> None:
    async def scenario(stand: Stand, stream: Stream) -> None:
        (before,) = await anext(stream)
        began = now()
        stand.bfd("Down")
        (after,) = await anext(stream)
        assert now() - began < MOST_SECONDS
        assert replace(after, state=before.state) == before
        assert after.state > before.state

    following(scenario)


def test_an_agent_without_a_history_has_no_revision_of_it() -> None:
    async def scenario(stand: Stand, stream: Stream) -> None:
        stand.route("192.0.2.0/24")
        (item,) = await anext(stream)
        assert item.history == 0

    following(scenario, history=False)


def test_routes_that_change_all_the_time_are_an_event_every_few_seconds() -> None:
    async def scenario(stand: Stand, stream: Stream) -> None:
        times: list[float] = []
        changes = asyncio.create_task(enter_all_the_time(stand))
        while len(times) < 6:
            if await anext(stream):
                times.append(now())
        changes.cancel()
        # The second one follows the reading of a page that is opened.
        pauses = [after - before for before, after in pairwise(times[1:])]
        assert pauses == pytest.approx([BUSY_SECONDS] * 4)

    following(scenario)


def test_between_two_events_the_stream_sleeps_while_routes_change() -> None:
    async def scenario(stand: Stand, stream: Stream) -> None:
        changes = asyncio.create_task(enter_all_the_time(stand))
        for _ in range(3):
            assert await anext(stream)
        with patch.object(stand.db, "snapshot", wraps=stand.db.snapshot) as readings:
            assert await anext(stream)
        changes.cancel()
        assert readings.call_count <= BUSY_SECONDS / 2

    following(scenario)


@of_the_head
def test_a_change_of_the_head_meanwhile_is_an_event_a_second_later(what: str) -> None:
    async def scenario(stand: Stand, stream: Stream) -> None:
        for _ in range(2):
            stand.entry()
            (before,) = await anext(stream)
        stand.entry()
        waiting = asyncio.ensure_future(anext(stream))
        await asyncio.sleep(2.5)
        assert not waiting.done()
        CHANGES_OF_THE_HEAD[what](stand)
        began = now()
        (after,) = await waiting
        assert now() - began == pytest.approx(LEAST_SECONDS)
        assert (after.state, after.history) == (before.state + 1, before.history + 1)

    following(scenario)


@of_the_head
def test_a_change_of_the_head_alone_is_an_event_a_second_later(what: str) -> None:
    async def scenario(stand: Stand, stream: Stream) -> None:
        (before,) = await anext(stream)
        waiting = asyncio.ensure_future(anext(stream))
        await asyncio.sleep(2.5)
        assert not waiting.done()
        CHANGES_OF_THE_HEAD[what](stand)
        began = now()
        (after,) = await waiting
        assert now() - began == pytest.approx(LEAST_SECONDS)
        assert after.state > before.state

    following(scenario)


def test_the_first_change_after_an_idle_time_is_an_event_a_second_later() -> None:
    async def scenario(stand: Stand, stream: Stream) -> None:
        await anext(stream)
        stand.entry()
        assert await anext(stream)
        assert await anext(stream) == []
        waiting = asyncio.ensure_future(anext(stream))
        await asyncio.sleep(2.5)
        stand.entry()
        began = now()
        assert await waiting
        assert now() - began == pytest.approx(LEAST_SECONDS)

    following(scenario)


def test_texts_of_health_that_change_with_the_work_are_no_event_of_their_own() -> None:
    """Routes and a text change all the time: the page reads them seldom, and a level at once."""

    async def scenario(stand: Stand, stream: Stream) -> None:
        scope = stand.health.scope("apply")
        scope.ok("0 objects")
        times: list[float] = []

        async def change() -> None:
            number = 0
            while True:
                number += 1
                stand.entry()
                scope.ok(f"{number} objects")
                await asyncio.sleep(0.3)

        changing = asyncio.create_task(change())
        try:
            while len(times) < 5:
                if await anext(stream):
                    times.append(now())
            pauses = [after - before for before, after in pairwise(times[1:])]
            assert pauses == pytest.approx([BUSY_SECONDS] * 3)
            scope.degraded("ill")
            changing.cancel()
            began = now()
            assert await anext(stream)
            assert now() - began == pytest.approx(LEAST_SECONDS)
        finally:
            changing.cancel()

    following(scenario)
