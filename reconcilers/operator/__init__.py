"""The operator's part: what it writes into the cluster, worked out from what the cluster says.

Pure: snapshots in, writes out. Who leads, and how something is written, is the cells' business.
"""

from reconcilers.operator.round import OperatorRound, Plan
from reconcilers.operator.statuses import Statuses
from reconcilers.operator.writes import Apply, Delete, Write

__all__ = ["Apply", "Delete", "OperatorRound", "Plan", "Statuses", "Write"]
