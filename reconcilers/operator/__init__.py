"""The operator: generated objects, conditions and deletions, planned from snapshots and written.

`planner` works out the desired state from a snapshot. `planned_objects` and `planned_conditions` are
the reconcilers that write it to the API server, `in_process` writes it as rows where there is none.
`rivals` finds other implementations that run. The reconcilers and `rivals` are imported by their names:
the client of the API server comes with them.
"""

from reconcilers.model import Delete
from reconcilers.operator.in_process import InProcessOperator
from reconcilers.operator.planner import Plan, Planner
from reconcilers.operator.writes import Annotate, Apply, Write

__all__ = [
    "Annotate",
    "Apply",
    "Delete",
    "InProcessOperator",
    "Plan",
    "Planner",
    "Write",
]
