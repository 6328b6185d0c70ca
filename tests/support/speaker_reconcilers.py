"""The reconcilers of the speaker in their order, and a runner with a fixed jitter and wall clock."""

from __future__ import annotations

import random
from collections.abc import Iterable

from reconcilers.apply.import_policy import ImportPolicies
from reconcilers.apply.instances import Instances
from reconcilers.apply.peers import Peers
from reconcilers.apply.route_sets import RouteSets
from reconcilers.intent_tables import IntentTables
from reconcilers.target import Runner
from reconcilers.target.reconciler import Reconciler
from resources.tables import Tables
from speaker.api import SpeakerPort
from statedb import Database


def runner(
    db: Database,
    intent: IntentTables,
    resources: Tables,
    speaker: SpeakerPort,
    also: Iterable[Reconciler] = (),
) -> Runner:
    """Make a runner that has not run yet; ``also`` are reconcilers before the speaker's."""
    return Runner(
        db,
        intent.reconcile_statuses,
        [
            *also,
            Instances(db, intent, speaker),
            RouteSets(db, intent, speaker),
            ImportPolicies(db, intent, speaker),
            Peers(db, intent, resources, speaker),
        ],
        random.Random(1),  # noqa: S311  jitter
        wall_clock=lambda: 1e9,
    )
