"""Which objects of a kind are asked for: what a node does not need, it does not hold."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from resources.kinds import (
    ADVERTISEMENT,
    CILIUM_NODE,
    CLUSTER_CONFIG,
    KINDS,
    LOAD_BALANCER_IP_POOL,
    NODE,
    NODE_CONFIG,
    NODE_CONFIG_OVERRIDE,
    NODE_NETWORK,
    PEER_CONFIG,
    PEERING_POLICY,
    SECRET,
    Kind,
)


class Selection(msgspec.Struct, frozen=True, kw_only=True):
    """A part of a kind's objects; the default is all of them."""

    namespaces: tuple[str, ...] = ()
    """Empty: all. Each is listed by itself, so that a Role of that namespace is enough."""
    fields: str = ""
    labels: str = ""

    @property
    def parameters(self) -> list[tuple[str, str]]:
        """The query parameters."""
        found = (("fieldSelector", self.fields), ("labelSelector", self.labels))
        return [(name, value) for name, value in found if value]


EVERYTHING = Selection()
NODE_KINDS = tuple(kind for kind in KINDS if kind is not NODE_NETWORK)
"""What an agent reads. NodeNetworks are for manifests: a node of a cluster has a kernel to ask."""
CLUSTER_KINDS = (
    NODE,
    CILIUM_NODE,
    SECRET,
    CLUSTER_CONFIG,
    PEER_CONFIG,
    NODE_CONFIG,
    NODE_CONFIG_OVERRIDE,
)
"""What the operator reads."""
TRANSLATION_KINDS = (PEERING_POLICY, ADVERTISEMENT, LOAD_BALANCER_IP_POOL)
"""What it reads as well where it translates Cilium's v1 policies."""


class Reading(msgspec.Struct, frozen=True):
    """What one program reads: some kinds, and of these some objects."""

    kinds: tuple[Kind[Any], ...]
    selections: Mapping[str, Selection]


def of_node(node: str, secrets_namespaces: Iterable[str]) -> Reading:
    """What the agent of one node needs: not other nodes, not other namespaces' Secrets."""
    own = Selection(fields=f"metadata.name={node}")
    kinds = (NODE, CILIUM_NODE, NODE_CONFIG, NODE_CONFIG_OVERRIDE)
    return _with_secrets(NODE_KINDS, {kind.name: own for kind in kinds}, secrets_namespaces)


def of_cluster(secrets_namespaces: Iterable[str], *, translate: bool = False) -> Reading:
    """What the operator needs: all nodes, and no Service."""
    kinds = (*CLUSTER_KINDS, *TRANSLATION_KINDS) if translate else CLUSTER_KINDS
    return _with_secrets(kinds, {}, secrets_namespaces)


def _with_secrets(
    kinds: tuple[Kind[Any], ...], selections: Mapping[str, Selection], namespaces: Iterable[str]
) -> Reading:
    """Add the Secrets of some namespaces; without a namespace no Secret is read."""
    wanted = tuple(dict.fromkeys(namespaces))
    if not wanted:
        return Reading(tuple(kind for kind in kinds if kind is not SECRET), selections)
    return Reading(kinds, {**selections, SECRET.name: Selection(namespaces=wanted)})
