"""The number of nodes of the cluster: what can wait is spread over a time that grows with it."""

from __future__ import annotations

import asyncio
import contextlib
import random

from cells.hive.jobs import Jobs
from cells.sources.api_server import Kubernetes
from resources.core.kinds import NODE
from resources.kubernetes import KubernetesError

MANAGER = "waggle-agent"
"""The field manager of an agent's writes."""
COUNT_NODES_SECONDS = 600.0
"""The shortest time between two counts of the cluster's nodes."""


class ClusterSize:
    """The number of nodes of the cluster, as counted last."""

    def __init__(self, kubernetes: Kubernetes, jobs: Jobs) -> None:
        self._kubernetes = kubernetes
        self.nodes = 1
        jobs.add("cluster-size", self._follow)

    async def _follow(self) -> None:
        """Count the nodes now and then, by a request for one of them."""
        rng = random.SystemRandom()
        async with self._kubernetes.writer(MANAGER) as writer:
            while True:
                with contextlib.suppress(KubernetesError):
                    self.nodes = max(1, await writer.count(NODE.path(NODE.versions[0])))
                # With jitter, so that the agents of a cluster do not ask together.
                await asyncio.sleep(COUNT_NODES_SECONDS * (1 + rng.random()))
