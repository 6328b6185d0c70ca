"""MetalLB's kinds: every rule, the field that it names, and what an object that breaks it becomes."""

from __future__ import annotations

from typing import Any

import pytest

from resources.crds.generate import custom_resource_definition
from resources.errors import InvalidObject
from resources.kind import Kind, Kinds
from resources.metallb.bgppeer import BGPPeer, Timers, timers
from resources.metallb.ipaddresspool import block
from resources.metallb.kinds import (
    BFD_PROFILE,
    BGP_ADVERTISEMENT,
    BGP_PEER,
    COMMUNITY,
    IP_ADDRESS_POOL,
    KINDS,
)
from resources.snapshot_codec import decode, encode

PEER = {"myASN": 64900, "peerASN": 64950, "peerAddress": "203.0.113.9"}


def made(kind: Kind[Any], spec: Any = None, version: str = "", **parts: Any) -> dict[str, Any]:  # noqa: ANN401
    """Make an object."""
    found = {
        "apiVersion": f"{kind.group}/{version or kind.versions[0]}",
        "kind": kind.name,
        "metadata": {"name": "x", "namespace": "metallb-system"},
        **parts,
    }
    return found if spec is None else {**found, "spec": spec}


def broken(kind: Kind[Any], spec: Any, **parts: Any) -> list[str]:  # noqa: ANN401
    """Return the fields of an object's errors."""
    return [error.path for error in kind.decode(made(kind, spec, **parts)).errors]


def peer(**spec: Any) -> dict[str, Any]:  # noqa: ANN401
    """Make the spec of a peer; None takes a field away."""
    return {name: value for name, value in {**PEER, **spec}.items() if value is not None}


GOOD_PEERS: list[dict[str, Any]] = [
    {},
    {"peerASN": None, "dynamicASN": "internal"},
    {"peerAddress": None, "interface": "eth1"},
    {"peerAddress": "2001:DB8:0::1"},
    {"holdTime": "90s"},
    {"keepaliveTime": "20s"},
    {"holdTime": "0s"},
    {"holdTime": "0s", "keepaliveTime": "0s"},
    {"holdTime": "3s", "keepaliveTime": "3s"},
    {"holdTime": "500ms"},
    {"connectTime": "1s"},
    {"connectTime": "18h12m15s"},
    {"localASN": 64800},
    {"routerID": "192.0.2.1"},
    {"password": ""},
    {"password": "x" * 80},
    {"password": "x" * 80 + "\n"},
    {"passwordSecret": {"name": "s"}},
    {"vrf": "default"},
    {"ebgpMultiHop": True},
    {"peerASN": 64900},
]

