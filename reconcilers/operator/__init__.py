"""The operator: generated objects, conditions and deletions, planned from snapshots and written.

`planner` works out the desired state from a snapshot, `plan_writer` writes it to the API server,
`local` writes it as rows in a process without one. `rivals` finds other implementations that run.
"""

from reconcilers.dialect import Delete
from reconcilers.operator.local import LocalOperator
from reconcilers.operator.planner import Plan, Planner
from reconcilers.operator.rivals import RunningRival, running_rivals
from reconcilers.operator.stored_conditions import StoredConditions
from reconcilers.operator.writes import Annotate, Apply, Write

__all__ = [
    "Annotate",
    "Apply",
    "Delete",
    "LocalOperator",
    "Plan",
    "Planner",
    "RunningRival",
    "StoredConditions",
    "Write",
    "running_rivals",
]
