"""The operator's part: what it writes into the cluster, worked out from what the cluster says.

Pure: snapshots in, writes out. Who leads, and how something is written, is the cells' business.
"""

from reconcilers.dialect import Delete
from reconcilers.operator.round import ClusterRound, LocalOperator, Plan
from reconcilers.operator.statuses import Statuses
from reconcilers.operator.writes import Apply, Write

__all__ = ["Apply", "ClusterRound", "Delete", "LocalOperator", "Plan", "Statuses", "Write"]
