"""A defect of one dialect, source or object is that one's problem, and stops nothing else."""

# ruff: noqa: ARG002  the protocol's signatures

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, ClassVar

import pytest
from msgspec.structs import replace

from reconcilers.dialect import (
    ClusterContext,
    ClusterIntent,
    Contributed,
    Dialect,
    Everything,
    HostNeeds,
    NodeContext,
    NodeIntent,
    Operation,
    RouteSource,
)
from reconcilers.intent.compiler import IntentCompiler
from reconcilers.intent_tables import IntentTables
from reconcilers.model import Attributes, Contribution, Instance, ObjectRef, Origin, Peer
from reconcilers.operator import Planner
from reconcilers.sliced_work import finish
from resources.core.kinds import NAMESPACE
from resources.kind import Kind
from resources.tables import Tables
from speaker.nlri import IPV4_UNICAST, prefix_to_text, prefix_to_wire
from statedb import Change, Database, Key, Snapshot, Table
from tests.support import kinds

REF = ObjectRef("Namespace", "", "x")
PEER = Peer(
    instance="i",
    name="p",
    address="192.0.2.9",
    interface=None,
    peer_asn=65009,
    peer_port=179,
    local_address=None,
    local_asn=None,
    hold_time=90,
    keepalive_time=30,
    connect_retry_time=120,
    ebgp_multihop=1,
    password=None,
    graceful_restart=None,
    bfd=None,
    families=(IPV4_UNICAST,),
    route_set="s",
    origins=(REF,),
)


class Rules:
    def __init__(self, name: str) -> None:
        self.name = name


class Source:
    """Every Namespace contributes one prefix of this source."""

    def __init__(self, tables: Tables, name: str, prefix: str) -> None:
        self._tables = tables
        self.name = name
        self.prefix = prefix
        self.attributes = Attributes()
        self.fails: str | None = None

    def may_fail(self, hook: str) -> None:
        if self.fails == hook:
            raise RuntimeError(f"{hook} is broken")

    @property
    def tables(self) -> tuple[Table[Any], ...]:
        return (self._tables.namespaces,)

    def affected(
        self, table: Table[Any], changes: Sequence[Change[Any]]
    ) -> Iterable[Key] | Everything:
        self.may_fail("affected")
        return [change.row.metadata.name for change in changes]

    def keys(self, snapshot: Snapshot, _rules: Sequence[Any], /) -> Iterable[Key]:
        self.may_fail("keys")
        return [row.metadata.name for row in self._tables.namespaces.all(snapshot)]

    def object(self, context: NodeContext, key: Key) -> ObjectRef:
        self.may_fail("object")
        return ObjectRef("Namespace", "", str(key))

    def contributions(
        self, snapshot: Snapshot, context: NodeContext, key: Key, rules: Sequence[Any]
    ) -> Iterator[Contributed]:
        if self._tables.namespaces.get(snapshot, ("", str(key))) is None:
            return
        self.may_fail("contributions")
        for one in rules:
            if self.fails == f"contributions to {one.name}":
                raise RuntimeError("broken")
            ref = ObjectRef("Namespace", "", str(key))
            contribution = Contribution(Origin(ref, ref), self.attributes)
            yield Contributed(one.name, *prefix_to_wire(self.prefix), contribution)


