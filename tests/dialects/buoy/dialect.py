"""The dialect: it feeds a Beacon, in place of the Beacon of the Buoys' controller."""

from typing import ClassVar

from reconcilers import dialect as api
from reconcilers.model import Condition, ObjectRef, ref_to
from resources.core.kinds import NODE
from resources.meta import ObjectMeta
from statedb import Snapshot
from tests.dialects.beacon.kinds import BEACON, Beacon
from tests.dialects.buoy.kinds import BUOY, Buoy

IN_EFFECT = "test.waggle.dev/InEffect"
GENERATED = "has no effect: the Buoys' controller has generated it, and the Buoy is compiled here"


def beacon_of(row: Buoy) -> api.Translated:
    metadata = ObjectMeta(name=row.spec.node, creation_timestamp=row.metadata.creation_timestamp)
    beacon = Beacon(metadata=metadata, spec=row.spec.beacon)
    return api.Translated(ref_to(BUOY, row), beacon, fields={"spec.asn": "spec.beacon.asn"})


def operate(
    dialect: api.Dialect, snapshot: Snapshot, context: api.ClusterContext
) -> api.ClusterIntent:
    if context.outcome is None or not context.reports_conditions:
        return api.ClusterIntent()
    refs = [ref_to(BUOY, row) for row in dialect.tables.of(BUOY).all(snapshot)]
    conditions = (Condition(ref, IN_EFFECT, ref in context.outcome, "Chosen") for ref in refs)
    return api.ClusterIntent(conditions=tuple(conditions))


class BuoyDialect(api.Dialect):
    name, title, feeds = "buoy", "Buoys", "beacon"
    kinds = cluster_kinds = (NODE, BUOY)
    extensions: ClassVar[tuple[api.Extension, ...]] = (
        api.Operation(operate, condition_kinds=(BUOY,), condition_types=frozenset({IN_EFFECT})),
    )

    def compile(self, snapshot: Snapshot, context: api.NodeContext) -> api.NodeIntent:
        rows = self.tables.of(BUOY).all(snapshot)
        feed = api.Feed.of(beacon_of(row) for row in rows if row.spec.node == context.node)
        if feed.objects:
            feed.replaced = {ObjectRef(BEACON.name, "", context.node): GENERATED}
        return api.NodeIntent(feed=feed)
