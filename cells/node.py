"""The node cell: which node this agent is.

An agent works for one node; its name is determined here and nowhere else.
"""

from __future__ import annotations

import socket
from typing import Annotated

from cells.hive import Cell, Options, setting


class NodeOptions(Options, frozen=True):
    """Options of the node cell."""

    name: Annotated[
        str | None,
        setting(
            "name of this node, as its Node object spells it; the host's by default",
            metavar="NAME",
        ),
    ] = None


class ThisNode:
    """The node that this agent runs on."""

    def __init__(self, options: NodeOptions) -> None:
        # The kubelet does the same: the host name in lower case is the Node's name.
        self.name = options.name or socket.gethostname().strip().lower()


CELL = Cell(
    name="node",
    description="Which node this agent is.",
    options=NodeOptions,
    provides=(ThisNode,),
)
