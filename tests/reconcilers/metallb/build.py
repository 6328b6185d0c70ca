"""A node with MetalLB's and FRR-k8s's objects in tables: objects in, rounds, rows out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

from reconcilers.dialect import Dialect, StoredState, extended
from reconcilers.frrk8s.dialect import Frrk8sDialect
from reconcilers.frrk8s.in_effect import InEffect, ObjectsOfNode
from reconcilers.frrk8s.merge import Merger
from reconcilers.frrk8s.options import Frrk8sOptions
from reconcilers.frrk8s.unit_parts import Unit
from reconcilers.intent.compiler import IntentCompiler
from reconcilers.intent.render import document
from reconcilers.intent.summary import Summary
from reconcilers.intent_tables import IntentTables
from reconcilers.metallb.dialect import MetalLBDialect
from reconcilers.metallb.feed import Checked, MetalLBFeed
from reconcilers.metallb.findings import findings
from reconcilers.metallb.options import MetalLBOptions
from reconcilers.model import ref_to
from reconcilers.sliced_work import Pieces, finish
from resources.core import Secret
from resources.frrk8s.kinds import FRR_CONFIGURATION
from resources.kind import Kinds
from resources.tables import Tables
from statedb import Database
from tests.reconcilers.frrk8s.build import resolve
from tests.reconcilers.metallb.objects import NAMESPACE, rows
from tests.support.dialects import extension

NODE = "n1"


class MetalLBNode:
    """The node `NODE`; ``on_conflict`` as the flag, other options are MetalLB's."""

    def __init__(
        self,
        on_conflict: Any = "keep",  # noqa: ANN401
        memories: Mapping[str, bytes] = MappingProxyType({}),
        **options: Any,  # noqa: ANN401
    ) -> None:
        """``memories`` are an earlier process's, by dialect."""
        self.db = Database()
        self.kinds = Kinds(MetalLBDialect.kinds, Frrk8sDialect.kinds)
        self.tables = Tables(self.db, self.kinds)
        self.intent = IntentTables(self.db)
        self.metallb = MetalLBDialect(self.tables, MetalLBOptions(**options))
        frrk8s = Frrk8sDialect(self.tables, Frrk8sOptions(on_conflict=on_conflict))
        self.dialects: tuple[Dialect, ...] = (self.metallb, frrk8s)
        states = {
            dialect.name: memory.restore(dialect, memories[dialect.name])
            for dialect, memory in extended(self.dialects, StoredState)
            if dialect.name in memories
        }
        self.compiler = IntentCompiler(
            self.db, self.tables, self.intent, self.dialects, NODE, states=states
        )

    def put(self, *objects: dict[str, Any]) -> Summary:
        """Write objects, and run a round."""
        for value in objects:
            kind = self.kinds.find(value["apiVersion"], value["kind"])
            assert kind is not None, value["kind"]
            table = self.tables.of(kind)
            with self.db.write(table) as txn:
                table.upsert(txn, kind.decode(value))
        return self.compiler.run()

    def delete(self, value: dict[str, Any]) -> Summary:
        """Delete an object, and run a round."""
        kind = self.kinds.named(value["kind"])
        assert kind is not None
        table, metadata = self.tables.of(kind), value["metadata"]
        with self.db.write(table) as txn:
            table.delete(txn, (metadata.get("namespace", ""), metadata["name"]))
        return self.compiler.run()

    def routes(self) -> dict[str, list[str]]:
        """Return the prefixes of each peer."""
        found = self.render()["instances"]
        return {
            peer["address"]: [route["prefix"] for route in peer["advertise"]]
            for instance in found
            for peer in instance["peers"]
        }

    def problems(self) -> list[tuple[str, list[str]]]:
        """Return category and names of the objects of each problem."""
        return [
            (problem["category"], [name.rpartition("/")[2] for name in problem["objects"]])
            for problem in self.render()["problems"]
        ]

    def render(self) -> dict[str, Any]:
        """See the intent as `waggle render` shows it."""
        return document(self.db.snapshot(), NODE, self.tables, self.intent)

    def rendered(self) -> list[dict[str, Any]]:
        """Return what MetalLB's speaker would write."""
        return list(self.compiler.rendered())

    def memory(self, dialect: str = "metallb") -> bytes | None:
        """Return what the next process has to know."""
        found = next(one for one in self.dialects if one.name == dialect)
        memory = extension(found, StoredState)
        value = memory.of_state(self.compiler.states[dialect])
        return None if value is None else memory.encode(value)


def isolated(objects: Sequence[Mapping[str, Any]], pieces: Pieces | None = None) -> InEffect:
    """Isolate objects of MetalLB and FRRConfigurations."""
    db, configurations = Database(), []
    own: list[dict[str, Any]] = []
    for one in map(dict, objects):
        if one["kind"] == FRR_CONFIGURATION.name:
            configurations.append(FRR_CONFIGURATION.decode(one))
        else:
            own.append(one)
    tables = Tables(db, Kinds(MetalLBDialect.kinds, Frrk8sDialect.kinds))
    given = rows(*own)
    checked = Checked(given, tuple(findings(given, no_secrets, NAMESPACE)), no_secrets, NAMESPACE)
    feed = MetalLBFeed(tables, MetalLBOptions(), NODE, checked, {}, None)
    units = [Unit(ref_to(FRR_CONFIGURATION, row), row) for row in configurations]
    of_node = ObjectsOfNode(
        NODE, db.snapshot(), "isolate", Merger(), resolve(), units, {"metallb": feed}
    )
    return finish(of_node.in_effect(pieces or Pieces()))


def no_secrets(_key: object) -> Secret | None:
    """There is no Secret."""
    return None
