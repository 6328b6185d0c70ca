"""The owner of a session, its peer, as protocols: imports go from the peer to the session only."""

from __future__ import annotations

from typing import Protocol, TypeVar

from speaker.api import PeerConfig
from speaker.fsm import State
from speaker.message import Notification, Open
from speaker.negotiated import Negotiated
from speaker.peer.actions import Connect
from speaker.peer.message_counts import MessageCounters
from speaker.peer.retry_backoff import RetryBackoff
from speaker.peer.session_end import SessionEnd

S_contra = TypeVar("S_contra", contravariant=True)
"""The session."""


class CollisionResolver(Protocol[S_contra]):
    """Decides between the two connections of a peer (RFC 4271 section 6.8)."""

    def is_primary(self, session: S_contra) -> bool:
        """Return whether the peer's status shows the session."""

    def rival_confirmed(self, session: S_contra) -> bool:
        """Return whether the other connection is in OpenConfirm."""

    def survives(self, session: S_contra, opened: Open) -> bool:
        """Resolve a collision by the peer's OPEN; False where this session was ended."""

    def established(self, session: S_contra) -> None:
        """End the other connection."""


class SessionOwner(Protocol[S_contra]):
    """The peer, as its sessions use it."""

    @property
    def where(self) -> tuple[str, str]:
        """The names of the instance and the peer."""

    @property
    def config(self) -> PeerConfig:
        """The present configuration."""

    @property
    def connections(self) -> CollisionResolver[S_contra]:
        """The peer's connections, one or two."""

    @property
    def session_end(self) -> SessionEnd:
        """The record of how sessions ended."""

    @property
    def backoff(self) -> RetryBackoff:
        """The retry backoff."""

    @property
    def messages(self) -> MessageCounters:
        """The counts of messages, of all sessions."""

    def connect_request(self, connection: int) -> Connect:
        """Return the action that opens a connection to the peer."""

    def open_message(self) -> bytes:
        """Return the OPEN to send."""

    def accept_open(self, opened: Open) -> Negotiated:
        """Validate the peer's OPEN and negotiate. Raises `NotificationError`."""

    def session_up(self, session: S_contra) -> None:
        """Start the exchange of routes: the session enters Established."""

    def state_changed(self, session: S_contra, before: State) -> None:
        """Follow a session that entered another state."""

    def start_idle_hold(self, session: S_contra) -> None:
        """Start the idle hold timer, unless the peer stays down."""

    def idle_hold_expired(self) -> None:
        """Start again."""

    def notification(self, message: Notification, *, sent: bool, text: str | None = None) -> None:
        """Record and report a NOTIFICATION; ``text`` in place of its own."""
