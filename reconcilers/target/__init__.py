"""Reconcilers for any target: what one is, and the runner that is the same for all of them.

* `reconciler`: desired state, actual state, operations, pace; `single_value` for objects of one value,
  `given` for a desired state that is in no table
* `write_spread`: what the agents of a cluster share of an API server
* `queue`, `runner`: objects that are due, retries, statuses; one round over all reconcilers
* `comparison`: the difference of desired and actual state, and the operations that end it
* `verification`: the full comparison with what a target holds

It knows no target. `reconcilers.apply` has the reconcilers of the speaker, `reconcilers.report` and
`reconcilers.operator` the API server's.
"""

from reconcilers.target.queue import ReconcileOutcome
from reconcilers.target.reconciler import Description, NotNow, Pace, ReconcileError, Reconciler
from reconcilers.target.runner import ReconcilerReport, RoundSummary, Runner
from reconcilers.target.verification import Drift, Verification

__all__ = [
    "Description",
    "Drift",
    "NotNow",
    "Pace",
    "ReconcileError",
    "ReconcileOutcome",
    "Reconciler",
    "ReconcilerReport",
    "RoundSummary",
    "Runner",
    "Verification",
]
