"""OVN-Kubernetes' kinds: what is accepted, and the field that is named when not."""

from __future__ import annotations

from typing import Any

import pytest

from resources.errors import InvalidObject
from resources.kind import Kind
from resources.ovnk.kinds import (
    CLUSTER_NETWORK,
    EGRESS_IP,
    ROUTE_ADVERTISEMENTS,
    USER_NETWORK,
    VTEP,
)

SELECTOR = {"networkSelectionType": "DefaultNetwork"}
CLUSTERS = {
    "networkSelectionType": "ClusterUserDefinedNetworks",
    "clusterUserDefinedNetworkSelector": {"networkSelector": {}},
}
LAYER3 = {"role": "Primary", "subnets": [{"cidr": "10.60.0.0/16", "hostSubnet": 24}]}
LAYER2 = {"role": "Primary", "subnets": ["10.70.0.0/20"]}
NO_OVERLAY = {"outboundSNAT": "Enabled", "routing": "Managed"}
IP_VRF = {"vtep": "fabric", "ipVRF": {"vni": 5200, "routeTarget": "64710:5200"}}
MAC_VRF = {"vtep": "fabric", "macVRF": {"vni": 5300}}


def advertisements(**changes: Any) -> dict[str, Any]:  # noqa: ANN401
    spec = {
        "advertisements": ["PodNetwork"],
        "nodeSelector": {},
        "frrConfigurationSelector": {},
        "networkSelectors": [SELECTOR],
        **changes,
    }
    found = {key: value for key, value in spec.items() if value is not None}
    return {"metadata": {"name": "n"}, "spec": found}


def cluster(network: dict[str, Any], **changes: Any) -> dict[str, Any]:  # noqa: ANN401
    return {
        "metadata": {"name": "n"},
        "spec": {"namespaceSelector": {}, "network": network, **changes},
    }


def layer3(**changes: Any) -> dict[str, Any]:  # noqa: ANN401
    return cluster({"topology": "Layer3", "layer3": {**LAYER3, **changes}})


def layer2(**changes: Any) -> dict[str, Any]:  # noqa: ANN401
    return cluster({"topology": "Layer2", "layer2": {**LAYER2, **changes}})


def transport(name: str, topology: str = "Layer3", **block: Any) -> dict[str, Any]:  # noqa: ANN401
    of_topology = {"layer3": LAYER3} if topology == "Layer3" else {"layer2": LAYER2}
    return cluster({"topology": topology, **of_topology, "transport": name, **block})


def vtep(*cidrs: str) -> dict[str, Any]:
    return {"metadata": {"name": "fabric"}, "spec": {"cidrs": list(cidrs), "mode": "Unmanaged"}}


ACCEPTED = [
    (ROUTE_ADVERTISEMENTS, advertisements()),
    (ROUTE_ADVERTISEMENTS, advertisements(networkSelectors=[SELECTOR, CLUSTERS], targetVRF="auto")),
    (ROUTE_ADVERTISEMENTS, advertisements(advertisements=["PodNetwork", "EgressIP"])),
    (
        ROUTE_ADVERTISEMENTS,
        advertisements(advertisements=["EgressIP"], nodeSelector={"matchLabels": {"zone": "a"}}),
    ),
    (
        ROUTE_ADVERTISEMENTS,
        advertisements(advertisements=["EgressIP"], nodeSelector={"matchLabels": {}}),
    ),
    (ROUTE_ADVERTISEMENTS, advertisements(nodeSelector={"matchLabels": None})),
    (CLUSTER_NETWORK, layer3()),
    (CLUSTER_NETWORK, layer2()),
    (CLUSTER_NETWORK, layer2(subnets=["10.70.0.0/20", "2001:db8::/64"])),
    (CLUSTER_NETWORK, layer2(defaultGatewayIPs=["10.70.0.1"])),
    (CLUSTER_NETWORK, layer3(subnets=[{"cidr": "10.0.0.1/16"}], joinSubnets=["100.65.0.1/16"])),
    (CLUSTER_NETWORK, layer2(subnets=["10.70.0.1/20"], reservedSubnets=["10.70.1.0/24"])),
    (
        CLUSTER_NETWORK,
        cluster({"topology": "Localnet", "localnet": {"role": "Secondary", "vlan": {}}}),
    ),
    (CLUSTER_NETWORK, transport("NoOverlay", noOverlay=NO_OVERLAY)),
    (CLUSTER_NETWORK, transport("EVPN", evpn=IP_VRF)),
    (CLUSTER_NETWORK, transport("EVPN", "Layer2", evpn=MAC_VRF)),
    (CLUSTER_NETWORK, transport("EVPN", "Layer2", evpn={**MAC_VRF, **IP_VRF})),
    (USER_NETWORK, {"metadata": {"name": "n"}, "spec": {"topology": "Layer2", "layer2": LAYER2}}),
    (VTEP, vtep("100.72.0.0/24", "100.73.0.0/24")),
    (EGRESS_IP, {"metadata": {"name": "n"}, "spec": {"namespaceSelector": {}}}),
]


