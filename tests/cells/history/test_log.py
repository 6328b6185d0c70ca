"""The log of changes: its limits, equal changes in a row, and how entries are found."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from cells.api.history import HistoryItem
from cells.history.log import MOST_OF_A_MESSAGE, MOST_OF_AN_OBJECT, HistoryLog, Target

START = datetime(2026, 1, 1, tzinfo=UTC)


def item(
    name: str, seconds: float = 0, message: str = "m", kind: str = "Service", **members: object
) -> HistoryItem:
    time = START + timedelta(seconds=seconds)
    fields = {"event_time": time, "type": "MODIFIED", "kind": kind, "name": name}
    return HistoryItem(**fields, message=message, **members)  # type: ignore[arg-type]


def entries(log: HistoryLog) -> list[tuple[str, str | None, int]]:
    return [(of.name, of.message, of.count) for of in log.newest_first()]


def test_an_entry_has_the_node_and_a_number() -> None:
    log = HistoryLog("n", 10)
    for name in ("shop/a", "shop/b"):
        log.add(item(name))
    assert [(of.node, of.sequence, of.name) for of in log.newest_first()] == [
        ("n", 2, "shop/b"),
        ("n", 1, "shop/a"),
    ]


def test_equal_changes_of_an_object_in_a_row_are_one_entry_with_their_number() -> None:
    log = HistoryLog("n", 10)
    for second in range(3):
        log.add(item("i/tor-1", second, "connection refused"))
        log.add(item("i/tor-2", second, f"attempt {second}"))
    assert entries(log)[:2] == [("i/tor-2", "attempt 2", 1), ("i/tor-1", "connection refused", 3)]
    (repeated,) = (of for of in log.newest_first() if of.count == 3)
    assert (repeated.first_time, repeated.event_time) == (START, START + timedelta(seconds=2))
    assert repeated.sequence == 5, "newer than what was added before its last change"


def test_one_object_does_not_push_out_the_others() -> None:
    log = HistoryLog("n", 1000)
    log.add(item("shop/quiet"))
    for number in range(5000):
        log.add(item("shop/flapping", message=str(number)))
    assert len(log) == 1 + MOST_OF_AN_OBJECT
    assert entries(log)[-1] == ("shop/quiet", "m", 1)
    assert entries(log)[0] == ("shop/flapping", "4999", 1)


def test_the_oldest_entries_make_room() -> None:
    log = HistoryLog("n", 3)
    for name in "abcde":
        log.add(item(name))
    assert [name for name, _, _ in entries(log)] == ["e", "d", "c"]
    log.add(item("a"))
    assert [name for name, _, _ in entries(log)] == ["a", "e", "d"]


def test_a_kind_that_changes_all_the_time_does_not_push_out_the_others() -> None:
    log = HistoryLog("n", 100)
    log.add(item("i/tor-1", message="hold timer expired", kind="Session"))
    for number in range(1000):
        log.add(item(f"shop/web-{number}", kind="EndpointSlice"))
    assert len(log) == 100
    assert entries(log)[-1] == ("i/tor-1", "hold timer expired", 1)
    assert entries(log)[0][0] == "shop/web-999"


def test_a_message_is_bounded() -> None:
    log = HistoryLog("n", 10)
    log.add(item("shop/a", message="x" * 32_768))
    (entry,) = log.newest_first()
    assert len(entry.message or "") == MOST_OF_A_MESSAGE


def test_entries_of_an_earlier_process_come_first() -> None:
    log = HistoryLog("n", 3)
    log.add(item("now", 9))
    log.restore([item(name) for name in ("a", "b", "c")])
    assert [name for name, _, _ in entries(log)] == ["now", "c", "b"]


def test_a_subscriber_gets_each_entry_as_it_is_kept() -> None:
    log = HistoryLog("n", 10)
    seen: list[tuple[str, int]] = []
    log.added.subscribe(lambda of: seen.append((of.name, of.count)))

    def fail(_: HistoryItem) -> None:
        raise ValueError

    log.added.subscribe(fail)
    for _ in range(2):
        log.add(item("shop/a"))
    assert seen == [("shop/a", 1), ("shop/a", 2)]


@pytest.mark.parametrize(
    ("target", "found"),
    [
        ("Service/shop/web", {"service", "route"}),
        ("shop/web", {"service", "route"}),
        ("web", {"service"}),
        ("198.51.100.10/32", {"route"}),
        ("198.51.100.0/24", {"route"}),
        ("198.51.100.10", {"route"}),
        ("0.0.0.0/0", {"route"}),
        ("198.51.100.11", set()),
        ("::/0", set()),
        ("tor-1", {"session"}),
        ("main/tor-1", {"session"}),
        ("192.0.2.1", {"session"}),
        ("CiliumBGPAdvertisement/services", {"route"}),
        ("nothing", set()),
    ],
)
def test_an_object_a_prefix_or_a_peer_finds_its_entries(target: str, found: set[str]) -> None:
    of = {
        "service": item("shop/web"),
        "route": item(
            "198.51.100.10/32",
            kind="Route",
            causes=("Service/shop/web", "CiliumBGPAdvertisement/services"),
        ),
        "session": item("main/tor-1", kind="Session", address="192.0.2.1"),
    }
    wanted = Target(target)
    assert {name for name, entry in of.items() if wanted.matches(entry)} == found
