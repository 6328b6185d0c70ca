"""Conditions: which statuses report that something is not as it should be."""

from __future__ import annotations

import pytest

from resources.metav1 import is_adverse


@pytest.mark.parametrize("type_", ["Accepted", "Effective", "Selected", "TransportAccepted"])
def test_types_that_are_true_while_all_is_well(type_: str) -> None:
    assert is_adverse(type_, status=False)
    assert not is_adverse(type_, status=True)


@pytest.mark.parametrize("type_", ["Conflicting", "PartiallyApplied"])
def test_types_that_are_true_while_something_is_not(type_: str) -> None:
    assert is_adverse(type_, status=True)
    assert not is_adverse(type_, status=False)
