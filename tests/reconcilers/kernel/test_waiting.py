"""Which prefixes are taken next: peers share the room, and new changes do not wait for a table."""

from __future__ import annotations

from reconcilers.kernel.waiting import OLDEST, take_some


def prefixes(first: int, count: int) -> dict[bytes, None]:
    return {bytes((24, 10, n >> 8, n & 255)): None for n in range(first, first + count)}


def test_a_source_with_one_prefix_does_not_wait_for_one_with_thousands() -> None:
    waiting = {"table": prefixes(0, 5000), "change": prefixes(9000, 1)}
    taken = take_some(waiting, 100)
    assert taken["change"] == prefixes(9000, 1)
    assert len(taken["table"]) == 99
    assert list(taken) == ["change", "table"]
    assert list(waiting) == ["table"]


def test_sources_with_many_prefixes_have_equal_shares() -> None:
    waiting = {name: prefixes(0, 1000) for name in ("a", "b", "c")}
    assert [len(some) for some in take_some(waiting, 300).values()] == [100, 100, 100]


def test_most_are_the_newest_and_the_oldest_are_taken_in_time() -> None:
    waiting = {"a": prefixes(0, 1000)}
    in_order = list(waiting["a"])
    taken = list(take_some(waiting, 100)["a"])
    assert taken[: 100 - 100 // OLDEST] == in_order[: -(100 - 100 // OLDEST) - 1 : -1]
    assert set(taken[100 - 100 // OLDEST :]) == set(in_order[: 100 // OLDEST])
    rounds = 0
    while waiting:
        take_some(waiting, 100)
        rounds += 1
    assert rounds == 9


def test_there_may_be_more_sources_than_room() -> None:
    waiting = {n: prefixes(n, 5) for n in range(20)}
    assert all(len(some) == 1 for some in take_some(waiting, 10).values())
