"""How long routes of an earlier process are kept although no peer has announced them yet. Pure.

The speaker defers route selection for peers that keep our routes over a restart (RFC 4724 section 4.2),
and no longer. Other peers announce their tables when their sessions are up, which may take a while, and
need not send End-of-RIB: their tables are complete once they have not grown for a moment.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Final, final

from speaker.api import PeerStatus

DEFERRAL_SECONDS: Final = 120.0
"""For which the routes are kept at the most."""
SETTLE_SECONDS: Final = 3.0
"""For which the number of received routes has to stay the same."""


@final
class Deferral:
    """Decides when the deferral is over."""

    def __init__(self, now: float) -> None:
        """``now`` and the times below are on one clock, in seconds."""
        self._began = now
        self._received: object = None
        self._since = now

    def is_over(
        self,
        now: float,
        peers: Iterable[PeerStatus],
        importing: Collection[tuple[str, str]],
        *,
        selected: bool,
    ) -> bool:
        """Return whether the deferral of an earlier process's routes is over: all tables are known.

        ``importing``: instances and names of the peers whose routes are accepted; ``selected``: route
        selection of all instances is complete.
        """
        if now - self._began >= DEFERRAL_SECONDS:
            return True
        statuses = [peer for peer in peers if (peer.instance, peer.name) in importing]
        received = tuple(family.received for status in statuses for family in status.families)
        complete = len(statuses) == len(importing) and all(
            status.established for status in statuses
        )
        if not selected or not complete or received != self._received:
            self._received = received
            self._since = now
            return False
        return now - self._since >= SETTLE_SECONDS
