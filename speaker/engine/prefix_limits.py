"""How many prefixes a peer may send: watched per UPDATE, not per prefix (RFC 4486 section 4).

Counts what is in the Adj-RIB-In, before policy: that is what takes the memory. Beyond the limit there
is at most what one UPDATE holds, and only until the session is over.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple, final

from speaker.api import MaximumPrefixes, PeerConfig
from speaker.iana import CeaseSubcode, ErrorCode, Family
from speaker.message import Notification
from speaker.rib.adj_in import AdjRibIn


class LimitReached(NamedTuple):
    """A family at its warning mark, or beyond its limit."""

    family: Family
    received: int
    limit: int
    ends: bool
    restart_after: int | None

    @property
    def reason(self) -> str:
        """Spell it for people."""
        return f"the peer sent {self.received} prefixes of {self.family}, the limit is {self.limit}"

    @property
    def cease(self) -> Notification:
        """The NOTIFICATION, with family and limit as its data."""
        data = self.family.afi.to_bytes(2, "big") + bytes((self.family.safi,))
        return Notification(
            ErrorCode.CEASE, CeaseSubcode.MAXIMUM_PREFIXES, data + self.limit.to_bytes(4, "big")
        )


@final
class PrefixLimits:
    """The limits of one session."""

    __slots__ = ("_next", "_of")

    def __init__(self, of: dict[Family, MaximumPrefixes]) -> None:
        self._of = of
        self._next = {
            family: -(-limit.limit * limit.warning_percent // 100) for family, limit in of.items()
        }
        """From how many prefixes on there is something to say next."""

    def reached(self, adj_in: AdjRibIn) -> bool:
        """Tell whether `take` has something."""
        return any(adj_in.received(family) >= mark for family, mark in self._next.items())

    def take(self, adj_in: AdjRibIn) -> Iterator[LimitReached]:
        """Iterate over what has been reached since the last time; each mark counts once."""
        for family, mark in list(self._next.items()):
            limit = self._of[family]
            received = adj_in.received(family)
            if received < mark:
                continue
            beyond = received > limit.limit
            if beyond:
                del self._next[family]
            else:
                self._next[family] = limit.limit + 1
            ends = beyond and not limit.warning_only
            yield LimitReached(family, received, limit.limit, ends, limit.restart_after)


def prefix_limits_of(config: PeerConfig, families: Iterable[Family]) -> PrefixLimits | None:
    """Return a peer's limits, or None where it has none; a family's own one counts."""
    if not config.maximum_prefixes:
        return None
    of: dict[Family, MaximumPrefixes] = {}
    for family in families:
        for limit in config.maximum_prefixes:
            if limit.family == family or (limit.family is None and family not in of):
                of[family] = limit
    return PrefixLimits(of)
