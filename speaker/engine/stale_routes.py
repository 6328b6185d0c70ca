"""Routes that a peer said in an earlier life: kept while it restarts, swept when it has said all.

The receiving speaker of RFC 4724 section 4.2, with the NOTIFICATION of RFC 8538 and the long-lived
stale routes of RFC 9494; and RFC 7313's refresh with a beginning and an end, which is the same
without a lost session. One `StaleRoutes` belongs to one Adj-RIB-In and outlives the sessions that
fill it. It must never send anything: what it changes in the RIBs is told with the next flush.

========  ==========================================  =========================================
phase     how it begins                               how it ends
========  ==========================================  =========================================
AWAY      the session is lost                         the peer is back: BACK. Its restart time is
                                                      over: LONG_LIVED, or the routes go
LONGLIVED the restart time is over                    the peer is back: BACK, the timer goes on.
                                                      The stale time is over: the routes go
BACK      the peer is up again and kept its           End-of-RIB, or the time for it is over:
          forwarding state; or a refresh begins       what was not said again goes
========  ==========================================  =========================================
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final, final

from msgspec.structs import replace

from speaker.iana import WELL_KNOWN_COMMUNITIES, Family
from speaker.negotiated import Negotiated
from speaker.peer.engine_context import EngineContext, Timer
from speaker.peer.peer import Peer
from speaker.rib.adj_in import AdjRibIn
from speaker.rib.path import LLGR_STALE, Path

NO_LLGR: Final = WELL_KNOWN_COMMUNITIES["no-llgr"]
REFRESH_TIME: Final = 360.0
"""Seconds that a peer has for saying all again, where no graceful restart is configured."""


class Phase(enum.Enum):
    """See the top of the module; the value is for people."""

    RESTARTING = "the peer restarts"
    LONG_LIVED = "the peer has been away for long"
    REFRESHING = "the peer has not said them again yet"


@final
class StaleFamily:
    """The stale routes of one family and their timer (`speaker.peer.engine_context.TimerOwner`)."""

    __slots__ = ("family", "of", "phase")

    def __init__(self, of: StaleRoutes, family: Family) -> None:
        self.of = of
        self.family = family
        self.phase = Phase.RESTARTING

    @property
    def where(self) -> tuple[str, str | None]:
        """The instance and the peer."""
        return (self.of.peer.instance.name, self.of.peer.name)

    def expired(self, timer: Timer, due: float) -> None:
        """Their time is over."""
        del timer, due
        self.of.expired(self)


@final
class StaleRoutes:
    """The stale routes of one Adj-RIB-In, by family."""

    __slots__ = ("_context", "_long_lived", "_over", "_swept", "adj_in", "families", "peer")

    def __init__(
        self,
        context: EngineContext,
        peer: Peer,
        adj_in: AdjRibIn,
        over: Callable[[Peer], None],
        swept: Callable[[Peer, Family, Sequence[bytes]], None],
    ) -> None:
        self.peer = peer
        self.adj_in = adj_in
        self.families: dict[Family, StaleFamily] = {}
        self._context = context
        self._long_lived: Mapping[Family, int] = {}
        """The stale times of RFC 9494 in seconds that the peer asked for."""
        self._over = over
        """Told when the last stale route of a peer that is away has gone."""
        self._swept = swept
        """Told which routes have gone."""

    def __bool__(self) -> bool:
        return bool(self.families)

    # ------------------------------------------------------------- the session

    def session_lost(self, negotiated: Negotiated) -> bool:
        """Keep what the lost session's peer asked to be kept; False when that is nothing."""
        capability = negotiated.peer_graceful_restart
        assert capability is not None  # noqa: S101  `Peer.may_restart` has looked
        config = self.peer.config.graceful_restart
        restart = {family for family, _ in capability.families}
        long_lived = negotiated.peer_long_lived
        self._long_lived = (
            {}
            if long_lived is None or config is None or not config.long_lived_time
            else {
                family: min(seconds, config.long_lived_time)
                for family, _, seconds in long_lived.families
                if seconds
            }
        )
        for family in list(self.adj_in.families):
            known = self.families.get(family)
            if known is not None and self._is_long_lived(known):
                # RFC 9494 section 4.2: another loss does not begin the stale time anew.
                self.adj_in.mark_stale(family)
                known.phase = Phase.LONG_LIVED
                self._depreference(family)
                continue
            # RFC 4724 section 4.2: what is stale already does not survive a second restart.
            self.forget(family)
            self.adj_in.sweep(family)
            if family in restart or family in self._long_lived:
                self.adj_in.mark_stale(family)
            if not self.adj_in.stale(family):
                self.adj_in.drop(family)
                continue
            stale = self.families[family] = StaleFamily(self, family)
            if family in restart and capability.restart_time:
                self._start(stale, capability.restart_time)
            else:
                self.expired(stale)
        return bool(self.families)

    def _is_long_lived(self, stale: StaleFamily) -> bool:
        return stale.phase is Phase.LONG_LIVED and stale.family in self._long_lived

    def session_restored(self, negotiated: Negotiated) -> None:
        """Keep on only what the peer, which is up again, still forwards."""
        preserved: set[Family] = set()
        capability = negotiated.peer_graceful_restart
        if capability is not None:
            preserved.update(family for family, forwarding in capability.families if forwarding)
            if negotiated.peer_long_lived is not None:
                preserved.update(
                    family for family, kept, _ in negotiated.peer_long_lived.families if kept
                )
        for family in list(self.families):
            if family in preserved and family in negotiated.families:
                stale = self.families[family]
                if stale.phase is not Phase.LONG_LIVED:
                    self._start(stale, self._patience)
                stale.phase = Phase.REFRESHING
            else:
                self.sweep(family)

    @property
    def _patience(self) -> float:
        config = self.peer.config.graceful_restart
        return REFRESH_TIME if config is None else float(config.stale_time)

    # ------------------------------------------------------------- the routes

    def refresh_begins(self, family: Family) -> None:
        """Take all that is held as stale: the peer says it again from here (RFC 7313 section 4)."""
        self.adj_in.mark_stale(family)
        if self.adj_in.stale(family):
            stale = self.families.setdefault(family, StaleFamily(self, family))
            stale.phase = Phase.REFRESHING
            self._start(stale, self._patience)

    def sweep(self, family: Family) -> None:
        """Let go what the peer has not said again: it has said all."""
        if self.forget(family):
            gone = self.adj_in.sweep(family)
            if gone:
                self._swept(self.peer, family, gone)

    def expired(self, stale: StaleFamily) -> None:
        """Go on to the next phase of a family whose time is over."""
        seconds = self._long_lived.get(stale.family)
        if stale.phase is Phase.RESTARTING and seconds:
            stale.phase = Phase.LONG_LIVED
            self._depreference(stale.family)
            self._start(stale, seconds)
            return
        away = stale.phase is not Phase.REFRESHING
        self.sweep(stale.family)
        if away and not self.families:
            self._over(self.peer)

    def _depreference(self, family: Family) -> None:
        """Mark long-lived stale routes as such: from now on they are the last choice."""
        adj_in = self.adj_in
        for path, nlri in adj_in.stale_paths(family).items():
            communities = path.attributes.communities
            if NO_LLGR in communities:
                adj_in.withdraw(family, nlri)
            elif not path.long_lived:
                attributes = replace(path.attributes, communities=(*communities, LLGR_STALE))
                adj_in.replace_stale(family, Path(attributes, path.source, path.rejected), nlri)

    # ------------------------------------------------------------ bookkeeping

    def _start(self, stale: StaleFamily, seconds: float) -> None:
        self._context.timers.start((stale, Timer.STALE), self._context.now + seconds)

    def forget(self, family: Family) -> bool:
        """Stop watching a family, whose routes stay as they are; False when it was not."""
        stale = self.families.pop(family, None)
        if stale is None:
            return False
        self._context.timers.stop((stale, Timer.STALE))
        return True

    def clear(self) -> None:
        """Forget all routes, stale or not."""
        for family in list(self.families):
            self.forget(family)
        self.adj_in.clear()

    def remaining(self) -> Iterable[tuple[Family, Phase, float]]:
        """Iterate over the families with their phase and the seconds that are left."""
        for family, stale in self.families.items():
            due = self._context.timers.deadline((stale, Timer.STALE))
            yield family, stale.phase, max(0.0, (due or self._context.now) - self._context.now)
