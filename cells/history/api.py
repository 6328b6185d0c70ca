"""The paths of the history: its entries, the newest first, and new ones as they come."""

from __future__ import annotations

import asyncio
import difflib
import sys
from collections import deque
from collections.abc import AsyncGenerator, Iterable, Iterator, Sequence
from datetime import datetime
from itertools import islice, takewhile
from typing import Final

from cells.api.history import HistoryItem
from cells.api.resource import ApiResource, ApiStream, BadRequestError, NotFoundError, Query
from cells.history.log import HistoryLog, Target, known_names, since
from cells.hive import suggestion
from resources.decimal_numbers import decimal_number

SLICE: Final = 100
"""Entries that are looked at in a turn of the loop: about a millisecond."""
NAMES: Final = 100
"""Names that are compared in a turn of the loop: about two milliseconds."""
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
            return _slices(items)
        return _of_target(list(items), Target(about), about)

    return ApiResource(
        path="/v1/history",
        kind="HistoryList",
        parameters=("since", "about"),
        limited=True,
        read=read,
    )


def _slices(items: Iterable[HistoryItem]) -> Iterator[Sequence[HistoryItem]]:
    rest = iter(items)
    while group := list(islice(rest, SLICE)):
        yield group


def _of_target(
    items: Sequence[HistoryItem], target: Target, about: str
) -> Iterator[Sequence[HistoryItem]]:
    """Yield the entries about a target; empty slices are work without a result.

    Raises `NotFoundError` at the end, where there is none.
    """
    is_known = False
    names: dict[str, None] = {}
    for group in _slices(items):
        matching = [item for item in group if target.matches(item)]
        is_known = is_known or bool(matching)
        if not is_known:
            names |= dict.fromkeys(known_names(group))
        yield matching
    if is_known:
        return
    # The nearest name of each slice: a comparison with all names at once takes a tenth of a second.
    near: list[str] = []
    rest = iter(names)
    while some := list(islice(rest, NAMES)):
        near += difflib.get_close_matches(about, some, n=1)
        yield ()
    raise NotFoundError(
        f"no change of {about} is among the last {len(items)} entries{suggestion(about, near)}"
    )


def _time(text: str) -> datetime:
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        time = None
    if time is None or time.tzinfo is None:
        raise BadRequestError(f"since: a time of RFC 3339, not {text!r}")
    return time


def _sequence(text: str) -> int:
    number = decimal_number(text, sys.maxsize)
    if number is None:
        raise BadRequestError(f"after: the sequence of an entry, not {text!r}")
    return number


def history_stream(log: HistoryLog) -> ApiStream:
    """Return the stream of new entries."""

    def read(query: Query) -> AsyncGenerator[Sequence[HistoryItem]]:
        about = query.get("about")
        after = None if "after" not in query else _sequence(query["after"])
        return new_entries(log, None if about is None else Target(about), after)

    return ApiStream(path="/v1/history/follow", parameters=("about", "after"), read=read)


def _newer(log: HistoryLog, after: int) -> Iterator[HistoryItem]:
    """Iterate over the entries behind one, the newest first."""
    return takewhile(lambda item: item.sequence > after, log.newest_first())


async def new_entries(
    log: HistoryLog, target: Target | None = None, after: int | None = None
) -> AsyncGenerator[Sequence[HistoryItem]]:
    """Yield new entries in groups, until closed; never an empty group.

    With ``after`` entries of a higher sequence are first: a client has read up to it.
    """
    waiting: deque[HistoryItem] = deque(maxlen=MOST_WAITING)
    woken = asyncio.Event()

    def note(item: HistoryItem) -> None:
        if target is None or target.matches(item):
            waiting.append(item)
            woken.set()

    subscription = log.added.subscribe(note)
    if after is not None:
        for item in reversed(list(_newer(log, after))):
            note(item)
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
