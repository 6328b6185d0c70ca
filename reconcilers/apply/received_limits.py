"""Limits against the routes that peers send, by options of the agent, converted to the speaker's."""

from __future__ import annotations

from typing import Final, NamedTuple

from speaker.api import MaximumPrefixes

RESTART_AFTER_LIMIT_SECONDS: Final = 600


class ReceivedLimits(NamedTuple):
    """Limits against the routes that peers send, whatever the dialect."""

    keep: int | None = None
    """Paths that are kept of a peer from which nothing is imported; None keeps all."""
    limit: int = 0
    """Prefixes of a family beyond which a session is ended; 0 is no limit."""
    enforce_first_as: bool = True
    """Whether the AS path of an eBGP peer's routes has to begin with its AS (RFC 4271 section 6.3)."""

    def maximum_prefixes(self) -> tuple[MaximumPrefixes, ...]:
        """Return the limit of prefixes, converted to the speaker's for a peer."""
        if not self.limit:
            return ()
        return (MaximumPrefixes(self.limit, restart_after=RESTART_AFTER_LIMIT_SECONDS),)


NO_RECEIVED_LIMITS: Final = ReceivedLimits()
"""All are kept, whatever their number."""
