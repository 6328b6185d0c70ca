"""The facts of a Node: its families, pod CIDRs and transport addresses, and its router ID. Pure."""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping
from typing import Final, NamedTuple

from reconcilers.model import ObjectAnnotations, ObjectRef, Problem
from resources.addresses import canonical_address
from resources.core import Node
from speaker.nlri import IPV4_UNICAST, IPV6_UNICAST, Family, prefix_to_wire

ROUTER_ID_ANNOTATION: Final = "node.antrea.io/bgp-router-id"
INTERNAL_IP: Final = "InternalIP"
_FNV_OFFSET, _FNV_PRIME = 0x811C9DC5, 0x01000193
"""FNV-1a of 32 bits. Source: draft-eastlake-fnv, section 5."""


class NodeFacts(NamedTuple):
    """The network of a node."""

    transport: Mapping[Family, str]
    """The first InternalIP of each enabled family."""
    pod_cidrs: Mapping[Family, tuple[bytes, ...]]
    """Of enabled families, as wire bytes."""
    problems: tuple[Problem, ...] = ()

    @property
    def families(self) -> tuple[Family, ...]:
        """The families that a Node has enabled for Antrea."""
        return tuple(sorted(self.transport))


class RouterId(NamedTuple):
    """The router ID of a node."""

    text: str
    annotated: bool
    """False where the node has no annotation: the operator writes it."""
    problem: Problem | None = None


def node_facts(node: Node) -> NodeFacts:
    """Return the facts of a Node for Antrea: a family is enabled with a pod CIDR and an address.

    A node without any pod CIDR has the families of its addresses.
    """
    ref = ObjectRef("Node", "", node.metadata.name)
    addresses = _first_addresses(node)
    cidrs: dict[Family, tuple[bytes, ...]] = {}
    problems: list[Problem] = []
    for i, text in enumerate(node.pod_networks):
        family, nlri = prefix_to_wire(text)
        if family in addresses:
            cidrs[family] = (*cidrs.get(family, ()), nlri)
            continue
        message = f"{text} is not used: the node has no {INTERNAL_IP} of its family"
        problems.append(Problem((ref,), f"spec.podCIDRs[{i}]", message))
    enabled = cidrs if node.pod_networks else addresses
    transport = {family: text for family, text in addresses.items() if family in enabled}
    if not addresses:
        message = f"the node has no {INTERNAL_IP}: none of its peers is configured"
        problems.append(Problem((ref,), "status.addresses", message))
    return NodeFacts(transport, cidrs, tuple(problems))


def _first_addresses(node: Node) -> dict[Family, str]:
    first: dict[Family, str] = {}
    for item in node.status.addresses:
        if item.type != INTERNAL_IP:
            continue
        try:
            address = canonical_address(item.address)
        except ValueError:
            continue
        first.setdefault(IPV6_UNICAST if ":" in address else IPV4_UNICAST, address)
    return first


def router_id(node: Node, facts: NodeFacts) -> RouterId:
    """Return a Node's router ID for Antrea: the annotation, the IPv4 address, or a hash."""
    generated = facts.transport.get(IPV4_UNICAST) or hashed_router_id(node.metadata.name)
    text = node.metadata.annotations.get(ROUTER_ID_ANNOTATION)
    if text is None:
        return RouterId(generated, annotated=False)
    if _is_router_id(text):
        return RouterId(text, annotated=True)
    shown = text if len(text) <= 64 else f"{text[:63]}…"
    message = f"{shown!r} is not an IPv4 address other than 0.0.0.0; {generated} is used"
    ref = ObjectRef("Node", "", node.metadata.name)
    field = f"metadata.annotations[{ROUTER_ID_ANNOTATION}]"
    return RouterId(generated, annotated=True, problem=Problem((ref,), field, message))


def _is_router_id(text: str) -> bool:
    try:
        return text.isascii() and int(ipaddress.IPv4Address(text)) != 0
    except ValueError:
        return False


def annotated(node: Node, text: str) -> ObjectAnnotations:
    """Return the annotation of a Node with its router ID, as Antrea's agent writes it."""
    ref = ObjectRef("Node", "", node.metadata.name)
    return ObjectAnnotations(ref, {ROUTER_ID_ANNOTATION: text}, node.metadata.uid)


def hashed_router_id(name: str) -> str:
    """Return the FNV-1a hash of a Node's name as router ID, as Antrea does without IPv4."""
    value = _FNV_OFFSET
    for octet in name.encode():
        value = (value ^ octet) * _FNV_PRIME & 0xFFFFFFFF
    return str(ipaddress.IPv4Address(value))
