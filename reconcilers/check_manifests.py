"""Compiles manifests for all their nodes, and for nodes that objects may select: `waggle check`."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, BinaryIO, Final, NamedTuple

import msgspec

from reconcilers.admission import (
    Selectors,
    hypothetical_label_sets,
    node_groups,
    node_selectors,
    node_with,
    selects,
)
from reconcilers.compile_manifests import (
    CompiledManifests,
    OfflineSettings,
    UnknownNodeError,
    kinds_of,
    store,
    unknown_node,
)
from reconcilers.dialect import Dialect
from reconcilers.intent.rejections import by_node
from reconcilers.intent_tables import Json
from reconcilers.model import ObjectRef, ref_to
from resources.core import Node, NodeAddress, NodeStatus
from resources.core import kinds as core
from resources.errors import FieldError
from resources.kind import Kind
from resources.manifests.load import Loaded, load
from resources.meta import ObjectKey, ObjectMeta
from resources.source import Replace
from resources.tables import Tables
from resources.without_wrong_fields import unrelated
from statedb import Database

UNNAMED_NODE: Final = "node"
"""The name of the node that is checked where manifests have none."""


ASSUMED_NODES: Final = 100
"""Nodes with labels that no Node of the manifests has, of one check: each is compiled."""


_ASSUMED_STATUS: Final = NodeStatus(
    addresses=(NodeAddress("InternalIP", "198.18.0.1"), NodeAddress("InternalIP", "2001:2::1"))
)
"""Of a node that is assumed: every node has an address, which is its router ID. Nothing else has one of
these, which are for benchmarks (RFC 2544, RFC 5180)."""


_UNNAMED: Final = Node(metadata=ObjectMeta(name=UNNAMED_NODE), status=_ASSUMED_STATUS)


def check(
    paths: Iterable[str],
    dialects: Sequence[type[Dialect]],
    settings: OfflineSettings,
    nodes: Iterable[str] = (),
    stdin: BinaryIO | None = None,
) -> Json:
    """Read manifests, and return the problems of all their nodes: the document of ``waggle check``.

    ``nodes``: these alone. Otherwise nodes are assumed, as an admission webhook does, where manifests
    have none, and for objects that select no Node of the manifests: so that each object is compiled
    with all others that it can meet. Raises `resources.manifests.load.UnreadablePathError`, and
    `UnknownNodeError` for one of ``nodes`` where the manifests have Nodes, and not this one.
    """
    loaded = load(paths, kinds_of(dialects), stdin)
    unnamed: tuple[Node, ...] = ()
    assumptions: list[_AssumedNodes] = []
    present = [row for kind, e in loaded.replacements if kind is core.NODE for row in e.objects]
    names = {row.metadata.name for row in present}
    for node in nodes if names else ():
        if node not in names:
            raise UnknownNodeError(unknown_node(node, names))
    if not nodes:
        unnamed = () if present else (_UNNAMED,)
        of_kinds = (_selects_with_others, _selects_alone)
        assumptions = [
            _assumed_nodes(loaded, of_kind, [*present, *unnamed]) for of_kind in of_kinds
        ]
        loaded.replacements.append((core.NODE, Replace(unnamed)))
    problems = _NodeProblems({}, [])
    compiled = problems.compile(loaded, dialects, settings, nodes)
    if loaded.rejected:
        repaired = _NodeProblems({}, [])
        repaired.add_without_effect(repaired.compile(_repaired(loaded), dialects, settings, nodes))
        problems.add_remaining(repaired, loaded)
    for assumed in assumptions:
        if not assumed.nodes:
            continue
        # Only dialects whose objects select by labels: of such a node little else is known.
        selecting = [
            dialect
            for dialect in dialects
            if any(map(assumed.of_kind, (*dialect.kinds, *dialect.cluster_kinds)))
        ]
        known = kinds_of(selecting)
        replacements = [of_kind for of_kind in loaded.replacements if of_kind[0] in known]
        replacements.append((core.NODE, Replace(assumed.nodes)))
        hypothetical = [node.metadata.name for node in assumed.nodes]
        to_compile = loaded._replace(replacements=replacements)
        problems.compile(to_compile, selecting, settings, hypothetical)
    problems.add_without_effect(compiled)
    return {
        "nodes": sorted(problems.nodes),
        "assumedNodes": [
            {"name": node.metadata.name, "labels": dict(node.metadata.labels)}
            for node in (*unnamed, *(node for of in assumptions for node in of.nodes))
        ],
        "uncheckedObjects": [str(ref) for of in assumptions for ref in of.unchecked],
        "problems": problems.in_order(),
    }


class _NodeProblems(NamedTuple):
    """The problems of manifests, each once and with its nodes, and the nodes."""

    by_content: dict[str, Json]
    nodes: list[str]

    def compile(
        self,
        loaded: Loaded,
        dialects: Sequence[type[Dialect]],
        settings: OfflineSettings,
        nodes: Iterable[str],
    ) -> CompiledManifests | None:
        """Compile the manifests to check for nodes, or for all, and add the problems of the nodes."""
        compiled = None
        for names in _node_groups(loaded, dialects, settings, nodes):
            self.nodes.extend(names)
            of_node = msgspec.structs.replace(settings, node=names[0])
            compiled = CompiledManifests(loaded, dialects, of_node)
            for problem in compiled.document()["problems"]:
                # The nodes of a problem are listed with it: one text for all of them.
                message = problem["message"].replace(by_node(names[0]), "")
                self._of_content({**problem, "message": message})["nodes"] += names
        return compiled

    def add_without_effect(self, compiled: CompiledManifests | None) -> None:
        """Add the problems of manifests that have no effect, on all of the nodes."""
        for problem in compiled.without_effect() if compiled is not None else ():
            self._of_content(problem)["nodes"] += self.nodes

    def add_remaining(self, repaired: _NodeProblems, loaded: Loaded) -> None:
        """Add the problems that invalid objects have besides, of a compilation without these errors.

        Problems of generated objects are theirs as well. Not conflicts: they depend on what is wrong.
        """
        errors = {
            str(invalid.kind.name_of(invalid.value)): invalid.errors for invalid in loaded.rejected
        }
        all_errors = tuple(itertools.chain.from_iterable(errors.values()))
        valid = {
            str(ref_to(kind, row)) for kind, event in loaded.replacements for row in event.objects
        }
        for problem in repaired.by_content.values():
            first = next(iter(problem["objects"]), "")
            if problem["category"] == "conflict" or (first in valid and first not in errors):
                continue
            known = errors.get(first, all_errors)
            if any(unrelated([FieldError(problem["field"], problem["message"])], known)):
                self._of_content(problem)["nodes"] += problem["nodes"]

    def _of_content(self, problem: Json) -> Json:
        """Return the item of a problem; without nodes where it is new."""
        content = {name: value for name, value in problem.items() if name != "nodes"}
        key = msgspec.json.encode(content).decode()
        return self.by_content.setdefault(key, {**content, "nodes": []})

    def in_order(self) -> list[Json]:
        """Return the problems of the checked manifests in the order of their objects."""
        ordered = [
            {**problem, "nodes": sorted(set(problem["nodes"]))}
            for problem in self.by_content.values()
        ]
        return sorted(ordered, key=lambda p: (p["objects"], p["field"], p["message"]))


def _repaired(loaded: Loaded) -> Loaded:
    """Return the objects with the invalid ones in place, without what is wrong with them."""
    rows: dict[str, dict[ObjectKey, Any]] = {}
    for kind, value, errors in loaded.rejected:
        row = kind.decode_without(value, errors)
        if row is not None:
            rows.setdefault(kind.name, {})[row.key] = row
    replacements = [
        (
            kind,
            Replace((*({row.key: row for row in e.objects} | rows.get(kind.name, {})).values(),)),
        )
        for kind, e in loaded.replacements
    ]
    return loaded._replace(replacements=replacements)


class _AssumedNodes(NamedTuple):
    """The nodes that are assumed for objects that select no node of the manifests."""

    nodes: tuple[Node, ...]
    unchecked: tuple[ObjectRef, ...]
    """The objects that select none of these either: no labels fulfil their selectors, or
    `ASSUMED_NODES` are not enough for them."""
    of_kind: Callable[[Kind[Any]], bool]
    """Whether the objects of a kind are such."""


def _assumed_nodes(
    loaded: Loaded, of_kind: Callable[[Kind[Any]], bool], present: Sequence[Node]
) -> _AssumedNodes:
    selecting = sorted(_selecting(loaded, of_kind), key=lambda selection: selection[0])
    alone = of_kind is _selects_alone
    others = [] if alone else [selectors for _, selectors in selecting]
    assumed: list[Node] = []
    unchecked = []
    for ref, selectors in selecting:
        if any(selects(selectors, node.metadata.labels) for node in (*present, *assumed)):
            continue
        hypothetical = hypothetical_label_sets(selectors, others)
        if not hypothetical or len(assumed) + len(hypothetical) > ASSUMED_NODES:
            unchecked.append(ref)
        else:
            assumed += map(node_with, hypothetical)
    return _AssumedNodes(
        tuple(_completed(node, i if alone else None) for i, node in enumerate(assumed)),
        tuple(unchecked),
        of_kind,
    )


def _completed(node: Node, number: int | None) -> Node:
    """Return an assumed node with addresses; a number is its name, also that of generated objects."""
    metadata = node.metadata
    if number is not None:
        metadata = msgspec.structs.replace(metadata, name=f"assumed-{number + 1}")
    return msgspec.structs.replace(node, metadata=metadata, status=_ASSUMED_STATUS)


def _selects_with_others(kind: Kind[Any]) -> bool:
    """True if objects of a kind select nodes by labels, and several are in effect on one."""
    return kind.of_node is not None and kind.of_node.selectors is not None


def _selects_alone(kind: Kind[Any]) -> bool:
    """True if objects of a kind select nodes by labels, and one at most is in effect on each."""
    return kind.one_selects_node is not None


def _selecting(
    loaded: Loaded, of_kind: Callable[[Kind[Any]], bool]
) -> Iterator[tuple[ObjectRef, Selectors]]:
    """Yield the objects that select nodes by labels, with their selectors."""
    for kind, event in loaded.replacements:
        if not of_kind(kind):
            continue
        for row in event.objects:
            of_one = kind.one_selects_node
            selectors = node_selectors(kind, row) if of_one is None else tuple(of_one(row))
            if selectors:
                yield ref_to(kind, row), selectors


def _node_groups(
    loaded: Loaded,
    dialects: Sequence[type[Dialect]],
    settings: OfflineSettings,
    nodes: Iterable[str],
) -> list[Sequence[str]]:
    """Return the nodes that are checked, in groups of which the first one stands for all."""
    db = Database()
    tables = Tables(db, kinds_of(dialects))
    store(db, tables, loaded)
    snapshot = db.snapshot()
    names = set(nodes) or {row.metadata.name for row in tables.nodes.all(snapshot)}
    used = [
        dialect(tables, settings.dialects.get(dialect.name, dialect.options_type()))
        for dialect in dialects
        if any(tables.of(kind).count(snapshot) for kind in dialect.kinds if kind.custom)
    ]
    return list(node_groups(used, snapshot, names).values())
