"""The connections of one peer: one, or two for as long as a collision is undecided.

RFC 4271 section 6.8. `primary` is the one that is shown; `secondary` is always a connection that
was accepted while the primary was busy. Which of them goes on is decided here; what the end of a
session means for routes and for the next attempt is the peer's.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from speaker.fsm import Event, State
from speaker.iana import CeaseSubcode
from speaker.message import Notification, Open
from speaker.peer.actions import Close, SetTtl, Write
from speaker.peer.collision import keep_outgoing
from speaker.peer.engine_context import EngineContext, Timer
from speaker.peer.session import COLLISION_WAIT, Session

if TYPE_CHECKING:
    from speaker.peer.peer.peer import Peer

COLLISION: Final = Notification.cease(CeaseSubcode.CONNECTION_COLLISION_RESOLUTION)


class Connections:
    """The one or two connections of a peer."""

    def __init__(self, context: EngineContext, peer: Peer, *, outgoing: bool) -> None:
        self._context = context
        self._peer = peer
        self.primary = Session(context, peer, outgoing=outgoing)
        self.secondary: Session | None = None

    # -------------------------------------------------------------- transport

    def _session_of(self, connection: int) -> Session | None:
        if self.primary.connection == connection:
            return self.primary
        if self.secondary is not None and self.secondary.connection == connection:
            return self.secondary
        return None

    def connected(self, connection: int, local: tuple[str, int], remote: tuple[str, int]) -> None:
        """Take the connection that we asked for."""
        session = self._session_of(connection)
        if session is None or session.state is not State.CONNECT:
            self._context.out.append(Close(connection, abort=True))
            return
        rival = self.secondary
        if rival is not None and rival.state is State.OPEN_CONFIRM:
            # Our KEEPALIVE is out on the other one: the peer may be Established there, and an
            # OPEN on this one could make it give that up.
            self._discard(session)
            return
        session.attach(connection, local, remote, outgoing=True)
        session.fire(Event.TCP_CR_ACKED)

    def failed(self, connection: int, reason: str) -> None:
        """Handle an attempt of ours that came to nothing."""
        session = self._session_of(connection)
        if session is not None:
            self._peer.session_end.trouble = reason
            session.lost()

    def accepted(self, connection: int, local: tuple[str, int], remote: tuple[str, int]) -> bool:
        """Take a connection that the peer made; False refuses it without a word."""
        peer = self._peer
        primary = self.primary
        if not peer.may_come_up:
            return False
        match primary.state:
            case State.IDLE:
                return False
            case State.ACTIVE if primary.connection is None:
                self._take(primary, connection, local, remote)
                return True
            case State.ESTABLISHED if peer.may_restart(primary) and not self._is_young:
                # RFC 4724 section 5: the peer has restarted, and the old connection is dead. Just
                # after the session came up it is rather the rest of a collision.
                peer.session_end.failed("the peer has connected again")
                primary.fire(Event.TCP_CONNECTION_FAILS)
                if peer.stopped:
                    return False
                primary.timers.stop_all()
                self._take(primary, connection, local, remote)
                return True
            case State.ESTABLISHED | State.OPEN_CONFIRM if not primary.withheld:
                self._context.out.append(Write(connection, (COLLISION.encode(),)))
                self._context.out.append(Close(connection))
                return True
        rival = self.secondary
        self.secondary = Session(self._context, peer, outgoing=False)
        if rival is not None:
            # The peer has one attempt at a time, so the older one is dead.
            self._discard(rival)
        self._take(self.secondary, connection, local, remote)
        if not primary.outgoing and self.secondary is not None:
            self._discard(primary)
        return True

    @property
    def _is_young(self) -> bool:
        up_for = self._peer.backoff.up_for()
        return up_for is None or up_for < COLLISION_WAIT

    def _take(
        self, session: Session, connection: int, local: tuple[str, int], remote: tuple[str, int]
    ) -> None:
        session.state = State.ACTIVE
        session.attach(connection, local, remote, outgoing=False)
        if self._peer.ttl:
            self._context.out.append(SetTtl(connection, self._peer.ttl, self._peer.min_ttl))
        session.fire(Event.TCP_CONNECTION_CONFIRMED)

    def closed(self, connection: int, reason: str) -> None:
        """Handle a connection that ended without our doing."""
        session = self._session_of(connection)
        if session is None:
            return
        if session is self.primary:
            self._peer.session_end.connection_lost(reason, opened=session.state > State.OPEN_SENT)
        session.lost()

    def queue_changed(self, connection: int, octets: int, limit: int) -> None:
        """Watch what the peer does not take (RFC 9687)."""
        session = self._session_of(connection)
        if session is None:
            return
        progress = octets < session.queued
        session.queued = octets
        if octets > limit:
            self._peer.session_end.failed(f"the peer does not read: {octets} octets are waiting")
            self._peer.cease = Notification.cease(CeaseSubcode.OUT_OF_RESOURCES)
            session.queued = 0
            session.fire(Event.AUTOMATIC_STOP)
        elif octets == 0:
            self._context.timers.stop((session, Timer.SEND_HOLD))
        elif session.state is not State.ESTABLISHED or not session.timers.hold_time:
            # RFC 9687 section 3.3: it runs in Established only. Before, the hold timer is enough.
            return
        elif progress or session.timers.deadline(Timer.SEND_HOLD) is None:
            # Section 3.1: the greater of eight minutes and twice the hold time.
            session.timers.start(Timer.SEND_HOLD, max(480.0, 2.0 * session.timers.hold_time))

    # -------------------------------------------------------------- collision

    def survives(self, session: Session, opened: Open) -> bool:
        """Decide a collision with the peer's OPEN at hand; False where this session has lost it."""
        rival = self.secondary if session is self.primary else self.primary
        if rival is None or rival.connection is None:
            return True
        peer = self._peer
        wins = session.outgoing == keep_outgoing(
            peer.instance.router_id, peer.local_asn, opened.router_id, opened.asn
        )
        if rival.state is State.ESTABLISHED or (rival.state is State.OPEN_CONFIRM and not wins):
            self._dump(session, COLLISION)
            return False
        if rival.state is State.OPEN_CONFIRM:
            self._dump(rival, COLLISION)
        elif rival.state is State.OPEN_SENT and not wins:
            # The rival would win, if the peer keeps it. Until that is known, the peer must
            # not become Established here: it would refuse the other one, and we this one.
            session.withheld = True
            session.timers.start(Timer.COLLISION, COLLISION_WAIT)
        return True

    def established(self, session: Session) -> None:
        """Keep the session that is up, and end what is left of a collision."""
        if session is self.secondary:
            loser, self.primary, self.secondary = self.primary, session, None
            self._end_loser(loser)
        elif self.secondary is not None:
            loser, self.secondary = self.secondary, None
            self._end_loser(loser)

    def _end_loser(self, loser: Session) -> None:
        # Neither primary nor secondary any more: the peer passes over what becomes of it.
        if loser.state is State.CONNECT:
            self._discard(loser)
        else:
            self._dump(loser, COLLISION)
        loser.timers.stop_all()

    def end_secondary(self, cease: Notification) -> None:
        """End the second connection, where there is one."""
        if self.secondary is not None:
            self._dump(self.secondary, cease)

    def secondary_ended(self, session: Session) -> None:
        """Go on with the first connection alone."""
        self.secondary = None
        session.timers.stop_all()
        self.primary.release()

    def succeed(self) -> bool:
        """Put the second connection in the place of the first, which has ended, if there is one."""
        if self.secondary is None:
            return False
        self.primary.timers.stop_all()
        self.primary, self.secondary = self.secondary, None
        return True

    def _dump(self, session: Session, cease: Notification) -> None:
        """End one of two connections with a Cease."""
        self._peer.cease = cease
        session.fire(Event.OPEN_COLLISION_DUMP)

    def _discard(self, session: Session) -> None:
        """End one of two connections without a word."""
        silent, self._peer.silent_stop = self._peer.silent_stop, True
        session.fire(Event.OPEN_COLLISION_DUMP)
        self._peer.silent_stop = silent