BAD_PEERS: list[tuple[dict[str, Any], str]] = [
    ({"myASN": 0}, "spec.myASN"),
    ({"myASN": -1}, "spec.myASN"),
    ({"myASN": 4294967296}, "spec.myASN"),
    ({"myASN": "1"}, "spec.myASN"),
    ({"myASN": 1.5}, "spec.myASN"),
    ({"myASN": None}, "spec.myASN"),
    ({"peerASN": None}, "spec.peerASN"),
    ({"peerASN": 0}, "spec.peerASN"),
    ({"dynamicASN": "external"}, "spec.dynamicASN"),
    ({"peerASN": None, "dynamicASN": "any"}, "spec.dynamicASN"),
    ({"peerAddress": None}, "spec.peerAddress"),
    ({"interface": "eth1"}, "spec.interface"),
    ({"peerAddress": "203.0.113.256"}, "spec.peerAddress"),
    ({"peerAddress": "0.0.0.0"}, "spec.peerAddress"),
    ({"peerAddress": "::"}, "spec.peerAddress"),
    ({"peerAddress": "224.0.0.1"}, "spec.peerAddress"),
    ({"peerAddress": "fe80::1%eth0"}, "spec.peerAddress"),
    ({"peerAddress": "::ffff:192.0.2.1"}, "spec.peerAddress"),
    ({"peerAddress": None, "interface": "a b"}, "spec.interface"),
    ({"peerAddress": None, "interface": "x" * 10240}, "spec.interface"),
    ({"peerAddress": None, "interface": "eth0\n"}, "spec.interface"),
    ({"vrf": 'red"\n'}, "spec.vrf"),
    ({"sourceAddress": "eth0"}, "spec.sourceAddress"),
    ({"sourceAddress": "2001:db8::1"}, "spec.sourceAddress"),
    ({"peerPort": 0}, "spec.peerPort"),
    ({"peerPort": 16385}, "spec.peerPort"),
    ({"holdTime": "2s"}, "spec.holdTime"),
    ({"holdTime": "2999ms"}, "spec.holdTime"),
    ({"holdTime": "-1s"}, "spec.holdTime"),
    ({"holdTime": ""}, "spec.holdTime"),
    ({"holdTime": "1d"}, "spec.holdTime"),
    ({"holdTime": "9999999h"}, "spec.holdTime"),
    ({"holdTime": "65536s"}, "spec.holdTime"),
    ({"holdTime": 90}, "spec.holdTime"),
    ({"keepaliveTime": "500ms"}, "spec.keepaliveTime"),
    ({"holdTime": "9s", "keepaliveTime": "9001ms"}, "spec.keepaliveTime"),
    ({"holdTime": "9s", "keepaliveTime": "-1s"}, "spec.keepaliveTime"),
    ({"connectTime": "0s"}, "spec.connectTime"),
    ({"connectTime": "500ms"}, "spec.connectTime"),
    ({"connectTime": "65536s"}, "spec.connectTime"),
    ({"routerID": "me"}, "spec.routerID"),
    ({"routerID": "2001:db8::1"}, "spec.routerID"),
    ({"routerID": "0.0.0.0"}, "spec.routerID"),
    ({"localASN": 0}, "spec.localASN"),
    ({"localASN": 64900}, "spec.localASN"),
    ({"localASN": 64950}, "spec.localASN"),
    ({"localASN": 64800, "peerASN": 64900}, "spec.localASN"),
    ({"localASN": 64800, "peerASN": None, "dynamicASN": "internal"}, "spec.localASN"),
    ({"password": "x", "passwordSecret": {"name": "s"}}, "spec.passwordSecret"),
    ({"password": "x" * 81}, "spec.password"),
    ({"password": "\n"}, "spec.password"),
    ({"password": 12345678}, "spec.password"),
    ({"peerAddress": None, "interface": "eth1", "password": "x"}, "spec.password"),
    (
        {"peerAddress": None, "interface": "eth1", "passwordSecret": {"name": "s"}},
        "spec.passwordSecret",
    ),
    ({"peerASN": 64900, "ebgpMultiHop": True}, "spec.ebgpMultiHop"),
    ({"nodeSelectors": [{"matchLabels": {"": "x"}}]}, "spec.nodeSelectors[0].matchLabels"),
    ({"nodeSelectors": [{}, {}]}, "spec.nodeSelectors[1]"),
    (
        {"nodeSelectors": [{"matchExpressions": [{"key": "a", "operator": "Is"}]}]},
        "spec.nodeSelectors[0].matchExpressions[0].operator",
    ),
    (
        {
            "nodeSelectors": [
                {"matchExpressions": [{"key": "a", "operator": "In", "values": ["b", "b"]}]}
            ]
        },
        "spec.nodeSelectors[0].matchExpressions[0].values",
    ),
    (
        {
            "nodeSelectors": [
                {"matchExpressions": [{"key": "a", "operator": "Exists"}] * 2},
            ]
        },
        "spec.nodeSelectors[0].matchExpressions",
    ),
]


@pytest.mark.parametrize("spec", GOOD_PEERS, ids=str)
def test_a_peer_that_metallb_takes_is_valid(spec: dict[str, Any]) -> None:
    assert broken(BGP_PEER, peer(**spec)) == []


@pytest.mark.parametrize(("spec", "field"), BAD_PEERS, ids=lambda value: str(value)[:60])
def test_a_peer_that_breaks_a_rule_names_the_field(spec: dict[str, Any], field: str) -> None:
    assert broken(BGP_PEER, peer(**spec)) == [field]


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({}, Timers(None, None, None)),
        ({"holdTime": "100s"}, Timers(100, 33, None)),
        ({"keepaliveTime": "20s"}, Timers(60, 20, None)),
        ({"holdTime": "0s"}, Timers(0, 0, None)),
        ({"holdTime": "90500ms", "keepaliveTime": "1m", "connectTime": "2m"}, Timers(90, 60, 120)),
    ],
)
def test_one_timer_gives_the_other_one(spec: dict[str, Any], expected: Timers) -> None:
    assert timers(BGP_PEER.decode(made(BGP_PEER, peer(**spec))).spec) == expected


