"""``/v1/live``: which views have changed; the page reads them again.

An event a second after the first change, with what follows from it. Where routes change all the time,
and no session does, every eight seconds: a reading costs an agent as much as a change. The stream
sleeps until then, and no change of routes wakes it.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Sequence
from typing import Any, Final

import msgspec
from reactivex import Observable

from cells.api.resource import ApiStream, Query
from cells.history.log import HistoryLog
from cells.hive import HealthTree
from cells.hive.signal import Signal
from cells.speaker.sessions import Sessions
from reconcilers.intent_tables import IntentTables
from statedb import Database

LEAST_SECONDS: Final = 1.0
"""From a change to its event."""
BUSY_SECONDS: Final = 8.0
"""Between two events of routes and history alone."""
MOST_SECONDS: Final = 10.0
"""Between two groups; an empty group keeps the connection, or shows that it is lost."""


class LiveItem(msgspec.Struct, frozen=True, kw_only=True):
    """The revisions of the views of the page; a view whose revision differs is read again."""

    state: int
    """Of the page's head: sessions, BFD, problems, levels of health."""
    sessions: int
    routes: int
    history: int
    health: int


def live_stream(
    database: Database,
    sessions: Sessions,
    intent: IntentTables,
    health: HealthTree,
    log: HistoryLog | None,
) -> ApiStream:
    """Return the stream of revisions."""

    def now() -> LiveItem:
        snapshot = database.snapshot()
        of_sessions = sessions.table.revision(snapshot)
        of_problems = intent.problems.revision(snapshot)
        of_bfd = intent.bfd_sessions.revision(snapshot)
        return LiveItem(
            # A sum of numbers that only grow. Texts of health change with each round of work.
            state=of_sessions + of_problems + of_bfd + health.changes.levels,
            sessions=of_sessions,
            routes=intent.routes.revision(snapshot),
            history=0 if log is None else log.sequence,
            health=health.changes.reports,
        )

    async def follow() -> AsyncGenerator[Sequence[LiveItem]]:
        of_state: list[Observable[Any]] = [
            sessions.table.observable,
            intent.problems.observable,
            intent.bfd_sessions.observable,
            health.changes.of_levels,
        ]
        of_all = [*of_state, intent.routes.observable]
        if log is not None:
            of_all.append(log.added)
        clock = asyncio.get_running_loop().time
        with Signal(*of_state) as state_signal:
            before, busy = now(), False
            yield [before]
            while True:
                began = clock()
                rested_at = began + BUSY_SECONDS - LEAST_SECONDS
                while busy and clock() < rested_at and now().state == before.state:
                    await state_signal.wait(at_most=rested_at - clock())
                if now() == before:
                    # Not before: each change of routes would be several calls.
                    with Signal(*of_all) as signal:
                        await signal.wait()  # a signal begins raised
                        await signal.wait(at_most=began + MOST_SECONDS - clock())
                # What follows from a change, and is in the history soon after, is one event with it.
                await asyncio.sleep(LEAST_SECONDS)
                present = now()
                busy = present != before
                yield [present] if busy else []
                before = present

    def read(_: Query) -> AsyncGenerator[Sequence[LiveItem]]:
        return follow()

    return ApiStream(path="/v1/live", read=read)
