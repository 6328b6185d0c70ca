"""The node cell: which node this agent is, and the process that it is.

An agent works for one node; its name is determined here and nowhere else.
"""

from __future__ import annotations

import os
import resource
import socket
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from cells.api.model import ProcessItem
from cells.api.resource import ApiResource
from cells.hive import SettingError, Wiring
from cells.observability.process_attributes import ProcessAttributes
from cells.options import NodeOptions
from cells.version import version
from reconcilers.report.node_objects.place import Pod

STATM: Final = Path("/proc/self/statm")


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


def process_resource(node: ThisNode) -> ApiResource:
    """Return the path of the process, as the kernel accounts for it."""
    started = datetime.fromtimestamp(int(time.time()), UTC)

    def read() -> ProcessItem:
        usage = resource.getrusage(resource.RUSAGE_SELF)
        pages = int(STATM.read_text().split()[1])
        return ProcessItem(
            node=node.name,
            version=version(),
            pid=os.getpid(),
            start_time=started,
            cpu_seconds=round(usage.ru_utime + usage.ru_stime, 3),
            resident_octets=pages * os.sysconf("SC_PAGE_SIZE"),
        )

    return ApiResource(path="/v1/process", kind="ProcessList", read=lambda _: [read()])


def process_attributes(node: ThisNode) -> ProcessAttributes:
    """Return what the spans of an agent are of."""
    return ProcessAttributes(
        {
            "service.name": "waggle-agent",
            "k8s.node.name": node.name,
            "k8s.namespace.name": node.pod.namespace,
            "k8s.pod.name": node.pod.name,
            "k8s.pod.uid": node.pod.uid,
        }
    )


WIRING = Wiring(
    provides=(ThisNode,),
    contributes=(process_resource, process_attributes),
)
