"""The node cell: which node this agent is.

An agent works for one node; its name is determined here and nowhere else.
"""

from __future__ import annotations

import socket

from cells.hive import Wiring
from cells.options import NodeOptions


class ThisNode:
    """The node that this agent runs on."""

    def __init__(self, options: NodeOptions) -> None:
        # The kubelet does the same: the host name in lower case is the Node's name.
        self.name = options.name or socket.gethostname().strip().lower()


WIRING = Wiring(
    provides=(ThisNode,),
)
