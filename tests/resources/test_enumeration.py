"""Long lists in short sentences."""

from __future__ import annotations

import pytest

from resources.enumeration import (
    MAX_MESSAGE_CHARACTERS,
    bounded,
    counted,
    counted_are,
    enumerate_objects,
    enumerate_some,
    first_of,
    joined,
    problem_line,
)


@pytest.mark.parametrize(
    ("values", "text"),
    [
        ((), ""),
        ((1,), "1"),
        ((1, 2), "1, 2"),
        ((1, 2, 3), "1, 2 and 1 more"),
        (range(9), "0, 1 and 7 more"),
    ],
)
def test_the_first_ones_are_named_and_the_others_counted(values: range, text: str) -> None:
    assert enumerate_some(values, shown=2) == text


@pytest.mark.parametrize(("count", "text"), [(1, "a"), (2, "a (and 1 more)")])
def test_the_others_are_counted(count: int, text: str) -> None:
    assert first_of("a", count) == text


def test_of_a_thousand_objects_eight_are_named() -> None:
    names = [f"Router/ns/r{i:03}" for i in range(1000)]
    assert enumerate_objects(names[:8]) == ", ".join(names[:8])
    assert enumerate_objects(names) == f"{', '.join(names[:8])} and 992 more"
    assert enumerate_objects(()) == ""


@pytest.mark.parametrize(("length", "named"), [(250, 2), (510, 1), (3000, 1)])
def test_of_long_names_fewer_are_named_and_one_at_least(length: int, named: int) -> None:
    names = [f"{i}{'n' * length}" for i in range(4)]
    text = enumerate_objects(names)
    assert text.endswith(f" and {4 - named} more")
    assert text.count("n" * 200) >= named
    assert len(text) <= MAX_MESSAGE_CHARACTERS + len(" and 3 more")


def test_a_problem_is_one_bounded_line_whose_message_follows_its_objects() -> None:
    names = [f"Router/ns/{'n' * 230}{i}" for i in range(1000)]
    line = problem_line(names, "spec.asn", "differs: " + "x" * 5000)
    assert len(line) == MAX_MESSAGE_CHARACTERS
    assert " and 998 more: spec.asn: differs: xxx" in line
    assert problem_line((), "", "differs") == "differs"


def test_the_end_of_a_long_message_stays() -> None:
    assert bounded("a", " (b)") == "a (b)"
    text = first_of("x" * 5000, 3)
    assert len(text) == MAX_MESSAGE_CHARACTERS
    assert text.endswith("x… (and 2 more)")


def test_texts_are_joined_after_a_start_as_far_as_a_message_holds_them() -> None:
    assert joined(("a", "b"), start="web: ") == "web: a; b"
    assert len(joined(("x" * 100 for _ in range(1000)), start="web: ")) == MAX_MESSAGE_CHARACTERS


@pytest.mark.parametrize(
    ("number", "noun", "text"),
    [
        (0, ("route",), "0 routes"),
        (1, ("route",), "1 route"),
        (2, ("prefix", "prefixes"), "2 prefixes"),
    ],
)
def test_a_number_is_followed_by_its_noun(number: int, noun: tuple[str, ...], text: str) -> None:
    assert counted(number, *noun) == text
    assert counted_are(number, *noun) == f"{text} {'is' if number == 1 else 'are'}"
