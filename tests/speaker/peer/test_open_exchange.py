"""The validation of a peer's OPEN: RFC 4271 section 6.2 and the RFCs that extend it."""

from __future__ import annotations

import pytest

from speaker.api import PeerAs, PeerConfig
from speaker.capability import Capability, FourOctetAs, Multiprotocol, RoleCapability
from speaker.errors import NotificationError
from speaker.iana import AS_TRANS, IPV4_UNICAST, IPV6_UNICAST, OpenSubcode, Role
from speaker.message import Notification, Open
from speaker.negotiated import Negotiated
from speaker.peer.open_exchange import accept_open, offered_capabilities
from tests.speaker.raw import REMOTE_ASN, Raw, open_message

LOCAL_ASN, LOCAL_ID = 65001, 0x0A000001
BASIC: tuple[Capability, ...] = (Multiprotocol(IPV4_UNICAST), FourOctetAs(65002))


def accepted(
    *capabilities: Capability,
    asn: int = 65002,
    router_id: int = 0x0A000002,
    peer_asn: PeerAs = 65002,
    local_asn: int = LOCAL_ASN,
    confederation: bool = False,
    plain: bool = False,
    **settings: object,
) -> Negotiated:
    config = PeerConfig(name="p", address="10.0.0.2", peer_asn=peer_asn, **settings)  # type: ignore[arg-type]
    return accept_open(
        config,
        Open(asn=asn, hold_time=90, router_id=router_id, capabilities=capabilities or BASIC),
        local_asn=local_asn,
        instance_asn=LOCAL_ASN,
        local_router_id=LOCAL_ID,
        offered=offered_capabilities(config, local_asn, plain=plain),
        confederation=confederation,
    )


def rejected(*capabilities: Capability, **how: object) -> tuple[int, bytes]:
    with pytest.raises(NotificationError) as caught:
        accepted(*capabilities, **how)  # type: ignore[arg-type]
    assert caught.value.code == 2
    return caught.value.subcode, caught.value.data


def test_rfc4271_6_2_another_as_is_a_bad_peer_as() -> None:
    assert rejected(asn=65003) == (OpenSubcode.BAD_PEER_AS, b"")


def test_rfc4271_6_2_an_internal_peer_has_the_local_as() -> None:
    internal = accepted(asn=LOCAL_ASN, peer_asn="internal")
    assert (internal.peer_asn, internal.ebgp) == (LOCAL_ASN, False)
    assert rejected(asn=65002, peer_asn="internal") == (OpenSubcode.BAD_PEER_AS, b"")
    # The AS number that the peer sees decides, where it has one of its own.
    other = accepted(asn=65100, peer_asn="internal", local_asn=65100)
    assert (other.peer_asn, other.ebgp) == (65100, False)


def test_rfc4271_6_2_an_external_peer_has_any_as_but_the_local_ones() -> None:
    external = accepted(asn=65009, peer_asn="external")
    assert (external.peer_asn, external.ebgp) == (65009, True)
    assert rejected(asn=LOCAL_ASN, peer_asn="external") == (OpenSubcode.BAD_PEER_AS, b"")
    for asn in (LOCAL_ASN, 65100):
        bad = (OpenSubcode.BAD_PEER_AS, b"")
        assert rejected(asn=asn, peer_asn="external", local_asn=65100) == bad
    assert rejected(asn=AS_TRANS, peer_asn="external") == (OpenSubcode.BAD_PEER_AS, b"")


def test_rfc6793_9_as_trans_is_rejected_even_where_any_as_is_accepted() -> None:
    assert accepted(asn=65009, peer_asn=0).peer_asn == 65009
    assert rejected(asn=AS_TRANS, peer_asn=0) == (OpenSubcode.BAD_PEER_AS, b"")


def test_rfc6286_2_2_an_identifier_is_unique_within_the_as_only() -> None:
    assert rejected(asn=LOCAL_ASN, peer_asn=LOCAL_ASN, router_id=LOCAL_ID) == (
        OpenSubcode.BAD_BGP_IDENTIFIER,
        b"",
    )
    assert accepted(router_id=LOCAL_ID).peer_router_id == LOCAL_ID


def test_rfc5492_5_the_missing_capabilities_are_the_data() -> None:
    subcode, data = rejected(
        Multiprotocol(IPV6_UNICAST), FourOctetAs(65002), families=(IPV4_UNICAST,)
    )
    assert (subcode, data) == (OpenSubcode.UNSUPPORTED_CAPABILITY, b"\1\4\0\1\0\1")


def test_rfc4760_8_a_peer_without_capabilities_has_ipv4_unicast() -> None:
    assert accepted(FourOctetAs(65002)).families == {IPV4_UNICAST}


def test_rfc9234_4_2_several_role_capabilities_must_be_equal() -> None:
    same = RoleCapability(Role.CUSTOMER)
    assert accepted(*BASIC, same, same, role=Role.PROVIDER).peer_role == Role.CUSTOMER
    assert rejected(*BASIC, same, RoleCapability(Role.PEER), role=Role.PROVIDER) == (
        OpenSubcode.ROLE_MISMATCH,
        b"",
    )
    assert rejected(*BASIC, RoleCapability(9), role=Role.PROVIDER)[0] == OpenSubcode.ROLE_MISMATCH


def test_rfc9234_5_a_role_applies_without_the_peers_capability() -> None:
    """A peer that refuses capabilities cannot disable the protection against route leaks."""
    assert accepted(role=Role.CUSTOMER, plain=True).local_role == Role.CUSTOMER
    assert rejected(role=Role.CUSTOMER, role_strict=True, plain=True) == (
        OpenSubcode.ROLE_MISMATCH,
        b"",
    )


def test_rfc9234_4_roles_are_for_peers_of_another_as_outside_of_a_confederation() -> None:
    strict = {"role": Role.PEER, "role_strict": True}
    assert accepted(confederation=True, **strict).local_role is None  # type: ignore[arg-type]
    assert accepted(asn=LOCAL_ASN, peer_asn=LOCAL_ASN, **strict).local_role is None  # type: ignore[arg-type]


def test_a_strict_role_is_required_after_a_refusal_of_capabilities() -> None:
    raw = Raw(role=Role.CUSTOMER, role_strict=True).to_open_sent()
    raw.send(Notification(2, 7).encode())
    raw.wait(5)
    raw.to_open_confirm(open_message(capabilities=(FourOctetAs(REMOTE_ASN),)))
    assert raw.notification == (2, 11, b"")
