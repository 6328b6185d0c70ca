"""A thousand objects in conflict: one problem for each, and no work for each pair of them."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest

from reconcilers.metallb.check import findings
from reconcilers.model import ObjectRef, Problem
from resources.enumeration import MAX_MESSAGE_CHARACTERS
from tests.reconcilers.metallb.objects import NAMESPACE, advertisement, peer, pool, profile, rows

Objects = list[dict[str, Any]]
FEW, MANY = 200, 800


def pools(count: int) -> Objects:
    return [pool(f"p{i:04}", f"10.{i >> 8}.{i & 255}.0/24") for i in range(count)]


def six(count: int) -> Objects:
    return [pool(f"p{i:04}", f"2001:db8:{i:x}::/48") for i in range(count)]


def echoing(count: int) -> Objects:
    return [
        profile("e", echoMode=True),
        *(peer(f"n{i:04}", f"10.1.{i >> 8}.{i & 255}", bfdProfile="e") for i in range(count)),
        *(advertisement(f"a{i:04}") for i in range(count)),
    ]


def preferences(count: int) -> Objects:
    return [advertisement(f"a{i:04}", localPref=i + 1) for i in range(count)]


CONFLICTS: dict[str, Callable[[int], Objects]] = {
    "overlap": lambda count: [pool(f"p{i:04}", "198.18.0.0/16") for i in range(count)],
    "preferences": lambda count: [pool("p", "198.18.0.0/16"), *preferences(count)],
    "preferences of many pools": lambda count: [*pools(count // 4), *preferences(count)],
    "too short": lambda count: [
        *pools(count // 4),
        *(advertisement(f"a{i:04}", aggregationLength=16) for i in range(count)),
    ],
    "echo": lambda count: [*six(count // 4), *echoing(count)],
}


def found(objects: Objects) -> tuple[list[Any], float]:
    given = rows(*objects)
    began = time.process_time()
    return findings(given, lambda _: None, NAMESPACE), time.process_time() - began


@pytest.mark.parametrize("name", CONFLICTS)
def test_each_object_has_one_problem_with_the_first_other_and_their_number(name: str) -> None:
    problems, _ = found(CONFLICTS[name](40))
    assert len(problems) == 40
    assert len({(one.objects, one.message) for one in problems}) == 40
    assert all(len(one.objects) <= 4 for one in problems)
    numbers = ("38 more", "9 more")  # of the objects, or of their pools
    assert all(any(text in one.message for text in numbers) for one in problems)


@pytest.mark.parametrize("name", CONFLICTS)
def test_the_work_does_not_grow_with_the_pairs(name: str) -> None:
    few = min(found(CONFLICTS[name](FEW))[1] for _ in range(3))
    problems, many = found(CONFLICTS[name](MANY))
    assert len(problems) == MANY
    # Four times the objects are 16 times the pairs.
    assert many < 10 * max(few, 0.01)


def test_a_message_is_bounded_wherever_it_comes_from() -> None:
    problem = Problem((ObjectRef("Node", "", "n1"),), "", "x" * 100_000)
    assert len(problem.message) == MAX_MESSAGE_CHARACTERS
    assert problem.message.endswith("…")
