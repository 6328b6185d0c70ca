"""The tables of the neutral intent, and the reconcile status of each of its objects.

A kind of row is declared once, in `IntentTables`: what the compiler and the operator's part write, and
what ``waggle render`` prints, follow from the declaration.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final, Generic, Literal, TypeAlias, TypeVar, overload

from msgspec.structs import replace

from reconcilers.bfd_session import BfdCounters, BfdProcess, BfdSession
from reconcilers.kernel_state import KernelNextHops, KernelSettings, KernelTable
from reconcilers.model import (
    AdvertiseLimit,
    Condition,
    Delete,
    Generated,
    Instance,
    LearnedLimit,
    NextHops,
    ObjectAnnotations,
    ObjectRef,
    Peer,
    PendingDialect,
    Problem,
    ReconcileStatus,
    Route,
    SessionAddress,
    UnsentRoutes,
)
from resources.row_updates import replace_all
from statedb import Database, Index, Key, ReadTxn, Snapshot, Table, WriteTxn

T = TypeVar("T")
Json = dict[str, Any]

KEY = "key"
BY_OBJECT = "object"
"""Routes by (route set, object that caused it)."""
BY_ROUTE_SET = "by-route-set"
"""Peers by (route set that they get, instance)."""
BY_PASSWORD = "by-password"  # noqa: S105  the name of an index
"""Peers by (kind, namespace, name) of the object with their password."""


def object_id(ref: ObjectRef) -> str:
    """Return the key of an object in the indexes of the intent's tables."""
    return f"{ref.kind}/{ref.namespace}/{ref.name}"


def _route_objects(route: Route) -> tuple[Key, ...]:
    if len(route.contributions) == 1:
        return ((route.route_set, object_id(route.contributions[0].origin.object)),)
    objects = dict.fromkeys([c.origin.object for c in route.contributions])
    return tuple([(route.route_set, object_id(ref)) for ref in objects])


def _peer_route_sets(peer: Peer) -> tuple[Key, ...]:
    return () if peer.route_set is None else ((peer.route_set, peer.instance),)


def _peer_passwords(peer: Peer) -> tuple[Key, ...]:
    if peer.password is None:
        return ()
    owner = peer.password.owner
    return ((owner.kind, owner.namespace, owner.name),)


def _problem_key(row: Problem) -> Key:
    return (" ".join(object_id(ref) for ref in row.objects), row.field, row.message)


def _route_key(row: Route) -> Key:
    return (row.route_set, row.family, row.nlri)


def _of_family(row: UnsentRoutes | LearnedLimit | AdvertiseLimit) -> Key:
    return (row.instance, row.peer, row.family)


def _of_peer(row: BfdSession | BfdCounters) -> Key:
    return (row.instance, row.peer)


def _condition_item(row: Condition) -> Json:
    return {
        "kind": row.object.kind,
        "namespace": row.object.namespace or None,
        "name": row.object.name,
        "type": row.type,
        "status": "True" if row.status else "False",
        "reason": row.reason,
        "message": row.message,
    }


def _annotations_item(row: ObjectAnnotations) -> Json:
    return {
        "kind": row.object.kind,
        "namespace": row.object.namespace or None,
        "name": row.object.name,
        "set": dict(sorted(row.annotations.items())),
    }


def problem_item(row: Problem) -> Json:
    """Return a row of the intent's table of problems as JSON."""
    return {
        "objects": [str(ref) for ref in row.objects],
        "field": row.field,
        "message": row.message,
        "category": row.category,
        "count": row.count,
        "ofTenant": row.of_tenant,
    }


Writer: TypeAlias = Literal["compiler", "dialects", "operator", "agent"]
"""The compiler, the compiler with the rows of each `NodeIntent`, the operator's part alone, or jobs
beside these."""


