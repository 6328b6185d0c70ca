"""The leader's job that publishes the addresses of the cluster for agents, which read one object.

An agent reads its own Node alone: 5,000 agents that watch 5,000 Nodes would receive every heartbeat
5,000 times. The object changes when a Node comes, goes or gets another address, and is written at most
once in a while that grows with the cluster.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any, Final

import structlog

from cells.hive import Health
from cells.hive.rounds import in_slices, run_rounds
from cells.hive.signal import Signal
from cells.operator.leader_check import MANAGER, RETRY_SECONDS
from cells.operator.owner import Owner
from cells.sources.kubernetes import UNREAD_SECONDS, Kubernetes
from reconcilers.dialect import Dialect, operated_tables
from reconcilers.intent.service_addresses import published
from reconcilers.intent.service_addresses.networks import cluster_addresses
from resources.core.kinds import CONFIG_MAP, NODE, SERVICE_CIDR
from resources.enumeration import enumerate_some
from resources.kubernetes import KubernetesError, Writer
from resources.tables import Tables
from statedb import Database, Snapshot, Table

SETTLE_TURNS: Final = 8
LEAST_SECONDS: Final = 5.0
"""Between two writes, in a small cluster."""
SECONDS_PER_NODE: Final = 0.02
"""100 s between two writes for 5,000 nodes."""
CHECK_SECONDS: Final = 600.0
"""Until the stored object is compared again: another writer may have changed or deleted it."""
MAX_NAMED: Final = 3
"""Invalid objects that a message names."""

log = structlog.get_logger("waggle.operator")


class ClusterAddressesJob:
    """Writes the object while this operator leads."""

    def __init__(
        self,
        database: Database,
        tables: Tables,
        dialects: Sequence[Dialect],
        kubernetes: Kubernetes,
        leads: asyncio.Event,
        namespace: str,
        owner: Owner,
        health: Health,
    ) -> None:
        self._owner = owner
        self._database = database
        self._tables = tables
        self._dialects = dialects
        self._kubernetes = kubernetes
        self._leads = leads
        self._namespace = namespace
        self._health = health
        self._path = CONFIG_MAP.object_path(published.NAME, namespace)
        self._object = f"{CONFIG_MAP.name} {namespace}/{published.NAME}"

    @property
    def _followed(self) -> tuple[Table[Any], ...]:
        t = self._tables
        followed = {table.name: table for table in (t.nodes, t.of(SERVICE_CIDR))}
        for dialect in self._dialects:
            followed |= {table.name: table for table in operated_tables(dialect)}
        return tuple(followed.values())

    def _without_version(self, snapshot: Snapshot) -> list[str]:
        """Return a clause if objects are invalid of which no valid version is known.

        An operator that starts knows none of an object that became invalid before.
        """
        kinds = {NODE.name, SERVICE_CIDR.name}
        kinds.update(
            kind.name
            for dialect in self._dialects
            for kind in dialect.read(dialect.options, operator=True)
        )
        problems = self._tables.source_problems.all(snapshot)
        lost = {
            str(problem.object)
            for problem in problems
            if problem.lost and problem.object is not None and problem.object.kind in kinds
        }
        if not lost:
            return []
        are = "is" if len(lost) == 1 else "are"
        return [f"{enumerate_some(sorted(lost), MAX_NAMED)} {are} invalid"]

    async def run(self) -> None:
        """Publish after changes, until cancelled."""
        async with self._kubernetes.writer(MANAGER) as writer:

            async def publish(_: float | None) -> float | None:
                await self._leads.wait()
                try:
                    return await self._publish(writer)
                except KubernetesError as error:
                    self._health.degraded(f"{self._object} is not written: {error}")
                    return RETRY_SECONDS

            followed = (*self._followed, self._tables.source_problems)
            signal = Signal(*(table.observable for table in followed))
            await run_rounds(signal, publish, settle_turns=SETTLE_TURNS, poll=CHECK_SECONDS)

    async def _publish(self, writer: Writer) -> float | None:
        """Write the object if it differs; returns the seconds until the next attempt, or None."""
        snapshot = self._database.snapshot()
        nodes = self._tables.nodes.count(snapshot)
        unread = self._kubernetes.unread
        if unread.waits_for or self._tables.nodes.name in unread.kinds or not nodes:
            self._health.ok("waits for the Nodes")
            return UNREAD_SECONDS
        failed: dict[str, Exception] = {}
        addresses = cluster_addresses(
            self._tables, self._dialects, snapshot, lambda name, error: failed.update({name: error})
        )
        # What one kind lacks is missing of it alone: the addresses of new Nodes must not wait.
        texts = [f"{name}: {type(e).__name__}: {e}" for name, e in failed.items()]
        missing = [unread.kinds[t.name] for t in self._followed if t.name in unread.kinds]
        texts += [f"{name} cannot be read" for name in missing]
        texts += self._without_version(snapshot)
        stored = await writer.get(self._path)
        if texts:
            addresses = published.with_stored(addresses, _data(stored))
        data = await in_slices(published.encode(addresses))
        size = published.octets(data)
        if size > published.MAX_OCTETS:
            self._health.degraded(f"the addresses of the cluster are {size} octets: not published")
            return None
        owners = await self._owner.references(writer)
        if _data(stored) != data or (owners and _owners(stored) != owners):
            manifest = published.manifest(self._namespace, data)
            if owners:
                manifest["metadata"]["ownerReferences"] = owners
            await writer.apply(self._path, manifest)
            log.info(
                "published the addresses of the cluster",
                event_name="operator.addresses_published",
                object=f"{self._namespace}/{published.NAME}",
                octets=size,
            )
        if texts:
            kept = "new addresses are missing, and former ones stay"
            self._health.degraded(f"{self._object}: {kept}: {'; '.join(texts)}")
        else:
            self._health.ok(f"published, {size} octets")
        await asyncio.sleep(max(LEAST_SECONDS, nodes * SECONDS_PER_NODE))
        return None


def _data(stored: Mapping[str, Any] | None) -> Mapping[str, str]:
    return {} if stored is None else stored.get("data") or {}


def _owners(stored: Mapping[str, Any] | None) -> object:
    return ((stored or {}).get("metadata") or {}).get("ownerReferences")
