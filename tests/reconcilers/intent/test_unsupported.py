"""What the neutral model has room for and nothing applies yet is rejected, each field by its name."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from reconcilers.intent.unsupported import supported
from reconcilers.model import (
    BfdProfile,
    FieldRef,
    Instance,
    InstanceImport,
    NextHop,
    ObjectRef,
    Peer,
    PrefixRule,
    Problem,
    SecretRef,
)
from speaker.nlri import IPV4_UNICAST, IPV6_UNICAST

ROUTER = ObjectRef("Router", "", "r")
NEIGHBOR = ObjectRef("Neighbor", "ns", "n")

INSTANCE = Instance("i", None, 65001, "192.0.2.1", None, origin=ROUTER, dialect="ant")
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


def rejected(instance: Instance, *peers: Peer) -> tuple[list[Problem], list[Peer]]:
    """Return the problems, and the peers that are left."""
    problems: list[Problem] = []
    return problems, supported([instance], peers, problems)


def test_supported_configuration_is_unchanged() -> None:
    good = replace(INSTANCE, originates=("10.0.0.0/8",))
    assert rejected(good, PEER) == ([], [PEER])


def test_imports_are_reported() -> None:
    problems, kept = rejected(replace(INSTANCE, imports=(InstanceImport("blue"),)), PEER)
    text = "instance 'i' takes no received routes of 'blue'"
    text = f"{text}: imports between instances are not supported"
    assert problems == [Problem((ROUTER,), "", text, (), "unsupported", "ant")]
    assert kept == [PEER]


def test_bfd_is_reported_and_the_session_is_there_without_it() -> None:
    peer = replace(PEER, bfd=BfdProfile(300, 300, 3))
    text = "peer 'p' has a session without BFD, which is not supported"
    problem = Problem((NEIGHBOR,), "", text, (), "unsupported", "ant")
    assert rejected(INSTANCE, peer) == ([problem], [peer])


@pytest.mark.parametrize(
    "fields",
    [
        {"peer_asn": "internal"},
        {"peer_asn": "external"},
        {"reject": (PrefixRule("10.0.0.0/8"),)},
        {"password": FieldRef(NEIGHBOR, "spec.password")},
        {"password": SecretRef("ns", "s")},
        {"next_hops": (NextHop(IPV4_UNICAST, "192.0.2.5"), NextHop(IPV6_UNICAST, "2001:db8::5"))},
    ],
)
def test_every_other_field_of_a_peer_is_supported(fields: dict[str, object]) -> None:
    peer = replace(PEER, **fields)
    assert rejected(INSTANCE, peer) == ([], [peer])
