"""Effects of BFD on BGP (RFC 5882 section 4): the changes of state that end a session. Pure.

A BGP session ends when its BFD session goes from Up to Down. It does not end

* while BFD has never been Up: the neighbor may have none;
* by AdminDown, of either end: the path works, and BFD has been switched off (section 4.2);
* by the loss of the BFD process: its successor begins anew with another discriminator, or continues
  the session, and a neighbor that has missed its packets meanwhile signals Down;
* by a Down that follows the end of the BGP session before: a neighbor that ends BFD together with BGP
  would end the next session, too, and so on for ever. Of peers that share a BFD session the end of
  one would end the others.

A Down of the last two kinds is judged again after `RECHECK_SECONDS`, when a neighbor that restarts has
come back.

Flaps are damped by the pauses of the BGP session, which double with each end.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Final, NamedTuple, TypeAlias

from reconcilers.bfd.process.process_messages import Change, SessionStatus
from speaker.api import PathDown
from speaker.bfd.session_values import Diagnostic, SessionKey, State, diagnostic_name

AFTER_BGP_SECONDS: Final = 1.0
"""With the detection time: how long a Down is taken for the effect of the end of a BGP session, or of a
process."""
REMEMBERED_SECONDS: Final = 3600.0
"""How long the end of a BGP session is: longer than a detection time."""
RECHECK_SECONDS: Final = 5.0
"""And three detection times: slow start takes up to two seconds."""

PeerKey: TypeAlias = tuple[str, str]
"""Instance and peer."""


class _Recheck(NamedTuple):
    """A Down that is perhaps no failure of the path."""

    at: float
    key: SessionKey
    path: PathDown


class Coupling:
    """The BFD sessions and the BGP sessions that depend on them. Times are monotonic seconds."""

    def __init__(self, peers_of: Callable[[SessionKey], Collection[PeerKey]]) -> None:
        """``peers_of``: the peers whose path a session watches."""
        self._peers_of = peers_of
        self._known: dict[SessionKey, tuple[int, State]] = {}
        """Discriminator and state, as last reported."""
        self._ups: dict[SessionKey, int] = {}
        """How often a session came Up; less than before in a process that continues it."""
        self._continued: dict[SessionKey, float] = {}
        """When another process was found to continue a session."""
        self._established: set[PeerKey] = set()
        self._ended: dict[PeerKey, float] = {}
        """When the BGP session of a peer ended last; the oldest first."""
        self._rechecks: dict[PeerKey, _Recheck] = {}
        self._released: set[SessionKey] = set()
        """Sessions that came Up, and let strict peers be Established."""
        self._switched_off: set[SessionKey] = set()
        """Sessions that are AdminDown at the neighbor: nothing depends on them."""
        self._lost: set[PeerKey] = set()
        """Peers whose session is Established, and ends as its path is down."""

    def holds(self, peer: PeerKey, key: SessionKey | None) -> bool:
        """Return whether a strict peer's BGP session has to wait for its BFD session.

        A session that is Established stays, as for any peer: it ends when BFD goes from Up to Down.
        """
        if peer in self._established and peer not in self._lost:
            return False
        return key is None or (key not in self._released and key not in self._switched_off)

    def bgp_changed(self, peer: PeerKey, now: float, *, established: bool) -> None:
        """Take the state of a BGP session that depends on BFD."""
        if established:
            self._established.add(peer)
        elif peer in self._established:
            self._established.discard(peer)
            self._lost.discard(peer)
            self._ended.pop(peer, None)
            self._ended[peer] = now
            # Dynamic peers come and go without end.
            while now - self._ended[oldest := next(iter(self._ended))] > REMEMBERED_SECONDS:
                del self._ended[oldest]
            self._rechecks.pop(peer, None)

    def changed(self, changes: Iterable[Change], now: float) -> list[PathDown]:
        """Take changes of BFD sessions; returns the paths that are down, which end BGP sessions."""
        paths: list[PathDown] = []
        for change in changes:
            self._note(change.key, change.local_discriminator, change.after, change.remote_state)
            if change.after is State.UP:
                self._ups[change.key] = self._ups.get(change.key, 0) + 1
            if change.before is State.UP and change.after is State.DOWN:
                paths += self._down(
                    change.key,
                    change.remote_state,
                    change.diagnostic,
                    change.detection_time / 1e6,
                    now,
                    independent=change.remote_independent,
                )
        return paths

    def reported(self, statuses: Iterable[SessionStatus], now: float) -> list[PathDown]:
        """Take statuses of BFD sessions; returns paths that went down without a connection."""
        paths: list[PathDown] = []
        for status in statuses:
            before = self._known.get(status.key)
            if status.ups < self._ups.get(status.key, 0):
                self._continued[status.key] = now
            self._ups[status.key] = status.ups
            self._note(status.key, status.local_discriminator, status.state, status.remote_state)
            # No Diagnostic: a session that was removed and set again at once was AdminDown between.
            is_failure = status.state is State.DOWN and status.diagnostic != Diagnostic.NONE
            if is_failure and before == (status.local_discriminator, State.UP):
                paths += self._down(
                    status.key,
                    status.remote_state,
                    status.diagnostic,
                    status.detection_time / 1e6,
                    now,
                    independent=status.remote_independent,
                )
        return paths

    def forget(self, keys: Mapping[SessionKey, object]) -> None:
        """Forget the BFD sessions that are not among these."""
        for key in self._known.keys() - keys.keys():
            del self._known[key]
            self._ups.pop(key, None)
            self._continued.pop(key, None)
            self._released.discard(key)
            self._switched_off.discard(key)

    def due(self, now: float) -> list[PathDown]:
        """Judge the BFD sessions again that are due; returns the paths that are down."""
        paths = []
        for peer, recheck in list(self._rechecks.items()):
            if recheck.at > now:
                continue
            del self._rechecks[peer]
            _, state = self._known.get(recheck.key, (0, State.ADMIN_DOWN))
            is_down = state in {State.DOWN, State.INIT} and recheck.key not in self._switched_off
            if is_down and peer in self._established:
                paths.append(self._path_down(peer, recheck.key, recheck.path))
        return paths

    @property
    def next_due(self) -> float | None:
        """When `due` has to be called next to judge a BFD session again."""
        return min((recheck.at for recheck in self._rechecks.values()), default=None)

    def _note(self, key: SessionKey, discriminator: int, state: State, remote: State) -> None:
        self._known[key] = (discriminator, state)
        if remote is State.ADMIN_DOWN:
            self._switched_off.add(key)
            self._released.discard(key)
            return
        self._switched_off.discard(key)
        if state is State.UP:
            self._released.add(key)

    def _down(
        self,
        key: SessionKey,
        remote_state: State,
        diagnostic: int,
        detection_seconds: float,
        now: float,
        *,
        independent: bool,
    ) -> list[PathDown]:
        if remote_state is State.ADMIN_DOWN:
            return []
        paths = []
        signaled = diagnostic == Diagnostic.NEIGHBOR_SIGNALED_SESSION_DOWN
        peers = self._peers_of(key)
        causes = [self._continued.get(key) if signaled else None, *map(self._ended.get, peers)]
        recent = detection_seconds + AFTER_BGP_SECONDS
        has_cause = any(at is not None and now - at < recent for at in causes)
        for peer in peers:
            path = PathDown(*peer, diagnostic_name(diagnostic), independent)
            if has_cause and peer in self._established:
                at = now + max(RECHECK_SECONDS, 3 * detection_seconds)
                self._rechecks[peer] = _Recheck(at, key, path)
            else:
                paths.append(self._path_down(peer, key, path))
        return paths

    def _path_down(self, peer: PeerKey, key: SessionKey, path: PathDown) -> PathDown:
        """Note that a strict peer waits again."""
        self._released.discard(key)
        if peer in self._established:
            self._lost.add(peer)
        return path
