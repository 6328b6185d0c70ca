"""Problems that go on while objects join and leave them."""

from __future__ import annotations

import pytest

from reconcilers.intent.continued_problems import without_continued
from reconcilers.model import ObjectRef, Problem


def conflict(*names: str, field: str = "spec.asn", text: str = "") -> Problem:
    refs = tuple(ObjectRef("Router", "ns", name) for name in names)
    return Problem(refs, field, f"differs in {text or len(names)}", category="conflict")


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (conflict("a", "b"), conflict("a", "b", "c")),
        (conflict("b", "c"), conflict("a", "b", "c")),
        (conflict("a", "b", "c"), conflict("b", "c")),
        (conflict("a", "b"), conflict("a", "b", text="another text")),
    ],
)
def test_a_conflict_goes_on_when_an_object_joins_or_leaves_it(
    before: Problem, after: Problem
) -> None:
    assert without_continued([before], [after]) == ([], [])


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (conflict("a"), conflict("a", text="another text")),
        (conflict("a", "b"), conflict("a", "c")),
        (conflict("a", "b"), conflict("a", "b", field="spec.port")),
        (conflict("a", "b"), conflict("c", "d")),
    ],
)
def test_another_problem_is_new(before: Problem, after: Problem) -> None:
    assert without_continued([before], [after]) == ([before], [after])


def test_of_two_conflicts_that_become_one_the_other_is_solved() -> None:
    first, second = conflict("a", "b"), conflict("c", "d")
    both = conflict("a", "b", "c", "d")
    solved, new = without_continued([first, second], [both])
    assert (solved, new) == ([second], [])


def test_each_of_a_thousand_conflicts_with_one_object_goes_on() -> None:
    before = [conflict("a", f"b{i}", text="999 more") for i in range(1000)]
    after = [conflict("a", f"b{i}", text="998 more") for i in range(1, 1000)]
    assert without_continued(before, after) == ([before[0]], [])
