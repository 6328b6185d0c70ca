"""The operator cell of an agent that reads manifests: the operator's part, in the agent's process.

What it generates are rows that the intent compiler reads in the same round; there is no API server
to write to, and no leader to elect.
"""

from __future__ import annotations

from cells.hive import Group, Wiring, provide
from cells.intent.cell import IntentStep
from cells.intent.installing_dialects import InstallingDialects, installing
from cells.sources.resources import SecretsNamespace
from reconcilers.dialect import Dialect
from reconcilers.intent_tables import IntentTables
from reconcilers.operator import InProcessOperator, Planner
from statedb import Database


def make_operator(
    database: Database,
    intent: IntentTables,
    dialects: Group[Dialect],
    secrets_namespace: SecretsNamespace,
    installed: Group[InstallingDialects],
) -> InProcessOperator:
    """Return the operator's part of the enabled dialects."""
    planner = Planner(
        database,
        dialects,
        secrets_namespace.name,
        stored=False,
        installing=installing(installed),
    )
    return InProcessOperator(database, intent, planner)


WIRING = Wiring(
    contributes=(provide(make_operator, as_=IntentStep),),
)