class RowKind(Generic[T]):
    """A kind of intent row: everything that is declared of it; the name is that of the attribute."""

    def __init__(
        self,
        row: type[T],
        key: Callable[[T], Any],
        *indexes: Index[T],
        table: str = "",
        writer: Writer,
        of_cluster: bool = False,
        cleared: bool = False,
        item: Callable[[T], Any] | None = None,
        shown_as: str = "",
        order: Callable[[T], Any] = lambda row: row,
    ) -> None:
        """``table`` is the name of the table, where it is not that of the attribute.

        ``of_cluster``: the operator's part has rows, too (`ClusterIntent`), and replaces these alone;
        ``cleared``: a new compiler begins without rows; ``item`` is the form of ``waggle render``, in
        the order of ``order``, and ``shown_as`` the key there, where it is not the name.
        """
        self.row = row
        self.name = self._table = table
        self._primary = Index(KEY, key)
        self._indexes = indexes
        self.writer = writer
        self.of_cluster = of_cluster
        self.cleared = cleared
        self.item = item
        self.shown_as = shown_as
        self._order = order

    def __set_name__(self, owner: type, name: str) -> None:
        """Take the name of the attribute."""
        self.name, self._table = name, self._table or name

    if TYPE_CHECKING:
        # An instance has its tables as attributes of the same names.

        @overload
        def __get__(self, tables: None, owner: type) -> RowKind[T]: ...
        @overload
        def __get__(self, tables: IntentTables, owner: type) -> Table[T]: ...
        def __get__(self, tables: IntentTables | None, owner: type) -> RowKind[T] | Table[T]: ...

    def create(self, db: Database) -> Table[T]:
        """Add the table of this kind of intent row to a database."""
        return db.table(self._table, self._primary, self._indexes)

    def rendered(self, rows: Iterable[T]) -> list[Any]:
        """Return rows of this kind of intent row in the form of ``waggle render``."""
        return (
            [] if self.item is None else [self.item(row) for row in sorted(rows, key=self._order)]
        )


