"""Whether the kernel has to be read: which changes ask the dialects, and what an error does."""

from __future__ import annotations

from typing import ClassVar

from reconcilers.dialect import HostNeeds
from reconcilers.intent.host_needs import HostDemand
from resources.core.kinds import NODE as NODE_KIND
from resources.core.kinds import SERVICE
from resources.tables import Tables
from statedb import Database, Snapshot
from tests.dialects.beacon.dialect import BeaconDialect
from tests.dialects.beacon.kinds import BEACON
from tests.dialects.objects import beacon

NODE = "n1"


def _answer(dialect: _Asked, _snapshot: Snapshot, _node: str) -> bool:
    dialect.asked += 1
    if isinstance(dialect.answer, Exception):
        raise dialect.answer
    return dialect.answer


class _Asked(BeaconDialect):
    """Answers as it is set to, and counts."""

    extensions: ClassVar = (HostNeeds(_answer),)
    answer: bool | Exception = False
    asked = 0


def test_the_dialects_answer_again_after_a_change_of_their_tables_alone() -> None:
    db = Database()
    tables = Tables(db, [*_Asked.kinds, NODE_KIND, SERVICE])
    dialect = _Asked(tables, _Asked.options_type())
    needs, changes = HostDemand(db, tables, [dialect], NODE), list[None]()
    needs.changes.subscribe(changes.append)

    def ask(address: str = "") -> bool:
        if address:
            with db.write(tables.of(BEACON)) as txn:
                value = beacon(NODE, instance="main", peerAddress=address, peerASN=65010)
                tables.of(BEACON).upsert(txn, BEACON.decode(value))
        return needs.ask(db.snapshot())

    assert not ask()
    with db.write(tables.services) as txn:
        metadata = {"name": "web", "namespace": "default"}
        tables.services.upsert(txn, SERVICE.decode({"metadata": metadata, "spec": {}}))
    assert not ask()
    assert (dialect.asked, changes) == (1, [])
    dialect.answer = ValueError("no")
    assert not ask("192.0.2.1")
    assert list(needs.failures) == ["beacon"]
    assert len(changes) == 1
    dialect.answer = True
    assert ask("192.0.2.2")
    assert needs.needed
    assert not needs.failures
    assert (dialect.asked, len(changes)) == (3, 2)