@pytest.mark.parametrize(("kind", "value"), ACCEPTED)
def test_accepted(kind: Kind[Any], value: dict[str, Any]) -> None:
    row = kind.decode(value)
    assert row.broken_rules == ()
    assert kind.unknown_fields(value) == []


def without(kind: str) -> dict[str, Any]:
    return {"networkSelectionType": kind}


ZONE = {"matchLabels": {"zone": "a"}}
OTHER = ["10.9.0.0/24"]
FRR = "spec.frrConfigurationSelector"
REJECTED = [
    (ROUTE_ADVERTISEMENTS, advertisements(advertisements=[]), "spec.advertisements"),
    (ROUTE_ADVERTISEMENTS, advertisements(advertisements=["EgressIP"] * 2), "spec.advertisements"),
    (ROUTE_ADVERTISEMENTS, advertisements(advertisements=["Services"]), "spec.advertisements[0]"),
    (ROUTE_ADVERTISEMENTS, advertisements(networkSelectors=[]), "spec.networkSelectors"),
    (
        ROUTE_ADVERTISEMENTS,
        advertisements(networkSelectors=[SELECTOR] * 6),
        "spec.networkSelectors",
    ),
    (
        ROUTE_ADVERTISEMENTS,
        advertisements(networkSelectors=[SELECTOR] * 2),
        "spec.networkSelectors[1].networkSelectionType",
    ),
    (
        ROUTE_ADVERTISEMENTS,
        advertisements(networkSelectors=[without("ClusterUserDefinedNetworks")]),
        "spec.networkSelectors[0].clusterUserDefinedNetworkSelector",
    ),
    (
        ROUTE_ADVERTISEMENTS,
        advertisements(networkSelectors=[{**CLUSTERS, **SELECTOR}]),
        "spec.networkSelectors[0].clusterUserDefinedNetworkSelector",
    ),
    (
        ROUTE_ADVERTISEMENTS,
        advertisements(networkSelectors=[without("PrimaryUserDefinedNetworks")]),
        "spec.networkSelectors[0].networkSelectionType",
    ),
    (ROUTE_ADVERTISEMENTS, advertisements(nodeSelector=None), "spec.nodeSelector"),
    (
        ROUTE_ADVERTISEMENTS,
        advertisements(frrConfigurationSelector=None),
        "spec.frrConfigurationSelector",
    ),
    (
        ROUTE_ADVERTISEMENTS,
        advertisements(nodeSelector={"matchLabels": {"a": "b"}}),
        "spec.nodeSelector",
    ),
    (ROUTE_ADVERTISEMENTS, advertisements(nodeSelector={"matchLabels": {}}), "spec.nodeSelector"),
    (
        ROUTE_ADVERTISEMENTS,
        advertisements(nodeSelector={"matchExpressions": []}),
        "spec.nodeSelector",
    ),
    (
        ROUTE_ADVERTISEMENTS,
        advertisements(
            frrConfigurationSelector={"matchExpressions": [{"key": "a", "operator": "In"}]}
        ),
        "spec.frrConfigurationSelector.matchExpressions[0].values",
    ),
    (CLUSTER_NETWORK, cluster({"topology": "Layer3"}), "spec.network.layer3"),
    (
        CLUSTER_NETWORK,
        cluster({"topology": "Layer3", "layer3": LAYER3, "layer2": LAYER2}),
        "spec.network.layer2",
    ),
    (CLUSTER_NETWORK, layer3(subnets=[]), "spec.network.layer3.subnets"),
    (
        CLUSTER_NETWORK,
        layer3(subnets=[{"cidr": "10.0.0.1"}]),
        "spec.network.layer3.subnets[0].cidr",
    ),
    (
        CLUSTER_NETWORK,
        layer3(subnets=[{"cidr": "10.0.0.0/24", "hostSubnet": 24}]),
        "spec.network.layer3.subnets[0].hostSubnet",
    ),
    (
        CLUSTER_NETWORK,
        layer3(subnets=[{"cidr": "10.0.0.0/24", "hostSubnet": 32}]),
        "spec.network.layer3.subnets[0].hostSubnet",
    ),
    (
        CLUSTER_NETWORK,
        layer3(subnets=[{"cidr": "10.0.0.0/8"}, {"cidr": "10.1.0.0/16"}]),
        "spec.network.layer3.subnets[1].cidr",
    ),
    (
        CLUSTER_NETWORK,
        layer3(subnets=[{"cidr": "10.1.0.1/16"}, {"cidr": "10.1.0.2/16"}]),
        "spec.network.layer3.subnets[1].cidr",
    ),
    (
        CLUSTER_NETWORK,
        layer2(reservedSubnets=["10.70.1.1/24"]),
        "spec.network.layer2.reservedSubnets[0]",
    ),
    (
        CLUSTER_NETWORK,
        layer2(subnets=["10.0.0.0/24", "10.0.1.0/24"]),
        "spec.network.layer2.subnets[1]",
    ),
    (CLUSTER_NETWORK, layer2(subnets=[]), "spec.network.layer2.subnets"),
    (CLUSTER_NETWORK, layer2(mtu=1000, subnets=["2001:db8::/64"]), "spec.network.layer2.mtu"),
    (
        CLUSTER_NETWORK,
        layer2(reservedSubnets=OTHER),
        "spec.network.layer2.reservedSubnets[0]",
    ),
    (
        CLUSTER_NETWORK,
        layer2(defaultGatewayIPs=["10.71.0.1"]),
        "spec.network.layer2.defaultGatewayIPs[0]",
    ),
    (
        CLUSTER_NETWORK,
        layer2(defaultGatewayIPs=["none"]),
        "spec.network.layer2.defaultGatewayIPs[0]",
    ),
    (
        CLUSTER_NETWORK,
        layer2(subnets=["fe80::/64"], defaultGatewayIPs=["fe80::1%eth0"]),
        "spec.network.layer2.defaultGatewayIPs[0]",
    ),
    (
        CLUSTER_NETWORK,
        layer2(role="Secondary", defaultGatewayIPs=["10.70.0.1"]),
        "spec.network.layer2.defaultGatewayIPs",
    ),
    (
        CLUSTER_NETWORK,
        cluster({"topology": "Layer3", "layer3": LAYER3}, uplinks=[]),
        "spec.uplinks",
    ),
    (CLUSTER_NETWORK, layer2(ipam={"mode": "Disabled"}), "spec.network.layer2.ipam.mode"),
    (CLUSTER_NETWORK, transport("NoOverlay"), "spec.network.noOverlay"),
    (
        CLUSTER_NETWORK,
        transport("NoOverlay", "Layer2", noOverlay=NO_OVERLAY),
        "spec.network.transport",
    ),
    (CLUSTER_NETWORK, transport("EVPN"), "spec.network.evpn"),
    (CLUSTER_NETWORK, transport("EVPN", evpn=MAC_VRF), "spec.network.evpn.ipVRF"),
    (CLUSTER_NETWORK, transport("EVPN", "Layer2", evpn=IP_VRF), "spec.network.evpn.macVRF"),
    (
        CLUSTER_NETWORK,
        transport("EVPN", evpn={"vtep": "f", "ipVRF": {"vni": 1, "routeTarget": "1:2:3"}}),
        "spec.network.evpn.ipVRF.routeTarget",
    ),
    (
        CLUSTER_NETWORK,
        cluster({**transport("EVPN", evpn=IP_VRF)["spec"]["network"]}, uplinks=["u"]),
        "spec.uplinks",
    ),
    (VTEP, vtep(), "spec.cidrs"),
    (VTEP, vtep("100.72.0.1/24"), "spec.cidrs[0]"),
    (VTEP, vtep("100.72.0.0/24", "100.72.0.0/25"), "spec.cidrs[1]"),
]


@pytest.mark.parametrize(("kind", "value", "field"), REJECTED)
def test_rejected(kind: Kind[Any], value: dict[str, Any], field: str) -> None:
    try:
        errors = kind.decode(value).broken_rules
    except InvalidObject as error:
        errors = error.errors
    assert field in {error.path for error in errors}


def test_a_label_without_quotation_marks_says_how_it_is_written() -> None:
    labels = {"matchLabels": {"advertise": True}}
    selector = {**CLUSTERS, "clusterUserDefinedNetworkSelector": {"networkSelector": labels}}
    (error,) = ROUTE_ADVERTISEMENTS.decode(advertisements(networkSelectors=[selector])).invalid
    assert error.path.endswith("networkSelector.matchLabels.advertise")
    assert error.message == 'expected a string, got a boolean true; write "true"'
