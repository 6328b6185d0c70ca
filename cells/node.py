"""The node cell: which node this agent is.

An agent works for one node; its name is determined here and nowhere else.
"""

from __future__ import annotations

import socket

from cells.hive import SettingError, Wiring
from cells.options import NodeOptions
from reconcilers.report.node_objects.place import Pod


class ThisNode:
    """The node that this agent runs on."""

    def __init__(self, options: NodeOptions) -> None:
        if options.name == "":
            raise SettingError("", "--node-name", "is empty")
        # The kubelet does the same: the host name in lower case is the Node's name.
        self.name = options.name or socket.gethostname().strip().lower()
        self.cluster_addresses_namespace = options.cluster_addresses
        """Of the ConfigMap with the addresses of the cluster; None: none is read."""
        self.pod = Pod(options.pod_namespace or "", options.pod_name or "", options.pod_uid or "")


WIRING = Wiring(
    provides=(ThisNode,),
)
