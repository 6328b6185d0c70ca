"""``/v1/live``: which views have changed; the page reads them again.

An event once a second at most; where routes change all the time, and no session does, every eight
seconds: a reading costs an agent as much as a change.
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
from reconcilers.tables import IntentTables
from statedb import Database

LEAST_SECONDS: Final = 1.0
BUSY_SECONDS: Final = 8.0
"""Between two events of routes and history alone."""
MOST_SECONDS: Final = 10.0
"""Between two groups; an empty one shows that the connection stands, and finds out if it does not."""


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
        observables: list[Observable[Any]] = [
            sessions.table.observable,
            intent.routes.observable,
            intent.bfd_sessions.observable,
        ]
        if log is not None:
            observables.append(log.added)
        before: LiveItem | None = None
        clock = asyncio.get_running_loop().time
        busy_until = float("-inf")
        while True:
            if before == now():
                # Not while it sleeps: that would be several calls for each change.
                with Signal(*observables) as signal:
                    await signal.wait()  # a signal begins raised
                    await signal.wait(at_most=MOST_SECONDS)
            # What follows from a change, and is in the history soon after, is one event with it.
            await asyncio.sleep(LEAST_SECONDS if before is not None else 0)
            present = now()
            while before is not None and present.state == before.state:
                if present == before or clock() >= busy_until:
                    break
                await asyncio.sleep(LEAST_SECONDS)
                present = now()
            yield [] if present == before else [present]
            if before is not None:
                busy_until = clock() + BUSY_SECONDS
            before = present

    def read(_: Query) -> AsyncGenerator[Sequence[LiveItem]]:
        return follow()

    return ApiStream(path="/v1/live", read=read)
