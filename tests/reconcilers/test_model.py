"""The neutral model: prefix rules have an order and a text, and messages are bounded."""

from __future__ import annotations

from reconcilers.model import Condition, ObjectRef, PrefixRule, Problem, RouteExplanation
from resources.enumeration import MAX_MESSAGE_CHARACTERS


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


def test_a_message_of_any_length_is_bounded_wherever_it_comes_from() -> None:
    ref, text = ObjectRef("Configuration", "ns", "a"), "x" * 50_000
    explanation = RouteExplanation(
        instance=None,
        peer=None,
        object=ref,
        type="",
        family=None,
        nlri=None,
        advertised=(),
        reason="LeftOut",
        message=text,
    )
    problem = Problem((ref,) * 1000, text, text)
    condition = Condition(ref, "Accepted", False, "Conflict", text)
    for message in (explanation.message, problem.message, condition.message, str(problem)):
        assert len(message) == MAX_MESSAGE_CHARACTERS
    assert problem.names.endswith(" and 992 more")
