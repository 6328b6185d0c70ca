"""The record of how the last session with a peer ended: text for operators, and facts for rules.

Decides nothing: damping, graceful restart and the next OPEN read their facts here.
"""

from __future__ import annotations

from typing import Final

from speaker.iana import ErrorCode, OpenSubcode
from speaker.message import Notification

NO_ANSWER: Final = "no answer to the connection attempt"
"""The failure of a connection attempt that nothing has answered."""
CONNECTION_LOST: Final = "connection lost"
SHORT_SESSION_SECONDS: Final = 60.0
_REFUSES_CAPABILITIES = (
    OpenSubcode.UNSUPPORTED_OPTIONAL_PARAMETER,
    OpenSubcode.UNSUPPORTED_CAPABILITY,
)


class SessionEnd:
    """Facts about the last session of a peer, until the next one is Established."""

    def __init__(self) -> None:
        self.last_error: str | None = None
        """The last NOTIFICATION or loss of the transport; survives the next session."""
        self.failure: str | None = None
        """Why the last session ended."""
        self.trouble: str | None = None
        """A transport failure since then; kept apart, as ``failure`` is more specific."""
        self.failures = 0
        """Failed attempts, of any kind, since a session was Established."""
        self.refused_capabilities = False
        """The peer refused the capabilities: the next OPEN omits the optional ones (RFC 5492)."""
        self.open_rejected = False
        """An OPEN of either side was rejected since a session was Established."""
        self.hard = False
        """The session ended by a NOTIFICATION that removes its routes (RFC 8538 section 3)."""
        self.short_sessions = 0
        """Established sessions in a row of which the peer closed the connection within
        `SHORT_SESSION_SECONDS`, without a NOTIFICATION."""
        self._transport_lost = False
        self._protocol_error = False

    @property
    def lost(self) -> bool:
        """Whether the session ended without a protocol error."""
        return self._transport_lost and not self._protocol_error

    def established(self) -> None:
        """Clear the record: a session is Established."""
        self.failure = self.trouble = None
        self.failures = 0
        self.refused_capabilities = False
        self.open_rejected = False
        self.hard = False
        self.damped()

    def damped(self) -> None:
        """Clear the facts that the idle hold time depends on: that time has started."""
        self._transport_lost = self._protocol_error = False

    def failed(self, reason: str | None) -> None:
        """Record why the session ends; None where the peer was kept down, and no longer is."""
        self.failure = reason
        self.trouble = None

    def connect_failed(self, reason: str) -> None:
        """Record a connection attempt that failed."""
        self.trouble = reason
        self.failures += 1

    def connection_lost(
        self, reason: str, *, opened: bool, established_for: float | None = None
    ) -> None:
        """Record the loss of the connection; ``opened``: after the peer's OPEN.

        ``established_for`` is the time in Established, in seconds; None: that was not reached.
        """
        self.failures += 1
        if established_for is not None:
            is_short = established_for < SHORT_SESSION_SECONDS
            self.short_sessions = self.short_sessions + 1 if is_short else 0
        self.last_error = f"{CONNECTION_LOST}: {reason}"
        if opened:
            self.failed(self.last_error)
        else:
            self.trouble = self.last_error
        self._transport_lost = True

    def notified(self, message: Notification, text: str, *, sent: bool, graceful: bool) -> None:
        """Record a NOTIFICATION; ``graceful``: RFC 8538 was negotiated on the session."""
        self.failures += 1
        self.short_sessions = 0
        self.last_error = f"{'sent' if sent else 'received'}: {text}"
        if not sent:
            self.failed(f"the peer sent {text}")
            if message.code == ErrorCode.OPEN_MESSAGE and message.subcode in _REFUSES_CAPABILITIES:
                self.refused_capabilities = True
        self.open_rejected |= message.code == ErrorCode.OPEN_MESSAGE
        self.hard = message.is_hard_reset or not graceful
        self._protocol_error = message.code != ErrorCode.CEASE
        self._transport_lost = self._transport_lost or not sent
