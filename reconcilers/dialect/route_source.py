"""Route sources: the objects that contribute prefixes to route sets, one by one as they change."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from functools import partial
from typing import Any, Final, Generic, NamedTuple, Protocol, TypeVar, cast, runtime_checkable

from reconcilers.dialect.candidate import Candidate
from reconcilers.dialect.compilation import NodeContext
from reconcilers.model import Attributes, Contribution, ObjectRef, Origin, Problem
from resources.kind import Kind
from resources.meta import ObjectKey, Resource
from resources.tables import Tables
from speaker.nlri import Family
from statedb import Change, Key, Snapshot, Table

T = TypeVar("T", bound=Resource)


class Everything:
    """The type of `EVERYTHING`."""

    def __repr__(self) -> str:
        """Return the name of the constant."""
        return "EVERYTHING"


EVERYTHING: Final = Everything()
"""The answer of `RouteSource.affected` where a change may affect every object of the source."""


class ServiceAddress(NamedTuple):
    """An address that a Service's ``externalIPs`` or ingress status names.

    Every user who may write a Service may write any address there, so the middle decides whether it is
    advertised (`reconcilers.intent.service_addresses`).
    """

    field: str
    """Of the Service: ``spec.externalIPs`` or ``status.loadBalancer.ingress``."""
    nlri: bytes
    """The host route of the address."""
    in_pool: bool = False
    """True if a pool that an administrator configured has the address, and permits it."""


class Contributed(NamedTuple):
    """One prefix that an object contributes to one route set."""

    route_set: str
    family: Family
    nlri: bytes
    contribution: Contribution
    address: ServiceAddress | None = None
    """The address of a Service that the prefix is, or aggregates; None for all that the
    administrator decides: ClusterIPs, pod networks, pools, interfaces, configured prefixes.

    Several addresses with one aggregate are yielded one by one."""


class Rejected(NamedTuple):
    """An object that contradicts itself for a route set: a problem, in place of its prefixes there."""

    route_set: str
    problem: Problem


class RouteSource(Protocol):
    """Objects of one sort that contribute prefixes to route sets: Services, pod networks, pools.

    Objects are named by keys of the source's own choice (for Services: namespace and name). It may
    remember what earlier changes were; it reads snapshots and writes nothing.
    """

    @property
    def name(self) -> str:
        """The name of any dialect's route source in logs and traces."""
        ...

    @property
    def tables(self) -> tuple[Table[Any], ...]:
        """The tables whose changes affect contributions of any dialect's route source."""
        ...

    def affected(
        self, table: Table[Any], changes: Sequence[Change[Any]], /
    ) -> Iterable[Key] | Everything:
        """Return the keys of a route source's objects that changes of a table may affect."""
        ...

    def keys(self, snapshot: Snapshot, rules: Sequence[Any], /) -> Iterable[Key]:
        """Return the keys of all objects of a route source that may contribute by these rules."""
        ...

    def object(self, context: NodeContext, key: Key, /) -> ObjectRef:
        """Return the object that contributions of the route source name as their origin."""
        ...

    def contributions(
        self, snapshot: Snapshot, context: NodeContext, key: Key, rules: Sequence[Any], /
    ) -> Iterator[Contributed | Rejected]:
        """Yield what one object of the route source contributes by these rules, and its problems.

        An exception becomes a problem of the object, which then contributes nothing.
        """
        ...


@runtime_checkable
class PrefixSource(RouteSource, Protocol):
    """A route source that returns single prefixes of an object, which may have 100,000."""

    def contributions_to(
        self,
        snapshot: Snapshot,
        context: NodeContext,
        key: Key,
        rules: Sequence[Any],
        prefixes: AbstractSet[tuple[Family, bytes]],
        /,
    ) -> Iterator[Contributed | Rejected]:
        """Yield a route source's `contributions` to these prefixes alone."""
        ...


