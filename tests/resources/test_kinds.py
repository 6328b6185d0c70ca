"""Kinds: what is accepted, what defaults are, and every field and rule that is named when not."""

from __future__ import annotations

from typing import Any

import pytest

from resources.core import Node
from resources.errors import InvalidObject
from resources.kind import Kind
from resources.secret_value import SecretValue
from tests.support import kinds


def _object(spec: dict[str, Any], name: str = "x", **fields: Any) -> dict[str, Any]:  # noqa: ANN401
    return {"metadata": {"name": name}, "spec": spec, **fields}


def _errors(kind: Kind[Any], spec: dict[str, Any], name: str = "x") -> dict[str, str]:
    with pytest.raises(InvalidObject) as caught:
        kind.decode(_object(spec, name))
    return {error.path: error.message for error in caught.value.errors}


def _cluster(**peer: Any) -> dict[str, Any]:  # noqa: ANN401
    return {"bgpInstances": [{"name": "i", "localASN": 65001, "peers": [{"name": "p", **peer}]}]}


def _advert(**entry: Any) -> dict[str, Any]:  # noqa: ANN401
    return {"advertisements": [entry]}


def test_peer_config_defaults_are_ciliums() -> None:
    spec = kinds.PEER_CONFIG.decode(_object({})).spec
    assert spec.transport.peer_port == 179
    timers = spec.timers
    assert timers.connect_retry_time_seconds == 120
    assert (timers.hold_time_seconds, timers.keep_alive_time_seconds) == (90, 30)
    assert (spec.ebgp_multihop, spec.graceful_restart, spec.families) == (1, None, ())


def test_graceful_restart_time_defaults_to_120_seconds() -> None:
    spec = kinds.PEER_CONFIG.decode(_object({"gracefulRestart": {"enabled": True}})).spec
    assert spec.graceful_restart is not None
    assert spec.graceful_restart.restart_time_seconds == 120


def test_c57_keepalive_may_equal_the_hold_time_and_not_exceed_it() -> None:
    kinds.PEER_CONFIG.decode(_object({"timers": {"keepAliveTimeSeconds": 90}}))
    assert _errors(kinds.PEER_CONFIG, {"timers": {"keepAliveTimeSeconds": 91}}) == {
        "spec.timers.keepAliveTimeSeconds": "91 is greater than holdTimeSeconds (90)"
    }


@pytest.mark.parametrize(
    ("entry", "path"),
    [
        ({"advertisementType": "Service", "selector": {}}, "service"),
        ({"advertisementType": "PodCIDR", "service": {"addresses": ["ClusterIP"]}}, "service"),
        ({"advertisementType": "Interface"}, "interface"),
        ({"advertisementType": "PodCIDR", "interface": {"name": "lo"}}, "interface"),
        ({"advertisementType": "PodCIDR", "selector": {}}, "selector"),
    ],
)
def test_c58_an_entry_has_the_options_of_its_type_and_no_others(
    entry: dict[str, Any], path: str
) -> None:
    assert list(_errors(kinds.ADVERTISEMENT, _advert(**entry))) == [
        f"spec.advertisements[0].{path}"
    ]


@pytest.mark.parametrize(("v4", "v6", "good"), [(32, 128, False), (31, 127, True), (0, 0, True)])
def test_c61_aggregation_lengths(v4: int, v6: int, good: bool) -> None:
    service = {
        "addresses": ["ClusterIP"],
        "aggregationLengthIPv4": v4,
        "aggregationLengthIPv6": v6,
    }
    spec = _advert(advertisementType="Service", service=service, selector={})
    if good:
        kinds.ADVERTISEMENT.decode(_object(spec))
    else:
        path = "spec.advertisements[0].service.aggregationLengthIPv"
        assert _errors(kinds.ADVERTISEMENT, spec) == {
            f"{path}4": "32 is not within 0 to 31",
            f"{path}6": "128 is not within 0 to 127",
        }


def test_c64_service_has_at_least_one_type_of_address() -> None:
    # A type that is not known drops its addresses only: values-of-a-later-release, C57-C66.
    spec = _advert(advertisementType="Service", service={"addresses": []}, selector={})
    (path,) = _errors(kinds.ADVERTISEMENT, spec)
    assert path.startswith("spec.advertisements[0].service.addresses")


@pytest.mark.parametrize(
    ("spec", "path"),
    [
        ({"timers": {"holdTimeSeconds": 2, "keepAliveTimeSeconds": 1}}, "timers.holdTimeSeconds"),
        (
            {"gracefulRestart": {"enabled": True, "restartTimeSeconds": 4096}},
            "gracefulRestart.restartTimeSeconds",
        ),
        ({"gracefulRestart": {}}, "gracefulRestart.enabled"),
        ({"ebgpMultihop": 0}, "ebgpMultihop"),
        ({"ebgpMultihop": 256}, "ebgpMultihop"),
        ({"transport": {"peerPort": 0}}, "transport.peerPort"),
        ({"families": [{"afi": "ipv4"}]}, "families[0].safi"),
    ],
)
def test_c66_ranges(spec: dict[str, Any], path: str) -> None:
    assert list(_errors(kinds.PEER_CONFIG, spec)) == [f"spec.{path}"]


