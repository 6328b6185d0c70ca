"""Dialects that feed others: the order of compilation, and what each is given of the others."""

from __future__ import annotations

import functools
import graphlib
from collections.abc import Collection, Iterable, Mapping

from msgspec.structs import replace

from reconcilers.dialect.admission import node_grouping
from reconcilers.dialect.compilation import (
    ClusterContext,
    ClusterIntent,
    NodeContext,
    NodeIntent,
)
from reconcilers.dialect.protocol import Dialect
from reconcilers.dialect.route_source import RouteSource
from reconcilers.sliced_work import Slices, sliced
from statedb import Snapshot


class FeederError(Exception):
    """A feeding dialect cannot be compiled; ``str()`` is a clause that names it."""

    def __init__(self, feeder: Dialect, error: Exception) -> None:
        reason = f"{type(error).__name__}: {error}"
        super().__init__(f"{feeder.title}, which feeds it, cannot be compiled: {reason}")


class Feeding:
    """The dialects of a process, and which of them feeds which: the only place that joins them."""

    def __init__(self, dialects: Iterable[Dialect], installing: Collection[str] = ()) -> None:
        """``installing``: the names of dialects whose peers' routes are installed in the kernel.

        Raises ValueError where dialects feed each other in a circle.
        """
        self._installing = installing
        self.dialects: Mapping[str, Dialect] = _feeders_first(dialects)
        """By name: a feeder precedes what it feeds, otherwise in the order of their names."""
        self._feeders = {
            name: tuple(feeder for feeder in self.dialects.values() if feeder.feeds == name)
            for name in self.dialects
        }
        self._node_groupings = {
            name: node_grouping(feeders) for name, feeders in self._feeders.items()
        }

    @property
    def groups(self) -> tuple[frozenset[str], ...]:
        """The names of the dialects, grouped with the dialects that they feed."""
        groups: dict[str, set[str]] = {}
        for dialect in reversed(list(self.dialects.values())):
            # A dialect that is fed comes after its feeders, here before them.
            merging = self.merging(dialect)
            group = groups[merging.name] if merging is not None else set()
            group.add(dialect.name)
            groups[dialect.name] = group
        return tuple({min(group): frozenset(group) for group in groups.values()}.values())

    def feeders(self, dialect: Dialect) -> tuple[Dialect, ...]:
        """Return the dialects that feed a dialect."""
        return self._feeders[dialect.name]

    def merging(self, dialect: Dialect) -> Dialect | None:
        """Return the dialect that merges the objects of a dialect that feeds it."""
        return self.dialects.get(dialect.feeds or "")

    def route_sources(self, dialect: Dialect) -> tuple[RouteSource, ...]:
        """Return the sources of the route sets of a dialect: its own, and its feeders'.

        A dialect that feeds another dialect has no route sets: a source follows changes in one place.
        """
        if dialect.feeds is not None:
            return ()
        return tuple(
            source for member in (dialect, *self.feeders(dialect)) for source in member.sources
        )

    def node_context(
        self, dialect: Dialect, context: NodeContext, compiled: Mapping[str, NodeIntent]
    ) -> NodeContext:
        """Return the context in which a dialect is compiled for a node, with its feeders.

        ``compiled`` is what other dialects were compiled to, by name; a missing one feeds
        nothing.
        """
        feeds = {}
        for feeder in self.feeders(dialect):
            intent = compiled.get(feeder.name)
            if intent is not None and intent.feed is not None:
                feeds[feeder.name] = intent.feed
        merging = self.merging(dialect)
        return replace(
            context,
            feeds=feeds,
            merging_options=None if merging is None else merging.options,
            routes_installed=dialect.name in self._installing,
        )

    def cluster_context(
        self,
        dialect: Dialect,
        context: ClusterContext,
        snapshot: Snapshot,
        operated: Mapping[str, ClusterIntent],
    ) -> ClusterContext:
        """Return the context of a dialect's operator part, with its feeders' objects.

        What feeds it is compiled node by node, when it is needed; `FeederError` where it cannot be.
        ``operated`` is what dialects have returned, fed dialects before their feeders.
        """
        merged = operated.get(dialect.feeds or "")
        group = functools.partial(self._node_groupings[dialect.name], snapshot)

        def of_node(node: str) -> Slices[NodeContext]:
            alone = NodeContext(node, context.secrets_namespace, for_operator=True)
            return self._of_node(dialect, alone, snapshot)

        outcome = None if merged is None else merged.outcome
        return replace(context, of_node=of_node, feeding_group=group, outcome=outcome)

    def _of_node(
        self, dialect: Dialect, context: NodeContext, snapshot: Snapshot
    ) -> Slices[NodeContext]:
        compiled: dict[str, NodeIntent] = {}
        for feeder in self.feeders(dialect):
            of_feeder = yield from self._of_node(feeder, context, snapshot)
            try:
                compiled[feeder.name] = yield from sliced(feeder.compile(snapshot, of_feeder))
            except Exception as error:
                raise FeederError(feeder, error) from error
        return self.node_context(dialect, context, compiled)


def _feeders_first(dialects: Iterable[Dialect]) -> dict[str, Dialect]:
    by_name = {dialect.name: dialect for dialect in dialects}
    order: graphlib.TopologicalSorter[str] = graphlib.TopologicalSorter()
    for name in sorted(by_name):
        order.add(name)
        feeds = by_name[name].feeds
        if feeds is not None and feeds in by_name:
            order.add(feeds, name)
    try:
        return {name: by_name[name] for name in order.static_order()}
    except graphlib.CycleError as error:
        circle = " -> ".join(error.args[1])
        raise ValueError(f"dialects feed each other: {circle}") from None
