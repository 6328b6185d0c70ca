"""The base class of dialects: every hook, with its default."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, ClassVar, Final, TypeVar, final

from reconcilers.dialect.compilation import (
    NodeContext,
    NodeIntent,
)
from reconcilers.dialect.extension import Extension
from reconcilers.dialect.installation import OptionalKinds
from reconcilers.dialect.node_object import WrittenObjects
from reconcilers.dialect.route_source import RouteSource
from reconcilers.import_options import ImportOptions
from reconcilers.model import Attributes, Contribution, PrefixRule
from reconcilers.sliced_work import Slices
from resources.kind import Kind, Kinds
from resources.option_declarations import Options
from resources.tables import Tables
from statedb import Snapshot, Table

E = TypeVar("E", bound=Extension)

_NAME: Final = re.compile(r"[a-z][a-z0-9]*")
"""The name of a dialect: part of flags, variables and keys of the configuration file."""


class Dialect:
    """One API dialect on one node or in one operator. Subclass it; every hook has a default.

    An instance belongs to the tables and options that it was made with. ``compile`` is a function of
    its arguments: what the next call has to know, such as the owner of a node, is a value, which comes
    in as ``state`` of the context and goes out as ``state`` of the intent.
    """

    name: ClassVar[str]
    """The name of the cell, in configuration and in rows: ``[a-z][a-z0-9]*``."""
    title: ClassVar[str]
    """Human-readable: "Cilium BGP"."""
    kinds: ClassVar[tuple[Kind[Any], ...]]
    """The kinds that an agent reads, including Kubernetes' own (`OptionalKinds`)."""
    cluster_kinds: ClassVar[tuple[Kind[Any], ...]] = ()
    """The kinds that the operator reads (`OptionalKinds`)."""
    options_type: ClassVar[type[Options]] = Options
    """The options of an agent and of ``waggle render``."""
    operator_options_type: ClassVar[type[Options]] = Options
    feeds: ClassVar[str | None] = None
    """The dialect that reads the objects which this one generates; instances are then its own."""
    extensions: ClassVar[tuple[Extension, ...]] = ()
    """The dialect's contributions to the programs."""
    installs_routes: ClassVar[bool] = False
    """True if received routes that its peers' import policies accept belong into the kernel."""

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

    @property
    @final
    def import_rules(self) -> tuple[PrefixRule, ...]:
        """Prefixes that an option of the dialect accepts from all peers, where its API cannot."""
        return self.options.import_rules if isinstance(self.options, ImportOptions) else ()

    @property
    @final
    def wants_routes_installed(self) -> bool:
        """True if received routes belong into the kernel, by the dialect's API or options."""
        return self.installs_routes or bool(self.import_rules)

    @classmethod
    @final
    def each(cls, extension: type[E]) -> tuple[E, ...]:
        """Return the dialect's extensions of a type."""
        return tuple(member for member in cls.extensions if isinstance(member, extension))

    @classmethod
    @final
    def read(cls, options: Options, *, operator: bool) -> tuple[Kind[Any], ...]:
        """Return the dialect's kinds that an agent, or the operator, reads with its options."""
        optional = [kinds for kinds in cls.each(OptionalKinds) if kinds.operator is operator]
        unread = {kind for kinds in optional if not kinds.when(options) for kind in kinds.kinds}
        kinds = cls.cluster_kinds if operator else cls.kinds
        return tuple(kind for kind in kinds if kind not in unread)

    @classmethod
    @final
    def all_kinds(cls) -> Kinds:
        """Return the dialect's kinds that programs read, and that an agent writes."""
        written = (kind.kind for own in cls.each(WrittenObjects) for kind in own.kinds)
        return Kinds(cls.kinds, cls.cluster_kinds, written)

    # The node

    @property
    def compiled_tables(self) -> tuple[Table[Any], ...]:
        """The tables whose changes make `compile` due; by default of all the dialect's kinds."""
        return tuple(self.tables.of(kind) for kind in self.kinds if kind.custom)

    def compile(
        self, _snapshot: Snapshot, _context: NodeContext, /
    ) -> NodeIntent | Slices[NodeIntent]:
        """Compile the dialect's objects in a snapshot for one node; in slices where it takes long.

        Nothing may be kept by a revision: the admission review compiles snapshots that never become
        present ones.
        """
        return NodeIntent()

    def join(self, contributions: Sequence[Contribution]) -> Attributes:
        """Join the attributes of several contributions to one prefix, by the dialect's rule.

        Raises `JoinConflictError` where they contradict each other: the prefix is not advertised.
        """
        if len(contributions) == 1:
            return contributions[0].attributes
        from reconcilers.dialect.join import united

        return united(contribution.attributes for contribution in contributions)
