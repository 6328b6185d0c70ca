"""Prefixes that were parsed are remembered, as far as there are any."""

from __future__ import annotations

import pytest

from speaker.nlri import parse_prefixes, parsed, parsed_prefix, prefix_to_wire, remembered_prefixes
from speaker.nlri.parsed import SPARE


def texts(start: int, count: int) -> list[str]:
    return [f"10.{n >> 16}.{n >> 8 & 255}.{n & 255}/32" for n in range(start, start + count)]


def remembered() -> int:
    return len(parsed._known) + len(parsed._former)


@pytest.fixture(autouse=True)
def _nothing_known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parsed, "_known", {})
    monkeypatch.setattr(parsed, "_former", {})


def test_a_prefix_of_a_list_is_remembered() -> None:
    some = texts(0, 10)
    parse_prefixes(some)
    assert remembered_prefixes(some) == [prefix_to_wire(text) for text in some]
    assert parsed_prefix(some[0]) is remembered_prefixes(some)[0]
    with pytest.raises(ValueError, match="host bits"):
        parse_prefixes(["10.0.0.1/8"])
    assert remembered_prefixes(["10.0.0.1/8", *texts(10, 1)]) == [None, None]


def test_a_mask_is_no_length_and_is_not_remembered() -> None:
    assert parsed_prefix("10.0.0.0/255.0.0.0") == prefix_to_wire("10.0.0.0/8")
    assert remembered_prefixes(["10.0.0.0/255.0.0.0"]) == [None]


def test_a_list_that_changes_again_and_again_takes_the_memory_of_some() -> None:
    for number in range(50):
        parse_prefixes(texts(1000 * number, 1000))
        assert remembered() <= 2 * (SPARE + 3000)
    assert None not in remembered_prefixes(texts(49_000, 1000))
    assert remembered_prefixes(texts(0, 1)) == [None]


def test_a_long_list_is_remembered_while_short_ones_change() -> None:
    many = texts(0, 3 * SPARE)
    parse_prefixes(many)
    known = parsed_prefix(many[0])
    for number in range(20):
        parse_prefixes(texts((4 << 16) + number, 10))
    assert parsed_prefix(many[0]) is known


def test_without_a_list_the_number_is_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parsed, "MOST", 100)
    for text in texts(0, 1000):
        parsed_prefix(text)
    assert remembered() <= 200
