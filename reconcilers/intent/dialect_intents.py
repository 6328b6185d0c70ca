"""The intents of the dialects, each compiled when it is due.

A dialect is due when one of its tables changes, the node, what its part of the operator generates in
this process, or the intent of a dialect that feeds it. An error of one dialect is a problem of that
dialect: its last intent stays in effect.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping, Sequence
from collections.abc import Set as AbstractSet
from types import MappingProxyType
from typing import Any, NamedTuple, final

from msgspec.structs import replace

from reconcilers.dialect import Dialect, Feeding, NodeContext, NodeIntent
from reconcilers.intent_tables import IntentTables
from reconcilers.model import ObjectRef, Peer, PrefixRule, Problem
from reconcilers.sliced_work import Slices, sliced
from resources.core import Node
from resources.tables import Tables
from speaker.nlri import IPV4_UNICAST, IPV6_UNICAST, Family
from statedb import Snapshot, Table

GeneratedObjects = Mapping[tuple[str, str, str], Any]
"""Objects as JSON by kind, namespace and name."""


class OfOperator(NamedTuple):
    """Objects that the operator's part of a dialect has generated in this process, or deletes."""

    generated: GeneratedObjects = MappingProxyType({})
    deleted: frozenset[ObjectRef] = frozenset()


@final
class DialectIntents:
    """The last intent of each dialect; `compile` replaces the due ones."""

    def __init__(
        self,
        resources: Tables,
        intent: IntentTables,
        feeding: Feeding,
        on_error: Callable[[str, Exception], None],
        states: Mapping[str, Any] = MappingProxyType({}),
    ) -> None:
        """``on_error`` takes the name of a dialect that cannot be compiled, and the error.

        ``states`` are from an earlier process, or before a failure.
        """
        self._resources = resources
        self._intent = intent
        self._feeding = feeding
        self._on_error = on_error
        self.shared: frozenset[Table[Any]] = frozenset((resources.node_networks, resources.host))
        """The tables on which every dialect depends, besides the row of the node."""
        self._own_tables = {
            name: self.shared.union(dialect.compiled_tables)
            for name, dialect in feeding.dialects.items()
        }
        self._tables = dict(self._own_tables)
        """By dialect, with the tables that its last intent depends on (`NodeIntent.followed`)."""
        self._by_operator: dict[str, OfOperator] = {}
        self._inputs: dict[str, tuple[Node | None, OfOperator]] = {}
        """By dialect, as of the last compilation: the node, and what its operator's part has."""
        self.states = dict(states)
        """The memory of each dialect (`NodeContext.state`)."""
        self.compiled: dict[str, NodeIntent] = {}
        """The last intent of each dialect that it could compile."""
        self.failures: dict[str, Problem] = {}
        """Dialects that cannot be compiled at present."""

    def compile(
        self,
        snapshot: Snapshot,
        context: NodeContext,
        changed: AbstractSet[Table[Any]],
        ready: Container[str],
    ) -> Slices[tuple[str, ...]]:
        """Compile the intents of the due dialects, feeders first; return their names.

        ``changed`` are the tables that have changed since the last call, at the first one all;
        ``ready`` the dialects that do not wait for a reading.
        """
        due: set[str] = set()
        node = self._resources.nodes.get(snapshot, ("", context.node))
        of_operators = (self._intent.generated, self._intent.deletions)
        for name, dialect in self._feeding.dialects.items():
            if not changed.isdisjoint(of_operators):
                self._by_operator[name] = self._of_operator(snapshot, dialect, context)
            if name not in ready:
                # Changes until then are not known at the next call.
                self._inputs.pop(name, None)
                continue
            of_operator = self._by_operator[name]
            inputs = (node, of_operator)
            if (
                name in due
                or inputs != self._inputs.get(name)
                or not changed.isdisjoint(self._tables[name])
            ):
                of_dialect = self._feeding.node_context(dialect, context, self.compiled)
                state = self.states.get(name)
                of_dialect = replace(
                    of_dialect,
                    generated=of_operator.generated,
                    deleted=of_operator.deleted,
                    state=state,
                )
                yield from self._compile_one(snapshot, dialect, of_dialect)
                self._inputs[name] = inputs
                due.add(name)
                if dialect.feeds is not None:
                    due.add(dialect.feeds)
        return tuple(name for name in self._feeding.dialects if name in due)

    def _of_operator(
        self, snapshot: Snapshot, dialect: Dialect, context: NodeContext
    ) -> OfOperator:
        """Return what the operator's part of a dialect has generated in this process, and deletes."""
        if not context.operator_in_process:
            return OfOperator()
        generated = {
            (row.object.kind, row.object.namespace, row.object.name): row.content
            for row in self._intent.generated.all(snapshot)
            if row.by_operator and row.dialect == dialect.name
        }
        deletions = self._intent.deletions.all(snapshot)
        deleted = frozenset(row.object for row in deletions if row.dialect == dialect.name)
        return OfOperator(generated, deleted)

    def _compile_one(
        self, snapshot: Snapshot, dialect: Dialect, context: NodeContext
    ) -> Slices[None]:
        try:
            compiled = yield from sliced(dialect.compile(snapshot, context))
        except Exception as error:  # noqa: BLE001  one dialect's error is that dialect's
            # Its last intent is kept: a defect of one dialect ends neither its sessions nor others'.
            self._on_error(dialect.name, error)
            text = f"{dialect.title} cannot be compiled: {type(error).__name__}: {error}"
            node = ObjectRef("Node", "", context.node)
            self.failures[dialect.name] = Problem((node,), "", text, dialect=dialect.name)
            self.compiled.setdefault(dialect.name, NodeIntent())
        else:
            self.failures.pop(dialect.name, None)
            self.compiled[dialect.name] = _importing(compiled, dialect.import_rules)
            own = self._own_tables[dialect.name]
            self._tables[dialect.name] = own.union(compiled.followed)
            if dialect.feeds is None:
                self.states[dialect.name] = compiled.state
            self.states.update(compiled.outcomes)


def _importing(compiled: NodeIntent, rules: Sequence[PrefixRule]) -> NodeIntent:
    """Return an intent whose peers accept these prefixes, of the families of each."""
    if not rules:
        return compiled

    def accepted(peer: Peer) -> tuple[PrefixRule, ...]:
        return tuple(rule for rule in rules if _family(rule) in peer.families)

    peers = tuple(replace(peer, accept=accepted(peer)) for peer in compiled.peers)
    return replace(compiled, peers=peers)


def _family(rule: PrefixRule) -> Family:
    return IPV6_UNICAST if ":" in rule.prefix else IPV4_UNICAST
