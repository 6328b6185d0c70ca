"""What an API dialect is: one value that compiles its objects to the neutral intent.

A dialect is three things: ``resources/<name>/`` (kinds, rows, CRDs), ``reconcilers/<name>/`` (a
subclass of `Dialect`) and ``cells/dialects/<name>.py`` (wiring). No other module names it: programs
have a list of dialects, and everything here is generic. docs/dialects.md adds one step by step.

Two ways from objects to routes, on purpose different:

* `Dialect.compile` is for what is small (instances, peers, the rules of route sets): compiled whole
  whenever one of `Dialect.compiled_tables` has changed;
* a `RouteSource` is for what is large (Services, pod networks): an object that changed contributes
  to the route sets again, the others are left as they are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import (
    TYPE_CHECKING,
    Any,
    ClassVar,
    Final,
    Generic,
    NamedTuple,
    Protocol,
    TypeAlias,
    TypeVar,
    cast,
)

import msgspec

from reconcilers.model import (
    Attributes,
    Condition,
    Contribution,
    Generated,
    Instance,
    ObjectRef,
    Origin,
    Peer,
    Problem,
    RouteExplanation,
)
from reconcilers.tables import IntentTables
from resources.host.network import Host
from resources.kind import Kind, Kinds
from resources.meta import ObjectKey, Resource
from resources.option_declarations import Options
from resources.tables import Tables
from speaker.api import PeerStatus
from speaker.nlri import Family
from statedb import Change, Key, Snapshot, Table

if TYPE_CHECKING:
    import argparse

T = TypeVar("T", bound=Resource)


class RouteSetRules(Protocol):
    """The rules of one route set, as a dialect's own value; the middle reads only its name.

    The name is unique within the dialect and changes with the rules, so that a changed rule is
    another set, which is filled before its peers move to it.
    """

    @property
    def name(self) -> str:
        """The name of the set within the dialect."""
        ...


class NodeIntent(msgspec.Struct, frozen=True):
    """What a dialect compiles for one node; ``dialect`` fields of the rows are filled in later."""

    instances: tuple[Instance, ...] = ()
    peers: tuple[Peer, ...] = ()
    route_sets: Mapping[str, Any] = {}
    """`RouteSetRules` by name."""
    conditions: tuple[Condition, ...] = ()
    problems: tuple[Problem, ...] = ()
    generated: tuple[Generated, ...] = ()


class NodeContext(msgspec.Struct, frozen=True):
    """What a dialect knows of the node for which it compiles."""

    node: str
    secrets_namespace: str = "kube-system"
    host: Host = Host()
    """Interfaces and default routes of the node."""
    operator_in_process: bool = False
    """True if the operator's part runs in this process: what it generates is in ``generated``, and
    conditions and problems that concern the whole cluster are reported by it alone."""
    generated: Mapping[tuple[str, str, str], Any] = {}
    """Objects as JSON that the operator's part has generated in this process, by kind, namespace
    and name."""
    fed: tuple[Generated, ...] = ()
    """Objects that dialects which feed this one have generated for this node."""

    def fed_rows(self, kind: Kind[T]) -> list[T]:
        """Return the rows of what is fed of one kind. Raises `resources.errors.InvalidObject`."""
        return [kind.decode(row.content) for row in self.fed if row.object.kind == kind.name]


class ClusterContext(msgspec.Struct, frozen=True):
    """What a dialect knows of the cluster for which its operator's part runs."""

    secrets_namespace: str = "kube-system"
    stored: bool = True
    """True if what is generated is stored in an API server and read back; False in a process that
    reads manifests, where it counts at once."""


class Delete(msgspec.Struct, frozen=True):
    """Delete an object that the dialect generated earlier, if it still has this UID."""

    object: ObjectRef
    uid: str

    @property
    def key(self) -> tuple[ObjectRef, bool]:
        """The object, and that it is not its status."""
        return (self.object, False)


