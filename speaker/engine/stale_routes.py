"""Stale routes: kept while the peer restarts, removed when it has advertised its table again.

The receiving speaker of RFC 4724 section 4.2, with the NOTIFICATION of RFC 8538 and the long-lived
stale routes of RFC 9494; and the enhanced route refresh of RFC 7313, which is the same without the
loss of the session. One `StaleRoutes` belongs to one Adj-RIB-In and outlives the sessions that fill
it. It sends nothing: the next outbound updates carry its changes of the RIBs. Large changes are made in
slices (`speaker.engine.sliced_work`), prefixes with another path first.

==========  ==========================================  ========================================
phase       starts when                                 ends when
==========  ==========================================  ========================================
RESTARTING  the session is lost                         the session is back: REFRESHING. The
                                                        restart time expires: LONG_LIVED, or the
                                                        routes are removed
LONG_LIVED  the restart time expires                    the session is back: REFRESHING, and the
                                                        timer runs on. The stale time expires: the
                                                        routes are removed
REFRESHING  the session is back and the peer preserved  End-of-RIB or EoRR arrives, or the stale
            its forwarding state; or a route refresh    time expires: routes that were not
            starts (BoRR)                               advertised again are removed
==========  ==========================================  ========================================
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Final, final

from msgspec.structs import replace

from speaker.capability import GracefulRestartCapability, LongLivedGracefulRestart
from speaker.engine.sliced_work import (
    FAILOVER_UNITS,
    LOOKUPS_PER_UNIT,
    STEP_ROUTES,
    SlicedWork,
    Steps,
)
from speaker.iana import WELL_KNOWN_COMMUNITIES, Family
from speaker.negotiated import Negotiated
from speaker.peer.engine_context import EngineContext, Timer
from speaker.peer.peer import Peer
from speaker.rib.adj_in import AdjRibIn, DepartedRoutes, StaleMark
from speaker.rib.inbound import InboundUpdates, JudgedRoutes
from speaker.rib.inbound_context import InboundContext
from speaker.rib.path import LLGR_STALE, Path

NO_LLGR: Final = WELL_KNOWN_COMMUNITIES["no-llgr"]
JUDGED_UNITS: Final = 8
"""The work for a route that another context changes: mostly a path of its own, and an UPDATE."""
REFRESH_SECONDS: Final = 360.0
"""The time for advertising a table again, where no graceful restart is configured."""


class Phase(enum.Enum):
    """See the top of the module; the value is the text of the status."""

    RESTARTING = "the peer restarts"
    LONG_LIVED = "the restart time of the peer is over"
    REFRESHING = "the peer has not advertised them again yet"


def _units(keys: Sequence[bytes], *, contested: bool) -> int:
    units = FAILOVER_UNITS if contested else 1
    return STEP_ROUTES // LOOKUPS_PER_UNIT + units * len(keys)


@final
class StaleFamily:
    """The stale routes of one family and their timer (`TimerOwner`)."""

    __slots__ = ("family", "owner", "phase")

    def __init__(self, owner: StaleRoutes, family: Family) -> None:
        self.owner = owner
        self.family = family
        self.phase = Phase.RESTARTING

    @property
    def where(self) -> tuple[str, str | None]:
        """The names of the instance and the peer."""
        return self.owner.peer.where

    def expired(self, timer: Timer, due: float) -> None:
        """Handle the end of the phase (`TimerOwner`)."""
        del timer, due
        self.owner.expired(self)


@final
class StaleRoutes:
    """The stale routes of one Adj-RIB-In, by family."""

    __slots__ = (
        "_context",
        "_long_lived",
        "_on_departed",
        "_on_empty",
        "_on_removed",
        "_work",
        "adj_in",
        "departed",
        "families",
        "peer",
    )

    def __init__(
        self,
        context: EngineContext,
        work: SlicedWork,
        peer: Peer,
        adj_in: AdjRibIn,
        on_empty: Callable[[Peer], None],
        on_removed: Callable[[Peer, Family, Sequence[bytes]], None],
        on_departed: Callable[[], None],
    ) -> None:
        """``on_empty`` is called when the time of a peer's stale routes ends without a session.

        ``on_removed`` is called with the NLRI of removed or changed routes of a family,
        ``on_departed`` when no route of an ended session is left.
        """
        self.peer = peer
        self.adj_in = adj_in
        self.families: dict[Family, StaleFamily] = {}
        self.departed: list[DepartedRoutes] = []
        """The routes of a session that has ended for good, until they are removed."""
        self._context = context
        self._work = work
        self._long_lived: Mapping[Family, int] = {}
        """The long-lived stale times in seconds, as negotiated (RFC 9494)."""
        self._on_empty = on_empty
        self._on_removed = on_removed
        self._on_departed = on_departed

    def __bool__(self) -> bool:
        return bool(self.families)

    # ------------------------------------------------------------- the session

    def session_lost(self, negotiated: Negotiated) -> bool:
        """Keep the routes that the lost session's peer wants kept; False when there are none."""
        capability = negotiated.peer_graceful_restart
        assert capability is not None  # noqa: S101  `Peer.may_restart` requires it
        self._long_lived = self._stale_times(negotiated.peer_long_lived)
        for family in list(self.adj_in.families):
            self._keep(family, capability)
        return bool(self.families)

    def _stale_times(self, capability: LongLivedGracefulRestart | None) -> Mapping[Family, int]:
        config = self.peer.config.graceful_restart
        if capability is None or config is None or not config.long_lived_time:
            return {}
        return {
            family: min(seconds, config.long_lived_time)
            for family, _, seconds in capability.families
            if seconds
        }

    def reconfigure(self, negotiated: Negotiated) -> bool:
        """Apply the peer's present families and times, without a session; False if nothing is left.

        ``negotiated`` belongs to the last session.
        """
        self._long_lived = self._stale_times(negotiated.peer_long_lived)
        for family, stale in list(self.families.items()):
            if family not in self.peer.config.families:
                self.sweep(family)
            elif stale.phase is Phase.LONG_LIVED:
                seconds = self._long_lived.get(family, 0)
                if not seconds:
                    self.sweep(family)
                elif seconds < self._remaining(stale):
                    self._start(stale, seconds)
        return bool(self.families)

    def _keep(self, family: Family, capability: GracefulRestartCapability) -> None:
        known = self.families.get(family)
        if known is not None and self._is_long_lived(known):
            # RFC 9494 section 4.2: another loss of the session does not restart the stale time.
            self.adj_in.mark_stale(family)
            known.phase = Phase.LONG_LIVED
            self._depreference(family)
            return
        # RFC 4724 section 4.2: routes that are stale already do not survive a second restart.
        self._stop_tracking(family)
        self._remove_stale(family)
        restarts = any(family == restarted for restarted, _ in capability.families)
        self.adj_in.mark_stale(family)
        if not self.adj_in.stale(family):
            return
        if not restarts and family not in self._long_lived:
            self._remove_stale(family)
            return
        stale = self.families[family] = StaleFamily(self, family)
        if restarts and capability.restart_time:
            self._start(stale, capability.restart_time)
        else:
            self.expired(stale)

    def _is_long_lived(self, stale: StaleFamily) -> bool:
        return stale.phase is Phase.LONG_LIVED and stale.family in self._long_lived

    def session_restored(self, negotiated: Negotiated) -> None:
        """Keep only the families whose forwarding state the peer preserved; remove the others."""
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
                    self._start(stale, self._refresh_seconds)
                stale.phase = Phase.REFRESHING
            else:
                self.sweep(family)

    @property
    def _refresh_seconds(self) -> float:
        config = self.peer.config.graceful_restart
        return REFRESH_SECONDS if config is None else float(config.stale_time)

    # ------------------------------------------------------------- the routes

    def refresh_started(self, family: Family) -> None:
        """Mark a family stale: the peer advertises it again from here (RFC 7313 section 4)."""
        self.adj_in.mark_stale(family, refresh=True)
        if self.adj_in.stale(family):
            stale = self.families.setdefault(family, StaleFamily(self, family))
            stale.phase = Phase.REFRESHING
            self._start(stale, self._refresh_seconds)

    def sweep(self, family: Family) -> None:
        """Remove the routes that are still stale: the peer has advertised its table again."""
        if self._stop_tracking(family):
            self._remove_stale(family)

    def _remove_stale(self, family: Family) -> None:
        mark = self.adj_in.end_stale(family)
        if mark is not None:
            self._work.add(self._removal(family, mark, contested=True), failover=True)
            self._work.add(self._removal(family, mark, contested=False))

    def _removal(self, family: Family, mark: StaleMark, *, contested: bool) -> Steps:
        for keys in self.adj_in.stale_keys(family, mark, STEP_ROUTES, contested=contested):
            self.adj_in.withdraw(family, keys)
            if keys:
                self._on_removed(self.peer, family, keys)
            yield _units(keys, contested=contested)
        if not contested:
            self.adj_in.forget_mark(family, mark)
            for count in mark.release():
                yield count // LOOKUPS_PER_UNIT

    def expired(self, stale: StaleFamily) -> None:
        """Enter the next phase of a family whose time is over."""
        seconds = self._long_lived.get(stale.family)
        if stale.phase is Phase.RESTARTING and seconds:
            stale.phase = Phase.LONG_LIVED
            self._depreference(stale.family)
            self._start(stale, seconds)
            return
        without_session = stale.phase is not Phase.REFRESHING
        self.sweep(stale.family)
        if without_session and not self.families:
            self._on_empty(self.peer)

    def _depreference(self, family: Family) -> None:
        """Attach LLGR_STALE to long-lived stale routes: they are the least preferred (RFC 9494)."""
        mark = self.adj_in.last_mark(family)
        if mark is not None:
            marked: dict[Path, Path] = {}
            self._work.add(self._depreferenced(family, mark, marked, contested=True), failover=True)
            self._work.add(self._depreferenced(family, mark, marked, contested=False))

    def _depreferenced(
        self, family: Family, mark: StaleMark, marked: dict[Path, Path], *, contested: bool
    ) -> Steps:
        adj_in = self.adj_in
        for keys in adj_in.stale_keys(family, mark, STEP_ROUTES, contested=contested):
            for path, nlri in adj_in.by_path(family, keys)[0].items():
                communities = path.attributes.communities
                if NO_LLGR in communities:
                    adj_in.withdraw(family, nlri)
                elif not path.long_lived:
                    stale = marked.get(path)
                    if stale is None:
                        attributes = replace(
                            path.attributes, communities=(*communities, LLGR_STALE)
                        )
                        stale = marked[path] = Path(attributes, path.source, path.rejected)
                    adj_in.replace_stale(family, stale, nlri)
            yield _units(keys, contested=True)

    def judge_again(self, inbound: InboundUpdates, context: InboundContext) -> None:
        """Apply another context to the routes of ``inbound``'s session, which has ended, in steps."""
        self._work.add(self._judged(inbound.judge_again(context)))

    def _judged(self, judged: Iterator[JudgedRoutes]) -> Steps:
        for family, changed, looked_up in judged:
            if family is not None and changed:
                self._on_removed(self.peer, family, changed)
            yield JUDGED_UNITS * len(changed) + looked_up // LOOKUPS_PER_UNIT

    # ------------------------------------------------------------ bookkeeping

    def _start(self, stale: StaleFamily, seconds: float) -> None:
        self._context.timers.start((stale, Timer.STALE), self._context.now + seconds)

    def _stop_tracking(self, family: Family) -> bool:
        """Stop a family's timer and leave its routes as they are; False when none were stale."""
        stale = self.families.pop(family, None)
        if stale is None:
            return False
        self._context.timers.stop((stale, Timer.STALE))
        return True

    def clear(self) -> None:
        """Remove all routes of the peer, stale or not; none comes any more."""
        for family in list(self.families):
            self._stop_tracking(family)
        self.remove(self.adj_in.depart())

    def remove(self, departed: Sequence[DepartedRoutes]) -> None:
        """Remove the routes of families that the Adj-RIB-In has given up."""
        self.departed = [*self.departed, *departed]
        for routes in departed:
            self._work.add(self._failed_over(routes), failover=True)
        for routes in departed:
            self._work.add(self._removed(routes))

    def _failed_over(self, routes: DepartedRoutes) -> Steps:
        for withdrawn, looked_up in routes.fail_over(STEP_ROUTES):
            yield FAILOVER_UNITS * withdrawn + looked_up // LOOKUPS_PER_UNIT

    def _removed(self, routes: DepartedRoutes) -> Steps:
        for withdrawn, looked_up in routes.remove(STEP_ROUTES):
            yield withdrawn + looked_up // LOOKUPS_PER_UNIT
        self.departed.remove(routes)
        if not self.departed:
            self._on_departed()

    def remaining(self) -> Iterable[tuple[Family, Phase, float]]:
        """Iterate over the stale families with their phase and the seconds that are left."""
        for family, stale in self.families.items():
            yield family, stale.phase, self._remaining(stale)

    def _remaining(self, stale: StaleFamily) -> float:
        """Return the seconds until the phase of a family ends."""
        due = self._context.timers.deadline((stale, Timer.STALE))
        return max(0.0, (due or self._context.now) - self._context.now)
