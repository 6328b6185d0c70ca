"""The answers of the history: no slice of work delays a session, whatever is asked for."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from datetime import UTC, datetime

import pytest

from cells.api.history import HistoryItem
from cells.api.resource import NotFoundError
from cells.history.api import NAMES, SLICE, history_resource
from cells.history.log import HistoryLog

ENTRIES = 2000
NOW = datetime(2026, 1, 1, tzinfo=UTC)


def many() -> HistoryLog:
    log = HistoryLog("n", ENTRIES)
    for number in range(ENTRIES):
        causes = (f"Service/shop/web-{number}",)
        name = f"198.51.{number % 250}.{number // 250}/32"
        log.add(HistoryItem(event_time=NOW, type="ADDED", kind="Route", name=name, causes=causes))
    return log


def slices(about: str) -> Iterator[int]:
    for items in history_resource(many()).read({"about": about}):
        yield len(items)


def test_an_unknown_name_is_answered_with_the_nearest_one() -> None:
    with pytest.raises(NotFoundError, match=r"last 2000 entries \(did you mean .*web-1776\?\)"):
        list(slices("Service/shop/wbe-1776"))


def test_a_known_one_has_its_entries() -> None:
    assert sum(slices("198.51.0.0/16")) == ENTRIES
    assert sum(slices("shop/web-7")) == 1


def test_the_search_for_a_name_is_work_in_slices() -> None:
    steps, count = slices("shop/nothing-of-this"), 0
    with contextlib.suppress(NotFoundError):
        for _ in steps:
            count += 1
    assert count >= ENTRIES / SLICE + 2 * ENTRIES / NAMES, "entries, then their names and causes"
