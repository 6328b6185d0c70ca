"""Which of several objects is the oldest."""

from __future__ import annotations

import itertools

import pytest

from reconcilers.age import age, age_by_name
from reconcilers.model import ObjectRef

FIRST, SECOND = "2001-01-01T00:00:00Z", "2001-01-01T00:00:01Z"


def test_an_absent_timestamp_is_the_oldest_then_kind_namespace_and_name_decide() -> None:
    ordered = [
        ("", ObjectRef("Z", "z", "z")),
        (FIRST, ObjectRef("Z", "z", "z")),
        (SECOND, ObjectRef("A", "b", "b")),
        (SECOND, ObjectRef("B", "a", "b")),
        (SECOND, ObjectRef("B", "a", "c")),
        (SECOND, ObjectRef("B", "b", "a")),
    ]
    for objects in itertools.permutations(ordered, len(ordered)):
        assert sorted(objects, key=lambda one: age(*one)) == ordered


def test_in_one_configuration_of_several_kinds_the_kind_comes_last() -> None:
    ordered = [
        ("", ObjectRef("Z", "z", "z")),
        (FIRST, ObjectRef("B", "a", "a")),
        (FIRST, ObjectRef("A", "a", "b")),
        (FIRST, ObjectRef("B", "a", "b")),
        (FIRST, ObjectRef("A", "b", "a")),
    ]
    for objects in itertools.permutations(ordered, len(ordered)):
        assert sorted(objects, key=lambda one: age_by_name(*one)) == ordered


@pytest.mark.parametrize(
    "created", ["2026-03-01T09:00:00+01:00", "2026-03-01T08:00:00", "2026-03-01 08:00:00+00:00"]
)
def test_a_manifest_may_write_a_time_with_an_offset(created: str) -> None:
    ref = ObjectRef("Policy", "", "p")
    assert age(created, ref) == age("2026-03-01T08:00:00Z", ref)
