"""The operator's part: conditions of MetalLB's objects, of the outcome that FRR-k8s returns."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from reconcilers.dialect import ClusterContext, ClusterIntent, Operation
from reconcilers.frrk8s.conditions import ClusterOutcome
from reconcilers.metallb.conditions import conditions_of
from reconcilers.model import ref_to
from reconcilers.sliced_work import Pieces, Slices
from resources.frrk8s import condition_types
from resources.frrk8s.kinds import FRR_CONFIGURATION
from resources.metallb.kinds import CONFIGURATION
from statedb import Snapshot

if TYPE_CHECKING:
    from reconcilers.metallb.dialect import MetalLBDialect


def operate(
    dialect: MetalLBDialect, snapshot: Snapshot, context: ClusterContext
) -> Slices[ClusterIntent]:
    """Operate on MetalLB's objects: report conditions, of FRR-k8s's outcome, in slices."""
    outcome = context.outcome
    if not context.reports_conditions or not isinstance(outcome, ClusterOutcome):
        return ClusterIntent()
    rows = [
        (ref_to(kind, row), row)
        for kind in CONFIGURATION
        for row in dialect.tables.of(kind).all(snapshot)
    ]
    reported = yield from conditions_of(rows, dialect.options.namespace, outcome, Pieces())
    return ClusterIntent(conditions=tuple(reported))


OPERATION: Final = Operation(
    operate,
    condition_kinds=CONFIGURATION,
    condition_types=condition_types.TYPES,
    # They may contradict MetalLB's objects.
    follows=(FRR_CONFIGURATION,),
)