def test_a_password_is_in_no_message_and_no_row() -> None:
    secret = "hunter22" * 11
    row = BGP_PEER.decode(made(BGP_PEER, peer(password=secret)))
    assert "hunter" not in str(row)
    annotation = {"kubectl.kubernetes.io/last-applied-configuration": secret, "other": "kept"}
    metadata = {"name": "x", "namespace": "metallb-system", "annotations": annotation}
    row = BGP_PEER.decode({**made(BGP_PEER, peer()), "metadata": metadata})
    assert row.metadata.annotations == {"other": "kept"}


class TestV1Beta1:
    def test_absent_timers_and_port_zero_are_the_defaults(self) -> None:
        spec = {**PEER, "peerPort": 0}
        row = BGP_PEER.decode(made(BGP_PEER, spec, version="v1beta1"))
        assert row == BGP_PEER.decode(made(BGP_PEER, PEER))

    def test_node_selectors_keep_their_meaning(self) -> None:
        requirement = {"key": "b", "operator": "In", "values": ["2"]}
        spec = {
            **PEER,
            "nodeSelectors": [{"matchLabels": {"a": "1"}, "matchExpressions": [requirement]}],
        }
        row = BGP_PEER.decode(made(BGP_PEER, spec, version="v1beta1"))
        [selector] = row.spec.node_selectors
        assert selector.matches({"a": "1", "b": "2"})
        assert not selector.matches({"a": "1"})

    def test_fields_of_v1beta2_are_unknown(self) -> None:
        value = made(BGP_PEER, {**PEER, "vrf": "red"}, version="v1beta1")
        assert [error.path for error in BGP_PEER.unknown_fields(value)] == ["spec.vrf"]
        assert not BGP_PEER.unknown_fields(made(BGP_PEER, {**PEER, "vrf": "red"}))

    def test_errors_are_about_its_own_fields(self) -> None:
        spec = {"myASN": 1, "peerAddress": "192.0.2.1"}
        assert [
            e.path for e in BGP_PEER.decode(made(BGP_PEER, spec, version="v1beta1")).errors
        ] == ["spec.peerASN"]

    def test_it_is_found_and_not_served(self) -> None:
        assert Kinds(KINDS).find("metallb.io/v1beta1", "BGPPeer") is BGP_PEER
        versions = custom_resource_definition(BGP_PEER)["spec"]["versions"]
        assert [version["name"] for version in versions] == ["v1beta2"]


ADVERTISEMENTS: list[tuple[Any, list[str]]] = [
    (None, []),
    ({}, []),
    ({"aggregationLength": 24, "aggregationLengthV6": 64}, []),
    ({"aggregationLength": 0}, ["spec.aggregationLength"]),
    ({"aggregationLength": 33}, ["spec.aggregationLength"]),
    ({"aggregationLengthV6": 0}, ["spec.aggregationLengthV6"]),
    ({"aggregationLengthV6": 129}, ["spec.aggregationLengthV6"]),
    ({"localPref": 4294967295}, []),
    ({"localPref": -1}, ["spec.localPref"]),
    ({"communities": ["1:1", "1:1"]}, ["spec.communities"]),
    ({"ipAddressPools": ["a", "a"]}, ["spec.ipAddressPools"]),
    ({"ipAddressPools": "a"}, ["spec.ipAddressPools"]),
    ({"peers": ["a", "a"]}, ["spec.peers"]),
    ({"peers": "a"}, ["spec.peers"]),
    ({"ipAddressPoolSelectors": [{}, {}]}, ["spec.ipAddressPoolSelectors[1]"]),
    (
        {"nodeSelectors": [{"matchLabels": {"a": "1"}}, {"matchLabels": {"a": "1"}}]},
        ["spec.nodeSelectors[1]"],
    ),
    ({"serviceSelectors": [{}]}, []),
    ({"serviceSelectors": [{}], "aggregationLength": 31}, ["spec.aggregationLength"]),
    ({"serviceSelectors": [{}], "aggregationLengthV6": 64}, ["spec.aggregationLengthV6"]),
]


