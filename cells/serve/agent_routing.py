"""The sessions and routes of an agent: its speaker's, with the objects that they originate from.

Joins the speaker's prefixes and sessions with the intent tables. Reads only.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from datetime import UTC, datetime

from msgspec.structs import replace

from cells.api.model import OriginItem, RouteItem
from cells.serve.ages import RouteAges
from cells.serve.items import origin_item, route_item
from cells.serve.peer_names import PeerNames
from cells.serve.received import Decisions
from cells.serve.routing import Chosen, SpeakerRouting
from cells.state.node import ThisNode
from reconcilers.intent_tables import IntentTables
from speaker.api import PeerStatus, RouteView, SpeakerPort
from speaker.nlri import Family, prefix_to_wire
from statedb import Database, Snapshot


class AgentRouting(SpeakerRouting):
    """The sessions and routes of an agent, with what its intent knows of them."""

    def __init__(
        self,
        node: ThisNode,
        speaker: SpeakerPort,
        database: Database,
        intent: IntentTables,
        names: PeerNames,
    ) -> None:
        super().__init__(speaker, self._state_of_bfd)
        self._node = node.name
        self._database = database
        self._intent = intent
        self._names = names
        self._ages = RouteAges(database, intent.routes)

    @property
    def node(self) -> str:
        """The name of the node."""
        return self._node

    def chosen(self, peer: str | None, instance: str | None) -> Chosen:
        """Return whether a peer is the wanted one, also by the object that configures it."""
        return self._names.chosen(peer, instance)

    def _state_of_bfd(self, status: PeerStatus) -> str | None:
        snapshot = self._database.snapshot()
        session = self._intent.bfd_sessions.get(snapshot, (status.instance, status.name))
        return None if session is None else session.state

    def received_items(
        self, status: PeerStatus
    ) -> Callable[[Sequence[RouteView]], list[RouteItem]]:
        """Return the translation of received routes, with the decisions of the import policy."""
        row = self._intent.peers.get(self._database.snapshot(), (status.instance, status.name))
        decisions = Decisions(row)
        return functools.partial(decisions.items, self.node, status.instance)

    def advertised_items(
        self, status: PeerStatus
    ) -> Callable[[Sequence[RouteView]], list[RouteItem]]:
        """Return the translation of advertised routes, with their origins."""
        snapshot = self._database.snapshot()
        return lambda views: [self._advertised(snapshot, status, view) for view in views]

    def _advertised(self, snapshot: Snapshot, status: PeerStatus, view: RouteView) -> RouteItem:
        family, nlri = prefix_to_wire(view.prefix)
        origins = self._origins(snapshot, status.route_set, family, nlri)
        item = route_item(self._node, status.instance, view, origins)
        if status.route_set is None:
            return item
        changed = self._ages.since(status.route_set, family, nlri)
        # A session that was established later has advertised it since then.
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
        return [origin_item(origin.object) for origin in row.origins]
