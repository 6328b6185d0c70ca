"""CiliumBGPPeeringPolicy, CiliumNode and the pools: defaults, and every rule that is broken."""

from __future__ import annotations

from typing import Any

import pytest

from resources.errors import InvalidObject
from resources.kind import Kind
from tests.support import kinds

NEIGHBOR: dict[str, Any] = {"peerAddress": "192.0.2.1/32", "peerASN": 65010}


def _policy(neighbor: dict[str, Any], **router: Any) -> dict[str, Any]:  # noqa: ANN401
    made = {"localASN": 65001, "neighbors": [neighbor], **router}
    return {"metadata": {"name": "p"}, "spec": {"virtualRouters": [made]}}


def _errors(kind: Kind[Any], value: dict[str, Any]) -> list[str]:
    with pytest.raises(InvalidObject) as caught:
        kind.decode(value)
    return [error.path for error in caught.value.errors]


def test_defaults_are_ciliums() -> None:
    (router,) = kinds.PEERING_POLICY.decode(_policy(NEIGHBOR)).spec.virtual_routers
    (neighbor,) = router.neighbors
    assert (router.export_pod_cidr, router.service_selector, router.pod_ip_pool_selector) == (
        False,
        None,
        None,
    )
    assert router.service_addresses == ("LoadBalancerIP",)
    assert (neighbor.address, neighbor.peer_port, neighbor.ebgp_multihop_ttl) == (
        "192.0.2.1",
        179,
        1,
    )
    assert neighbor.connect_retry_time_seconds == 120
    assert (neighbor.hold_time_seconds, neighbor.keep_alive_time_seconds) == (90, 30)
    assert [(f.afi, f.safi) for f in neighbor.chosen_families] == [
        ("ipv4", "unicast"),
        ("ipv6", "unicast"),
    ]
    assert (neighbor.graceful_restart, neighbor.auth_secret_ref) == (None, None)


def test_fields_have_ciliums_json_names() -> None:
    value = _policy(
        {
            **NEIGHBOR,
            "peerPort": 1790,
            "authSecretRef": "s",
            "eBGPMultihopTTL": 4,
            "connectRetryTimeSeconds": 1,
            "holdTimeSeconds": 9,
            "keepAliveTimeSeconds": 3,
            "gracefulRestart": {"enabled": True, "restartTimeSeconds": 7},
            "families": [{"afi": "ipv6", "safi": "unicast"}],
            "advertisedPathAttributes": [
                {
                    "selectorType": "PodCIDR",
                    "selector": {},
                    "communities": {"standard": ["1:2"], "wellKnown": ["no-peer"], "large": []},
                    "localPreference": 5,
                }
            ],
        },
        exportPodCIDR=True,
        podIPPoolSelector={},
        serviceSelector={},
        serviceAdvertisements=["ClusterIP"],
    )
    value["spec"]["nodeSelector"] = {"matchLabels": {"a": "b"}}
    value["spec"]["virtualRouters"].append({**value["spec"]["virtualRouters"][0], "localASN": 2})
    assert kinds.PEERING_POLICY.unknown_fields(value) == []
    neighbor = kinds.PEERING_POLICY.decode(value).spec.virtual_routers[0].neighbors[0]
    assert (neighbor.peer_port, neighbor.ebgp_multihop_ttl) == (1790, 4)


