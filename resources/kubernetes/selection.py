"""The objects of each kind that a program requests, by namespace and selector."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
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
    names: tuple[ObjectKey, ...] = ()
    """More objects, each by namespace and name, and each listed by itself."""
    fields: str = ""
    labels: str = ""

    @property
    def parameters(self) -> list[tuple[str, str]]:
        """The query parameters."""
        found = (("fieldSelector", self.fields), ("labelSelector", self.labels))
        return [(name, value) for name, value in found if value]

    @property
    def parts(self) -> list[tuple[str, Selection]]:
        """The lists that it consists of: a namespace, empty for all, and what is selected in it."""
        namespaces = self.namespaces or (() if self.names else ("",))
        found = [(namespace, self) for namespace in namespaces]
        for namespace, name in self.names:
            if namespace not in namespaces:
                found.append((namespace, replace(self, fields=f"metadata.name={name}")))
        return found


EVERYTHING = Selection()


class Reading(msgspec.Struct, frozen=True):
    """What one program reads: some kinds, and of these some objects."""

    kinds: Kinds
    selections: Mapping[str, Selection]
    """By the name of the kind; a kind without one is read whole."""
    node: str | None = None
    """The node whose objects are stored, for kinds that have some of each node; None stores all."""


def of_node(
    kinds: Iterable[Kind[Any]],
    node: str,
    secrets_namespaces: Iterable[str],
    named_secrets: Iterable[ObjectKey] = (),
) -> Reading:
    """Return what the agent of one node reads: no objects of other nodes, Secrets of some namespaces.

    Of these namespaces only if Secret is one of the kinds; ``named_secrets`` are single ones.

    NodeNetworks are left out: they describe nodes in manifests, and the kernel of a node of a
    cluster is read itself.
    """
    selections = {
        kind.name: Selection(fields=kind.of_node.fields.format(node=node))
        for kind in kinds
        if kind.of_node is not None
    }
    reading = _with_secrets(
        Kinds(kinds).without(NODE_NETWORK), selections, secrets_namespaces, named_secrets
    )
    return replace(reading, node=node)


def of_cluster(kinds: Iterable[Kind[Any]], secrets_namespaces: Iterable[str]) -> Reading:
    """Return what the operator reads: the objects of all nodes."""
    return _with_secrets(Kinds(kinds).without(NODE_NETWORK), {}, secrets_namespaces)


def _with_secrets(
    kinds: Kinds,
    selections: Mapping[str, Selection],
    namespaces: Iterable[str],
    named: Iterable[ObjectKey] = (),
) -> Reading:
    """Restrict Secrets to some namespaces and some names; without any no Secret is read."""
    wanted = tuple(dict.fromkeys(namespaces)) if SECRET in kinds else ()
    names = tuple(dict.fromkeys(named))
    if not wanted and not names:
        return Reading(kinds.without(SECRET), selections)
    selection = Selection(namespaces=wanted, names=names)
    return Reading(Kinds(kinds, (SECRET,)), {**selections, SECRET.name: selection})