class IntentTables:
    """The tables of the neutral intent; the rows of all dialects share them."""

    instances = RowKind(Instance, lambda row: row.name, writer="dialects")
    peers = RowKind(
        Peer,
        lambda row: (row.instance, row.name),
        Index(BY_ROUTE_SET, keys=_peer_route_sets),
        Index(BY_PASSWORD, keys=_peer_passwords),
        writer="dialects",
    )
    session_addresses = RowKind(
        SessionAddress, lambda row: (row.instance, row.peer), writer="agent"
    )
    """Of the peers that are configured. Empty without a speaker."""
    unsent_routes = RowKind(UnsentRoutes, _of_family, table="unsent-routes", writer="agent")
    """Of sessions that are Established. Empty without a speaker."""
    learned_limits = RowKind(LearnedLimit, _of_family, table="learned-limits", writer="agent")
    """Of the peers that are configured. Empty without a speaker."""
    advertise_limits = RowKind(
        AdvertiseLimit, _of_family, table="advertise-limits", writer="compiler"
    )
    next_hops = RowKind(NextHops, lambda row: (row.instance, row.peer), writer="agent")
    """Of the peers that are configured. Empty without a speaker."""
    bfd_sessions = RowKind(BfdSession, _of_peer, table="bfd-sessions", writer="agent")
    """Of the peers with BFD; empty without a BFD process, in an agent that has none."""
    bfd_counters = RowKind(BfdCounters, _of_peer, table="bfd-counters", writer="agent")
    """Of these sessions, as far as the process has them; read every few seconds."""
    bfd_process = RowKind(BfdProcess, lambda _: ("",), table="bfd-process", writer="agent")
    """One row, or none before the process has been connected to for the first time."""
    kernel_tables = RowKind(
        KernelTable,
        lambda row: (row.table, row.family, row.metric),
        table="kernel-tables",
        writer="agent",
    )
    """Empty in an agent that installs no routes."""
    kernel_next_hops = RowKind(
        KernelNextHops,
        lambda row: (row.instance, " ".join(row.next_hops), row.problem),
        table="kernel-next-hops",
        writer="agent",
    )
    """Of the instances whose routes are installed."""
    kernel_settings = RowKind(
        KernelSettings, lambda _: ("",), table="kernel-settings", writer="agent"
    )
    """One row; empty in an agent that installs no routes."""
    pending_dialects = RowKind(
        PendingDialect, lambda row: (row.dialect,), table="pending-dialects", writer="compiler"
    )
    """At a start; none once all kinds have been read."""
    routes = RowKind(
        Route, _route_key, Index(BY_OBJECT, keys=_route_objects), writer="compiler", cleared=True
    )
    conflicting_routes = RowKind(
        Route,
        _route_key,
        Index(BY_OBJECT, keys=_route_objects),
        table="conflicting-routes",
        writer="compiler",
        cleared=True,
    )
    """Prefixes whose contributions contradict each other: not advertised, each with a problem."""
    conditions = RowKind(
        Condition,
        lambda row: (object_id(row.object), row.type),
        writer="dialects",
        of_cluster=True,
        item=_condition_item,
        order=lambda row: (row.object, row.type),
    )
    generated = RowKind(
        Generated,
        lambda row: (row.object.kind, row.object.namespace, row.object.name),
        writer="dialects",
        of_cluster=True,
        item=lambda row: row.content,
        order=lambda row: row.object,
    )
    deletions = RowKind(
        Delete,
        lambda row: (row.object.kind, row.object.namespace, row.object.name),
        writer="operator",
        of_cluster=True,
        item=lambda row: str(row.object),
        shown_as="deleted",
        order=lambda row: row.object,
    )
    """Objects that the operator's part deletes."""
    annotations = RowKind(
        ObjectAnnotations,
        lambda row: (object_id(row.object), row.by_operator),
        writer="dialects",
        of_cluster=True,
        item=_annotations_item,
        order=lambda row: row.object,
    )
    """Annotations that dialects set on objects of other writers."""
    problems = RowKind(Problem, _problem_key, writer="compiler", of_cluster=True, item=problem_item)
    reconcile_statuses = RowKind(
        ReconcileStatus, lambda row: (row.reconciler, row.object), writer="agent"
    )

    def __init__(self, db: Database) -> None:
        for kind in KINDS:
            setattr(self, kind.name, kind.create(db))
        self._replaced: dict[tuple[str, bool], tuple[object, list[Any]]] = {}
        """By kind and writer: the state of the table that `replace` has left, and the rows."""
        self._of_kinds = {kind: self.of(kind) for kind in KINDS}
        self.compiled = tuple(
            self.of(kind) for kind in KINDS if kind.writer in ("compiler", "dialects")
        )
        """The tables that the compiler writes."""

    def of(self, kind: RowKind[T]) -> Table[T]:
        """Return the table of a kind of intent row."""
        table: Table[T] = getattr(self, kind.name)
        return table

    def replace(
        self, txn: WriteTxn, kind: RowKind[T], rows: Iterable[T], *, by_operator: bool = False
    ) -> None:
        """Replace the rows of a node or of the operator's part; the rows of the other are kept."""
        table, given = self.of(kind), list(rows)
        kept: Iterable[Any] = table.all(txn) if kind.of_cluster else ()
        replace_all(
            txn, table, [*(row for row in kept if row.by_operator is not by_operator), *given]
        )
        # Of a transaction that is aborted no later one has the state.
        self._replaced[kind.name, by_operator] = (txn.state(table), given)

    def outdated(
        self, txn: ReadTxn, rows: Mapping[RowKind[Any], list[Any]], *, by_operator: bool = False
    ) -> list[RowKind[Any]]:
        """Return the kinds with other rows, or whose table others have written since `replace`."""
        kinds = []
        states = txn.states(map(self._of_kinds.__getitem__, rows))
        for (kind, of_kind), state in zip(rows.items(), states, strict=True):
            replaced, before = self._replaced.get((kind.name, by_operator), (None, []))
            if before != of_kind or replaced is not state:
                kinds.append(kind)
        return kinds

    def clear(self, db: Database) -> None:
        """Delete the intent rows that a compiler compares with former ones: a new compiler begins."""
        tables = [self.of(kind) for kind in KINDS if kind.cleared]
        with db.write(*tables) as txn:
            for table in tables:
                table.delete_all(txn)

    def rendered(self, snapshot: Snapshot) -> dict[str, list[Any]]:
        """Return the rows of all intent tables with a form in ``waggle render``, by kind."""
        return {
            kind.shown_as or kind.name: kind.rendered(self.of(kind).all(snapshot))
            for kind in KINDS
            if kind.item is not None
        }


KINDS: Final[tuple[RowKind[Any], ...]] = tuple(
    kind for kind in vars(IntentTables).values() if isinstance(kind, RowKind)
)
OF_DIALECTS: Final = tuple(kind for kind in KINDS if kind.writer == "dialects")
"""The kinds of which a dialect's `NodeIntent` has the rows, as they are."""
OF_CLUSTER: Final = tuple(kind for kind in KINDS if kind.of_cluster)
"""The kinds of which the operator's part has rows, too."""


def marked(
    intent: Any,  # noqa: ANN401  one with the rows of these kinds
    kinds: Iterable[RowKind[Any]],
    dialect: str,
    *,
    by_operator: bool = False,
) -> dict[RowKind[Any], list[Any]]:
    """Return a dialect's intent as rows of the intent tables by kind, with the name of the dialect."""
    rows: dict[RowKind[Any], list[Any]] = {}
    for kind in kinds:
        given = getattr(intent, kind.name)
        marks = {"dialect": dialect, "by_operator": by_operator}
        if not kind.of_cluster:
            del marks["by_operator"]
        rows[kind] = [replace(row, **marks) for row in given] if given else []
    return rows