class ClusterIntent(msgspec.Struct, frozen=True):
    """What the operator's part of a dialect generates and reports."""

    generated: tuple[Generated, ...] = ()
    """All objects that have to exist, in an order in which they may be written."""
    outdated: frozenset[ObjectRef] = frozenset()
    """Those of ``generated`` that the API server lacks, or has differently."""
    deletions: tuple[Delete, ...] = ()
    conditions: tuple[Condition, ...] = ()
    reported: tuple[ObjectRef, ...] = ()
    """Objects whose managed conditions are ours, also where there is none to report."""
    problems: tuple[Problem, ...] = ()


class Everything:
    """The type of `EVERYTHING`."""

    def __repr__(self) -> str:
        """Return the name of the constant."""
        return "EVERYTHING"


EVERYTHING: Final = Everything()
"""The answer of `RouteSource.affected` where a change may affect every object of the source."""


class Contributed(NamedTuple):
    """One prefix that an object contributes to one route set."""

    route_set: str
    family: Family
    nlri: bytes
    contribution: Contribution


class RouteSource(Protocol):
    """Objects of one sort that contribute prefixes to route sets: Services, pod networks, pools.

    Objects are named by keys of the source's own choice (for Services: namespace and name). It may
    remember what earlier changes were; it reads snapshots and writes nothing.
    """

    @property
    def name(self) -> str:
        """The name in logs and traces."""
        ...

    @property
    def tables(self) -> tuple[Table[Any], ...]:
        """The tables whose changes affect contributions."""
        ...

    def affected(
        self, table: Table[Any], changes: Sequence[Change[Any]]
    ) -> Iterable[Key] | Everything:
        """Return the keys of the objects whose contributions the changes of a table may affect."""
        ...

    def keys(self, snapshot: Snapshot) -> Iterable[Key]:
        """Return the keys of all objects: for a route set that is new."""
        ...

    def object(self, context: NodeContext, key: Key) -> ObjectRef:
        """Return the object: the one that its contributions name as their origin."""
        ...

    def contributions(
        self, snapshot: Snapshot, context: NodeContext, key: Key, rules: Sequence[Any]
    ) -> Iterator[Contributed]:
        """Yield what one object contributes to route sets with these rules.

        An exception becomes a problem of the object, which then contributes nothing.
        """
        ...


class Selection(NamedTuple):
    """The object whose rule selects an object for a route set, and the attributes of its routes."""

    rule: ObjectRef
    attributes: Attributes


class Address(NamedTuple):
    """One address or prefix of an object (a `Candidate`)."""

    object: ObjectRef
    type: str
    family: Family
    nlri: bytes
    select: Callable[[Any], Selection | None] | None = None
    """Rules of a route set to the selection; set by `KindSource`."""


class KindSource(Generic[T]):
    """The route source of a kind whose objects are selected one by one; keys are (namespace, name).

    Contributions, candidates and explanations follow from the same two functions.
    """

    def __init__(
        self,
        tables: Tables,
        kind: Kind[T],
        addresses: Callable[[T], Iterable[Address]],
        select: Callable[[Any, T], Selection | None],
    ) -> None:
        """``addresses`` lists the prefixes of an object; ``select`` is called with rules and row."""
        self.name = kind.plural
        self._kind = kind
        self._table = tables.of(kind)
        self._addresses = addresses
        self._select = select

    @property
    def tables(self) -> tuple[Table[Any], ...]:
        """The table of the kind."""
        return (self._table,)

    def affected(self, table: Table[Any], changes: Sequence[Change[Any]]) -> Iterable[Key]:  # noqa: ARG002
        """Return the changed objects."""
        return [change.row.key for change in changes]

    def keys(self, snapshot: Snapshot) -> Iterable[Key]:
        """Return the keys of all objects."""
        return [row.key for row in self._table.all(snapshot)]

    def object(self, context: NodeContext, key: Key) -> ObjectRef:  # noqa: ARG002
        """Return the object."""
        namespace, name = cast("ObjectKey", key)
        return ObjectRef(self._kind.name, namespace, name)

    def contributions(
        self,
        snapshot: Snapshot,
        context: NodeContext,  # noqa: ARG002
        key: Key,
        rules: Sequence[Any],
    ) -> Iterator[Contributed]:
        """Yield the addresses of one object that rules select; nothing if it is gone."""
        row = self._table.get(snapshot, key)
        if row is None:
            return
        for one in rules:
            selection = self._select(one, row)
            if selection is None:
                continue
            for address in self._addresses(row):
                origin = Origin(address.object, selection.rule)
                contribution = Contribution(origin, selection.attributes)
                yield Contributed(one.name, address.family, address.nlri, contribution)

    def candidates(self, snapshot: Snapshot) -> Iterator[Address]:
        """Yield the addresses of all objects, each with what selects it."""
        for row in self._table.all(snapshot):
            select = partial(self._select_with, row)
            yield from (address._replace(select=select) for address in self._addresses(row))

    def _select_with(self, row: T, rules: Any) -> Selection | None:  # noqa: ANN401
        return self._select(rules, row)


