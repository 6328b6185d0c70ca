"""The conditions of VTEPs and of networks with a transport: reasons, and what the messages name."""

from __future__ import annotations

import json
from typing import Any

import pytest

from reconcilers.model import Condition
from tests.reconcilers.ovnk.operator_cluster import (
    CLUSTER_NETWORKS,
    Cluster,
    Json,
    advertisements,
    attachment,
    node,
    source,
)

LAYER3 = {"role": "Primary", "subnets": [{"cidr": "10.61.0.0/16", "hostSubnet": 24}]}
OF_RED: dict[str, Any] = {"networkSelectors": [CLUSTER_NETWORKS]}
SUBNETS = {"default": ["10.180.4.0/23"], "cluster_udn_red": ["10.61.3.0/24"]}


def vtep(name: str, *cidrs: str, mode: str = "Unmanaged") -> Json:
    return {
        "apiVersion": "k8s.ovn.org/v1",
        "kind": "VTEP",
        "metadata": {"name": name, "generation": 3},
        "spec": {"cidrs": list(cidrs), "mode": mode},
    }


def addressed(name: str, text: str | None) -> Json:
    found = node(name, SUBNETS)
    if text is not None:
        found["metadata"]["annotations"]["k8s.ovn.org/vteps"] = text
    return found


def network(transport: str, labels: dict[str, str] | None = None, **block: Any) -> Json:  # noqa: ANN401
    of_network = {"topology": "Layer3", "layer3": LAYER3, "transport": transport, **block}
    return {
        "apiVersion": "k8s.ovn.org/v1",
        "kind": "ClusterUserDefinedNetwork",
        "metadata": {"name": "red", "labels": {"export": "yes"} if labels is None else labels},
        "spec": {"namespaceSelector": {}, "network": of_network},
    }


EVPN = network("EVPN", evpn={"vtep": "fabric", "ipVRF": {"vni": 5200}})
NO_OVERLAY = network("NoOverlay", noOverlay={"outboundSNAT": "Enabled", "routing": "Unmanaged"})
FABRIC = vtep("fabric", "100.72.0.0/24")
ADDRESSES = json.dumps({"fabric": {"ips": ["100.72.0.11"]}})
W1 = addressed("w1", ADDRESSES)


def conditions(cluster: Cluster, kind: str) -> dict[str, Condition]:
    return {one.object.name: one for one in cluster.operate().conditions if one.object.kind == kind}


def reason(cluster: Cluster) -> str:
    """Return the reason of the one network's condition."""
    return conditions(cluster, "ClusterUserDefinedNetwork")["red"].reason


class TestVteps:
    @pytest.mark.parametrize(
        ("objects", "reason", "texts"),
        [
            ([vtep("fabric", "100.72.0.0/24", mode="Managed"), W1], "ManagedModeNotSupported", []),
            ([FABRIC, W1, vtep("other", "100.0.0.0/8")], "CIDROverlap", ["VTEP other"]),
            ([vtep("fabric", "2001:db8::/64"), W1, EVPN], "EVPNIPv6NotSupported", ["red"]),
            ([FABRIC, addressed("w1", None)], "AllocationFailed", ["node w1"]),
            ([FABRIC, addressed("w1", '{"fabric": {"ips": []}}')], "AllocationFailed", ["w1"]),
            ([FABRIC, addressed("w1", "{")], "AllocationFailed", ["w1", "is not JSON"]),
            ([FABRIC, addressed("w1", '{"fabric": 7}')], "AllocationFailed", ["w1"]),
        ],
        ids=["managed", "overlap", "ipv6", "absent", "empty", "no-json", "another-type"],
    )
    def test_the_reason_names_what_is_missing(
        self, objects: list[Json], reason: str, texts: list[str]
    ) -> None:
        found = conditions(Cluster(*objects, evpn=True), "VTEP")["fabric"]
        assert (found.status, found.reason, found.observed_generation) == (False, reason, 3)
        assert [text for text in texts if text not in found.message] == []

    def test_one_of_which_each_node_has_an_address_is_accepted(self) -> None:
        cluster = Cluster(FABRIC, vtep("other", "100.73.0.0/24"), W1, addressed("w2", ADDRESSES))
        assert conditions(cluster, "VTEP") == {}
        cluster = Cluster(FABRIC, W1, addressed("w2", ADDRESSES), evpn=True)
        found = conditions(cluster, "VTEP")["fabric"]
        assert (found.status, found.reason) == (True, "Allocated")

    def test_ipv6_is_for_other_transports_than_evpn(self) -> None:
        cluster = Cluster(vtep("fabric", "2001:db8::/64"), W1, evpn=True)
        assert conditions(cluster, "VTEP")["fabric"].reason == "Allocated"

    def test_both_of_two_that_overlap_are_named_and_a_third_is_not(self) -> None:
        others = [vtep("inner", "100.72.0.128/25"), vtep("apart", "100.80.0.0/24")]
        found = conditions(Cluster(FABRIC, *others, evpn=True), "VTEP")
        assert "VTEP inner" in found["fabric"].message
        assert "VTEP fabric" in found["inner"].message
        assert found["apart"].reason == "Allocated"

    def test_many_nodes_without_an_address_are_a_short_message(self) -> None:
        nodes = [addressed(f"w{i}", None) for i in range(1000)]
        found = conditions(Cluster(FABRIC, *nodes, evpn=True), "VTEP")["fabric"]
        assert "and 997 more" in found.message
        assert len(found.message) < 200


