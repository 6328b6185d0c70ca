"""A node that advertises the addresses of all Services to one peer, for the tests of their rules."""

from __future__ import annotations

from typing import Any

from reconcilers.dialect import Target
from reconcilers.model import NextHops
from resources.host import Gateway
from speaker.nlri import prefix_to_wire
from tests.reconcilers.build import NODE, Cluster
from tests.support import kinds

PEER = "192.0.2.1"


def cluster(**options: Any) -> Cluster:  # noqa: ANN401
    """Return the node, 192.0.2.9, with one peer, to which both families are advertised."""
    found = Cluster(**options)
    peer = {"name": "p", "peerASN": 1, "peerAddress": PEER, "peerConfigRef": {"name": "p"}}
    instances = [{"name": "i", "localASN": 65001, "peers": [peer]}]
    both: tuple[dict[str, Any], ...] = ({"afi": "ipv4"}, {"afi": "ipv6"})
    families = [{**family, "safi": "unicast", "advertisements": {}} for family in both]
    entry = {
        "advertisementType": "Service",
        "service": {"addresses": ["ExternalIP", "LoadBalancerIP"]},
        "selector": {},
    }
    found.put(
        kinds.CLUSTER_CONFIG,
        {
            "metadata": {"name": "c"},
            "spec": {
                "bgpInstances": instances,
                "nodeSelector": {"matchLabels": {"kubernetes.io/hostname": NODE}},
            },
        },
    )
    found.put(kinds.PEER_CONFIG, {"metadata": {"name": "p"}, "spec": {"families": families}})
    found.put(kinds.ADVERTISEMENT, {"metadata": {"name": "a"}, "spec": {"advertisements": [entry]}})
    node(found, NODE, "192.0.2.9", pods=("10.244.9.0/24",))
    return found


def node(found: Cluster, name: str, *addresses: str, pods: tuple[str, ...] = ()) -> None:
    """Store a Node."""
    listed = [{"type": "InternalIP", "address": address} for address in addresses]
    value = {
        "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name}},
        "spec": {"podCIDRs": list(pods)},
        "status": {"addresses": listed},
    }
    found.put(kinds.NODE, value)


def service(
    found: Cluster,
    *external: str,
    name: str = "web",
    namespace: str = "shop",
    ingress: tuple[str, ...] = (),
    cluster_ip: str = "",
) -> None:
    """Store a Service."""
    spec = {
        "type": "LoadBalancer",
        "clusterIP": cluster_ip,
        "clusterIPs": [cluster_ip] if cluster_ip else [],
        "externalIPs": list(external),
    }
    status = {"loadBalancer": {"ingress": [{"ip": address} for address in ingress]}}
    metadata = {"name": name, "namespace": namespace}
    found.put(kinds.SERVICE, {"metadata": metadata, "spec": spec, "status": status})


def namespace(found: Cluster, name: str, granted: str | None = None) -> None:
    """Store a Namespace, with the annotation or without."""
    annotations = {} if granted is None else {"waggle.dev/service-addresses": granted}
    found.put(kinds.NAMESPACE, {"metadata": {"name": name, "annotations": annotations}})


def gateway(found: Cluster, *addresses: str) -> None:
    """Store the gateways of the host's default routes."""
    with found.db.write(found.resources.gateways) as txn:
        found.resources.gateways.delete_all(txn)
        for address in addresses:
            found.resources.gateways.upsert(txn, Gateway(address))


def next_hops(found: Cluster, *addresses: str) -> None:
    """Store the next hops of the routes that the peer advertises."""
    with found.db.write(found.intent.next_hops) as txn:
        found.intent.next_hops.upsert(txn, NextHops("i", "p", addresses))


def reason(found: Cluster, address: str, name: str = "web") -> str:
    """Return what `waggle explain` has for an address of a Service."""
    text = f"{address}/{128 if ':' in address else 32}"
    explained = [
        one
        for part in found.compiler.explainer().explain(Target(text, prefix=prefix_to_wire(text)))
        for one in part
        if one.object is not None and one.object.name == name and one.type != "ClusterIP"
    ]
    (reason,) = {one.reason for one in explained}
    return reason


def messages(found: Cluster) -> list[str]:
    """Return the problems, as objects and text."""
    return [
        f"{', '.join(problem['objects'])}: {problem['field']}: {problem['message']}"
        for problem in found.render()["problems"]
    ]
