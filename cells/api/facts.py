"""What the local API tells of a running agent: the speaker's sessions and routes, with origins.

It joins two things that the rooms below keep apart on purpose: the speaker knows prefixes and
sessions, the intent tables know which Kubernetes objects caused a prefix. Reads only.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime

from msgspec.structs import replace

from cells.api.ages import RouteAges
from cells.api.items import peer_item, route_item
from cells.api.model import OriginItem, PeerItem, RouteItem
from cells.api.server import UnknownNameError
from cells.node import ThisNode
from reconcilers.tables import IntentTables
from speaker.api import PeerStatus, RouteView, SpeakerPort
from speaker.nlri import IPV4_UNICAST, IPV6_UNICAST, Family, prefix_to_wire
from statedb import Database, Snapshot


class AgentFacts:
    """`cells.api.server.Facts` of the real agent."""

    def __init__(
        self, node: ThisNode, speaker: SpeakerPort, database: Database, intent: IntentTables
    ) -> None:
        self._node = node.name
        self._speaker = speaker
        self._database = database
        self._intent = intent
        self._ages = RouteAges(database, intent.routes)

    def peers(self, *, peer: str | None, instance: str | None) -> list[PeerItem]:
        """Return the sessions that match, by instance and name."""
        return [
            peer_item(self._node, status)
            for status in self._speaker.peers()
            if peer in (None, status.name, status.address) and instance in (None, status.instance)
        ]

    def routes(
        self, table: str, *, family: str | None, peer: str | None, instance: str | None
    ) -> Iterator[Sequence[RouteItem]]:
        """Yield the routes of a table, one group for each peer (or instance) and family."""
        families = self._families(family)
        instances = [status.name for status in self._speaker.instances()]
        if instance is not None and instance not in instances:
            raise UnknownNameError(f"no instance is called {instance}")
        peers = [
            status
            for status in self._speaker.peers()
            if instance in (None, status.instance) and peer in (None, status.name, status.address)
        ]
        if peer is not None and not peers:
            raise UnknownNameError(f"no peer is called {peer}")
        if table == "available":
            chosen = instances if instance is None else [instance]
            if peer is not None:
                chosen = sorted({status.instance for status in peers})
            return self._available(chosen, families, {p.name for p in peers} if peer else None)
        return self._by_peer(table, peers, families)

    def _families(self, name: str | None) -> list[Family]:
        if name is None:
            return [IPV4_UNICAST, IPV6_UNICAST]
        try:
            return [Family.parse(name)]
        except ValueError:
            raise UnknownNameError(f"no family is called {name}") from None

    def _available(
        self, instances: Sequence[str], families: Sequence[Family], peers: set[str] | None
    ) -> Iterator[Sequence[RouteItem]]:
        for instance in instances:
            for family in families:
                views = self._speaker.routes_available(instance, family)
                yield [
                    route_item(self._node, instance, view)
                    for view in views
                    if peers is None or view.peer in peers
                ]

    def _by_peer(
        self, table: str, peers: Sequence[PeerStatus], families: Sequence[Family]
    ) -> Iterator[Sequence[RouteItem]]:
        for status in peers:
            snapshot = self._database.snapshot()
            for family in families:
                if table == "received":
                    received = self._speaker.routes_received(status.instance, status.name, family)
                    yield [route_item(self._node, status.instance, view) for view in received]
                    continue
                told = self._speaker.routes_advertised(status.instance, status.name, family)
                yield [self._advertised(snapshot, status, view) for view in told]

    def _advertised(self, snapshot: Snapshot, status: PeerStatus, view: RouteView) -> RouteItem:
        family, nlri = prefix_to_wire(view.prefix)
        origins = self._origins(snapshot, status.route_set, family, nlri)
        item = route_item(self._node, status.instance, view, origins)
        if status.route_set is None:
            return item
        changed = self._ages.since(status.route_set, family, nlri)
        # A session that came up later has told it since then.
        since = max(status.since, changed or 0.0)
        return replace(item, since_time=datetime.fromtimestamp(int(since), UTC))

    def _origins(
        self, snapshot: Snapshot, route_set: str | None, family: Family, nlri: bytes
    ) -> list[OriginItem]:
        if route_set is None:
            return []
        row = self._intent.routes.get(snapshot, (route_set, family, nlri))
        if row is None:
            return []
        return [
            OriginItem(
                kind=origin.object.kind,
                namespace=origin.object.namespace or None,
                name=origin.object.name,
            )
            for origin in row.origins
        ]