@pytest.mark.parametrize(("spec", "fields"), ADVERTISEMENTS, ids=str)
def test_the_rules_of_an_advertisement(spec: Any, fields: list[str]) -> None:  # noqa: ANN401
    assert broken(BGP_ADVERTISEMENT, spec) == fields


@pytest.mark.parametrize(
    ("value", "field"),
    [
        (
            {"metadata": {"name": "x", "namespace": "n", "spec": {"ipAddressPools": ["a"]}}},
            "metadata.spec",
        ),
        ({"metadata": {"name": "x", "namespace": "n", "peers": ["a"]}}, "metadata.peers"),
        ({"ipAddressPools": ["a"]}, "ipAddressPools"),
    ],
    ids=str,
)
def test_a_misplaced_field_does_not_widen_an_advertisement(
    value: dict[str, Any], field: str
) -> None:
    assert broken(BGP_ADVERTISEMENT, None, **value) == [field]


@pytest.mark.parametrize("name", ["ipAddressPool", "peer", "nodeselectors", "serviceSelector"])
def test_a_misspelled_field_does_not_widen_an_advertisement(name: str) -> None:
    assert broken(BGP_ADVERTISEMENT, {name: ["a"]}) == [f"spec.{name}"]


def test_an_unknown_field_that_selects_nothing_is_ignored() -> None:
    assert broken(BGP_ADVERTISEMENT, {"asPathPrepend": 3, "x" * 100_000: 1}) == []


@pytest.mark.parametrize(
    ("addresses", "fields"),
    [
        (["198.18.30.0/24", "2001:db8::/64"], []),
        (["198.18.30.77/24"], []),
        (["198.18.30.1-198.18.30.9", " 198.18.31.1 - 198.18.31.1 "], []),
        (["0.0.0.0/0", "::/0"], []),
        ([], ["spec.addresses"]),
        (["198.18.30.1"], ["spec.addresses[0]"]),
        (["198.18.30.0/33"], ["spec.addresses[0]"]),
        (["198.18.30.9-198.18.30.1"], ["spec.addresses[0]"]),
        (["198.18.30.9-2001:db8::1"], ["spec.addresses[0]"]),
        (["198.18.30.0/24", "198.18.30.128-198.18.31.3"], ["spec.addresses[1]"]),
        ("198.18.30.0/24", ["spec.addresses"]),
        ([None], ["spec.addresses[0]"]),
    ],
    ids=str,
)
def test_the_addresses_of_a_pool(addresses: Any, fields: list[str]) -> None:  # noqa: ANN401
    assert broken(IP_ADDRESS_POOL, {"addresses": addresses}) == fields


def test_a_range_is_its_smallest_set_of_prefixes() -> None:
    networks = block("198.18.30.2-198.18.30.254").networks
    assert min(network.prefixlen for network in networks) == 26
    assert sum(network.num_addresses for network in networks) == 253


@pytest.mark.parametrize("text", ["65535:65281", "0:0", "large:4294967295:0:1"])
def test_a_community_in_its_notation_is_valid(text: str) -> None:
    assert broken(COMMUNITY, {"communities": [{"name": "a", "value": text}]}) == []


@pytest.mark.parametrize(
    "text", ["", "1", "65536:1", "1:2:3", "Large:1:2:3", "large:1:2", "1: 2", "+1:2", "no-export"]
)
def test_a_community_that_cannot_be_is_named(text: str) -> None:
    value = {"communities": [{"name": "a", "value": text}]}
    assert broken(COMMUNITY, value) == ["spec.communities[0].value"]


def test_a_name_of_a_community_is_there_once() -> None:
    alias = {"name": "a", "value": "1:1"}
    assert broken(COMMUNITY, {"communities": [alias, alias]}) == ["spec.communities"]


@pytest.mark.parametrize(
    ("name", "limits"),
    [
        ("receiveInterval", (10, 60000)),
        ("transmitInterval", (10, 60000)),
        ("echoInterval", (10, 60000)),
        ("detectMultiplier", (2, 255)),
        ("minimumTtl", (1, 254)),
    ],
)
def test_the_limits_of_a_bfd_profile(name: str, limits: tuple[int, int]) -> None:
    low, high = limits
    assert broken(BFD_PROFILE, {name: low}) == broken(BFD_PROFILE, {name: high}) == []
    for value in (low - 1, high + 1, "10", 10.5):
        assert broken(BFD_PROFILE, {name: value}) == [f"spec.{name}"]


