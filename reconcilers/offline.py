"""From manifests to an answer in one go, without an agent: for `waggle` and tests."""

from __future__ import annotations

from collections.abc import Iterable
from typing import BinaryIO

from reconcilers.intent.cilium.members import known_nodes
from reconcilers.intent.cilium.v1.translate import Known, Translated, translate
from reconcilers.intent.options import IntentOptions
from reconcilers.intent.round import IntentRound
from reconcilers.render import Json, document
from reconcilers.tables import IntentTables
from resources import kinds
from resources.manifests import Loaded, load
from resources.tables import Tables
from statedb import Database


def intend(loaded: Loaded, options: IntentOptions) -> Json:
    """Compile what was read; the render document."""
    db = Database()
    resources, intent = Tables(db), IntentTables(db)
    for kind, event in loaded.replacements:
        table = resources.of(kind)
        with db.write(table) as txn:
            for row in event.objects:
                table.upsert(txn, row)
    with db.write(resources.source_problems) as txn:
        for problem in loaded.problems:
            resources.source_problems.upsert(txn, problem)
    IntentRound(db, resources, intent, options).run()
    return document(db.snapshot(), options.node, resources, intent)


def render(paths: Iterable[str], options: IntentOptions, stdin: BinaryIO | None = None) -> Json:
    """Read manifests and compile them. Raises `resources.manifests.UnreadablePathError`."""
    return intend(load(paths, stdin), options)


def convert(loaded: Loaded) -> Translated:
    """Translate the CiliumBGPPeeringPolicies among what was read; the rest is what is known."""
    rows = {kind.name: event.objects for kind, event in loaded.replacements}
    nodes = known_nodes(rows[kinds.NODE.name], rows[kinds.CILIUM_NODE.name])
    known = Known(tuple(nodes.values()), tuple(rows[kinds.LOAD_BALANCER_IP_POOL.name]))
    return translate(rows[kinds.PEERING_POLICY.name], known)
