"""A node with MetalLB's and FRR-k8s's objects in tables: objects in, rounds, rows out."""

from __future__ import annotations

from typing import Any

from reconcilers.frrk8s.dialect import Frrk8sDialect
from reconcilers.frrk8s.options import Frrk8sOptions
from reconcilers.intent.compiler import IntentCompiler, Summary
from reconcilers.metallb.dialect import MetalLBDialect
from reconcilers.metallb.options import MetalLBOptions
from reconcilers.render import document
from reconcilers.tables import IntentTables
from resources.kind import Kinds
from resources.tables import Tables
from statedb import Database

NODE = "n1"


class MetalLBNode:
    """The node `NODE`; ``on_conflict`` as the flag, other options are MetalLB's."""

    def __init__(self, on_conflict: Any = "keep", **options: Any) -> None:  # noqa: ANN401
        self.db = Database()
        self.kinds = Kinds(MetalLBDialect.kinds, Frrk8sDialect.kinds)
        self.tables = Tables(self.db, self.kinds)
        self.intent = IntentTables(self.db)
        self.metallb = MetalLBDialect(self.tables, MetalLBOptions(**options))
        frrk8s = Frrk8sDialect(self.tables, Frrk8sOptions(on_conflict=on_conflict))
        self.dialects = (self.metallb, frrk8s)
        self.compiler = IntentCompiler(self.db, self.tables, self.intent, self.dialects, NODE)

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
        return list(self.metallb.rendered(self.db.snapshot(), NODE, self.intent))