@pytest.mark.parametrize(
    ("asn", "message"),
    [
        ("65_000", "expected an integer, got a string '65_000'"),
        ("+65000", "expected an integer, got a string '+65000'"),
        (" 65000 ", "expected an integer, got a string ' 65000 '"),
        ("1.65536", "expected an integer, got a string '1.65536'"),
        (65000.0, "expected an integer, got a number with a fraction 65000.0"),
        ("0x10", "expected an integer, got a string '0x10'"),
        ("٦٥", "expected an integer, got a string '٦٥'"),
        (True, "expected an integer, got a boolean true"),
        (-1, "-1 is not within 0 to 4294967295"),
        (4294967296, "4294967296 is not within 0 to 4294967295"),
    ],
)
def test_h53_an_as_number_is_a_plain_integer(asn: Any, message: str) -> None:  # noqa: ANN401
    spec = _cluster(peerAddress="192.0.2.1", peerASN=asn)
    assert _errors(kinds.CLUSTER_CONFIG, spec) == {"spec.bgpInstances[0].peers[0].peerASN": message}


@pytest.mark.parametrize(
    "address", ["192.0.2.01", "192.0.2.1/32", "fd00::1%eth0", "::ffff:192.0.2.1", "router", ""]
)
def test_h53_an_address_is_parsed_strictly(address: str) -> None:
    spec = _cluster(peerAddress=address, peerASN=1)
    assert list(_errors(kinds.CLUSTER_CONFIG, spec)) == [
        "spec.bgpInstances[0].peers[0].peerAddress"
    ]


def test_an_ipv4_mapped_address_of_a_service_leaves_its_other_addresses_alone() -> None:
    mapped = "::ffff:192.0.2.1"
    row = kinds.SERVICE.decode(
        _object({"externalIPs": [mapped, "192.0.2.2"]})
        | {"status": {"loadBalancer": {"ingress": [{"ip": mapped}]}}}
    )
    assert row.spec.external_ips == (mapped, "192.0.2.2")  # The intent rejects the address.
    assert list(_errors(kinds.SERVICE, {"clusterIP": mapped})) == ["spec.clusterIP"]


def test_a_link_local_peer_may_have_a_zone() -> None:
    kinds.CLUSTER_CONFIG.decode(_object(_cluster(peerAddress="fe80::1%eth0", peerASN=1)))


@pytest.mark.parametrize(
    ("cidr", "part"),
    [
        ("10.0.0.1/24", "has host bits set; the prefix is 10.0.0.0/24"),
        ("10.0.0.0/024", "'024' is not a prefix length"),
        ("10.0.0.0", "is not a prefix such as 10.0.0.0/24"),
        ("fd00::%eth0/64", "has a zone"),
        ("::ffff:10.0.0.0/120", "IPv4-mapped"),
        ("10.0.0.0/33", "10.0.0.0/33"),
    ],
)
def test_h53_a_prefix_is_parsed_strictly(cidr: str, part: str) -> None:
    (message,) = _errors(kinds.NODE, {"podCIDRs": [cidr]}).values()
    assert part in message


def test_all_errors_of_an_object_are_named_at_once() -> None:
    spec = {"timers": {"holdTimeSeconds": "90"}, "ebgpMultihop": 0, "families": [{"afi": 4}]}
    assert sorted(_errors(kinds.PEER_CONFIG, spec)) == [
        "spec.ebgpMultihop",
        "spec.families[0].afi",
        "spec.families[0].safi",
        "spec.timers.holdTimeSeconds",
    ]


def test_names_within_a_list_map_are_unique() -> None:
    peer = {"name": "p", "peerAddress": "192.0.2.1", "peerASN": 1}
    spec = {"bgpInstances": [{"name": "i", "localASN": 1, "peers": [peer, peer]}]}
    assert _errors(kinds.CLUSTER_CONFIG, spec) == {
        "spec.bgpInstances[0].peers": "duplicate name 'p'"
    }


def test_at_least_one_instance_and_at_most_sixteen() -> None:
    many = [{"name": f"i{n}", "localASN": 1} for n in range(17)]
    assert list(_errors(kinds.CLUSTER_CONFIG, {"bgpInstances": []})) == ["spec.bgpInstances"]
    assert list(_errors(kinds.CLUSTER_CONFIG, {"bgpInstances": many})) == ["spec.bgpInstances"]


def test_auto_discovery_needs_the_options_of_its_mode() -> None:
    spec = _cluster(peerASN=0, autoDiscovery={"mode": "DefaultGateway"})
    assert list(_errors(kinds.CLUSTER_CONFIG, spec)) == [
        "spec.bgpInstances[0].peers[0].autoDiscovery.defaultGateway"
    ]


