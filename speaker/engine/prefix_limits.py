"""How many prefixes a peer may send: checked per UPDATE, not per prefix (RFC 4486 section 4).

Counts the prefixes of the Adj-RIB-In, before policy: those take the memory. Stale prefixes (RFC 4724),
which the peer may be about to replace, are not counted. Beyond the limit there are at most
the prefixes of one UPDATE, and only until the session has ended.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple, final

from speaker.api import MaximumPrefixes, PeerConfig
from speaker.iana import CeaseSubcode, ErrorCode, Family
from speaker.message import Notification
from speaker.rib.adj_in import AdjRibIn


class LimitReached(NamedTuple):
    """A family at its warning threshold, or beyond its limit."""

    family: Family
    received: int
    limit: int
    ends: bool
    """Whether the session has to end."""
    restart_after: int | None
    """Seconds in Idle; None without end."""

    @property
    def reason(self) -> str:
        """The cause as text."""
        return f"the peer sent {self.received} prefixes of {self.family}, the limit is {self.limit}"

    @property
    def cease(self) -> Notification:
        """The NOTIFICATION, with family and limit as its data (RFC 4486 section 4)."""
        data = self.family.afi.to_bytes(2, "big") + bytes((self.family.safi,))
        return Notification(
            ErrorCode.CEASE, CeaseSubcode.MAXIMUM_PREFIXES, data + self.limit.to_bytes(4, "big")
        )


@final
class PrefixLimits:
    """The limits of one session."""

    __slots__ = ("_limits", "_thresholds")

    def __init__(self, limits: dict[Family, MaximumPrefixes]) -> None:
        self._limits = limits
        self._thresholds = {
            family: -(-limit.limit * limit.warning_percent // 100)
            for family, limit in limits.items()
        }
        """The number of prefixes at which the next report of a family is due."""

    def reached(self, adj_in: AdjRibIn) -> bool:
        """Return whether `take` yields a report."""
        return any(adj_in.announced(family) >= count for family, count in self._thresholds.items())

    def take(self, adj_in: AdjRibIn) -> Iterator[LimitReached]:
        """Yield the thresholds that were reached since the last call; each one once."""
        for family, threshold in list(self._thresholds.items()):
            limit = self._limits[family]
            received = adj_in.announced(family)
            if received < threshold:
                continue
            beyond = received > limit.limit
            if beyond:
                del self._thresholds[family]
            else:
                self._thresholds[family] = limit.limit + 1
            ends = beyond and not limit.warning_only
            yield LimitReached(family, received, limit.limit, ends, limit.restart_after)


def prefix_limits_of(config: PeerConfig, families: Iterable[Family]) -> PrefixLimits | None:
    """Return a peer's limits, or None without any; a limit for the family overrides the general."""
    if not config.maximum_prefixes:
        return None
    limits: dict[Family, MaximumPrefixes] = {}
    for family in families:
        for limit in config.maximum_prefixes:
            if limit.family == family or (limit.family is None and family not in limits):
                limits[family] = limit
    return PrefixLimits(limits)
