"""An Established session as the RIBs know it, and what is kept of it afterwards."""

from __future__ import annotations

from typing import final

from speaker.engine.limits import limits_of
from speaker.engine.staleness import Staleness
from speaker.negotiated import Negotiated
from speaker.peer.peer import Peer
from speaker.peer.session import Session
from speaker.rib.adj_out import UpdateGroup
from speaker.rib.intake import Intake


@final
class Member:
    """An Established session as the RIBs know it; afterwards what is kept of it."""

    __slots__ = (
        "adj_in",
        "group",
        "intake",
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
        intake: Intake,
        stale: Staleness,
    ) -> None:
        self.peer = peer
        self.session = session
        self.negotiated = negotiated
        self.adj_in = stale.adj_in
        self.source = self.adj_in.source
        self.intake = intake
        self.limits = limits_of(peer.config, self.adj_in.families)
        self.stale = stale
        self.group: UpdateGroup[Member] | None = None