class SelectingRule(NamedTuple):
    """The object whose rule selects an object for a route set, and the attributes of its routes."""

    rule: ObjectRef
    attributes: Attributes


class Address(NamedTuple):
    """One address or prefix of an object (a `Candidate`)."""

    object: ObjectRef
    type: str
    family: Family
    nlri: bytes
    select: Callable[[Any], SelectingRule | None] | None = None
    """Rules of a route set to the selection; set by `KindSource`."""
    service_field: str | None = None
    """The field of a Service that names the address (`ServiceAddress`), or None."""
    in_pool: bool = False
    """True if a pool that an administrator configured has the address."""


def service_address(candidate: Candidate) -> ServiceAddress | None:
    """Return the Service address of any route source's candidate; None of anything else."""
    field, nlri = candidate.service_field, candidate.nlri
    if field is None or nlri is None:
        return None
    return ServiceAddress(field, nlri, candidate.in_pool)


class RowSource(Generic[T]):
    """The part of a route source that follows from its objects being the rows of one kind.

    Keys are (namespace, name).
    """

    def __init__(self, tables: Tables, kind: Kind[T]) -> None:
        self.name = kind.plural
        self._kind = kind
        self._table = tables.of(kind)

    @property
    def tables(self) -> tuple[Table[Any], ...]:
        """The table of the kind, for any dialect's route source."""
        return (self._table,)

    def affected(self, _table: Table[Any], changes: Sequence[Change[Any]], /) -> Iterable[Key]:
        """Return the changed rows of the kind by key, for any dialect's route source."""
        return [change.row.key for change in changes]

    def keys(self, snapshot: Snapshot, _rules: Sequence[Any], /) -> Iterable[Key]:
        """Return the keys of all rows of the kind, for any dialect's route source."""
        return [row.key for row in self._table.all(snapshot)]

    def object(self, _context: NodeContext, key: Key, /) -> ObjectRef:
        """Return the object of a row, for any dialect's route source."""
        namespace, name = cast("ObjectKey", key)
        return ObjectRef(self._kind.name, namespace, name)


class KindSource(RowSource[T]):
    """The route source of a kind whose objects are selected one by one; keys are (namespace, name).

    Contributions, candidates and explanations follow from the same two functions.
    """

    def __init__(
        self,
        tables: Tables,
        kind: Kind[T],
        addresses: Callable[[T], Iterable[Address]],
        select: Callable[[Any, T], SelectingRule | None],
    ) -> None:
        """``addresses`` lists the prefixes of an object; ``select`` is called with rules and row."""
        super().__init__(tables, kind)
        self._addresses = addresses
        self._select = select

    def contributions(
        self,
        snapshot: Snapshot,
        _context: NodeContext,
        key: Key,
        rules: Sequence[Any],
        /,
    ) -> Iterator[Contributed]:
        """Yield the addresses of one object that rules select, for any dialect's route source."""
        row = self._table.get(snapshot, key)
        if row is None:
            return
        for rule in rules:
            selection = self._select(rule, row)
            if selection is None:
                continue
            for address in self._addresses(row):
                origin = Origin(address.object, selection.rule, address.type)
                contribution = Contribution(origin, selection.attributes)
                named = service_address(address)
                yield Contributed(rule.name, address.family, address.nlri, contribution, named)

    def candidates(self, snapshot: Snapshot) -> Iterator[Address]:
        """Yield the addresses of all objects of a kind, for any dialect's route source."""
        for row in self._table.all(snapshot):
            select = partial(self._select_with, row)
            yield from (address._replace(select=select) for address in self._addresses(row))

    def _select_with(self, row: T, rules: Any) -> SelectingRule | None:  # noqa: ANN401
        return self._select(rules, row)


class JoinConflictError(Exception):
    """Contributions to one prefix contradict each other; ``str()`` is the reason, for people."""

    def __init__(self, field: str, message: str) -> None:
        super().__init__(message)
        self.field = field