@pytest.mark.parametrize(
    ("change", "path"),
    [
        ({"peerAddress": "192.0.2.1"}, "peerAddress"),
        ({"peerAddress": "192.0.2.0/24"}, "peerAddress"),
        ({"peerAddress": "fd00::1/64"}, "peerAddress"),
        ({"peerAddress": "router/32"}, "peerAddress"),
        ({"peerASN": 4294967296}, "peerASN"),
        ({"peerPort": 0}, "peerPort"),
        ({"eBGPMultihopTTL": 0}, "eBGPMultihopTTL"),
        ({"eBGPMultihopTTL": 256}, "eBGPMultihopTTL"),
        ({"connectRetryTimeSeconds": 0}, "connectRetryTimeSeconds"),
        ({"holdTimeSeconds": 2}, "holdTimeSeconds"),
        ({"keepAliveTimeSeconds": 91}, "keepAliveTimeSeconds"),
        ({"gracefulRestart": {"restartTimeSeconds": 5}}, "gracefulRestart.enabled"),
        (
            {"gracefulRestart": {"enabled": True, "restartTimeSeconds": 4096}},
            "gracefulRestart.restartTimeSeconds",
        ),
        ({"families": [{"afi": "ipx", "safi": "unicast"}]}, "families[0].afi"),
        (
            {"advertisedPathAttributes": [{"selectorType": "Service"}]},
            "advertisedPathAttributes[0].selectorType",
        ),
        (
            {
                "advertisedPathAttributes": [
                    {"selectorType": "PodCIDR", "communities": {"standard": ["1:99999"]}}
                ]
            },
            "advertisedPathAttributes[0].communities.standard[0]",
        ),
        (
            {"advertisedPathAttributes": [{"selectorType": "PodCIDR", "localPreference": -1}]},
            "advertisedPathAttributes[0].localPreference",
        ),
    ],
)
def test_rules_of_a_neighbour(change: dict[str, Any], path: str) -> None:
    broken = _policy({**NEIGHBOR, **change})
    assert _errors(kinds.PEERING_POLICY, broken) == [f"spec.virtualRouters[0].neighbors[0].{path}"]


def test_virtual_routers_have_different_as_numbers() -> None:
    value = _policy(NEIGHBOR)
    value["spec"]["virtualRouters"] *= 2
    assert _errors(kinds.PEERING_POLICY, value) == ["spec.virtualRouters[1].localASN"]


@pytest.mark.parametrize(
    ("value", "path"),
    [
        ({"spec": {"virtualRouters": []}}, "spec.virtualRouters"),
        ({"spec": {"virtualRouters": [{"localASN": 1, "neighbors": []}]}}, None),
        ({"spec": {}}, "spec.virtualRouters"),
    ],
)
def test_the_compared_lists_are_not_empty(value: dict[str, Any], path: str | None) -> None:
    found = _errors(kinds.PEERING_POLICY, {"metadata": {"name": "p"}, **value})
    assert found == [path or "spec.virtualRouters[0].neighbors"]


def _pool(*blocks: dict[str, str]) -> dict[str, Any]:
    return {"metadata": {"name": "p"}, "spec": {"blocks": list(blocks)}}


def test_a_pools_blocks_are_prefixes_and_ranges() -> None:
    value = _pool(
        {"cidr": "10.0.0.7/24"},
        {"cidr": "fd00::1"},
        {"start": "192.0.2.1", "stop": "192.0.2.4"},
        {"start": "192.0.2.9"},
    )
    value["spec"]["cidrs"] = [{"cidr": "10.1.0.0/24"}, {"cidr": "10.0.0.0/24"}]
    assert kinds.LOAD_BALANCER_IP_POOL.decode(value).prefixes == (
        "10.0.0.0/24",
        "fd00::1/128",
        "192.0.2.1/32",
        "192.0.2.2/31",
        "192.0.2.4/32",
        "192.0.2.9/32",
        "10.1.0.0/24",
    )


@pytest.mark.parametrize(
    "block",
    [
        {},
        {"stop": "10.0.0.1"},
        {"start": "10.0.0.2", "stop": "10.0.0.1"},
        {"start": "10.0.0.2", "stop": "fd00::1"},
        {"cidr": "10.0.0.0/33"},
        {"cidr": "10.0.0.0/٣"},
        {"cidr": "net"},
    ],
)
def test_an_invalid_pool_block_is_rejected(block: dict[str, str]) -> None:
    good = {"cidr": "10.0.0.0/24"}
    assert _errors(kinds.LOAD_BALANCER_IP_POOL, _pool(good, block)) == ["spec.blocks[1]"]


def test_a_cilium_nodes_prefixes_are_checked() -> None:
    ipam = {
        "podCIDRs": ["10.0.0.0/24", "10.0.0.1/24"],
        "pools": {"allocated": [{"pool": "a", "cidrs": ["10.1.0.0/24", "x"]}]},
    }
    assert _errors(kinds.CILIUM_NODE, {"metadata": {"name": "n"}, "spec": {"ipam": ipam}}) == [
        "spec.ipam.podCIDRs[1]",
        "spec.ipam.pools.allocated[0].cidrs[1]",
    ]
