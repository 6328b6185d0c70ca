"""The answers of the history: no slice of work delays a session, whatever is asked for."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterator
from contextlib import aclosing
from datetime import UTC, datetime, timedelta
from typing import Any, cast

import pytest

from cells.api.history import HistoryItem
from cells.api.resource import BadRequestError, NotFoundError
from cells.history.api import MOST_WAITING, NAMES, SLICE, history_resource, history_stream
from cells.history.log import HistoryLog
from tests.support.looptime import run

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


def entry(name: str, minute: int = 0) -> HistoryItem:
    time = NOW + timedelta(minutes=minute)
    return HistoryItem(event_time=time, type="ADDED", kind="Service", name=name)


def names(log: HistoryLog, query: dict[str, str]) -> list[str]:
    return [item.name for items in history_resource(log).read(query) for item in items]


def test_entries_since_a_time_are_sorted_newest_first() -> None:
    log = HistoryLog("n", 10)
    for minute in range(4):
        log.add(entry(f"shop/{minute}", minute))
    assert names(log, {}) == ["shop/3", "shop/2", "shop/1", "shop/0"]
    since = (NOW + timedelta(minutes=2)).isoformat()
    assert names(log, {"since": since}) == ["shop/3", "shop/2"]
    assert names(log, {"since": since, "about": "shop/3"}) == ["shop/3"]


@pytest.mark.parametrize("text", ["yesterday", "2026-01-01T00:00:00"])
def test_a_time_without_a_zone_is_none(text: str) -> None:
    with pytest.raises(BadRequestError, match=f"since: a time of RFC 3339, not '{text}'"):
        names(HistoryLog("n", 10), {"since": text})


def test_the_paths_and_their_parameters() -> None:
    log = HistoryLog("n", 10)
    resource, stream = history_resource(log), history_stream(log)
    assert (resource.path, resource.kind, resource.limited) == ("/v1/history", "HistoryList", True)
    assert (tuple(resource.parameters), stream.path) == (("since", "about"), "/v1/history/follow")
    assert tuple(stream.parameters) == ("about", "after")


def followed(query: dict[str, str], *waves: list[str]) -> list[list[str]]:
    """Return the groups of a client that reads one behind each wave of entries."""
    groups: list[list[str]] = []

    async def main() -> None:
        log = HistoryLog("n", 10_000)
        log.add(entry("shop/before"))
        async with aclosing(cast("Any", history_stream(log).read(query))) as stream:
            for wave in waves:
                reading = asyncio.ensure_future(anext(stream))
                await asyncio.sleep(0)
                for name in wave:
                    log.add(entry(name))
                groups.append([item.name for item in await reading])

    run(main())
    return groups


def test_new_entries_come_in_groups_as_they_are_added() -> None:
    waves = [["shop/a", "shop/b"], ["shop/c"]]
    assert followed({}, *waves) == waves


def test_new_entries_about_a_target_are_those_alone() -> None:
    assert followed({"about": "shop/a"}, ["shop/b", "shop/a"], ["shop/a", "shop/c"]) == [
        ["shop/a"],
        ["shop/a"],
    ]


def test_entries_that_came_since_a_client_has_read_are_the_first_ones() -> None:
    assert followed({"after": "0"}, ["shop/a"], ["shop/b"]) == [
        ["shop/before"],
        ["shop/a"],
    ]
    assert followed({"after": "1"}, ["shop/a"]) == [["shop/a"]]
    assert followed({"after": "0", "about": "shop/a"}, ["shop/a"]) == [["shop/a"]]


@pytest.mark.parametrize("text", ["", "-1", "1.5", "soon", "9" * 30])
def test_a_sequence_is_a_number(text: str) -> None:
    stream = history_stream(HistoryLog("n", 10))
    with pytest.raises(BadRequestError, match="after: the sequence of an entry, not "):
        stream.read({"after": text})


def test_a_client_that_reads_slowly_loses_the_oldest_entries() -> None:
    wave = [f"shop/{number}" for number in range(MOST_WAITING + 5)]
    assert followed({}, wave) == [wave[5:]]
