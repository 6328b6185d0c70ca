"""The dialect: in an agent it feeds the Beacon of the node.

It has what `beacon` has not: a conversion, a subcommand, a path of the local API and a metric.
"""

import argparse
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec

from reconcilers import dialect as api
from reconcilers.model import ObjectRef, Problem, ref_to
from resources.core.kinds import NODE
from resources.meta import ObjectMeta
from statedb import Snapshot
from tests.dialects.beacon.kinds import BEACON, Beacon, BeaconSpec
from tests.dialects.lighthouse.kinds import LIGHTHOUSE, Lighthouse


def beacon_of(row: Lighthouse, node: str) -> api.Translated:
    beacon = Beacon(metadata=ObjectMeta(name=node), spec=row.spec.beacon)
    return api.Translated(ref_to(LIGHTHOUSE, row), beacon, fields={"spec.asn": "spec.beacon.asn"})


def to_lighthouse(
    rows: Mapping[str, Sequence[Any]],
) -> tuple[list[dict[str, Any]], list[Problem]]:
    """Convert Beacons that are equal to one Lighthouse; a single one is left, with a note."""
    nodes: dict[BeaconSpec, list[str]] = {}
    for row in rows[BEACON.name]:
        nodes.setdefault(row.spec, []).append(row.metadata.name)
    objects = [
        {
            "apiVersion": LIGHTHOUSE.api_versions[0],
            "kind": LIGHTHOUSE.name,
            "metadata": {"name": names[0]},
            "spec": {"nodes": names, "beacon": msgspec.to_builtins(spec)},
        }
        for spec, names in nodes.items()
        if len(names) > 1
    ]
    single = [names[0] for names in nodes.values() if len(names) == 1]
    notes = [
        Problem((ObjectRef(BEACON.name, "", name),), "", "is left as it is") for name in single
    ]
    return objects, notes


def run_nodes(args: argparse.Namespace, ask: api.Ask) -> int:
    for item in ask("/v1/lighthouses", {"name": args.name} if args.name else {}):
        print(f"{item['name']}: {', '.join(item['nodes'])}")  # noqa: T201 - a command
    return 0


class LighthouseDialect(api.Dialect):
    name, title, feeds = "lighthouse", "Lighthouses", "beacon"
    kinds = (NODE, LIGHTHOUSE)
    converters = (api.Converter((BEACON,), to_lighthouse, target="lighthouse"),)
    commands = (
        api.Command(
            "lighthouses",
            "the nodes of each Lighthouse",
            run_nodes,
            lambda parser: parser.add_argument("name", nargs="?"),
        ),
    )

    def compile(self, snapshot: Snapshot, context: api.NodeContext) -> api.NodeIntent:
        rows = self.tables.of(LIGHTHOUSE).all(snapshot)
        found = (beacon_of(row, context.node) for row in rows if context.node in row.spec.nodes)
        return api.NodeIntent(feed=api.Feed.of(found))

    @property
    def api_paths(self) -> tuple[api.ApiPath, ...]:
        return (api.ApiPath("/v1/lighthouses", "LighthouseList", self._read, ("name",)),)

    def _read(self, snapshot: Snapshot, query: Mapping[str, str]) -> list[dict[str, Any]]:
        rows = {row.metadata.name: row for row in self.tables.of(LIGHTHOUSE).all(snapshot)}
        if query.get("name", next(iter(rows), "")) not in {*rows, ""}:
            raise LookupError(f"no Lighthouse is called {query['name']}")
        return [
            {"name": name, "nodes": row.spec.nodes}
            for name, row in rows.items()
            if query.get("name") in (None, name)
        ]

    def metrics(self, snapshot: Snapshot) -> Iterator[api.Gauge]:
        rows = self.tables.of(LIGHTHOUSE).all(snapshot)
        nodes = {(row.metadata.name,): len(row.spec.nodes) for row in rows}
        yield api.Gauge("waggle_lighthouse_nodes", "Nodes of a Lighthouse.", nodes, ("lighthouse",))
