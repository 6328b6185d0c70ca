"""The objects of each kind that a program requests, by namespace and selector."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from types import MappingProxyType
from typing import Any

import msgspec
from msgspec.structs import replace

from resources.core.kinds import SECRET
from resources.host.kinds import NODE_NETWORK
from resources.kind import Kind, Kinds
from resources.meta import ObjectKey


class Selection(msgspec.Struct, frozen=True, kw_only=True):
    """A part of a kind's objects; the default is all of them."""

    namespaces: tuple[str, ...] = ()
    """Empty: all. Each is listed by itself, so that a Role of that namespace is enough."""
    fields: str = ""
    labels: str = ""
    by_name: bool = False
    """Only the objects that `KubernetesSource.follow` names, each by a request of its own."""
    metadata_only: bool = False
    """The API server sends the metadata of the objects alone, and of it no annotation is kept."""
    other_nodes: bool = False
    """True if of the objects of other nodes a reduced row is stored (`NodeFilter.reduced`)."""

    @property
    def parameters(self) -> list[tuple[str, str]]:
        """The query parameters of the selection: ``fieldSelector`` and ``labelSelector``."""
        parameters = (("fieldSelector", self.fields), ("labelSelector", self.labels))
        return [(name, value) for name, value in parameters if value]


EVERYTHING = Selection()


class Reading(msgspec.Struct, frozen=True):
    """The reading of one program: some kinds, and of these some objects."""

    kinds: Kinds
    selections: Mapping[str, Selection]
    """By the name of the kind; a kind without one is read whole."""
    node: str | None = None
    """The node whose objects are stored, for kinds that have some of each node; None stores all."""


def of_node(
    kinds: Iterable[Kind[Any]],
    node: str,
    of_all_nodes: Collection[Kind[Any]] = (),
    single: Mapping[Kind[Any], ObjectKey] = MappingProxyType({}),
) -> Reading:
    """Return the selection of a node's agent: no objects of other nodes, Secrets by name.

    Of the kinds ``of_all_nodes`` the objects of other nodes are stored as well, reduced; of kinds in
    ``single`` one object alone.
    NodeNetworks are not stored: they describe nodes in manifests, and the kernel of a node of a
    cluster is read itself.
    """
    selections = {
        kind.name: Selection(other_nodes=True)
        if kind in of_all_nodes
        else Selection(fields=kind.of_node.fields.format(node=node))
        for kind in kinds
        if kind.of_node is not None and kind.of_node.fields
    }
    for kind, (namespace, name) in single.items():
        selections[kind.name] = Selection(namespaces=(namespace,), fields=f"metadata.name={name}")
    secrets = Selection(by_name=True)
    return replace(_reading((*kinds, *single), selections, secrets), node=node)


def of_cluster(
    kinds: Iterable[Kind[Any]], single: Mapping[Kind[Any], str] = MappingProxyType({})
) -> Reading:
    """Return the selection of the operator: objects of all nodes, of Secrets that they exist.

    Of the cluster-scoped kinds in ``single`` it reads the object of that name alone.
    """
    selections = {
        kind.name: Selection(fields=f"metadata.name={name}") for kind, name in single.items()
    }
    return _reading(kinds, selections, Selection(by_name=True, metadata_only=True))


def _reading(
    kinds: Iterable[Kind[Any]], selections: Mapping[str, Selection], secrets: Selection
) -> Reading:
    wanted = Kinds(kinds).without(NODE_NETWORK)
    by_name = {SECRET.name: secrets} if SECRET in wanted else {}
    return Reading(wanted, {**selections, **by_name})
