"""The history cell: the log, what follows the tables and the speaker, its file, its paths."""

from __future__ import annotations

from cells.history.api import history_resource, history_stream
from cells.history.file import HistoryFile
from cells.history.following import HistoryFollower
from cells.history.log import HistoryLog
from cells.hive import Wiring
from cells.options import HistoryOptions
from cells.state.node import ThisNode


def make_log(node: ThisNode, options: HistoryOptions) -> HistoryLog:
    """Return the log of the node."""
    return HistoryLog(node.name, options.entries)


WIRING = Wiring(
    provides=(make_log,),
    invokes=(HistoryFile, HistoryFollower),
    contributes=(history_resource, history_stream),
)
