"""Values that are computed from tables: kept until one of the tables changes."""

from __future__ import annotations

from reconcilers.of_tables import OfTables
from statedb import Database, Index, Snapshot


def test_a_value_is_computed_again_when_a_table_has_changed() -> None:
    db = Database()
    names = db.table("names", Index[str]("name", lambda row: row))
    others = db.table("others", Index[str]("name", lambda row: row))
    computed: list[str] = []

    def compute(snapshot: Snapshot, prefix: str) -> list[str]:
        computed.append(prefix)
        return sorted(row for row in names.all(snapshot) if row.startswith(prefix))

    values = OfTables([names], compute)
    with db.write(names) as txn:
        names.upsert(txn, "a1")
    assert values.of(db.snapshot(), "a") == ["a1"]
    with db.write(others) as txn:
        others.upsert(txn, "a2")
    assert values.of(db.snapshot(), "a") == ["a1"]
    assert computed == ["a"], "the other table is not read"
    with db.write(names) as txn:
        names.upsert(txn, "a3")
    assert values.of(db.snapshot(), "a") == ["a1", "a3"]
    assert values.of(db.snapshot(), "b") == []
    assert computed == ["a", "a", "b"]


def test_a_trial_has_values_of_its_own() -> None:
    db = Database()
    names = db.table("names", Index[str]("name", lambda row: row))
    values = OfTables([names], lambda snapshot, _: sorted(names.all(snapshot)))
    trial = db.trial(names)
    names.upsert(trial, "of the trial")
    assert values.of(trial.snapshot(), "") == ["of the trial"]
    with db.write(names) as txn:
        names.upsert(txn, "committed")
    assert values.of(db.snapshot(), "") == ["committed"], "both have the same revision"
