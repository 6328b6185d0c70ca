"""The base class of dialects: every hook, with its default."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, ClassVar, Final, TypeVar, final

from reconcilers.dialect.candidate import Candidate, Target, explanation_of
from reconcilers.dialect.compilation import (
    ClusterContext,
    ClusterIntent,
    NodeContext,
    NodeIntent,
)
from reconcilers.dialect.extension import Extension
from reconcilers.dialect.installation import OptionalKinds
from reconcilers.dialect.node_object import WrittenObjects
from reconcilers.dialect.route_source import KindSource, RouteSource
from reconcilers.model import Attributes, Contribution, Peer, RouteExplanation
from reconcilers.sliced_work import Slices, at_once
from resources.kind import Kind, Kinds
from resources.option_declarations import Options
from resources.tables import Tables
from statedb import Snapshot, Table

D = TypeVar("D", bound="Dialect")
E = TypeVar("E", bound=Extension)

_NAME: Final = re.compile(r"[a-z][a-z0-9]*")
"""The name of a dialect: part of flags, variables and keys of the configuration file."""


class Dialect:
    """One API dialect on one node or in one operator. Subclass it; every hook has a default.

    An instance belongs to the tables and options that it was made with. ``compile`` and ``operate``
    are functions of their arguments: what the next call has to know, such as the owner of a node, is a
    value, which comes in as ``state`` of the context and goes out as ``state`` of the intent.
    """

    name: ClassVar[str]
    """The name of the cell, in configuration and in rows: ``[a-z][a-z0-9]*``."""
    title: ClassVar[str]
    """Human-readable: "Cilium BGP"."""
    kinds: ClassVar[tuple[Kind[Any], ...]]
    """The kinds that an agent reads, those of Kubernetes itself included (`OptionalKinds`)."""
    cluster_kinds: ClassVar[tuple[Kind[Any], ...]] = ()
    """The kinds that the operator reads (`OptionalKinds`)."""
    options_type: ClassVar[type[Options]] = Options
    """The options of an agent and of ``waggle render``."""
    operator_options_type: ClassVar[type[Options]] = Options
    feeds: ClassVar[str | None] = None
    """The dialect that reads the objects which this one generates; instances are then its own."""
    managed_conditions: ClassVar[frozenset[str]] = frozenset()
    """The types of conditions that the operator writes, and removes where they no longer hold."""
    extensions: ClassVar[tuple[Extension, ...]] = ()
    """What it adds to the programs."""
    condition_kinds: ClassVar[tuple[Kind[Any], ...]] = ()
    """The kinds whose conditions the operator writes."""
    generated_kinds: ClassVar[tuple[Kind[Any], ...]] = ()
    """The kinds whose objects the operator writes and deletes."""
    installs_routes: ClassVar[bool] = False
    """True if received routes that its peers' import policies accept belong into the kernel."""
    explained_kinds: ClassVar[Mapping[str, str]] = {}
    """Aliases of kinds for ``waggle explain``, in lower case, with the kind of each."""
    selecting_kinds: ClassVar[frozenset[str]] = frozenset()
    """Kinds whose problems may be the reason that no peer selects this node."""

    def __init_subclass__(cls, **arguments: Any) -> None:  # noqa: ANN401
        """Check the name of a dialect. Raises ValueError."""
        super().__init_subclass__(**arguments)
        name = cls.__dict__.get("name")
        if name is not None and _NAME.fullmatch(name) is None:
            rule = f"does not match {_NAME.pattern}"
            raise ValueError(f"{cls.__module__}.{cls.__qualname__}: name: {name!r} {rule}")

    def __init__(self, tables: Tables, options: Options) -> None:
        self.tables = tables
        self.options = options
        self.sources: tuple[RouteSource, ...] = ()
        """The route sources; a subclass sets them, and does not change them later."""

    @classmethod
    @final
    def each(cls, extension: type[E]) -> tuple[E, ...]:
        """Return the extensions of a type."""
        return tuple(one for one in cls.extensions if isinstance(one, extension))

    @classmethod
    @final
    def read(cls, options: Options, *, operator: bool) -> tuple[Kind[Any], ...]:
        """Return the kinds that an agent, or the operator, reads of an API server with its options."""
        optional = [one for one in cls.each(OptionalKinds) if one.operator is operator]
        unread = {kind for one in optional if not one.when(options) for kind in one.kinds}
        kinds = cls.cluster_kinds if operator else cls.kinds
        return tuple(kind for kind in kinds if kind not in unread)

    @classmethod
    @final
    def all_kinds(cls) -> Kinds:
        """Return the kinds that programs read, and those that an agent writes."""
        written = (kind.kind for own in cls.each(WrittenObjects) for kind in own.kinds)
        return Kinds(cls.kinds, cls.cluster_kinds, written)

    # The node

    @property
    def compiled_tables(self) -> tuple[Table[Any], ...]:
        """The tables whose changes make `compile` due; by default those of all its own kinds."""
        return tuple(self.tables.of(kind) for kind in self.kinds if kind.custom)

    def prepare(self, snapshot: Snapshot, node: str | None) -> Slices[None]:  # noqa: ARG002
        """Do in slices what would take `compile` or, with None for the node, `operate` long.

        Called before each of them with its snapshot: what is computed here is remembered, and does
        not change what they return. By default nothing takes long.
        """
        yield from ()

    def compile(self, snapshot: Snapshot, context: NodeContext) -> NodeIntent:  # noqa: ARG002
        """Compile the objects of a snapshot for one node.

        Nothing may be kept by a revision: the admission review compiles snapshots that never become
        present ones.
        """
        return NodeIntent()

    def compile_slices(self, snapshot: Snapshot, context: NodeContext) -> Slices[NodeIntent]:
        """As `compile`, in slices where it takes long; nothing else compiles meanwhile."""
        return at_once(self.compile(snapshot, context))

    def join(self, contributions: Sequence[Contribution]) -> Attributes:
        """Join the attributes of several contributions to one prefix, whatever their order.

        Raises `JoinConflictError` where they contradict each other: the prefix is not advertised.
        """
        from reconcilers.dialect.join import united

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
        """Explain what is advertised to a peer for a candidate (`explanation_of`).

        ``rules`` are those of the peer's route set, or None. The default is for the candidates of a
        `KindSource`: they are advertised as they are, if the rules select them.
        """
        selection = None if rules is None else candidate.select(rules)
        reason, message = "Advertised", ""
        if selection is None:
            reason, message = "NoRule", "no rule of the peer selects it"
        elif candidate.family not in peer.families:
            reason, message = "FamilyNotConfigured", f"the peer has no family {candidate.family}"
        return explanation_of(
            candidate,
            reason,
            message,
            advertised=() if message else (candidate.nlri,),
            rule=selection.rule if selection else next(iter(peer.origins), None),
        )

    # The operator

    def operated_tables(self) -> tuple[Table[Any], ...]:
        """The tables whose changes make `operate` due."""
        return tuple(self.tables.of(kind) for kind in self.read(self.options, operator=True))

    def operate(self, snapshot: Snapshot, context: ClusterContext) -> ClusterIntent:  # noqa: ARG002
        """Generate what the cluster has to have, and report on its objects."""
        return ClusterIntent()

    def operate_slices(self, snapshot: Snapshot, context: ClusterContext) -> Slices[ClusterIntent]:
        """As `operate`, in slices where it takes long; no other call is made meanwhile."""
        return at_once(self.operate(snapshot, context))


def extended(dialects: Iterable[D], extension: type[E]) -> list[tuple[D, E]]:
    """Return the extensions of a type that dialects have, each with its dialect."""
    return [(dialect, own) for dialect in dialects for own in dialect.each(extension)]
