"""Apply: ordered reconcilers that make the speaker hold what the intent wants. They know no dialect.

* `reconciler`: what a reconciler is; `single_value` for objects that are compared as one value
* `instances`, `route_sets`, `import_policy`, `peers`: the reconcilers of the speaker, in their order
* `queue`, `runner`: objects that are due, retries, statuses; one round over all reconcilers
* `verification`: the full comparison with what the speaker holds
* `convert`: intent rows to the speaker's values
"""

from reconcilers.apply.reconciler import Description, Reconciler
from reconcilers.apply.runner import ReconcilerReport, RoundSummary, Runner
from reconcilers.apply.verification import Drift, Verification

__all__ = [
    "Description",
    "Drift",
    "Reconciler",
    "ReconcilerReport",
    "RoundSummary",
    "Runner",
    "Verification",
]
