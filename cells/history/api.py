"""The paths of the history: its entries, the newest first, and new ones as they come."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, Iterator, Sequence
from datetime import datetime
from itertools import islice
from typing import Final

from cells.api.history import HistoryItem
from cells.api.resource import ApiResource, ApiStream, BadRequestError, NotFoundError, Query
from cells.history.log import HistoryLog, Target, known_names, since
from cells.hive import suggestion

SLICE: Final = 200
"""Entries that are looked at in a turn of the loop."""
MOST_WAITING: Final = 1000
"""Entries that wait for a client that reads slowly; the oldest ones are lost to it."""


def history_resource(log: HistoryLog) -> ApiResource:
    """Return the path of the entries."""

    def read(query: Query) -> Iterator[Sequence[HistoryItem]]:
        items = log.newest_first()
        if "since" in query:
            items = since(items, _time(query["since"]))
        about = query.get("about")
        if about is None:
            return _slices(items, None)
        target, known = Target(about), list(items)
        if not any(target.matches(item) for item in known):
            near = suggestion(about, known_names(known))
            raise NotFoundError(
                f"no change of {about} is among the last {len(known)} entries{near}"
            )
        return _slices(iter(known), target)

    return ApiResource(
        path="/v1/history",
        kind="HistoryList",
        parameters=("since", "about"),
        limited=True,
        read=read,
    )


def _slices(items: Iterator[HistoryItem], target: Target | None) -> Iterator[Sequence[HistoryItem]]:
    while group := list(islice(items, SLICE)):
        yield [item for item in group if target is None or target.matches(item)]


def _time(text: str) -> datetime:
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        time = None
    if time is None or time.tzinfo is None:
        raise BadRequestError(f"since: a time of RFC 3339, not {text!r}")
    return time


def history_stream(log: HistoryLog) -> ApiStream:
    """Return the stream of new entries."""

    def read(query: Query) -> AsyncGenerator[Sequence[HistoryItem]]:
        about = query.get("about")
        return new_entries(log, None if about is None else Target(about))

    return ApiStream(path="/v1/history/follow", parameters=("about",), read=read)


async def new_entries(
    log: HistoryLog, target: Target | None = None
) -> AsyncGenerator[Sequence[HistoryItem]]:
    """Yield new entries in groups, until closed; never an empty group."""
    waiting: deque[HistoryItem] = deque(maxlen=MOST_WAITING)
    woken = asyncio.Event()

    def note(item: HistoryItem) -> None:
        if target is None or target.matches(item):
            waiting.append(item)
            woken.set()

    subscription = log.added.subscribe(note)
    try:
        while True:
            await woken.wait()
            woken.clear()
            group = list(waiting)
            waiting.clear()
            if group:
                yield group
    finally:
        subscription.dispose()
