"""Egress IPs and Pods by node: the prefixes of EgressIPs, and the networks that a node has. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from reconcilers.ovnk.attached_networks import DEFAULT, PRIMARY_NAMESPACE
from resources.addresses import canonical_address
from resources.core import Namespace
from resources.ovnk.egressip import EgressIP
from resources.ovnk.pod import Pod

ByNode = dict[str, dict[str, tuple[str, ...]]]
"""By node and network: the prefixes of egress IPs."""


def network_of_namespaces(
    namespaces: Iterable[Namespace], primary: Mapping[str, str]
) -> dict[str, tuple[Namespace, str]]:
    """Return the network of the Pods of each namespace, where it is known, for EgressIPs.

    ``primary`` has the namespaces with a network in place of the default one.
    """
    networks = {}
    for row in namespaces:
        name = row.metadata.name
        network = primary.get(name)
        if network is None:
            if PRIMARY_NAMESPACE in row.metadata.labels:
                # It waits for its network.
                continue
            network = DEFAULT
        networks[name] = (row, network)
    return networks


def egress_ips(rows: Iterable[EgressIP], namespaces: Mapping[str, tuple[Namespace, str]]) -> ByNode:
    """Return the egress IPs of nodes, of EgressIPs that serve a namespace of a network."""
    by_node: dict[str, dict[str, set[str]]] = {}
    for row in rows:
        items = [
            (item.node, _host_prefix(item.egress_ip)) for item in row.status.items if item.node
        ]
        if not items:
            continue
        selector = row.spec.namespace_selector
        networks = {
            network
            for namespace, network in namespaces.values()
            if selector.matches(namespace.metadata.labels)
        }
        for node, prefix in items:
            if prefix is None:
                continue
            of_node = by_node.setdefault(node, {})
            for network in networks:
                of_node.setdefault(network, set()).add(prefix)
    return {
        node: {name: tuple(sorted(prefixes)) for name, prefixes in of_node.items()}
        for node, of_node in by_node.items()
    }


def _host_prefix(text: str) -> str | None:
    try:
        address = canonical_address(text)
    except ValueError:
        return None
    return f"{address}/{128 if ':' in address else 32}"


def active_networks(
    pods: Iterable[Pod], namespaces: Mapping[str, tuple[Namespace, str]], egress: ByNode
) -> dict[str, frozenset[str]]:
    """Return the networks that each node has Pods or egress IPs of."""
    active: dict[str, set[str]] = {node: set(networks) for node, networks in egress.items()}
    for pod in pods:
        if pod.uses_network:
            namespace = namespaces.get(pod.metadata.namespace)
            if namespace is not None:
                active.setdefault(pod.spec.node_name, set()).add(namespace[1])
    return {node: frozenset(networks) for node, networks in active.items()}
