"""Peers without an end are not configured, with a problem."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from reconcilers.intent.configurable import configurable
from reconcilers.model import (
    FieldRef,
    NextHop,
    ObjectRef,
    Peer,
    PrefixRule,
    Problem,
    SecretRef,
)
from speaker.api import BfdProfile
from speaker.nlri import IPV4_UNICAST, IPV6_UNICAST

NEIGHBOR = ObjectRef("Neighbor", "ns", "n")

PEER = Peer(
    instance="i",
    name="p",
    address="192.0.2.9",
    interface=None,
    peer_asn=65010,
    families=(IPV4_UNICAST,),
    origins=(NEIGHBOR,),
    dialect="ant",
)


def rejected(*peers: Peer) -> tuple[list[Problem], list[Peer]]:
    """Return the problems, and the peers that are left."""
    problems: list[Problem] = []
    return problems, configurable(peers, problems)


def test_a_peer_with_an_end_is_unchanged() -> None:
    assert rejected(PEER) == ([], [PEER])


@pytest.mark.parametrize(
    "fields",
    [
        {"bfd": BfdProfile()},
        {"peer_asn": "internal"},
        {"peer_asn": "external"},
        {"reject": (PrefixRule("10.0.0.0/8"),)},
        {"password": FieldRef(NEIGHBOR, "spec.password")},
        {"password": SecretRef("ns", "s")},
        {"next_hops": (NextHop(IPV4_UNICAST, "192.0.2.5"), NextHop(IPV6_UNICAST, "2001:db8::5"))},
    ],
)
def test_no_other_field_of_a_peer_leaves_it_out(fields: dict[str, object]) -> None:
    peer = replace(PEER, **fields)
    assert rejected(peer) == ([], [peer])


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"address": None}, "it has neither an address nor an interface"),
        ({"address": "router"}, "'router' is not an IP address"),
    ],
)
def test_a_peer_without_an_end_is_left_out_alone(fields: dict[str, object], reason: str) -> None:
    text = f"peer 'p' is not configured: {reason}"
    problem = Problem((NEIGHBOR,), "", text, ("i", "p"), "invalid", "ant")
    other = replace(PEER, name="q", address=None, interface="eth0")
    assert rejected(replace(PEER, **fields), other) == ([problem], [other])