class TestTransports:
    def accepted(self, *objects: Json, **options: Any) -> Cluster:  # noqa: ANN401
        row = advertisements(targetVRF="auto", **OF_RED)
        evpn = {"transport": "evpn", "evpn": {"vtep": "fabric", "ipVRF": {"vni": 5200}}}
        red = attachment("red", "10.61.0.0/16/24", config=evpn)
        found = {one["kind"]: one for one in (W1, source(), red, row, FABRIC, EVPN, *objects)}
        return Cluster(*found.values(), **{"evpn": True, **options})

    def test_evpn_is_accepted_with_its_vtep_and_its_route_advertisements(self) -> None:
        assert reason(self.accepted()) == "EVPNTransportAccepted"

    @pytest.mark.parametrize(
        ("changed", "options", "expected"),
        [
            (W1, {"evpn": False}, "EVPNConfigError"),
            (vtep("other", "100.72.0.0/24"), {}, "VTEPNotFound"),
            (addressed("w1", None), {}, "VTEPNotAccepted"),
            (advertisements(targetVRF="", **OF_RED), {}, "EVPNRouteAdvertisementsNotAccepted"),
            (advertisements(), {}, "EVPNRouteAdvertisementsIsMissing"),
        ],
    )
    def test_evpn_is_rejected(self, changed: Json, options: dict[str, Any], expected: str) -> None:
        assert reason(self.accepted(changed, **options)) == expected

    def test_route_advertisements_of_egress_ips_advertise_no_transport(self) -> None:
        row = advertisements(advertisements=["EgressIP"], **OF_RED)
        assert reason(Cluster(NO_OVERLAY, row)) == "NoOverlayRouteAdvertisementsIsMissing"

    def test_a_network_that_is_selected_before_it_has_a_namespace_is_not_accepted(self) -> None:
        cluster = Cluster(W1, source(), NO_OVERLAY, advertisements(**OF_RED))
        assert cluster.condition().reason == "ConfigurationPending"
        assert reason(cluster) == "NoOverlayRouteAdvertisementsNotAccepted"

    def test_one_of_several_route_advertisements_is_enough(self) -> None:
        red = attachment("red", "10.61.0.0/16/24", config={"transport": "no-overlay"})
        rows = [advertisements(name, **OF_RED) for name in ("a", "b")]
        rows[0]["spec"]["frrConfigurationSelector"] = {"matchLabels": {"fabric": "none"}}
        cluster = Cluster(W1, source(), red, NO_OVERLAY, *rows)
        assert cluster.condition("a").status is False
        assert reason(cluster) == "NoOverlayTransportAccepted"