class JoinConflictError(Exception):
    """Contributions to one prefix contradict each other; ``str()`` is the reason, for people."""

    def __init__(self, field: str, message: str) -> None:
        super().__init__(message)
        self.field = field


class Target(NamedTuple):
    """The subject of an explanation: a prefix, an address, or an object."""

    text: str
    prefix: tuple[Family, bytes] | None = None
    kind: str | None = None
    namespace: str | None = None
    name: str | None = None

    def names(self, ref: ObjectRef) -> bool:
        """True if the target is this object."""
        return (
            self.name == ref.name
            and self.kind in (None, ref.kind)
            and self.namespace in (None, ref.namespace)
        )


class Candidate(Protocol):
    """One address or prefix of one object that may be advertised; dialects add what they need."""

    @property
    def object(self) -> ObjectRef:
        """The object that has it."""
        ...

    @property
    def type(self) -> str:
        """The type of address."""
        ...

    @property
    def family(self) -> Family | None:
        """None where the object has no address of the type."""
        ...

    @property
    def nlri(self) -> bytes | None:
        """The prefix; None where the object has no address of the type."""
        ...


class ObjectStatus(msgspec.Struct, frozen=True):
    """Row of the table ``object-statuses``: the status that this node reports on one object."""

    object: ObjectRef
    uid: str
    """Of the object in the API server; empty where it is generated in this process only."""
    status: Any
    """A frozen struct, encoded to the object's ``status``, which this node writes as a whole.

    A field ``conditions`` has conditions; if the struct has none, ``conditions`` of the object are left
    to the operator.
    """
    dialect: str = ""


class ReportContext(msgspec.Struct, frozen=True):
    """What a node's report is computed from."""

    node: str
    dialect: str
    """The name that the dialect's rows have in the intent."""
    intent: IntentTables
    sessions: Sequence[PeerStatus]
    """The state of all sessions."""
    before: Mapping[ObjectRef, ObjectStatus]
    """The last report."""
    now: float
    """Unix time."""


class Converter(msgspec.Struct, frozen=True):
    """A conversion of ``waggle convert``: objects of some kinds become others."""

    kinds: tuple[Kind[Any], ...]
    """The kinds that are converted."""
    convert: Callable[[Mapping[str, Sequence[Any]]], tuple[list[dict[str, Any]], list[Problem]]]
    """Rows by kind to objects as JSON and notes on what has no equivalent."""
    target: str = ""
    """What ``--to`` calls the result; empty is the default."""


Ask: TypeAlias = Callable[[str, Mapping[str, str]], list[dict[str, Any]]]
"""Path and query parameters of the agent's local API to the items of the answer."""


def _no_flags(parser: argparse.ArgumentParser) -> None:
    """Add no flag."""


class Command(msgspec.Struct, frozen=True):
    """A subcommand of ``waggle`` that a dialect adds; ``--socket`` is added to its flags."""

    name: str
    help: str
    run: Callable[[argparse.Namespace, Ask], int]
    """Print; returns the exit status. An error of the agent ends the command: with status 4 where a
    name does not exist, else with 1."""
    add_flags: Callable[[argparse.ArgumentParser], object] = _no_flags