class Faulty(Dialect):
    """One instance, one peer, the sets of a test, two sources over the same objects."""

    name: ClassVar[str] = "faulty"
    title: ClassVar[str] = "A faulty API"
    kinds: ClassVar[tuple[Kind[Any], ...]] = (NAMESPACE,)
    cluster_kinds: ClassVar[tuple[Kind[Any], ...]] = (NAMESPACE,)
    extensions: ClassVar = (
        HostNeeds(lambda dialect, *_: dialect.may_fail("needs_host")),
        Operation(lambda dialect, *context: dialect.operate(*context)),
    )

    def __init__(self, tables: Tables) -> None:
        super().__init__(tables, self.options_type())
        self.one = Source(tables, "one", "10.1.0.0/24")
        self.two = Source(tables, "two", "10.2.0.0/24")
        self.sources: tuple[RouteSource, ...] = (self.one, self.two)
        self.peer = PEER
        self.sets = ["s"]
        self.fails: dict[str, str] = {}

    def may_fail(self, hook: str) -> bool:
        if hook in self.fails:
            raise RuntimeError(self.fails[hook])
        return False

    @property
    def compiled_tables(self) -> tuple[Table[Any], ...]:
        return (self.tables.nodes,)

    def compile(self, snapshot: Snapshot, context: NodeContext) -> NodeIntent:
        self.may_fail("compile")
        instance = Instance("i", None, 65001, "192.0.2.1", None, REF)
        return NodeIntent((instance,), (self.peer,), {name: Rules(name) for name in self.sets})

    def join(self, contributions: Sequence[Contribution]) -> Attributes:
        self.may_fail("join")
        return super().join(contributions)

    def operate(self, snapshot: Snapshot, context: ClusterContext) -> ClusterIntent:
        self.may_fail("operate")
        return ClusterIntent()


class Bench:
    def __init__(self) -> None:
        self.db = Database()
        self.tables, self.intent = Tables(self.db), IntentTables(self.db)
        self.dialect = Faulty(self.tables)
        self.errors: list[str] = []
        self.compiler = IntentCompiler(
            self.db,
            self.tables,
            self.intent,
            [self.dialect],
            "n",
            on_error=lambda name, error: self.errors.append(f"{name}: {error}"),
        )
        self.changes = 0

    def put(self, name: str = "x") -> None:
        self.changes += 1
        labels = {"change": str(self.changes)}
        row = kinds.NAMESPACE.decode({"metadata": {"name": name, "labels": labels}})
        with self.db.write(self.tables.namespaces) as txn:
            self.tables.namespaces.upsert(txn, row)

    def delete(self, name: str = "x") -> None:
        with self.db.write(self.tables.namespaces) as txn:
            self.tables.namespaces.delete(txn, ("", name))

    def reconfigure(self) -> None:
        self.changes += 1
        node = {"metadata": {"name": "n", "labels": {"change": str(self.changes)}}}
        with self.db.write(self.tables.nodes) as txn:
            self.tables.nodes.upsert(txn, kinds.NODE.decode(node))

    def routes(self) -> list[str]:
        rows = self.intent.routes.all(self.db.snapshot())
        return sorted(f"{row.route_set} {prefix_to_text(row.family, row.nlri)}" for row in rows)

    def problems(self) -> list[str]:
        return sorted(row.message for row in self.intent.problems.all(self.db.snapshot()))


BOTH = ["faulty-s 10.1.0.0/24", "faulty-s 10.2.0.0/24"]


def test_two_sources_of_one_object_keep_their_contributions_apart() -> None:
    bench = Bench()
    bench.put()
    bench.compiler.run()
    assert bench.routes() == BOTH
    bench.dialect.one.prefix = "10.3.0.0/24"
    bench.put()
    bench.compiler.run()
    assert bench.routes() == ["faulty-s 10.2.0.0/24", "faulty-s 10.3.0.0/24"]
    bench.delete()
    bench.compiler.run()
    assert bench.routes() == []


@pytest.mark.parametrize("hook", ["affected", "keys", "object", "contributions"])
def test_a_source_that_fails_is_a_problem_and_catches_up(hook: str) -> None:
    bench = Bench()
    bench.dialect.one.fails = hook
    bench.put()
    bench.compiler.run()
    assert bench.routes()[-1:] == BOTH[1:]
    assert bench.problems()
    bench.put()
    bench.compiler.run()
    assert any(f"{hook} is broken" in text for text in bench.problems())
    bench.dialect.one.fails = None
    bench.put("y")
    bench.put()
    bench.compiler.run()
    bench.reconfigure()
    bench.compiler.run()
    assert bench.routes() == BOTH
    assert bench.problems() == []


