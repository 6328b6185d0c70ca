"""The prefixes that a changed policy may decide differently."""

from __future__ import annotations

import itertools

import pytest

from speaker.api import Match, Policy, PrefixRule, Set, Term
from speaker.attribute import PathAttributes
from speaker.nlri import prefix_to_wire
from speaker.rib.path import Path, Source
from speaker.rib.policy import CompiledPolicy, changed_prefixes

TENS, BLOCKED, OTHERS = (
    PrefixRule("10.0.0.0/8", le=24),
    PrefixRule("10.96.0.0/12", le=32),
    PrefixRule("192.0.2.0/24"),
)


def policy(never: tuple[PrefixRule, ...], accept: tuple[PrefixRule, ...] | None) -> Policy:
    return Policy(
        terms=(
            Term(match=Match(prefixes=never), action="reject"),
            Term(match=Match(prefixes=accept)),
        )
    )


POLICIES = [
    policy((), (TENS,)),
    policy((BLOCKED,), (TENS,)),
    policy((BLOCKED,), (TENS, OTHERS)),
    policy((BLOCKED,), (OTHERS, TENS)),
    policy((BLOCKED,), None),
    Policy(terms=(Term(match=Match(prefixes=(TENS,))),)),
    Policy(terms=(Term(match=Match(prefixes=(TENS,)), set=Set(med=1)),)),
    Policy(terms=(Term(match=Match(prefixes=(TENS,), as_path="65010")),)),
    Policy(default="accept"),
]
ROUTES = [
    prefix_to_wire(text) for text in ("10.1.0.0/16", "10.96.0.0/16", "192.0.2.0/24", "fd00::/8")
]
PATH = Path(PathAttributes(), Source("s", address=bytes((10, 0, 0, 1)), ebgp=True))


@pytest.mark.parametrize(("before", "after"), [*itertools.product(POLICIES, repeat=2)])
def test_prefixes_beside_the_difference_are_decided_as_before(
    before: Policy, after: Policy
) -> None:
    changed = changed_prefixes(before, after)
    if changed is None:
        return
    old, new = (CompiledPolicy(one, "p", "import") for one in (before, after))
    for family, nlri in ROUTES:
        was = old.decide(PATH, family, nlri).accepted
        if not changed.covers(family, nlri):
            assert new.decide(PATH, family, nlri).accepted == was


def test_one_more_selector_is_the_whole_difference() -> None:
    changed = changed_prefixes(POLICIES[1], POLICIES[2])
    assert changed is not None
    assert [changed.covers(*route) for route in ROUTES] == [False, False, True, False]


def test_the_order_of_selectors_is_no_difference() -> None:
    changed = changed_prefixes(POLICIES[2], POLICIES[3])
    assert changed is not None
    assert not any(changed.covers(*route) for route in ROUTES)


def test_a_policy_that_changes_attributes_is_applied_to_everything() -> None:
    assert changed_prefixes(POLICIES[5], POLICIES[6]) is None
    assert changed_prefixes(POLICIES[6], POLICIES[6]) is None


@pytest.mark.parametrize("policy", POLICIES)
def test_a_decision_is_that_of_the_compiled_policy_with_its_rule(policy: Policy) -> None:
    compiled = CompiledPolicy(policy, "p", "import")
    for family, nlri in ROUTES:
        decision = compiled.decide(PATH, family, nlri)
        applied = compiled.apply(PATH, family, compiled.matching_lists(family, nlri))
        assert decision.accepted == (applied is not None)
        if decision.rule is not None:
            assert decision.rule in {
                rule for term in policy.terms for rule in term.match.prefixes or ()
            }