class ApiPath(msgspec.Struct, frozen=True):
    """A path of the agent's local API that a dialect adds; read-only."""

    path: str
    """Such as ``/v1/beacons``."""
    kind: str
    """The kind of the answer, such as ``BeaconList``."""
    read: Callable[[Snapshot, Mapping[str, str]], Sequence[Any]]
    """Query parameters to items, which are encoded as JSON.

    Raises ValueError for a parameter that cannot be read, LookupError where nothing has the name.
    """
    parameters: tuple[str, ...] = ()


class Gauge(msgspec.Struct, frozen=True):
    """A metric that a dialect adds: present values, read at each scrape of an agent."""

    name: str
    """``waggle_<dialect>_...``, with the unit at the end."""
    help: str
    values: Mapping[Any, float]
    """By the values of the labels, as a tuple."""
    labels: tuple[str, ...] = ()


class RbacRule(msgspec.Struct, frozen=True):
    """A permission beyond those that follow from the dialect's kinds (RBAC PolicyRule)."""

    kinds: tuple[Kind[Any], ...]
    verbs: tuple[str, ...]
    operator: bool = False
    """True for the operator's role, False for the agent's."""
    option: str | None = None
    """The key of the option, in the configuration file, without which it is not needed."""


class Rival(msgspec.Struct, frozen=True):
    """Another implementation of a dialect that may still run beside this one.

    Two speakers with one configuration open two sessions to each router. An object that exists is
    taken as proof that it runs: a DaemonSet with these labels, with pods that are ready.
    """

    name: str
    """For people: "MetalLB's speaker"."""
    labels: str
    """The label selector of its DaemonSet."""
    config_map: str | None = None
    """``namespace/name`` of a ConfigMap without whose entry it speaks no BGP."""
    config_entry: tuple[str, str] | None = None
    """Key and value of that entry."""


