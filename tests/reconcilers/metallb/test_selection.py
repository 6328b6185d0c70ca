"""The objects that concern a node: evaluated once for nodes with the same labels."""

from __future__ import annotations

from typing import Any

import pytest

from reconcilers.compile_manifests import kinds_of
from reconcilers.metallb.dialect import MetalLBDialect
from reconcilers.metallb.selection import ObjectSelection, ObjectSelections
from resources.label_selectors import LabelSelector
from resources.tables import Tables
from statedb import Database
from tests.reconcilers.metallb.objects import advertisement, peer, pool

NAMESPACE = "metallb-system"


def stored(*objects: dict[str, Any]) -> tuple[Database, Tables]:
    db = Database()
    kinds = kinds_of([MetalLBDialect])
    tables = Tables(db, kinds)
    for value in objects:
        kind = kinds.find(value["apiVersion"], value["kind"])
        assert kind is not None
        with db.write(tables.of(kind)) as txn:
            tables.of(kind).upsert(txn, kind.decode(value))
    return db, tables


def rack(*names: str) -> list[dict[str, Any]]:
    return [{"matchLabels": {"rack": name}} for name in names]


def test_objects_are_selected_by_any_selector_in_the_order_of_their_names() -> None:
    db, tables = stored(
        peer("c", nodeSelectors=rack("1", "2")),
        peer("b", nodeSelectors=rack("2")),
        peer("a"),
        advertisement("x", nodeSelectors=rack("1")),
        pool("p"),
    )
    selection = ObjectSelection(tables, db.snapshot(), NAMESPACE)

    def names(**labels: str) -> tuple[list[str], list[str], list[str]]:
        found = selection.of(labels).objects
        peers, advertisements, pools = found[:3]
        return (
            [row.metadata.name for row in peers],
            [row.metadata.name for row in advertisements],
            [row.metadata.name for row in pools],
        )

    assert names(rack="1") == (["a", "c"], ["x"], ["p"])
    assert names(rack="2") == (["a", "b", "c"], [], ["p"])
    assert names() == (["a"], [], ["p"])
    assert selection.of({"rack": "3"}).group == selection.of({"zone": "z"}).group
    assert selection.of({"rack": "1"}).group != selection.of({"rack": "2"}).group


def test_a_broken_node_selector_is_of_all_nodes() -> None:
    db, tables = stored(peer("a", nodeSelectors=[{"matchLabels": {"rack": "/"}}]))
    (found,) = ObjectSelection(tables, db.snapshot(), NAMESPACE).of({}).objects.peers
    assert found.errors


def test_peers_of_one_node_each_are_evaluated_for_that_node(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """200 peers and 200 nodes are not 40,000 evaluations."""
    count = 200
    db, tables = stored(
        *(peer(f"p{i}", nodeSelectors=[{"matchLabels": {"host": f"n{i}"}}]) for i in range(count))
    )
    evaluated = 0
    matches = LabelSelector.matches

    def counted(self: LabelSelector, labels: Any) -> bool:  # noqa: ANN401
        nonlocal evaluated
        evaluated += 1
        return matches(self, labels)

    monkeypatch.setattr(LabelSelector, "matches", counted)
    selections, snapshot = ObjectSelections(tables), db.snapshot()
    for _ in range(3):
        for i in range(count):
            labels = {"host": f"n{i}", "zone": str(i)}
            (row,) = selections.of(snapshot, NAMESPACE).of(labels).objects.peers
            assert row.metadata.name == f"p{i}"
    assert evaluated == count
