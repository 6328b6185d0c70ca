"""A condition that is true has what the node does not configure of its object."""

from __future__ import annotations

from reconcilers.intent.unconfigured import MAX_NAMED, with_unconfigured
from reconcilers.model import Condition, ObjectRef, Problem

POLICY = ObjectRef("BGPPolicy", "", "edge")
OTHER = ObjectRef("CiliumBGPNodeConfig", "", "n1")
EFFECTIVE = Condition(
    POLICY, "Effective", True, "Effective", "it configures the node", dialect="antrea"
)


def left_out(name: str, *, dialect: str = "antrea", ref: ObjectRef = POLICY) -> Problem:
    text = f"peer {name!r} is not configured: its address belongs to another peer"
    return Problem((ref, OTHER), "", text, ("antrea", name), "conflict", dialect)


def test_the_message_has_the_peer_that_is_left_out() -> None:
    (found,) = with_unconfigured([EFFECTIVE], [left_out("tor")])
    assert (found.status, found.reason) == (True, "Effective")
    assert found.message == (
        "it configures the node; peer 'tor' is not configured: its address belongs to another peer"
    )


def test_of_many_peers_some_are_named() -> None:
    (found,) = with_unconfigured([EFFECTIVE], [left_out(f"p{i}") for i in range(50)])
    assert found.message.count("is not configured") == MAX_NAMED
    assert found.message.endswith("; and 47 more")


def test_other_objects_dialects_and_conditions_that_are_false_are_unchanged() -> None:
    false = Condition(POLICY, "Effective", False, "OlderPolicyEffective", "older", dialect="antrea")
    problems = [
        left_out("a", dialect="frrk8s"),
        left_out("b", ref=OTHER),
        Problem((POLICY,), "spec", "has no effect", (), "unsupported", "antrea"),
    ]
    assert list(with_unconfigured([EFFECTIVE], problems)) == [EFFECTIVE]
    assert list(with_unconfigured([false], [left_out("tor")])) == [false]
