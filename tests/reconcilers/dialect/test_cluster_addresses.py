"""The addresses of nodes, Pods and peers that the objects of each dialect have."""

from __future__ import annotations

from typing import Any

from reconcilers.antrea.dialect import AntreaDialect
from reconcilers.cilium.dialect import CiliumDialect
from reconcilers.dialect import ClusterAddresses, Dialect, ReservedAddresses
from reconcilers.frrk8s.dialect import Frrk8sDialect
from reconcilers.metallb.dialect import MetalLBDialect
from resources.tables import Tables
from statedb import Database
from tests.reconcilers.cilium.v1.build import policy_object
from tests.support.dialects import extension


def addresses(
    dialect_type: type[Dialect], *objects: dict[str, Any], node: str | None = None
) -> ClusterAddresses:
    db = Database()
    tables = Tables(db, [*dialect_type.kinds, *dialect_type.cluster_kinds])
    for value in objects:
        kind = tables.kinds.named(value["kind"])
        assert kind is not None
        with db.write(tables.of(kind)) as txn:
            tables.of(kind).upsert(txn, kind.decode(value))
    dialect = dialect_type(tables, dialect_type.options_type())
    return extension(dialect, ReservedAddresses).addresses(dialect, db.snapshot(), node)


def cilium_node(name: str, address: str, pods: str, pool: str) -> dict[str, Any]:
    ipam = {"podCIDRs": [pods], "pools": {"allocated": [{"pool": "p", "cidrs": [pool]}]}}
    spec = {"addresses": [{"type": "CiliumInternalIP", "ip": address}], "ipam": ipam}
    return {"kind": "CiliumNode", "metadata": {"name": name}, "spec": spec}


def test_cilium_has_addresses_of_cilium_nodes_and_of_all_peers_of_both_versions() -> None:
    peer = {"name": "p", "peerASN": 1, "peerAddress": "192.0.2.1"}
    instances = [{"name": "i", "localASN": 1, "peers": [peer, {"name": "q", "peerASN": 1}]}]
    found = addresses(
        CiliumDialect,
        cilium_node("n1", "10.0.1.1", "10.0.1.0/24", "10.1.0.0/28"),
        cilium_node("n2", "10.0.2.1", "10.0.2.0/24", "10.1.0.16/28"),
        {
            "kind": "CiliumBGPClusterConfig",
            "metadata": {"name": "c"},
            "spec": {"bgpInstances": instances},
        },
        {"kind": "CiliumBGPPeeringPolicy", **policy_object("old")},
    )
    assert found.nodes == {"10.0.1.1", "10.0.2.1"}
    assert found.pods == {"10.0.1.0/24", "10.0.2.0/24", "10.1.0.0/28", "10.1.0.16/28"}
    assert "192.0.2.1" in found.peers
    assert len(found.peers) > 1


def test_cilium_has_the_local_addresses_of_the_sessions_of_all_nodes() -> None:
    def of_node(kind: str, name: str, address: str) -> dict[str, Any]:
        peers = [{"name": "p", "localAddress": address}, {"name": "q"}]
        instances = [{"name": "i", "peers": peers}]
        if kind == "CiliumBGPNodeConfig":
            instances[0]["localASN"] = 1  # type: ignore[assignment]
        return {"kind": kind, "metadata": {"name": name}, "spec": {"bgpInstances": instances}}

    found = addresses(
        CiliumDialect,
        of_node("CiliumBGPNodeConfigOverride", "n1", "203.0.113.1"),
        of_node("CiliumBGPNodeConfigOverride", "n2", "203.0.113.2"),
        of_node("CiliumBGPNodeConfig", "n3", "203.0.113.3"),
    )
    assert found.nodes == {"203.0.113.1", "203.0.113.2", "203.0.113.3"}


def test_of_one_node_cilium_has_its_pod_networks_alone() -> None:
    nodes = [
        cilium_node("n1", "10.0.1.1", "10.0.1.0/24", "10.1.0.0/28"),
        cilium_node("n2", "10.0.2.1", "10.0.2.0/24", "10.1.0.16/28"),
    ]
    assert addresses(CiliumDialect, *nodes, node="n1").pods == {"10.0.1.0/24", "10.1.0.0/28"}


def test_antrea_has_the_peers_of_bgp_policies() -> None:
    spec = {
        "nodeSelector": {},
        "localASN": 64512,
        "advertisements": {"service": {"ipTypes": ["ExternalIP"]}},
        "bgpPeers": [{"address": "192.0.2.1", "asn": 64513}],
    }
    policy = {"kind": "BGPPolicy", "metadata": {"name": "p"}, "spec": spec}
    assert addresses(AntreaDialect, policy).peers == {"192.0.2.1"}


def test_metallb_has_both_ends_of_the_sessions_of_its_namespace() -> None:
    def peer(namespace: str, address: str, local: str) -> dict[str, Any]:
        spec = {"myASN": 64512, "peerASN": 64513, "peerAddress": address, "sourceAddress": local}
        metadata = {"name": "p", "namespace": namespace}
        return {"kind": "BGPPeer", "metadata": metadata, "spec": spec}

    found = addresses(
        MetalLBDialect,
        peer("metallb-system", "192.0.2.1", "192.0.2.101"),
        peer("shop", "192.0.2.2", "192.0.2.102"),
    )
    assert found.peers == {"192.0.2.1"}
    assert found.nodes == {"192.0.2.101"}


def test_frrk8s_has_both_ends_of_the_sessions_of_its_namespace() -> None:
    def configuration(namespace: str, address: str, local: str) -> dict[str, Any]:
        neighbors = [
            {"address": address, "asn": 64513, "sourceaddress": local},
            {"address": "192.0.2.1", "asn": 64513, "sourceaddress": "eth1"},
        ]
        routers = [{"asn": 64512, "neighbors": neighbors}]
        metadata = {"name": "c", "namespace": namespace}
        return {
            "kind": "FRRConfiguration",
            "metadata": metadata,
            "spec": {"bgp": {"routers": routers}},
        }

    found = addresses(
        Frrk8sDialect,
        configuration("frr-k8s-system", "192.0.2.1", "192.0.2.101"),
        configuration("shop", "192.0.2.2", "192.0.2.102"),
    )
    assert found.peers == {"192.0.2.1"}
    assert found.nodes == {"192.0.2.101"}
