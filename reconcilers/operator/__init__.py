"""The operator: generated objects, conditions and deletions, planned from snapshots and written.

`planner` works out the desired state from a snapshot, `plan_writer` writes it to the API server,
`local` writes it as rows in a process without one. `rivals` finds other implementations that run.
`plan_writer` and `rivals` are imported by their names: the client of the API server comes with them.
"""

from reconcilers.dialect import Delete
from reconcilers.operator.local import LocalOperator
from reconcilers.operator.planner import Plan, Planner
from reconcilers.operator.stored_conditions import StoredConditions
from reconcilers.operator.writes import Annotate, Apply, Write

__all__ = [
    "Annotate",
    "Apply",
    "Delete",
    "LocalOperator",
    "Plan",
    "Planner",
    "StoredConditions",
    "Write",
]
