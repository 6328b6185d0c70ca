"""An Established session with its Adj-RIB-In and its update group; later its stale routes."""

from __future__ import annotations

from typing import final

from speaker.engine.prefix_limits import prefix_limits_of
from speaker.engine.stale_routes import StaleRoutes
from speaker.negotiated import Negotiated
from speaker.peer.peer import Peer
from speaker.peer.session import Session
from speaker.rib.inbound import InboundUpdates
from speaker.rib.update_group import UpdateGroup


@final
class EstablishedPeer:
    """A peer from Established on, until its last stale route is removed."""

    __slots__ = (
        "adj_in",
        "group",
        "inbound",
        "limits",
        "negotiated",
        "peer",
        "session",
        "source",
        "stale",
    )

    def __init__(
        self,
        peer: Peer,
        session: Session,
        negotiated: Negotiated,
        inbound: InboundUpdates,
        stale: StaleRoutes,
    ) -> None:
        self.peer = peer
        self.session = session
        self.negotiated = negotiated
        self.adj_in = stale.adj_in
        self.source = self.adj_in.source
        self.inbound = inbound
        self.limits = prefix_limits_of(peer.config, self.adj_in.families)
        self.stale = stale
        self.group: UpdateGroup[EstablishedPeer] | None = None
        """None without a session."""
