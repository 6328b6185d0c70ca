"""Reconciles the object in which the operator publishes the addresses of the cluster for agents.

An agent reads its own Node alone: 5,000 agents that watch 5,000 Nodes would receive every heartbeat
5,000 times. The object changes when a Node comes, goes or gets another address. It is read, and written
where it differs, at most once in a while that grows with the cluster.

Stored addresses of what cannot be read stay: what is wanted depends on what is stored, and is computed
after it was read, in slices.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import Any, Final, TypeAlias, final

import msgspec

from reconcilers.api_server import GetApplyClient, reconcile_error
from reconcilers.dialect import ClusterAddresses, Dialect, Unread, operated_tables
from reconcilers.intent.service_addresses import published
from reconcilers.intent.service_addresses.cluster_networks import all_networks
from reconcilers.sliced_work import Slices, Turns, at_once
from reconcilers.target import Description, NotNow, Pace, ReconcileError
from reconcilers.target.reconciler import ObjectKey, Parts
from reconcilers.target.single_value import SingleValue
from resources.core.kinds import CONFIG_MAP, NODE, SERVICE_CIDR
from resources.enumeration import enumerate_some
from resources.kubernetes import KubernetesError
from resources.tables import Tables
from statedb import Database, Snapshot

LEAST_SECONDS: Final = 5.0
"""Between two requests for the object, in a small cluster."""
SECONDS_PER_NODE: Final = 0.02
"""100 s between two requests for it with 5,000 nodes."""
CHECK_SECONDS: Final = 600.0
"""Until the stored object is compared again: another writer may have changed or deleted it."""
RETRY_SECONDS: Final = 30.0
"""After a request that failed."""
NODES_SECONDS: Final = 2.0
"""Until the Nodes are looked for again, while they have not been read."""
MAX_NAMED: Final = 3
"""Invalid objects that a message names."""

JsonObject: TypeAlias = dict[str, Any]


class Content(msgspec.Struct, frozen=True):
    """The fields of the object that are compared."""

    data: Mapping[str, str]
    owners: Sequence[JsonObject]
    """The references to its owners."""


@final
class ClusterAddressesReconciler(SingleValue):
    """The only object is ``(ConfigMap, namespace, name)``, its value a `Content`."""

    def __init__(
        self,
        client: GetApplyClient,
        database: Database,
        tables: Tables,
        dialects: Sequence[Dialect],
        namespace: str,
        *,
        unread: Callable[[], Unread],
        owners: Callable[[], Awaitable[Sequence[JsonObject]]],
        now: Callable[[], float],
    ) -> None:
        """``owners`` returns the references to the owners, none while they are not known.

        ``now`` is a monotonic time in seconds.
        """
        followed = {table.name: table for table in (tables.nodes, tables.of(SERVICE_CIDR))}
        for dialect in dialects:
            followed |= {table.name: table for table in operated_tables(dialect)}
        self.description = Description(
            name="cluster-addresses",
            order=10,
            tables=(*followed, tables.source_problems.name),
            target="API server",
            summary="the addresses of the cluster, for agents",
            pace=Pace(
                interval=LEAST_SECONDS,
                first_retry=RETRY_SECONDS,
                last_retry=RETRY_SECONDS,
                jitter=(1.0, 1.0),
                compare=CHECK_SECONDS,
            ),
        )
        self._client = client
        self._database = database
        self._tables = tables
        self._dialects = dialects
        self._namespace = namespace
        self._unread = unread
        self._owners = owners
        self._now = now
        self._followed = tuple(followed)
        self._path = CONFIG_MAP.object_path(published.NAME, namespace)
        self.key: ObjectKey = (CONFIG_MAP.name, namespace, published.NAME)
        """The object."""
        self._due = 0.0
        self._wanted = Content({}, ())
        self.octets: int | None = None
        """The size of what is published; None while this waits for the Nodes."""
        self.missing: tuple[str, ...] = ()
        """Clauses: why new addresses are missing, and former ones stay."""

    def changes(self, snapshot: Snapshot) -> Slices[Mapping[ObjectKey, Parts]]:
        """Return the operator's one object: any change of the tables may change it."""
        del snapshot
        return at_once({self.key: None})

    def objects(self, snapshot: Snapshot) -> Iterable[ObjectKey]:
        """Return the operator's one object, with the cluster's addresses."""
        del snapshot
        return (self.key,)

    def actual_objects(self) -> Iterable[ObjectKey]:
        """Return none beside the operator's one object."""
        return ()

    def wanted(self, snapshot: Snapshot, key: ObjectKey) -> bool:
        """True: the operator's object goes with the operator's Deployment."""
        del snapshot, key
        return True

    def delete(self, key: ObjectKey) -> None:
        """Delete nothing: the operator's object is wanted always."""

    def desired_value(self, snapshot: Snapshot, key: ObjectKey) -> Content:
        """Return the cluster's addresses, which the operator has computed last."""
        del snapshot, key
        return self._wanted

    async def actual_value(self, key: ObjectKey) -> Content | None:
        """Return the operator's stored object, and compute the cluster's addresses.

        Raises `NotNow` before it is due, and before the Nodes were read.
        """
        del key
        if (rest := self._due - self._now()) > 0.0:
            raise NotNow(rest)
        snapshot = self._database.snapshot()
        nodes = self._tables.nodes.count(snapshot)
        unread = self._unread()
        if unread.waits_for or self._tables.nodes.name in unread.kinds or not nodes:
            self.octets, self.missing = None, ()
            raise NotNow(NODES_SECONDS)
        addresses, missing = self._addresses(snapshot, unread)
        try:
            stored = await self._client.get(self._path)
        except KubernetesError as error:
            raise reconcile_error(error) from None
        if missing:
            addresses = published.with_stored(addresses, _data(stored))
        data = await Turns(published.encode(addresses))
        size = published.octets(data)
        if size > published.MAX_OCTETS:
            text = f"{size} octets are more than {published.MAX_OCTETS}"
            raise ReconcileError(text, retry_after=CHECK_SECONDS)
        owners = await self._owners()
        self._wanted = Content(data, owners or _owners(stored))
        self._due = self._now() + max(LEAST_SECONDS, nodes * SECONDS_PER_NODE)
        self.octets, self.missing = size, missing
        return None if stored is None else Content(_data(stored), _owners(stored))

    def _addresses(
        self, snapshot: Snapshot, unread: Unread
    ) -> tuple[ClusterAddresses, tuple[str, ...]]:
        """Return the addresses that are known, and a clause for each kind of others.

        What one kind lacks is missing of it alone: the addresses of new Nodes must not wait.
        """
        failed: dict[str, Exception] = {}
        addresses = all_networks(
            self._tables, self._dialects, snapshot, lambda name, error: failed.update({name: error})
        )
        texts = [f"{name}: {type(e).__name__}: {e}" for name, e in failed.items()]
        names = [unread.kinds[table] for table in self._followed if table in unread.kinds]
        texts += [f"{name} cannot be read" for name in names]
        return addresses, (*texts, *self._without_version(snapshot))

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

    async def set_value(self, key: ObjectKey, value: Content) -> None:
        """Apply the operator's object with the cluster's addresses."""
        del key
        manifest = published.manifest(self._namespace, value.data)
        if value.owners:
            manifest["metadata"]["ownerReferences"] = value.owners
        try:
            await self._client.apply(self._path, manifest)
        except KubernetesError as error:
            raise reconcile_error(error) from None


def _data(stored: JsonObject | None) -> Mapping[str, str]:
    return {} if stored is None else stored.get("data") or {}


def _owners(stored: JsonObject | None) -> Sequence[JsonObject]:
    return ((stored or {}).get("metadata") or {}).get("ownerReferences") or ()
