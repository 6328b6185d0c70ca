"""What `waggle decode` prints of each message, capability and path attribute: all of its members."""

from __future__ import annotations

from typing import Any

import pytest

from speaker.capability.capabilities import (
    AddPath,
    Capability,
    EnhancedRouteRefresh,
    ExtendedMessage,
    ExtendedNextHop,
    FourOctetAs,
    Fqdn,
    GracefulRestartCapability,
    LongLivedGracefulRestart,
    Multiprotocol,
    RoleCapability,
    RouteRefreshCapability,
    SoftwareVersion,
)
from speaker.message import Open
from speaker.nlri import IPV4_UNICAST, IPV6_UNICAST, Family
from waggle.commands.decode.messages import decode_message
from waggle.commands.decode.program import context_of

ORIGIN = "40010100"
AS_PATH = "40020602010000fde9"
NEXT_HOP = "400304c0000201"
PREFIX = "180a0000"


def message(kind: int, body: str) -> bytes:
    octets = bytes.fromhex(body)
    return b"\xff" * 16 + (19 + len(octets)).to_bytes(2, "big") + bytes((kind,)) + octets


def update(attributes: str, nlri: str = PREFIX, withdrawn: str = "") -> bytes:
    parts = (f"{len(part) // 2:04x}{part}" for part in (withdrawn, attributes))
    return message(2, "".join(parts) + nlri)


def decoded(octets: bytes, **context: object) -> dict[str, Any]:
    return decode_message(octets, context_of(dict(context)))


def opened(*capabilities: Capability) -> dict[str, Any]:
    message = Open(asn=65001, hold_time=90, router_id=0x0A000001, capabilities=capabilities)
    return decoded(message.encode())


def test_an_open() -> None:
    assert opened(FourOctetAs(asn=4200000001), RouteRefreshCapability()) == {
        "kind": "open",
        "version": 4,
        "asn": 4200000001,
        "holdTime": 90,
        "routerID": "10.0.0.1",
        "capabilities": [65, 2],
        "capabilityNames": ["four-octet-as", "route-refresh"],
    }


@pytest.mark.parametrize(
    ("capabilities", "expected"),
    [
        (
            (Multiprotocol(family=IPV4_UNICAST), Multiprotocol(family=IPV6_UNICAST)),
            {"multiprotocol": ["ipv4-unicast", "ipv6-unicast"]},
        ),
        (
            (ExtendedNextHop(entries=((IPV4_UNICAST, 2),)),),
            {"extendedNextHop": [["ipv4-unicast", 2]]},
        ),
        ((ExtendedMessage(),), {"extendedMessage": True}),
        ((RoleCapability(role=3),), {"role": 3}),
        (
            (
                GracefulRestartCapability(
                    restart_time=120,
                    restarting=True,
                    notification=False,
                    families=((IPV4_UNICAST, True), (IPV6_UNICAST, False)),
                ),
            ),
            {
                "gracefulRestart": {
                    "restartState": True,
                    "notification": False,
                    "restartTime": 120,
                    "families": [["ipv4-unicast", True], ["ipv6-unicast", False]],
                }
            },
        ),
        (
            (
                AddPath(entries=((IPV4_UNICAST, 1),)),
                AddPath(entries=((IPV6_UNICAST, 2), (Family(1, 4), 3), (Family(77, 1), 3))),
            ),
            {
                "addPath": {
                    "ipv4-unicast": "receive",
                    "ipv6-unicast": "send",
                    "ipv4-mpls-label": "both",
                }
            },
        ),
        (
            (LongLivedGracefulRestart(families=((IPV4_UNICAST, True, 3600),)),),
            {"llgr": {"ipv4-unicast": 3600}},
        ),
        (
            (Fqdn(hostname="tor-1", domain="example", raw=b"\5tor-1\7example"),),
            {"hostname": "tor-1", "domainname": "example"},
        ),
        ((SoftwareVersion(version="bird", raw=b"\4bird"),), {"softwareVersion": "bird"}),
        ((EnhancedRouteRefresh(),), {}),
    ],
    ids=lambda value: "+".join(map(str, value)) if isinstance(value, tuple) else "",
)
def test_a_capability_of_an_open(
    capabilities: tuple[Capability, ...], expected: dict[str, Any]
) -> None:
    answer = opened(*capabilities)
    assert {name: answer[name] for name in answer if name not in opened()} == expected
    assert answer["capabilities"] == [capability.code for capability in capabilities]


