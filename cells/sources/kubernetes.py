"""The kubernetes cell of an agent: the objects that concern its node, and counts of those not read.

Objects of dialects that are off are counted every ten minutes, as far as the permissions of the agent
go.
"""

from __future__ import annotations

import asyncio
import random

from cells.dialects.wiring import DialectKinds
from cells.hive import Group, Readiness, Wiring, provide
from cells.hive.jobs import Jobs
from cells.observability.metrics import CertificateHolder, MetricsCollector
from cells.sources.api_server import Kubernetes, make_access, make_source
from cells.sources.referenced_secrets import ReferencedSecrets, SecretReaders
from cells.sources.resources import FollowedSource
from cells.sources.unused_objects import UnusedObjectsLog
from cells.state.node import ThisNode
from reconcilers.dialect import Dialect
from reconcilers.intent.service_addresses import published
from reconcilers.unused_objects import ObjectCounts
from resources.core.kinds import CONFIG_MAP, NAMESPACE, NODE, SECRET
from resources.kind import Kinds
from resources.kubernetes import (
    KubernetesError,
    Reading,
    count_objects,
    of_node,
)
from resources.source import Source
from resources.tables import Tables

MANAGER = "waggle-agent"
"""The field manager; nothing is written."""
POLL_INTERVAL_SECONDS = 600.0
"""Between two counts."""
RETRY_SECONDS = 30.0
"""After a count that failed."""


def read_of_node(node: ThisNode, dialects: Group[DialectKinds]) -> Reading:
    """Return what an agent reads: the objects of enabled dialects that concern its node."""
    kinds = Kinds((NODE, NAMESPACE), *(dialect.read for dialect in dialects))
    of_all_nodes = Kinds(*(dialect.of_all_nodes for dialect in dialects))
    namespace = node.cluster_addresses_namespace
    single = {} if namespace is None else {CONFIG_MAP: (namespace, published.NAME)}
    return of_node(kinds, node.name, tuple(of_all_nodes), single)


def secret_readers(dialects: Group[Dialect]) -> SecretReaders:
    """Return the dialects with Secrets."""
    return SecretReaders(dialect for dialect in dialects if SECRET in dialect.kinds)


class UnusedObjectsCount:
    """The job of counting, once the agent is ready: the kinds are imported for it."""

    def __init__(
        self,
        kubernetes: Kubernetes,
        tables: Tables,
        unused: UnusedObjectsLog | None,
        readiness: Readiness,
        jobs: Jobs,
    ) -> None:
        self._kubernetes = kubernetes
        self._tables = tables
        self._readiness = readiness
        if unused is not None and unused.dialects:
            self._unused = unused
            jobs.add("count", self._run)

    async def _run(self) -> None:
        ready = asyncio.Event()
        self._readiness.when_ready(ready.set)
        await ready.wait()
        kinds = Kinds(*(dialect.kinds() for dialect in self._unused.dialects))
        kinds = kinds.without(*self._tables.kinds)
        if not kinds:
            return
        rng = random.SystemRandom()
        counts: ObjectCounts = {}
        while True:
            pause = POLL_INTERVAL_SECONDS
            try:
                async with self._kubernetes.writer(MANAGER) as writer:
                    counts = await count_objects(writer, kinds, counts)
                self._unused.put(counts)
            except KubernetesError:
                # The kubernetes cell reports an API server that does not answer.
                pause = RETRY_SECONDS
            await asyncio.sleep(pause * rng.uniform(0.75, 1.25))


WIRING = Wiring(
    private=(make_access, secret_readers),
    provides=(read_of_node, make_source, Kubernetes),
    invokes=(Kubernetes, ReferencedSecrets, UnusedObjectsCount),
    contributes=(
        provide(Kubernetes, as_=MetricsCollector),
        provide(Kubernetes, as_=CertificateHolder),
        provide(Kubernetes, as_=FollowedSource),
        provide(make_source, as_=Source),
    ),
)
