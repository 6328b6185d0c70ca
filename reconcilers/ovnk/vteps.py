"""The addresses of nodes as VTEPs, and the condition Accepted of VTEPs: whether each node has one.

OVN-Kubernetes' controller of VTEPs runs with its own RouteAdvertisements alone: with ``generate`` the
operator reports in its place. Source: OVN-Kubernetes, ``go-controller/pkg/clustermanager/vtep``. Pure.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, TypeAlias

from reconcilers.model import Condition, ref_to
from reconcilers.ovnk.conditions import ACCEPTED
from reconcilers.ovnk.parsed_annotation import parsed_annotation
from reconcilers.ovnk.selection import Advertised
from resources.core import Node
from resources.enumeration import enumerate_nodes, enumerate_some
from resources.ovnk import node_annotations
from resources.ovnk.kinds import VTEP
from resources.ovnk.networks import ClusterUserDefinedNetwork
from resources.ovnk.node_annotations import AnnotationError
from resources.ovnk.vtep import Vtep

_SHOWN: Final = 3
"""Names in a message."""
_Network: TypeAlias = ipaddress.IPv4Network | ipaddress.IPv6Network


def vtep_addresses(advertised: Advertised, node: Node) -> Mapping[str, tuple[str, ...]]:
    """Return the addresses of a node by VTEP, for the VTEPs of EVPN networks."""
    if not advertised.vteps:
        return {}
    by_name = parsed_annotation(node, node_annotations.VTEPS, node_annotations.vteps) or {}
    return {name: by_name[name] for name in advertised.vteps if name in by_name}


def accepted_vteps(
    vteps: Sequence[Vtep], clusters: Iterable[ClusterUserDefinedNetwork], nodes: Sequence[Node]
) -> Iterator[Condition]:
    """Yield the condition Accepted of each VTEP: each node has an address to tunnel to."""
    if not vteps:
        return
    users: dict[str, list[str]] = {}
    for row in clusters:
        if row.spec.network.evpn is not None:
            users.setdefault(row.spec.network.evpn.vtep, []).append(row.metadata.name)
    others = _overlapping(vteps)
    addressed = _addressed(nodes)
    for vtep in vteps:
        name = vtep.metadata.name
        reason, text = _rejection(vtep, sorted(users.get(name, ())), others.get(name, set()))
        if not reason:
            reason, text = _allocation(name, addressed)
        generation = vtep.metadata.generation or None
        status = reason == "Allocated"
        yield Condition(ref_to(VTEP, vtep), ACCEPTED, status, reason, text, generation)


def _rejection(vtep: Vtep, users: Sequence[str], others: Iterable[str]) -> tuple[str, str]:
    """Return reason and message of a VTEP that is not accepted whatever the nodes have."""
    if vtep.spec.mode == "Managed":
        return "ManagedModeNotSupported", "mode Managed is not supported: set mode: Unmanaged"
    if others:
        names = enumerate_some(sorted(others), _SHOWN)
        return "CIDROverlap", f"spec.cidrs overlap with VTEP {names}"
    ipv6 = [cidr for cidr in vtep.spec.cidrs if ":" in cidr]
    if ipv6 and users:
        text = f"{ipv6[0]}: EVPN has no IPv6 addresses of VTEPs; ClusterUserDefinedNetwork"
        return "EVPNIPv6NotSupported", f"{text} {enumerate_some(users, _SHOWN)} has this VTEP"
    return "", ""


def _allocation(name: str, addressed: Mapping[str, frozenset[str] | str]) -> tuple[str, str]:
    """Return reason and message of the addresses that the nodes have."""
    without: list[str] = []
    for node, names in addressed.items():
        if isinstance(names, str):
            return "AllocationFailed", f"node {node}: annotation {node_annotations.VTEPS} {names}"
        if name not in names:
            without.append(node)
    if without:
        some = enumerate_nodes(without, _SHOWN)
        return "AllocationFailed", f"no address of {some} in annotation {node_annotations.VTEPS}"
    return "Allocated", "each node has an address"


def _addressed(nodes: Iterable[Node]) -> dict[str, frozenset[str] | str]:
    """Return the VTEPs of which each node has an address; a wrong annotation's error as a clause."""
    addressed: dict[str, frozenset[str] | str] = {}
    for node in nodes:
        text = node.metadata.annotations.get(node_annotations.VTEPS, "{}")
        try:
            by_name = node_annotations.vteps(text)
        except AnnotationError as error:
            addressed[node.metadata.name] = str(error)
            continue
        addressed[node.metadata.name] = frozenset(
            name for name, addresses in by_name.items() if addresses
        )
    return addressed


def _overlapping(vteps: Iterable[Vtep]) -> dict[str, set[str]]:
    """Return the VTEPs with a common address, by name; one pass over all prefixes in their order."""
    placed: list[tuple[_Network, str]] = []
    for vtep in vteps:
        placed += ((ipaddress.ip_network(cidr), vtep.metadata.name) for cidr in vtep.spec.cidrs)
    placed.sort(key=lambda item: (item[0].version, item[0].network_address, item[0].prefixlen))
    others: dict[str, set[str]] = {}
    around: list[tuple[_Network, str]] = []
    for network, name in placed:
        while around and not (
            around[-1][0].version == network.version and around[-1][0].overlaps(network)
        ):
            around.pop()
        for _, other in around:
            if other != name:
                others.setdefault(name, set()).add(other)
                others.setdefault(other, set()).add(name)
        around.append((network, name))
    return others