class Dialect:
    """One API dialect on one node or in one operator. Subclass it; every hook has a default.

    An instance belongs to the tables and options that it was made with. ``compile`` and ``operate``
    are functions of a snapshot and of what the instance remembers of earlier ones: who has what (a
    node, a router ID), so that the present owner keeps it.
    """

    name: ClassVar[str]
    """The name of the cell, in configuration and in rows."""
    title: ClassVar[str]
    """For people: "Cilium BGP"."""
    kinds: ClassVar[tuple[Kind[Any], ...]]
    """The kinds that an agent reads, those of Kubernetes itself included."""
    cluster_kinds: ClassVar[tuple[Kind[Any], ...]] = ()
    """The kinds that the operator reads."""
    options_type: ClassVar[type[Options]] = Options
    """The options of an agent and of ``waggle render``."""
    operator_options_type: ClassVar[type[Options]] = Options
    feeds: ClassVar[str | None] = None
    """The dialect that reads the objects which this one generates; instances are then its own."""
    managed_conditions: ClassVar[frozenset[str]] = frozenset()
    """The types of conditions that the operator writes, and removes where they no longer hold."""
    rivals: ClassVar[tuple[Rival, ...]] = ()
    reported_kinds: ClassVar[tuple[Kind[Any], ...]] = ()
    """The kinds whose status an agent writes."""
    condition_kinds: ClassVar[tuple[Kind[Any], ...]] = ()
    """The kinds whose conditions the operator writes."""
    generated_kinds: ClassVar[tuple[Kind[Any], ...]] = ()
    """The kinds whose objects the operator writes and deletes."""
    rbac: ClassVar[tuple[RbacRule, ...]] = ()
    """Permissions that do not follow from the kinds."""
    explained_kinds: ClassVar[Mapping[str, str]] = {}
    """How the kinds that ``waggle explain`` takes may be spelled, in lower case, to the kind."""
    selecting_kinds: ClassVar[frozenset[str]] = frozenset()
    """Kinds whose problems may be the reason that no peer selects this node."""

    def __init__(self, tables: Tables, options: Options) -> None:
        self.tables = tables
        self.options = options
        self.sources: tuple[RouteSource, ...] = ()
        """The route sources; a subclass sets them, and does not change them later."""

    @classmethod
    def configuration_kinds(cls) -> tuple[Kind[Any], ...]:
        """The kinds whose objects are counted and named while the dialect is off.

        By default `selecting_kinds`, or all its own kinds where it has none of those.
        """
        own = [kind for kind in Kinds(cls.kinds, cls.cluster_kinds) if kind.custom]
        return tuple(kind for kind in own if kind.name in cls.selecting_kinds) or tuple(own)

    # The node

    @property
    def compiled_tables(self) -> tuple[Table[Any], ...]:
        """The tables whose changes make `compile` due; by default those of all its own kinds."""
        return tuple(self.tables.of(kind) for kind in self.kinds if kind.custom)

    def needs_host(self, snapshot: Snapshot, node: str) -> bool:  # noqa: ARG002
        """True if some object refers to interfaces or default routes of the node."""
        return False

    def compile(self, snapshot: Snapshot, context: NodeContext) -> NodeIntent:  # noqa: ARG002
        """Compile the objects of a snapshot for one node."""
        return NodeIntent()

    def join(self, contributions: Sequence[Contribution]) -> Attributes:
        """Join the attributes of several contributions to one prefix, whatever their order.

        Raises `JoinConflictError` where they contradict each other: the prefix is not advertised.
        """
        from reconcilers.intent.join import united

        return united(contribution.attributes for contribution in contributions)

    # Explanation

    def candidates(
        self,
        snapshot: Snapshot,
        context: NodeContext,  # noqa: ARG002
        rules: Mapping[str, Any],  # noqa: ARG002
        target: Target | None,  # noqa: ARG002
    ) -> Iterator[Candidate]:
        """Yield every address that the node could advertise; of the target only, if there is one.

        The default yields those of every `KindSource`.
        """
        for source in self.sources:
            if isinstance(source, KindSource):
                yield from source.candidates(snapshot)

    def explain(self, candidate: Any, peer: Peer, rules: Any) -> RouteExplanation:  # noqa: ANN401
        """Explain what is advertised to a peer for a candidate.

        ``rules`` are those of the peer's route set, or None. The default is for the candidates of a
        `KindSource`: they are advertised as they are, if the rules select them.
        """
        selection = None if rules is None else candidate.select(rules)
        reason, message = "Advertised", ""
        if selection is None:
            reason, message = "NoRule", "no rule of the peer selects it"
        elif candidate.family not in peer.families:
            reason, message = "FamilyNotConfigured", f"the peer has no family {candidate.family}"
        return RouteExplanation(
            peer.instance,
            peer.name,
            candidate.object,
            candidate.type,
            candidate.family,
            candidate.nlri,
            () if message else (candidate.nlri,),
            reason,
            message,
            selection.rule if selection else next(iter(peer.origins), None),
        )

    # The operator

    def operated_tables(self) -> tuple[Table[Any], ...]:
        """The tables whose changes make `operate` due."""
        return tuple(self.tables.of(kind) for kind in self.read_by_operator())

    def read_by_operator(self) -> tuple[Kind[Any], ...]:
        """The kinds that the operator reads with these options."""
        return self.cluster_kinds

    def operate(self, snapshot: Snapshot, context: ClusterContext) -> ClusterIntent:  # noqa: ARG002
        """Generate what the cluster has to have, and report on its objects."""
        return ClusterIntent()

    # Status

    def statuses(self, snapshot: Snapshot, context: ReportContext) -> Iterable[ObjectStatus]:  # noqa: ARG002
        """Return the status of each object of `reported_kinds` that this node reports on.

        Called after changes of `compiled_tables`, of the intent and of sessions, and every few seconds.
        """
        return ()

    def reported_object(self, snapshot: Snapshot, node: str) -> ObjectRef | None:  # noqa: ARG002
        """Return the object that Events about this node as a whole are regarding, if it exists."""
        return None

    # Conversion and views

    converters: ClassVar[tuple[Converter, ...]] = ()
    """Conversions of ``waggle convert``."""
    commands: ClassVar[tuple[Command, ...]] = ()
    """Subcommands of ``waggle``."""

    @property
    def api_paths(self) -> tuple[ApiPath, ...]:
        """Paths of the agent's local API."""
        return ()

    def metrics(self, snapshot: Snapshot) -> Iterable[Gauge]:  # noqa: ARG002
        """Return the metrics of an agent that the dialect adds."""
        return ()
