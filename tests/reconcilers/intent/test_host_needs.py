"""Whether the kernel has to be read: which changes ask the dialects, and what an error does."""

from __future__ import annotations

from collections.abc import Callable
from collections.abc import Set as AbstractSet
from typing import Any, ClassVar, NamedTuple

from reconcilers.dialect import HostNeeds
from reconcilers.intent.compiler import IntentCompiler
from reconcilers.intent.host_needs import HostDemand
from reconcilers.intent_tables import IntentTables
from resources.core.kinds import NODE as NODE_KIND
from resources.core.kinds import SERVICE
from resources.kind import Kind
from resources.tables import Tables
from statedb import Database, Revisions, Snapshot, Table
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
    """Gives the answer that is set, and counts the questions."""

    extensions: ClassVar = (HostNeeds(_answer),)
    answer: bool | Exception = False
    asked = 0


def test_the_dialects_answer_again_after_a_change_of_their_tables_alone() -> None:
    db = Database()
    tables = Tables(db, [*_Asked.kinds, NODE_KIND, SERVICE])
    tables.host.register_initializer("netlink")
    dialect = _Asked(tables, _Asked.options_type())
    needs, changes = HostDemand(tables, [dialect], NODE), list[None]()
    needs.changes.subscribe(changes.append)

    def unread(*changed: Table[Any]) -> frozenset[str]:
        return needs.unread(db.snapshot(), frozenset(changed))

    assert unread(tables.of(BEACON)) == frozenset()
    assert unread(tables.services, tables.endpoint_slices) == frozenset()
    assert (dialect.asked, changes) == (1, [])
    dialect.answer = ValueError("no")
    assert unread(tables.of(BEACON)) == frozenset()
    assert list(needs.failures) == ["beacon"]
    assert len(changes) == 1
    dialect.answer = True
    assert unread(tables.nodes, tables.services) == {"beacon"}
    assert unread() == {"beacon"}
    assert needs.needed
    assert not needs.failures
    assert (dialect.asked, len(changes)) == (3, 2)


class _Followed(HostDemand):
    """Counts the rounds that look at it."""

    looks = 0

    def unread(
        self,
        snapshot: Snapshot,
        changed: AbstractSet[Table[Any]],
        on_error: Callable[[str, Exception], None] = lambda _dialect, _error: None,
    ) -> frozenset[str]:
        self.looks += 1
        return super().unread(snapshot, changed, on_error)


class _Counting(Database):
    """Counts the comparisons of revisions."""

    comparisons = 0

    def changed(self, since: Revisions | None, until: Snapshot) -> frozenset[Table[Any]]:
        self.comparisons += since is not None
        return super().changed(since, until)


class _Agent:
    """A compiler of one dialect; nothing has read the kernel."""

    def __init__(self) -> None:
        self.db = _Counting()
        self.tables = tables = Tables(self.db, [*_Asked.kinds, NODE_KIND, SERVICE])
        self._read = tables.host.register_initializer("netlink")
        self.dialect = _Asked(tables, _Asked.options_type())
        self.demand = _Followed(tables, [self.dialect], NODE)
        intent = IntentTables(self.db)
        self._compiler = IntentCompiler(
            self.db, tables, intent, [self.dialect], NODE, host_demand=self.demand
        )

    def after(self, kind: Kind[Any], value: dict[str, Any]) -> Counts:
        """Return the counts of the round after a change of one object."""
        table = self.tables.of(kind)
        with self.db.write(table) as txn:
            table.upsert(txn, kind.decode(value))
        return self.round()

    def round(self) -> Counts:
        before = (self.demand.looks, self.dialect.asked, self.db.comparisons)
        self._compiler.run()
        after = (self.demand.looks, self.dialect.asked, self.db.comparisons)
        return Counts(*(new - old for new, old in zip(after, before, strict=True)))

    def read(self) -> None:
        with self.db.write(self.tables.host) as txn:
            self._read(txn)


class Counts(NamedTuple):
    """Of one round: looks at the demand, answers of the dialect, comparisons of revisions."""

    looks: int
    answers: int
    comparisons: int


def _service(name: str) -> dict[str, Any]:
    return {"metadata": {"name": name, "namespace": "default"}, "spec": {}}


def _beacon(address: str) -> dict[str, Any]:
    return beacon(NODE, instance="main", peerAddress=address, peerASN=65010)


def test_a_round_looks_at_the_demand_only_if_a_table_has_changed_on_which_it_depends() -> None:
    agent = _Agent()
    assert agent.after(BEACON, _beacon("192.0.2.1")) == Counts(looks=1, answers=1, comparisons=0)
    for name in ("web", "mail"):
        counts = agent.after(SERVICE, _service(name))
        assert counts == Counts(looks=0, answers=0, comparisons=1)
    assert agent.after(BEACON, _beacon("192.0.2.2")) == Counts(looks=1, answers=1, comparisons=1)


def test_rounds_that_wait_for_the_kernel_do_not_let_the_dialects_answer_again() -> None:
    agent = _Agent()
    agent.dialect.answer = True
    assert agent.after(BEACON, _beacon("192.0.2.1")) == Counts(looks=1, answers=1, comparisons=0)
    assert agent.after(SERVICE, _service("web")) == Counts(looks=1, answers=0, comparisons=1)


def test_once_the_host_has_been_read_no_round_looks_at_the_demand() -> None:
    agent = _Agent()
    agent.dialect.answer = True
    agent.after(BEACON, _beacon("192.0.2.1"))
    agent.read()
    assert agent.round().looks == 1
    assert agent.after(BEACON, _beacon("192.0.2.2")) == Counts(looks=0, answers=0, comparisons=1)
