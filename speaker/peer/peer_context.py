"""The context of a peer in its instance: imports go from the instance to the peer only."""

from __future__ import annotations

from typing import Protocol, TypeVar

from speaker.api import Confederation
from speaker.nlri import Family
from speaker.peer.session import Session

P_contra = TypeVar("P_contra", contravariant=True)
"""The peer."""


class PeerContext(Protocol[P_contra]):
    """The instance, as its peers use it, and all that they share."""

    name: str
    local_asn: int
    router_id: int
    confederation: Confederation | None

    @property
    def restarting(self) -> bool:
        """Whether this router has just restarted (RFC 4724 section 4.1)."""

    def session_up(self, peer: P_contra, session: Session) -> None:
        """Start the exchange of routes."""

    def session_down(self, peer: P_contra, *, restart: bool) -> int:
        """Remove the session's routes, or keep them as stale for a peer that restarts.

        Returns their number.
        """

    def advertised(self, peer: P_contra) -> tuple[tuple[Family, int], ...]:
        """Return the number of prefixes that the peer is sent, by family."""

    def keeps_routes(self, peer: P_contra) -> bool:
        """Return whether routes of the peer are kept without a session."""

    def remove_dynamic_peer(self, peer: P_contra) -> None:
        """Remove a dynamic peer whose session has ended."""
