"""How the last session with a peer ended: in words for people, and as far as rules follow from it.

Decides nothing: damping, graceful restart and the next OPEN ask here what has happened.
"""

from __future__ import annotations

from speaker.iana import ErrorCode
from speaker.message import Notification


class SessionEnd:
    """What is remembered of a peer's last session, until the next one is Established."""

    def __init__(self) -> None:
        self.last_error: str | None = None
        """The last thing that went wrong; it stays when a session comes up again."""
        self.failure: str | None = None
        """Why the last session ended."""
        self.trouble: str | None = None
        """What the transport did since: it must not hide the failure, which says more."""
        self.refused_capabilities = False
        """The peer refused our capabilities: the next OPEN goes without optional ones."""
        self.hard = False
        """A NOTIFICATION ended the session that lets go of its routes (RFC 8538)."""
        self._lost_transport = False
        self._protocol_error = False

    @property
    def lost(self) -> bool:
        """Whether the session ended without an error of the protocol."""
        return self._lost_transport and not self._protocol_error

    def established(self) -> None:
        """Forget what was: a session is up."""
        self.failure = self.trouble = None
        self.refused_capabilities = False
        self.hard = False
        self.reckoned()

    def reckoned(self) -> None:
        """Forget whose doing the end was: the pause that follows from it has begun."""
        self._lost_transport = self._protocol_error = False

    def failed(self, reason: str) -> None:
        """Remember why a session ends."""
        self.failure = reason
        self.trouble = None

    def connection_lost(self, reason: str, *, opened: bool) -> None:
        """Remember a connection that ended without our doing, ``opened`` by the peer's OPEN."""
        self.last_error = f"connection lost: {reason}"
        if opened:
            self.failed(self.last_error)
        else:
            self.trouble = self.last_error
        self._lost_transport = True

    def notified(self, message: Notification, text: str, *, sent: bool, graceful: bool) -> None:
        """Remember a NOTIFICATION; ``graceful``: RFC 8538 holds on the session."""
        self.last_error = f"{'sent' if sent else 'received'}: {text}"
        if not sent:
            self.failed(f"the peer sent {text}")
            if message.code == ErrorCode.OPEN_MESSAGE and message.subcode in (4, 7):
                self.refused_capabilities = True
        self.hard = message.is_hard_reset or not graceful
        self._protocol_error = message.code != ErrorCode.CEASE
        self._lost_transport = self._lost_transport or not sent
