"""A StateDB table per kind, and a table of the problems of sources."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final, TypeVar

from resources.core import EndpointSlice, Namespace, Node, Secret, Service
from resources.core import kinds as core
from resources.errors import ObjectName
from resources.host import Gateway, Host, KernelRoute, NodeNetwork
from resources.host.kinds import NODE_NETWORK
from resources.kind import Kind, Kinds
from resources.meta import Resource
from resources.source import SourceProblem
from statedb import Database, Index, Key, ReadTxn, Table

T = TypeVar("T", bound=Resource)

KEY: Final = "key"
"""The primary index of every resource table: (namespace, name)."""


def _problem_key(row: SourceProblem) -> Key:
    return (row.file, row.document, str(row.object or ""), row.field, row.message)


class Tables:
    """The tables of Kubernetes' own kinds, of the host, and of the kinds of API dialects."""

    def __init__(self, db: Database, kinds: Iterable[Kind[Any]] = ()) -> None:
        """``kinds`` are the kinds of the dialects."""
        self.kinds = Kinds(core.KINDS, (core.CONFIG_MAP, NODE_NETWORK), kinds)
        self.manifest_kinds = self.kinds.without(core.CONFIG_MAP)
        """The kinds that are read of manifests."""
        self._by_kind: dict[str, Table[Any]] = {
            kind.name: db.table(kind.table, Index(KEY, lambda row: row.key), kind.indexes)
            for kind in self.kinds
        }
        self.nodes: Table[Node] = self.of(core.NODE)
        self.namespaces: Table[Namespace] = self.of(core.NAMESPACE)
        self.services: Table[Service] = self.of(core.SERVICE)
        self.endpoint_slices: Table[EndpointSlice] = self.of(core.ENDPOINT_SLICE)
        self.secrets: Table[Secret] = self.of(core.SECRET)
        self.node_networks: Table[NodeNetwork] = self.of(NODE_NETWORK)
        self.host: Table[Host] = db.table("host", Index(KEY, lambda row: row.key))
        """The state of this host's kernel: one row, or none before the first netlink dump."""
        self.gateways: Table[Gateway] = db.table("gateways", Index(KEY, lambda row: (row.address,)))
        """Gateways of this host's default routes; empty until they have been read."""
        self.kernel_routes: Table[KernelRoute] = db.table(
            "kernel-routes", Index(KEY, lambda row: row.key)
        )
        """Routes of this host that other programs have installed, and that objects redistribute."""
        self.source_problems: Table[SourceProblem] = db.table(
            "source-problems", Index(KEY, _problem_key)
        )
        self.unread_objects: Table[ObjectName] = db.table(
            "unread-objects", Index(KEY, lambda row: (row.kind, row.namespace, row.name))
        )
        """Objects that are read one by one (Secrets) and could not be read, or not yet, and kinds that
        may not be read, without a name: an object without a row in the table of its kind may exist."""

    def of(self, kind: Kind[T]) -> Table[T]:
        """Return a kind's table. Raises `KeyError` for a kind that is not one of `kinds`."""
        return self._by_kind[kind.name]

    def in_namespace(self, txn: ReadTxn, kind: Kind[T], namespace: str) -> Iterator[T]:
        """Iterate over the rows of a kind's table in a namespace, in no particular order."""
        return self._by_kind[kind.name].prefix(txn, KEY, (namespace,))

    def is_of_tenant(self, problem: SourceProblem) -> bool:
        """True if the tables' problem is of an object that users of a namespace stored.

        Manifests are written by the administrator of the agent.
        """
        kind = None if problem.object is None else self.kinds.named(problem.object.kind)
        return bool(problem.uid) and kind is not None and kind.of_tenants

    @property
    def resources(self) -> tuple[Table[Any], ...]:
        """The tables of all kinds of resources."""
        return tuple(self._by_kind.values())
