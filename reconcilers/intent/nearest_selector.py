"""The object that comes nearest to selecting a node by labels: for `waggle explain`. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from reconcilers.model import ObjectRef, ref_to
from resources.kind import Kind, NodeSelectors
from resources.label_selectors import nearest_mismatch
from resources.tables import Tables
from statedb import Snapshot


class NearestSelector(NamedTuple):
    """An object that does not select a node."""

    requirements: int
    """The number of requirements that the node's labels do not fulfil."""
    ref: ObjectRef
    text: str


def nearest_selector(
    snapshot: Snapshot, tables: Tables, kinds: Mapping[Kind[Any], NodeSelectors], node: str
) -> NearestSelector | None:
    """Return the object of these kinds whose node selector misses the fewest labels of a node."""
    row = tables.nodes.get(snapshot, ("", node))
    labels = {} if row is None else row.metadata.labels
    misses = (
        miss
        for kind, selectors in kinds.items()
        for row in tables.of(kind).all(snapshot)
        if (miss := node_miss(ref_to(kind, row), selectors(row), labels, node)) is not None
    )
    return min(misses, default=None)


def node_miss(
    ref: ObjectRef, selectors: Iterable[Any], labels: Mapping[str, str], node: str
) -> NearestSelector | None:
    """Return why a node selector does not select a node, and how nearly; None if it does."""
    mismatch = nearest_mismatch(tuple(selectors), labels)
    if mismatch is None:
        return None
    text = f"nodeSelector {mismatch.wanted} of {ref}; node {node} has {mismatch.present}"
    return NearestSelector(mismatch.requirements, ref, text)
