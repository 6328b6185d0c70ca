"""Label selectors: Kubernetes' semantics."""

from __future__ import annotations

import pytest

from resources.labels import LabelSelector, LabelSelectorRequirement

LABELS = {"app": "web", "tier": "front"}


@pytest.mark.parametrize(
    ("operator", "key", "values", "matches"),
    [
        ("In", "app", ("web", "api"), True),
        ("In", "app", ("api",), False),
        ("In", "none", ("web",), False),
        ("NotIn", "app", ("api",), True),
        ("NotIn", "app", ("web",), False),
        ("NotIn", "none", ("web",), True),
        ("Exists", "app", (), True),
        ("Exists", "none", (), False),
        ("DoesNotExist", "none", (), True),
        ("DoesNotExist", "app", (), False),
    ],
)
def test_operators(operator: str, key: str, values: tuple[str, ...], matches: bool) -> None:
    requirement = LabelSelectorRequirement(key=key, operator=operator, values=values)  # type: ignore[arg-type]
    assert LabelSelector(match_expressions=(requirement,)).matches(LABELS) is matches


def test_all_parts_have_to_match_and_an_empty_selector_matches_everything() -> None:
    exists = LabelSelectorRequirement(key="tier", operator="Exists")
    both = LabelSelector(match_labels={"app": "web"}, match_expressions=(exists,))
    assert both.matches(LABELS)
    assert not both.matches({"app": "web"})
    assert LabelSelector().matches({})
    assert both.keys == {"app", "tier"}