class TestInvalidObjects:
    def test_the_row_keeps_the_nodes_of_an_object_that_cannot_be_read(self) -> None:
        selector = {"matchLabels": {"rack": "1"}}
        spec = {**PEER, "peerPort": "x", "nodeSelectors": [selector]}
        row = BGP_PEER.decode(made(BGP_PEER, spec))
        assert row.errors
        assert row.spec.node_selectors[0].matches({"rack": "1"})
        assert not row.spec.node_selectors[0].matches({"rack": "2"})

    def test_null_is_an_absent_field(self) -> None:
        assert broken(BGP_PEER, {**PEER, "vrf": None, "nodeSelectors": None}) == []
        assert broken(BGP_PEER, None) == ["spec"]

    @pytest.mark.parametrize("value", [[], 5, "text"])
    def test_a_spec_of_another_type_is_named(self, value: Any) -> None:  # noqa: ANN401
        assert broken(BGP_ADVERTISEMENT, value) == ["spec"]

    def test_impossible_metadata_is_refused(self) -> None:
        with pytest.raises(InvalidObject, match="metadata"):
            BGP_PEER.decode(made(BGP_PEER, PEER, metadata={"name": 5}))

    def test_a_snapshot_keeps_what_is_wrong(self) -> None:
        row = BGP_PEER.decode(made(BGP_PEER, peer(myASN=0, password="x")))
        octets = b"".join(encode("n1", 0.0, {"BGPPeer": [row]}))
        [read] = decode(octets, Kinds(KINDS)).rows["BGPPeer"]
        assert isinstance(read, BGPPeer)
        assert read.errors == row.errors
        assert read.spec.password is not None
        assert not read.spec.password.known


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind.definition], ids=str)
def test_every_kind_has_a_definition(kind: Kind[Any]) -> None:
    definition = custom_resource_definition(kind)
    [version] = definition["spec"]["versions"]
    assert version["subresources"] == {"status": {}}


TWICE_VALUE = {"matchExpressions": [{"key": "a", "operator": "In", "values": ["1", "1"]}]}
TWICE_EXPRESSION = {
    "matchExpressions": [
        {"key": "a", "operator": "In", "values": ["1", "2"]},
        {"key": "a", "operator": "In", "values": ["2", "1"]},
    ]
}


@pytest.mark.parametrize(
    ("kind", "spec", "path"),
    [
        (BGP_PEER, PEER, "nodeSelectors"),
        (BGP_ADVERTISEMENT, {}, "ipAddressPoolSelectors"),
        (BGP_ADVERTISEMENT, {}, "nodeSelectors"),
        (BGP_ADVERTISEMENT, {}, "serviceSelectors"),
        (IP_ADDRESS_POOL, {"addresses": ["198.18.30.0/24"]}, "serviceAllocation.serviceSelectors"),
        (
            IP_ADDRESS_POOL,
            {"addresses": ["198.18.30.0/24"]},
            "serviceAllocation.namespaceSelectors",
        ),
    ],
    ids=lambda one: one if isinstance(one, str) else getattr(one, "name", ""),
)
def test_no_selector_has_an_expression_or_a_value_twice(
    kind: Kind[Any], spec: dict[str, Any], path: str
) -> None:
    parent, _, name = path.rpartition(".")
    for selector, field in (
        (TWICE_VALUE, "matchExpressions[0].values"),
        (TWICE_EXPRESSION, "matchExpressions"),
    ):
        given: dict[str, Any] = {name: [{"matchLabels": {"b": "1"}}, selector]}
        given = {parent: given} if parent else given
        assert broken(kind, {**spec, **given}) == [f"spec.{path}[1].{field}"]


def test_a_pool_names_a_namespace_once() -> None:
    spec = {"addresses": ["198.18.30.0/24"], "serviceAllocation": {"namespaces": ["a", "a"]}}
    assert broken(IP_ADDRESS_POOL, spec) == ["spec.serviceAllocation.namespaces"]
