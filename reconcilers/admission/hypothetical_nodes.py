"""Nodes that a cluster does not have yet: for the check of an object that selects no present one.

The object could meet each object whose selector does not contradict its own: a selector of racks
may meet a selector of zones. Few nodes are enough, as each has as many objects as fit. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, TypeAlias

from resources.core import Node
from resources.kind import Kind
from resources.label_selectors import LabelSelector, LabelSelectorRequirement
from resources.meta import ObjectMeta

Selectors: TypeAlias = Sequence[LabelSelector]
"""Of one object: one of them is enough, and none selects all nodes."""
EVERY_NODE: Final = LabelSelector()
MAX_NODES: Final = 32
"""Nodes for one review: objects that exclude each other, such as one for each node, need many."""


def selects(selectors: Selectors, labels: Mapping[str, str]) -> bool:
    """True if an object selects a hypothetical node."""
    return not selectors or any(selector.matches(labels) for selector in selectors)


def node_selectors(kind: Kind[Any], row: Any) -> Selectors:  # noqa: ANN401
    """Return by which labels an object selects hypothetical nodes; empty: all, or by its name."""
    selectors_of = None if kind.of_node is None else kind.of_node.selectors
    return () if selectors_of is None else tuple(selectors_of(row))


def node_with(labels: Mapping[str, str]) -> Node:
    """Return a hypothetical node with these labels, which its name describes; no object has it."""
    text = LabelSelector(match_labels=dict(labels)).text if labels else "any labels"
    return Node(metadata=ObjectMeta(name=f"with {text}, none yet", labels=dict(labels)))


def hypothetical_label_sets(
    selectors: Selectors, others: Iterable[Selectors]
) -> list[dict[str, str]]:
    """Return label sets of hypothetical nodes: an object meets every other object that it can meet.

    At most `MAX_NODES`: objects for which more would be necessary are not met. No node is returned for
    selectors that no labels fulfil.
    """
    own = [
        selector for selector in selectors or (EVERY_NODE,) if example_labels(selector) is not None
    ][:MAX_NODES]
    nodes = list(own)
    distinct = {tuple(selector.text for selector in other): other for other in others}
    for other in distinct.values():
        _place(other or (EVERY_NODE,), own, nodes)
    examples = (example_labels(node) for node in nodes)
    return [labels for labels in examples if labels is not None]


def _place(other: Selectors, own: Iterable[LabelSelector], nodes: list[LabelSelector]) -> None:
    """Restrict a node so that the other object selects it as well, or add a node that both select."""
    for selector in other:
        for i, node in enumerate(nodes):
            both = node.both(selector)
            if example_labels(both) is not None:
                nodes[i] = both
                return
    for selector in other:
        for own_selector in own:
            both = own_selector.both(selector)
            if example_labels(both) is not None and len(nodes) < MAX_NODES:
                nodes.append(both)
                return


def example_labels(selector: LabelSelector) -> dict[str, str] | None:
    """Return labels of a hypothetical node that a selector selects; None if there are none."""
    example: dict[str, str] = {}
    for key in sorted(selector.keys):
        rest = [requirement for requirement in selector.match_expressions if requirement.key == key]
        fixed = selector.match_labels.get(key)
        values = [
            value
            for requirement in rest
            if requirement.operator == "In"
            for value in requirement.values
        ]
        given = ([fixed] if fixed is not None else []) + values
        absent = all(requirement.matches({}) for requirement in rest) and fixed is None
        if absent:
            continue
        labels = ({key: value} for value in [*given, *_unlike(rest)])
        fitting = next(
            (
                label
                for label in labels
                if fixed in (None, label[key])
                and all(requirement.matches(label) for requirement in rest)
            ),
            None,
        )
        if fitting is None:
            return None
        example |= fitting
    return example


def _unlike(requirements: Iterable[LabelSelectorRequirement]) -> Iterable[str]:
    """Return values of which one is excluded by no ``NotIn``."""
    excluded = {value for requirement in requirements for value in requirement.values}
    return ("", *(f"x{number}" for number in range(len(excluded) + 1)))
