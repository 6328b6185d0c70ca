"""What is accepted from a neighbour."""

from __future__ import annotations

import pytest

from reconcilers.model import ObjectRef, PrefixRule
from tests.reconcilers.frrk8s.build import NAMESPACE
from tests.reconcilers.frrk8s.one_object import broken, of_neighbor

REF = ObjectRef("FRRConfiguration", NAMESPACE, "a")


def receive(*prefixes: object, **more: object) -> dict[str, object]:
    return {"toReceive": {"allowed": {"prefixes": list(prefixes), **more}}}


def test_nothing_is_accepted_by_default_and_everything_by_the_mode_all() -> None:
    assert of_neighbor().settings.accept == frozenset()
    assert of_neighbor(**receive(mode="all")).settings.accept is None


def test_a_selector_is_a_rule_with_its_object() -> None:
    accept = of_neighbor(**receive({"prefix": "10.0.0.0/8", "ge": 16, "le": 24})).settings.accept
    assert accept == frozenset((PrefixRule("10.0.0.0/8", 16, 24, REF),))


@pytest.mark.parametrize(
    ("field", "selector"),
    [
        ("prefix", {"prefix": "10.0.0.0"}),
        ("ge", {"prefix": "10.0.0.0/8", "ge": 7}),
        ("le", {"prefix": "10.0.0.0/8", "le": 33}),
        ("ge", {"prefix": "10.0.0.0/8", "ge": 24, "le": 16}),
    ],
)
def test_selectors_that_cannot_be(field: str, selector: dict[str, object]) -> None:
    errors = broken(**receive({"prefix": "192.0.2.0/24"}, selector))
    assert [path for path, _ in errors] == [f"toReceive.allowed.prefixes[1].{field}"]


def test_lengths_of_ipv6_go_to_128() -> None:
    accept = of_neighbor(**receive({"prefix": "2001:db8::/32", "le": 128})).settings.accept
    assert accept == frozenset((PrefixRule("2001:db8::/32", None, 128, REF),))
