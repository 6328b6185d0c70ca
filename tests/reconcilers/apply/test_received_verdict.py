"""The rule of the intent that decides about a received route, with its object."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from reconcilers.apply.import_policy import import_policy
from reconcilers.apply.received_verdict import ReceivedDecision, decide, translated
from reconcilers.model import ObjectRef, Peer, PrefixRule
from speaker.api import PolicyDecision
from speaker.api import PrefixRule as SpeakerRule
from speaker.nlri import prefix_to_wire

A, B = ObjectRef("Router", "ns", "a"), ObjectRef("Router", "ns", "b")
BLOCKED = PrefixRule("10.96.0.0/12", le=32, label="AlwaysBlock")
PEER = Peer(
    "i",
    "p",
    "192.0.2.9",
    None,
    65010,
    accept=(
        PrefixRule("10.0.0.0/8", 9, 24, origin=A),
        PrefixRule("10.0.0.0/8", 9, 24, origin=B),
        PrefixRule("10.1.0.0/16", None, None, origin=B),
        PrefixRule("2001:db8::/32", None, 48, origin=B),
    ),
    reject=(BLOCKED, PrefixRule("10.3.0.0/16", le=32, origin=B)),
)


def rule(prefix: str, peer: Peer = PEER) -> tuple[bool, str, ObjectRef | None]:
    found = decide(peer, *prefix_to_wire(prefix))
    return found.accepted, found.filter, found.object


@pytest.mark.parametrize(
    ("prefix", "expected"),
    [
        ("10.2.0.0/16", (True, "10.0.0.0/8 ge 9 le 24", A)),
        # The first rule that covers it, as two objects may have written it.
        ("10.1.0.0/16", (True, "10.0.0.0/8 ge 9 le 24", A)),
        ("10.0.0.0/8", (False, "NotAllowed", None)),
        ("10.1.1.128/25", (False, "NotAllowed", None)),
        ("10.96.0.0/12", (False, "AlwaysBlock 10.96.0.0/12", None)),
        ("10.100.3.0/24", (False, "AlwaysBlock 10.96.0.0/12", None)),
        ("10.3.7.0/24", (False, "Rejected 10.3.0.0/16", B)),
        ("2001:db8:1::/48", (True, "2001:db8::/32 le 48", B)),
        ("2001:db8:1:1::/64", (False, "NotAllowed", None)),
    ],
)
def test_a_prefix_has_the_selector_that_accepts_it_or_the_reason(
    prefix: str, expected: tuple[bool, str, ObjectRef | None]
) -> None:
    assert rule(prefix) == expected


def test_the_object_that_accepts_all_routes_is_named() -> None:
    peer = replace(PEER, accept=None, accept_origins=(B, A))
    assert rule("192.0.2.0/24", peer) == (True, "all", B)
    assert rule("10.96.1.0/24", peer) == (False, "AlwaysBlock 10.96.0.0/12", None)
    assert rule("10.96.1.0/24", replace(peer, reject=())) == (True, "all", B)


def test_what_is_never_accepted_is_the_reason_also_where_nothing_is_accepted() -> None:
    peer = replace(PEER, accept=())
    assert rule("10.96.1.0/24", peer) == (False, "AlwaysBlock 10.96.0.0/12", None)
    assert rule("10.2.0.0/16", peer) == (False, "NotAllowed", None)
    assert rule("10.96.1.0/24", replace(peer, reject=())) == (False, "NotAllowed", None)


def test_the_reason_is_one_word() -> None:
    reasons = [decide(PEER, *prefix_to_wire(p)).reason for p in ("10.2.0.0/16", "10.96.0.0/16")]
    assert reasons == ["Accepted", "AlwaysBlock"]


def test_a_rule_that_the_intent_has_no_longer_is_named_without_an_object() -> None:
    old = PolicyDecision(True, "accept", SpeakerRule("172.16.0.0/12", le=16))
    assert translated(PEER, old) == ReceivedDecision(True, "172.16.0.0/12 le 16")
    assert import_policy(PEER) is not None
