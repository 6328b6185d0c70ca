"""The intents of dialects: which are due, and what an error leaves of one."""

from __future__ import annotations

from reconcilers.dialect import Feeding, NodeContext, NodeIntent
from reconcilers.intent.dialect_intents import DialectIntents
from reconcilers.intent_tables import IntentTables
from reconcilers.sliced_work import finish
from resources.tables import Tables
from statedb import Database, Revisions, Snapshot
from tests.dialects.beacon.dialect import BeaconDialect
from tests.dialects.beacon.kinds import BEACON
from tests.dialects.objects import beacon

NODE = "n1"


class _Failing(BeaconDialect):
    """Cannot be compiled while `fails`."""

    fails = False

    def compile(self, snapshot: Snapshot, context: NodeContext) -> NodeIntent:
        if self.fails:
            raise ValueError("no")
        return super().compile(snapshot, context)


def test_a_dialect_is_compiled_when_it_is_due_and_keeps_its_last_intent_after_an_error() -> None:
    db, errors = Database(), list[str]()
    tables = Tables(db, _Failing.kinds)
    dialect = _Failing(tables, _Failing.options_type())
    feeding = Feeding([dialect])
    intents = DialectIntents(
        tables, IntentTables(db), feeding, lambda name, _error: errors.append(name)
    )

    def put(address: str) -> None:
        with db.write(tables.of(BEACON)) as txn:
            value = beacon(NODE, instance="main", peerAddress=address, peerASN=65010)
            tables.of(BEACON).upsert(txn, BEACON.decode(value))

    last: Revisions | None = None

    def compiled() -> tuple[str, ...]:
        nonlocal last
        snapshot = db.snapshot()
        before, last = last, snapshot.revisions
        changed = db.changed(before, snapshot)
        return finish(intents.compile(snapshot, NodeContext(NODE), changed, {"beacon"}))

    put("192.0.2.1")
    assert compiled() == ("beacon",)
    assert compiled() == (), "nothing has changed"
    before = intents.compiled["beacon"]
    dialect.fails = True
    put("192.0.2.2")
    assert compiled() == ("beacon",)
    assert intents.compiled["beacon"] is before
    assert "ValueError: no" in intents.failures["beacon"].message
    assert errors == ["beacon"]
    dialect.fails = False
    put("192.0.2.3")
    assert compiled() == ("beacon",)
    assert not intents.failures
    assert intents.compiled["beacon"].peers[0].address == "192.0.2.3"
