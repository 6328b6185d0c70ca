"""A kind of intent row is declared once: what compiles, stores, renders and clears it follows."""

from __future__ import annotations

import pytest

from reconcilers.dialect import ClusterIntent, NodeIntent
from reconcilers.intent_tables import KINDS, OF_CLUSTER, OF_DIALECTS, IntentTables, RowKind, marked
from reconcilers.model import Condition, Instance, ObjectRef, Problem
from statedb import Database

NODE = ObjectRef("Node", "", "n1")


def test_each_kind_has_a_table_of_its_own() -> None:
    tables = IntentTables(Database())
    found = [tables.of(kind) for kind in KINDS]
    assert len({table.name for table in found}) == len(KINDS)
    assert tables.of(IntentTables.peers) is tables.peers


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_dialects_return_rows_of_the_kinds_that_are_theirs(kind: RowKind[object]) -> None:
    assert kind not in OF_DIALECTS or hasattr(NodeIntent(), kind.name)
    assert kind not in OF_CLUSTER or hasattr(ClusterIntent(), kind.name)
    assert kind not in OF_CLUSTER or "by_operator" in vars(kind.row)


def test_rows_of_a_node_and_of_the_operators_part_are_replaced_apart() -> None:
    db = Database()
    tables, kind = IntentTables(db), IntentTables.conditions

    def put(type_: str, *, by_operator: bool) -> None:
        rows = [Condition(NODE, type_, True, "Test")] if type_ else []
        intent = ClusterIntent(conditions=tuple(rows))
        own = marked(intent, [kind], "beacon", by_operator=by_operator)
        with db.write(tables.conditions) as txn:
            tables.replace(txn, kind, own[kind], by_operator=by_operator)

    def stored() -> list[tuple[str, str, bool]]:
        rows = tables.conditions.all(db.snapshot())
        return sorted((row.type, row.dialect, row.by_operator) for row in rows)

    put("OfNode", by_operator=False)
    put("OfCluster", by_operator=True)
    assert stored() == [("OfCluster", "beacon", True), ("OfNode", "beacon", False)]
    put("Other", by_operator=False)
    assert stored() == [("OfCluster", "beacon", True), ("Other", "beacon", False)]
    put("", by_operator=True)
    assert stored() == [("Other", "beacon", False)]


def test_rows_are_rendered_in_the_order_of_their_kind() -> None:
    db = Database()
    tables = IntentTables(db)
    other = ObjectRef("Node", "", "a")
    with db.write(tables.conditions, tables.problems) as txn:
        for ref in (NODE, other):
            tables.conditions.upsert(txn, Condition(ref, "Ready", False, "Test"))
        tables.problems.upsert(txn, Problem((NODE,), "spec", "is wrong"))
    found = tables.rendered(db.snapshot())
    assert [(one["name"], one["status"]) for one in found["conditions"]] == [
        ("a", "False"),
        ("n1", "False"),
    ]
    assert [one["objects"] for one in found["problems"]] == [["Node/n1"]]
    assert list(found) == ["conditions", "generated", "deleted", "annotations", "problems"]


def test_a_new_compiler_begins_with_the_rows_that_it_does_not_remember() -> None:
    db = Database()
    tables = IntentTables(db)
    with db.write(tables.instances) as txn:
        tables.instances.upsert(txn, Instance("i", None, 65001, "192.0.2.1"))
    tables.clear(db)
    assert tables.instances.count(db.snapshot()) == 1
    assert [kind.name for kind in KINDS if kind.cleared] == ["routes", "conflicting_routes"]