def test_a_capability_with_an_invalid_value_is_ignored() -> None:
    body = "04fde9005a0a000001" + "05" + "0203" + "410100"
    assert decoded(message(1, body))["ignoredCapabilities"] == [65]


def test_an_open_that_is_refused_has_the_notification() -> None:
    assert decoded(message(1, "03fde9005a0a00000100")) == {
        "kind": "open",
        "error": {
            "code": 2,
            "subcode": 1,
            "data": "0004",
            "name": "OPEN Message Error / Unsupported Version Number",
            "detail": "version 3",
        },
        "outcome": "session-reset",
    }


@pytest.mark.parametrize(
    ("attribute", "expected"),
    [
        ("80040400000064", {"med": 100}),
        ("400600", {"atomicAggregate": True}),
        ("c007080000fde90a000001", {"aggregator": {"asn": 65001, "address": "10.0.0.1"}}),
        ("c00808fde900640001000a", {"communities": ["65001:100", "1:10"]}),
        ("c0200c0000fde90000000100000002", {"largeCommunities": ["65001:1:2"]}),
        ("c0100800020000fde90001", {"extendedCommunities": ["00020000fde90001"]}),
        ("c0230400000bb8", {"otc": 3000}),
        (
            "c0fa020102",
            {"unknownAttributes": [{"code": 250, "flags": 0xC0, "value": "0102"}]},
        ),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
)
def test_a_path_attribute_of_an_update(attribute: str, expected: dict[str, Any]) -> None:
    answer = decoded(update(ORIGIN + AS_PATH + NEXT_HOP + attribute))
    assert answer == {
        "kind": "update",
        "announce": ["10.0.0.0/24"],
        "withdraw": [],
        "family": "ipv4-unicast",
        "nextHop": "192.0.2.1",
        "nextHops": {"ipv4-unicast": "192.0.2.1"},
        "origin": "igp",
        "asPath": "65001",
        **expected,
    }


@pytest.mark.parametrize(
    ("attribute", "expected"),
    [
        ("40050400000064", {"localPreference": 100}),
        ("8009040a000002", {"originatorID": "10.0.0.2"}),
        ("800a080a0000030a000004", {"clusterList": ["10.0.0.3", "10.0.0.4"]}),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
)
def test_a_path_attribute_of_an_ibgp_session(attribute: str, expected: dict[str, Any]) -> None:
    attributes = ORIGIN + AS_PATH + NEXT_HOP
    answer = decoded(update(attributes + attribute), ebgp=False)
    others = decoded(update(attributes), ebgp=False)
    assert {name: answer[name] for name in answer if others.get(name) != answer[name]} == expected


@pytest.mark.parametrize(("code", "name"), [(0, "igp"), (1, "egp"), (2, "incomplete")])
def test_the_origin_of_an_update(code: int, name: str) -> None:
    assert decoded(update(f"400101{code:02x}" + AS_PATH + NEXT_HOP))["origin"] == name


def test_ipv6_routes_have_a_global_and_a_link_local_next_hop() -> None:
    hops = "20010db8" + "00" * 11 + "01" + "fe80" + "00" * 13 + "01"
    reach = "0002" + "01" + "20" + hops + "00" + "2020010db8"
    unreach = "0002" + "01" + "30" + "20010db80001"
    octets = update(
        f"800e{len(reach) // 2:02x}{reach}800f{len(unreach) // 2:02x}{unreach}" + ORIGIN + AS_PATH,
        nlri="",
    )
    assert decoded(octets) == {
        "kind": "update",
        "announce": ["2001:db8::/32"],
        "withdraw": ["2001:db8:1::/48"],
        "family": "ipv6-unicast",
        "nextHop": "2001:db8::1",
        "nextHops": {"ipv6-unicast": "2001:db8::1"},
        "linkLocalNextHop": "fe80::1",
        "origin": "igp",
        "asPath": "65001",
    }


def test_paths_with_identifiers() -> None:
    octets = update(
        ORIGIN + AS_PATH + NEXT_HOP, nlri="00000007" + PREFIX, withdrawn="00000008180a0001"
    )
    answer = decoded(octets, addpath=["ipv4-unicast"])
    assert (answer["announce"], answer["pathIDs"]) == (["10.0.0.0/24"], [7])
    assert (answer["withdraw"], answer["withdrawPathIDs"]) == (["10.0.1.0/24"], [8])


def test_paths_of_a_malformed_update_are_withdrawn() -> None:
    octets = update("40010103" + AS_PATH + NEXT_HOP, nlri="00000007" + PREFIX)
    answer = decoded(octets, addpath=["ipv4-unicast"])
    assert (answer["announce"], answer["withdraw"]) == ([], ["10.0.0.0/24"])
    assert "pathIDs" not in answer
    assert answer["withdrawPathIDs"] == [7]
    assert (answer["outcome"], answer["attribute"], answer["discarded"]) == (
        "treat-as-withdraw",
        1,
        [],
    )
    (fault,) = answer["faults"]
    assert (fault["outcome"], fault["attribute"]) == ("treat-as-withdraw", 1)
    assert fault["rule"]


def test_an_attribute_that_is_discarded() -> None:
    answer = decoded(update(ORIGIN + AS_PATH + NEXT_HOP + "400601ff"))
    assert (answer["outcome"], answer["attribute"], answer["discarded"]) == (
        "attribute-discard",
        6,
        [6],
    )
    assert answer["announce"] == ["10.0.0.0/24"]


def test_an_end_of_rib() -> None:
    assert decoded(update("", nlri="")) == {
        "kind": "update",
        "announce": [],
        "withdraw": [],
        "family": "ipv4-unicast",
        "endOfRib": "ipv4-unicast",
    }


def test_a_family_that_is_not_of_the_session_is_named() -> None:
    unreach = "0002" + "01" + "30" + "20010db80001"
    octets = update(f"800f{len(unreach) // 2:02x}{unreach}", nlri="")
    assert decoded(octets, families=["ipv4-unicast"])["ignoredFamilies"] == ["ipv6-unicast"]


def test_a_notification() -> None:
    assert decoded(message(3, "0602" + "03627965")) == {
        "kind": "notification",
        "code": 6,
        "subcode": 2,
        "data": "03627965",
        "name": "Cease / Administrative Shutdown",
        "shutdownCommunication": "bye",
    }


def test_a_notification_without_a_code_ends_the_session() -> None:
    """RFC 4271 section 6.4."""
    assert decoded(message(3, "06"))["outcome"] == "session-reset"


def test_a_route_refresh() -> None:
    assert decoded(message(5, "00020101")) == {
        "kind": "route-refresh",
        "family": "ipv6-unicast",
        "subtype": 1,
    }


@pytest.mark.parametrize(
    ("octets", "expected"),
    [
        (b"\xff" * 10, {"kind": None, "incomplete": True, "octets": 10}),
        (
            update(ORIGIN + AS_PATH + NEXT_HOP)[:-1],
            {"kind": "update", "incomplete": True, "octets": 46, "length": 47},
        ),
    ],
)
def test_a_part_of_a_message(octets: bytes, expected: dict[str, Any]) -> None:
    assert decoded(octets) == expected


@pytest.mark.parametrize(
    ("context", "field", "value"),
    [
        ({}, "ebgp", True),
        ({"ebgp": False}, "ebgp", False),
        ({}, "as4", True),
        ({"as4": False}, "as4", False),
        ({}, "confederation", False),
        ({"confederation": True}, "confederation", True),
        ({}, "extended_message", False),
        ({"extended": True}, "extended_message", True),
        ({}, "families", frozenset((IPV4_UNICAST, IPV6_UNICAST))),
        ({"families": ["ipv6-unicast"]}, "families", frozenset((IPV6_UNICAST,))),
        ({}, "add_path_receive", frozenset()),
        ({"addpath": ["ipv4-unicast"]}, "add_path_receive", frozenset((IPV4_UNICAST,))),
        ({"extendedNextHop": ["ipv4-unicast"]}, "extended_next_hop", frozenset((IPV4_UNICAST,))),
        ({}, "peer_asn", 0),
        ({"peerASN": "65001"}, "peer_asn", 0),
        ({"peerASN": 65001}, "peer_asn", 65001),
        ({}, "local_asn", 0),
        ({"localASN": 65000}, "local_asn", 65000),
        ({}, "local_router_id", 0),
        ({"localRouterID": "10.0.0.1"}, "local_router_id", 0x0A000001),
        ({}, "local_role", None),
        ({"localRole": "customer"}, "local_role", 3),
        ({"localRole": 4}, "local_role", 4),
        ({"localRole": "4"}, "local_role", 4),
    ],
)
def test_the_context_of_a_line(context: dict[str, Any], field: str, value: object) -> None:
    assert getattr(context_of(context), field) == value


@pytest.mark.parametrize(
    "context", [{"localRole": 9}, {"localRole": "nothing"}, {"families": ["ipv5"]}]
)
def test_an_invalid_context_is_an_error(context: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"ipv5|9|nothing"):
        context_of(context)
