"""From manifests to an answer in one go, without an agent: for `waggle` and tests."""

from __future__ import annotations

from collections.abc import Iterable
from typing import BinaryIO

from reconcilers.intent.cilium.members import known_nodes
from reconcilers.intent.cilium.v1.translate import Known, Translated, translate
from reconcilers.intent.explanation import Explanation
from reconcilers.intent.options import IntentOptions
from reconcilers.intent.round import IntentRound
from reconcilers.render import Json, document
from reconcilers.tables import IntentTables
from resources import kinds
from resources.manifests import Loaded, load
from resources.tables import Tables
from statedb import Database


class Intended:
    """What was read, compiled."""

    def __init__(self, loaded: Loaded, options: IntentOptions) -> None:
        self.db = Database()
        self.options = options
        self.resources, self.intent = Tables(self.db), IntentTables(self.db)
        for kind, event in loaded.replacements:
            table = self.resources.of(kind)
            with self.db.write(table) as txn:
                for row in event.objects:
                    table.upsert(txn, row)
        with self.db.write(self.resources.source_problems) as txn:
            for problem in loaded.problems:
                self.resources.source_problems.upsert(txn, problem)
        self._round = IntentRound(self.db, self.resources, self.intent, options)
        self._round.run()

    def document(self) -> Json:
        """Return the render document."""
        return document(self.db.snapshot(), self.options.node, self.resources, self.intent)

    def explanation(self) -> Explanation:
        """Make what answers why something is advertised or not."""
        return self._round.explanation()


def render(paths: Iterable[str], options: IntentOptions, stdin: BinaryIO | None = None) -> Json:
    """Read manifests and compile them. Raises `resources.manifests.UnreadablePathError`."""
    return Intended(load(paths, stdin), options).document()


def convert(loaded: Loaded) -> Translated:
    """Translate the CiliumBGPPeeringPolicies among what was read; the rest is what is known."""
    rows = {kind.name: event.objects for kind, event in loaded.replacements}
    nodes = known_nodes(rows[kinds.NODE.name], rows[kinds.CILIUM_NODE.name])
    known = Known(tuple(nodes.values()), tuple(rows[kinds.LOAD_BALANCER_IP_POOL.name]))
    return translate(rows[kinds.PEERING_POLICY.name], known)
