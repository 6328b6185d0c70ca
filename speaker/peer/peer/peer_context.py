"""What a peer asks of the instance that it belongs to, and all that it shares with other peers.

Only the question; the answers are the engine's (`speaker.engine.instance`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

from speaker.api import Confederation
from speaker.peer.session import Session

if TYPE_CHECKING:
    from speaker.peer.peer.peer import Peer


class PeerContext(Protocol):
    """The instance that a peer belongs to."""

    name: str
    local_asn: int
    router_id: int
    confederation: Confederation | None

    @property
    def restarting(self) -> bool:
        """Whether this router has just started again (RFC 4724 section 4.1)."""

    def session_up(self, peer: Peer, session: Session) -> None:
        """Begin to exchange routes."""

    def session_down(self, peer: Peer, *, restart: bool) -> None:
        """Forget the session's routes, or keep them for a peer that restarts."""

    def keeps(self, peer: Peer) -> bool:
        """Tell whether routes of the peer are kept without a session."""

    def usual_updates(
        self, peer: Peer, session: Session, bodies: Sequence[bytes], start: int
    ) -> int:
        """Take in UPDATEs of which there is nothing to be said, and return how many those are.

        From one of them on, in a row; 0 leaves the first one to `update`.
        """

    def update(self, peer: Peer, session: Session, body: bytes) -> None:
        """Take in an UPDATE."""

    def refresh(self, peer: Peer, session: Session, body: bytes) -> None:
        """Answer a ROUTE-REFRESH."""

    def gone(self, peer: Peer) -> None:
        """Forget a dynamic peer whose session has ended."""
