"""The neutral model: prefix rules have an order and a text."""

from __future__ import annotations

from reconcilers.model import ObjectRef, PrefixRule


def test_prefix_rules_are_ordered_by_prefix_and_lengths_whatever_their_objects() -> None:
    origin = ObjectRef("Configuration", "ns", "a")
    rules = [
        PrefixRule("10.0.0.0/8", 16, 24, origin),
        PrefixRule("10.0.0.0/8", None, 24),
        PrefixRule("10.0.0.0/8", 16),
        PrefixRule("10.0.0.0/8", origin=origin),
    ]
    assert sorted(rules, key=lambda rule: rule.sort_key) == [rules[3], rules[1], rules[2], rules[0]]


def test_a_prefix_rule_is_written_with_the_lengths_that_it_has() -> None:
    texts = [
        str(PrefixRule("10.0.0.0/8", ge, le)) for ge, le in ((None, None), (16, None), (16, 24))
    ]
    assert texts == ["10.0.0.0/8", "10.0.0.0/8 ge 16", "10.0.0.0/8 ge 16 le 24"]
