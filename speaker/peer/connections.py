"""The connections of one peer: one, or two while a collision is unresolved (RFC 4271 section 6.8).

The status shows `primary`; `secondary` is always a connection that was accepted
while the primary was in use. This module decides which of them survives. The effect of a session's
end on routes and on the next attempt is the peer's.
"""

from __future__ import annotations

from typing import Final, Protocol

from speaker.fsm import Event, State
from speaker.iana import CeaseSubcode
from speaker.message import Notification, Open
from speaker.peer.actions import Close, SetTtl, Write
from speaker.peer.collision import keep_outgoing
from speaker.peer.engine_context import EngineContext, Timer
from speaker.peer.session import Session, SessionOwner

COLLISION_WAIT_SECONDS: Final = 5.0
"""For how long a collision stays unresolved at most."""
COLLISION: Final = Notification.cease(CeaseSubcode.CONNECTION_COLLISION_RESOLUTION)


class ConnectionsOwner(SessionOwner[Session], Protocol):
    """The peer, as its connections use it."""

    @property
    def local_asn(self) -> int:
        """The AS number that the peer sees."""

    @property
    def router_id(self) -> int:
        """The local BGP Identifier."""

    @property
    def ttl(self) -> int:
        """The TTL of sent packets, 0 for the system's default."""

    @property
    def min_ttl(self) -> int:
        """The least TTL of received packets, 0 for any (RFC 5082)."""

    @property
    def may_come_up(self) -> bool:
        """Whether neither the configuration nor a command keeps the peer down."""

    def may_restart(self, session: Session) -> bool:
        """Return whether the routes outlive the end of the session (RFC 4724, RFC 8538)."""


class Connections:
    """A peer's connections, one or two (`CollisionResolver`)."""

    def __init__(self, context: EngineContext, peer: ConnectionsOwner, *, outgoing: bool) -> None:
        self._context = context
        self._peer = peer
        self.primary = Session(context, peer, outgoing=outgoing)
        self.secondary: Session | None = None

    # ------------------------------------------------------------ incoming connections

    def accepted(
        self,
        connection: int,
        local: tuple[str, int],
        remote: tuple[str, int],
        interface_address: str | None = None,
    ) -> bool:
        """Take over a connection that the peer opened; False: the caller aborts it."""
        peer = self._peer
        primary = self.primary
        if not peer.may_come_up:
            return False
        match primary.state:
            case State.IDLE:
                return False
            case State.ACTIVE if primary.connection is None:
                self._take(primary, connection, local, remote, interface_address)
                return True
            case State.ESTABLISHED if peer.may_restart(primary) and not self._is_young:
                return self._replace(connection, local, remote, interface_address)
            case State.ESTABLISHED | State.OPEN_CONFIRM if not primary.withheld:
                self._context.out.append(Write(connection, (COLLISION.encode(),)))
                self._context.out.append(Close(connection))
                return True
        rival = self.secondary
        self.secondary = Session(self._context, peer, outgoing=False)
        if rival is not None:
            # The peer makes one attempt at a time, so the older connection is dead.
            self._discard(rival)
        self._take(self.secondary, connection, local, remote, interface_address)
        if not primary.outgoing and self.secondary is not None:
            self._discard(primary)
        return True

    @property
    def _is_young(self) -> bool:
        """Whether a connection of the peer is rather the rest of a collision than a restart."""
        up_for = self._peer.backoff.up_for()
        return up_for is None or up_for < COLLISION_WAIT_SECONDS

    def _replace(
        self,
        connection: int,
        local: tuple[str, int],
        remote: tuple[str, int],
        interface_address: str | None,
    ) -> bool:
        """Take over the connection of a peer that restarted (RFC 4724 section 5).

        The Established connection is dead. False where its end removed the peer.
        """
        self._peer.session_end.failed("the peer has connected again")
        self.primary.fire(Event.TCP_CONNECTION_FAILS)
        if not self._peer.may_come_up:
            return False
        self.primary.timers.stop_all()
        self._take(self.primary, connection, local, remote, interface_address)
        return True

    def _take(
        self,
        session: Session,
        connection: int,
        local: tuple[str, int],
        remote: tuple[str, int],
        interface_address: str | None,
    ) -> None:
        session.state = State.ACTIVE
        session.attach(connection, local, remote, interface_address, outgoing=False)
        if self._peer.ttl:
            self._context.out.append(SetTtl(connection, self._peer.ttl, self._peer.min_ttl))
        session.fire(Event.TCP_CONNECTION_CONFIRMED)

    # -------------------------------------------------------------- collision

    def is_primary(self, session: Session) -> bool:
        """Return whether the peer's status shows the session."""
        return session is self.primary

    def _rival(self, session: Session) -> Session | None:
        return self.secondary if session is self.primary else self.primary

    def rival_confirmed(self, session: Session) -> bool:
        """Return whether the other connection is in OpenConfirm."""
        rival = self._rival(session)
        return rival is not None and rival.state is State.OPEN_CONFIRM

    def survives(self, session: Session, opened: Open) -> bool:
        """Resolve a collision by the peer's OPEN; False where this session was ended."""
        rival = self._rival(session)
        if rival is None or rival.connection is None:
            return True
        peer = self._peer
        wins = session.outgoing == keep_outgoing(
            peer.router_id, peer.local_asn, opened.router_id, opened.asn
        )
        if rival.state is State.ESTABLISHED or (rival.state is State.OPEN_CONFIRM and not wins):
            session.end(Event.OPEN_COLLISION_DUMP, COLLISION)
            return False
        if rival.state is State.OPEN_CONFIRM:
            rival.end(Event.OPEN_COLLISION_DUMP, COLLISION)
        elif rival.state is State.OPEN_SENT and not wins:
            # The rival would win, if the peer keeps it. Until that is known, the peer must not
            # become Established here: each side would keep another connection.
            session.withheld = True
            session.timers.start(Timer.COLLISION, COLLISION_WAIT_SECONDS)
        return True

    def established(self, session: Session) -> None:
        """Make the Established session the primary, and end the other connection."""
        loser = self._rival(session)
        self.primary, self.secondary = session, None
        if loser is None:
            return
        # Neither primary nor secondary any more: the peer ignores its change of state.
        if loser.state is State.CONNECT:
            self._discard(loser)
        else:
            loser.end(Event.OPEN_COLLISION_DUMP, COLLISION)
        loser.timers.stop_all()

    def end_secondary(self, cease: Notification | None) -> None:
        """End the second connection, if there is one."""
        if self.secondary is not None:
            self.secondary.end(Event.OPEN_COLLISION_DUMP, cease)

    def secondary_ended(self, session: Session) -> None:
        """Continue with the first connection alone."""
        self.secondary = None
        session.timers.stop_all()
        self.primary.release()

    def promote_secondary(self) -> bool:
        """Make the second connection the primary, whose session ended; False without a second."""
        if self.secondary is None:
            return False
        self.primary.timers.stop_all()
        self.primary, self.secondary = self.secondary, None
        return True

    def _discard(self, session: Session) -> None:
        """End one of two connections without a NOTIFICATION."""
        session.end(Event.OPEN_COLLISION_DUMP, None)
