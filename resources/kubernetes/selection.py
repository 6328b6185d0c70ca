"""The objects of each kind that a program requests, by namespace and selector."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec
from msgspec.structs import replace

from resources.core.kinds import SECRET
from resources.host.kinds import NODE_NETWORK
from resources.kind import Kind, Kinds


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


class Reading(msgspec.Struct, frozen=True):
    """What one program reads: some kinds, and of these some objects."""

    kinds: Kinds
    selections: Mapping[str, Selection]
    """By the name of the kind; a kind without one is read whole."""
    node: str | None = None
    """The node whose objects are stored, for kinds that have some of each node; None stores all."""


def of_node(kinds: Iterable[Kind[Any]], node: str, secrets_namespaces: Iterable[str]) -> Reading:
    """Return what the agent of one node reads: no objects of other nodes, Secrets of some namespaces.

    NodeNetworks are left out: they describe nodes in manifests, and the kernel of a node of a
    cluster is read itself.
    """
    selections = {
        kind.name: Selection(fields=kind.of_node.fields.format(node=node))
        for kind in kinds
        if kind.of_node is not None
    }
    reading = _with_secrets(Kinds(kinds).without(NODE_NETWORK), selections, secrets_namespaces)
    return replace(reading, node=node)


def of_cluster(kinds: Iterable[Kind[Any]], secrets_namespaces: Iterable[str]) -> Reading:
    """Return what the operator reads: the objects of all nodes."""
    return _with_secrets(Kinds(kinds).without(NODE_NETWORK), {}, secrets_namespaces)


def _with_secrets(
    kinds: Kinds, selections: Mapping[str, Selection], namespaces: Iterable[str]
) -> Reading:
    """Restrict Secrets to some namespaces; without a namespace no Secret is read."""
    wanted = tuple(dict.fromkeys(namespaces))
    if not wanted:
        return Reading(kinds.without(SECRET), selections)
    return Reading(kinds, {**selections, SECRET.name: Selection(namespaces=wanted)})