def test_a_prefix_that_cannot_be_joined_is_withheld_and_named() -> None:
    bench = Bench()
    bench.put()
    bench.dialect.fails["join"] = "no"
    bench.compiler.run()
    assert bench.routes() == []
    assert any(
        text.endswith("its contributions cannot be joined: RuntimeError: no")
        for text in bench.problems()
    )
    bench.dialect.fails.clear()
    bench.put()
    bench.compiler.run()
    assert bench.routes() == BOTH
    assert bench.problems() == []


def test_a_route_with_impossible_attributes_is_withheld_and_named() -> None:
    bench = Bench()
    bench.dialect.one.attributes = Attributes(local_preference=1 << 32)
    bench.put()
    bench.compiler.run()
    assert bench.routes() == BOTH[1:]
    (problem,) = bench.problems()
    assert "its attributes are impossible" in problem
    assert "4294967296" in problem


def test_a_dialect_that_cannot_be_compiled_keeps_its_last_intent_and_has_one_problem() -> None:
    bench = Bench()
    bench.put()
    bench.compiler.run()
    for reason in ("first", "second"):
        bench.dialect.fails["compile"] = reason
        bench.reconfigure()
        bench.compiler.run()
        assert bench.routes() == BOTH
        assert bench.problems() == [f"A faulty API cannot be compiled: RuntimeError: {reason}"]
    assert bench.errors == ["faulty: first", "faulty: second"]
    bench.dialect.fails.clear()
    bench.reconfigure()
    bench.compiler.run()
    assert bench.problems() == []


def test_needs_host_that_fails_is_reported_and_holds_nothing_up() -> None:
    bench = Bench()
    bench.tables.host.register_initializer("netlink")
    bench.dialect.fails["needs_host"] = "no"
    bench.put()
    assert bench.compiler.run().ready
    assert bench.errors == ["faulty: no"]


@pytest.mark.parametrize(
    ("address", "interface", "reason"),
    [
        ("bogus", None, "'bogus' is not an IP address"),
        ("10.0.0.0/24", None, "'10.0.0.0/24' is not an IP address"),
        (None, None, "it has neither an address nor an interface"),
    ],
)
def test_a_peer_without_a_usable_address_is_left_out(
    address: str | None, interface: str | None, reason: str
) -> None:
    bench = Bench()
    bench.dialect.peer = replace(PEER, address=address, interface=interface)
    bench.compiler.run()
    assert list(bench.intent.peers.all(bench.db.snapshot())) == []
    assert bench.problems() == [f"peer 'p' is not configured: {reason}"]


def test_a_failure_stays_known_per_route_set_and_goes_with_its_object() -> None:
    bench = Bench()
    bench.dialect.sets = ["s"]
    bench.dialect.one.fails = "contributions to s"
    bench.put()
    bench.compiler.run()
    failed = ["it cannot be used: RuntimeError: broken"]
    assert bench.problems() == failed
    # A set to which the object does contribute changes nothing for the one where it does not.
    bench.dialect.sets = ["s", "t"]
    bench.reconfigure()
    bench.compiler.run()
    assert bench.problems() == failed
    # Without rules there is nothing to contribute to, and no failure.
    bench.dialect.sets = []
    bench.dialect.peer = replace(PEER, route_set=None)
    bench.reconfigure()
    bench.compiler.run()
    bench.delete()
    bench.compiler.run()
    assert bench.problems() == []
    assert bench.routes() == []


def test_an_operator_part_that_fails_is_a_problem_and_writes_nothing() -> None:
    bench = Bench()
    planner = Planner(bench.db, [bench.dialect], "kube-system")
    bench.dialect.fails["operate"] = "no"
    plan = finish(planner.plan())
    assert plan is not None
    assert (plan.objects, plan.conditions) == ((), {})
    (problem,) = plan.problems
    assert problem.message == "A faulty API cannot be operated: RuntimeError: no"
