"""The dialect: in an agent it feeds the Beacon of the node.

It has what `beacon` has not: a conversion, a subcommand, and a path of the local API.
"""

import argparse
import json
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import msgspec

from reconcilers import dialect as api
from reconcilers.dialect_entry import Subcommand
from reconcilers.model import ObjectRef, ref_to
from resources.core.kinds import NODE
from resources.meta import ObjectMeta
from statedb import Snapshot
from tests.dialects.beacon.kinds import BEACON, Beacon, BeaconSpec
from tests.dialects.lighthouse.kinds import LIGHTHOUSE, Lighthouse


def beacon_of(row: Lighthouse, node: str) -> api.Translated:
    metadata = ObjectMeta(name=node, creation_timestamp=row.metadata.creation_timestamp)
    beacon = Beacon(metadata=metadata, spec=row.spec.beacon)
    return api.Translated(ref_to(LIGHTHOUSE, row), beacon, fields={"spec.asn": "spec.beacon.asn"})


def to_lighthouse(rows: Mapping[str, Sequence[Any]], notes: api.Notes) -> list[dict[str, Any]]:
    """Convert Beacons that are equal to one Lighthouse; a single one is left, with a note."""
    nodes: dict[BeaconSpec, list[str]] = {}
    for row in rows[BEACON.name]:
        nodes.setdefault(row.spec, []).append(row.metadata.name)
    for names in nodes.values():
        if len(names) == 1:
            notes.add(ObjectRef(BEACON.name, "", names[0]), "", "is left as it is")
    return [
        {
            "apiVersion": LIGHTHOUSE.api_versions[0],
            "kind": LIGHTHOUSE.name,
            "metadata": {"name": names[0]},
            "spec": {"nodes": names, "beacon": msgspec.to_builtins(spec)},
        }
        for spec, names in nodes.items()
        if len(names) > 1
    ]


def read_nodes(context: api.ViewContext, query: Mapping[str, str]) -> dict[str, tuple[str, ...]]:
    rows = context.tables.of(LIGHTHOUSE).all(context.snapshot)
    nodes = {row.metadata.name: row.spec.nodes for row in rows}
    if query["name"] not in nodes:
        raise api.RefusedError(404, f"no Lighthouse is called {query['name']}")
    return {query["name"]: nodes[query["name"]]}


def list_nodes(args: argparse.Namespace, ask: api.Ask) -> api.Listing:
    answer = ask("/lighthouses", {"name": args.name})
    if answer.status != 200:
        raise api.CommandError("NotFound", answer.body.strip())
    items = [{"name": name, "nodes": nodes} for name, nodes in json.loads(answer.body).items()]
    return api.Listing("LighthouseList", items, [f"{i['name']} {i['nodes']}" for i in items])


def nodes_command() -> api.Command:
    types = {"LighthouseList": dict[str, Any]}
    return api.Command(list_nodes, types, lambda parser: parser.add_argument("name"))


NODES = Subcommand("lighthouses", "the nodes of a Lighthouse", nodes_command)


class LighthouseDialect(api.Dialect):
    name, title, feeds = "lighthouse", "Lighthouses", "beacon"
    kinds = (NODE, LIGHTHOUSE)
    extensions: ClassVar[tuple[api.Extension, ...]] = (
        api.Conversion(target="lighthouse", kinds=(BEACON,), rows=to_lighthouse),
        api.ApiPath("/lighthouses", read_nodes),
    )

    def compile(self, snapshot: Snapshot, context: api.NodeContext) -> api.NodeIntent:
        rows = self.tables.of(LIGHTHOUSE).all(snapshot)
        beacons = (beacon_of(row, context.node) for row in rows if context.node in row.spec.nodes)
        return api.NodeIntent(feed=api.Feed.of(beacons))