def test_a_selector_needs_values_only_where_its_operator_does() -> None:
    spec = {
        "bgpInstances": [{"name": "i", "localASN": 1}],
        "nodeSelector": {
            "matchExpressions": [
                {"key": "a", "operator": "In"},
                {"key": "b", "operator": "Exists", "values": ["x"]},
            ]
        },
    }
    path = "spec.nodeSelector.matchExpressions"
    assert list(_errors(kinds.CLUSTER_CONFIG, spec)) == [f"{path}[0].values", f"{path}[1].values"]


@pytest.mark.parametrize("text", ["65536:1", "1:65536", "1:2:3", "0x1", "01:1", "4294967296", "a"])
def test_a_standard_community_is_two_numbers_of_16_bits_or_one_of_32(text: str) -> None:
    attributes = {"communities": {"standard": [text]}}
    spec = _advert(advertisementType="PodCIDR", attributes=attributes)
    assert list(_errors(kinds.ADVERTISEMENT, spec)) == [
        "spec.advertisements[0].attributes.communities.standard[0]"
    ]


def test_a_router_id_is_an_ipv4_address() -> None:
    for router_id in ("0.0.0.0", "fd00::1", "1"):
        spec = {"bgpInstances": [{"name": "i", "routerID": router_id}]}
        assert list(_errors(kinds.NODE_CONFIG_OVERRIDE, spec)) == ["spec.bgpInstances[0].routerID"]


def test_unknown_fields_of_ciliums_kinds_are_reported_with_a_similar_name() -> None:
    value = _object({"timers": {"holdTimeSecond": 9}}, apiVersion="cilium.io/v2", kind="x")
    kinds.PEER_CONFIG.decode(value)
    (error,) = kinds.PEER_CONFIG.unknown_fields(value)
    assert error.path == "spec.timers.holdTimeSecond"
    assert error.message == "unknown field, ignored; did you mean holdTimeSeconds?"


def test_both_versions_of_ciliums_kinds_are_read() -> None:
    for version in ("cilium.io/v2", "cilium.io/v2alpha1"):
        assert kinds.KINDS.find(version, "CiliumBGPPeerConfig") is kinds.PEER_CONFIG
    ref = {"name": "p", "group": "cilium.io", "kind": "CiliumBGPPeerConfig"}
    value = _object(_cluster(peerASN=1, peerAddress="192.0.2.1", peerConfigRef=ref))
    assert kinds.CLUSTER_CONFIG.unknown_fields(value) == []


def test_null_is_absent() -> None:
    row = kinds.NODE.decode({"metadata": {"name": "n", "labels": None}, "spec": {"podCIDRs": None}})
    assert isinstance(row, Node)
    assert row.pod_networks == ()


def test_a_namespaced_object_without_namespace_is_in_default() -> None:
    assert kinds.SERVICE.decode({"metadata": {"name": "s"}}).key == ("default", "s")
    assert kinds.NODE.decode({"metadata": {"name": "n", "namespace": "x"}}).key == ("", "n")


def test_h50_a_name_with_control_characters_is_rejected() -> None:
    for name in ("a\x1b[31m", "[red]", "a\nb", "‮", "A"):
        assert list(_errors(kinds.NODE, {}, name)) == ["metadata.name"]


def test_a_service_with_an_invalid_address_is_rejected() -> None:
    value = {
        "metadata": {"name": "s"},
        "status": {"loadBalancer": {"ingress": [{"ip": "192.0.2.300"}, {"hostname": "x"}]}},
    }
    with pytest.raises(InvalidObject) as caught:
        kinds.SERVICE.decode(value)
    assert [error.path for error in caught.value.errors] == ["status.loadBalancer.ingress[0].ip"]


def test_a_headless_service_has_no_cluster_address() -> None:
    row = kinds.SERVICE.decode({"metadata": {"name": "s"}, "spec": {"clusterIP": "None"}})
    assert row.cluster_addresses == ()


def test_a_secret_value_has_no_visible_repr() -> None:
    value = {
        "metadata": {"name": "s", "namespace": "kube-system"},
        "data": {"password": "aHVudGVyMg=="},
        "stringData": {"other": "hunter3"},
    }
    row = kinds.SECRET.decode(value)
    assert row.data["password"].reveal() == b"hunter2"
    assert row.data["other"].reveal() == b"hunter3"
    assert "hunter" not in repr(row) + str(row)
    assert SecretValue(b"a") == SecretValue(b"a") != SecretValue(b"b")


def test_a_secret_that_is_not_base64_is_rejected_without_its_value() -> None:
    with pytest.raises(InvalidObject) as caught:
        kinds.SECRET.decode({"metadata": {"name": "s"}, "data": {"password": "hunter2!"}})
    assert "hunter" not in str(caught.value)
