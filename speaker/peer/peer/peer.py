"""One peer: its configuration, its sessions from start to end, and its routes' fate after each.

A peer never touches another: all that peers share is behind `PeerContext`. Its connections, the
record of how sessions ended, and the retry backoff are units of their own.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from speaker.api import Confederation, PeerConfig, SessionError, StateChanged
from speaker.capability import Capability
from speaker.fsm import Event, State
from speaker.iana import CeaseSubcode, ErrorCode
from speaker.message import Notification, Open, decode_open
from speaker.peer import open_exchange, peer_status
from speaker.peer.engine_context import EngineContext, Timer
from speaker.peer.peer.connections import COLLISION, Connections
from speaker.peer.peer.peer_context import PeerContext
from speaker.peer.peer.retry_backoff import RetryBackoff
from speaker.peer.peer.session_end import SessionEnd
from speaker.peer.session import Session

SHOWN: Final = 32
"""Octets of a NOTIFICATION's data that people are shown."""
SHUTDOWN: Final = Notification.cease(CeaseSubcode.ADMINISTRATIVE_SHUTDOWN)


class Peer:
    """One peer of one instance."""

    def __init__(
        self,
        context: EngineContext,
        instance: PeerContext,
        config: PeerConfig,
        *,
        dynamic: str | None = None,
    ) -> None:
        self.context = context
        self.instance = instance
        self.config = config
        self.dynamic = dynamic
        """The name of the dynamic peer configuration that it came in by."""
        self.connections = Connections(context, self, outgoing=not config.passive)
        self.session_end = SessionEnd()
        self.backoff = RetryBackoff(context)
        self.cease = SHUTDOWN
        """What a Cease that is sent now says."""
        self.silent_stop = False
        """End without a NOTIFICATION, so that the peer keeps our routes (RFC 4724 section 4)."""
        self.flaps = 0
        self.neighbor: str | None = None
        """Of an unnumbered peer: who is at the other end of its interface."""
        self.stopped = False
        self.down: str | None = None
        """Why the peer is shut down by hand, until it is enabled again."""
        self._was_up = False

    # ----------------------------------------------------------------- facts

    @property
    def name(self) -> str:
        """The peer's name."""
        return self.config.name

    @property
    def address(self) -> str | None:
        """The configured address, or the one that was found at the interface."""
        return self.config.address or self.neighbor

    @property
    def local_asn(self) -> int:
        """The AS that this peer sees: outside of a confederation its identifier (RFC 5065)."""
        if self.config.local_asn:
            return self.config.local_asn
        confederation = self.instance.confederation
        if confederation is not None and not self._inside(confederation):
            return confederation.identifier
        return self.instance.local_asn

    def _inside(self, confederation: Confederation) -> bool:
        # An AS that is to be learnt counts as outside: our OPEN may have to be the first.
        asn = self.config.peer_asn
        return asn == self.instance.local_asn or asn in confederation.members

    @property
    def confederation_peer(self) -> bool:
        """Whether the peer is in another member AS of our confederation."""
        confederation = self.instance.confederation
        return confederation is not None and self.ebgp and self._inside(confederation)

    @property
    def remote_asn(self) -> int:
        """The peer's AS, learnt where it was not configured; 0 while unknown."""
        opened = self.connections.primary.peer_open
        return self.config.peer_asn or (opened.asn if opened is not None else 0)

    @property
    def ebgp(self) -> bool:
        """Whether the peer is in another AS, as far as is known."""
        return self.remote_asn != self.local_asn

    @property
    def ttl(self) -> int:
        """The TTL of the session, 0 for the system's."""
        if self.config.ttl_security:
            return 255
        return self.config.ebgp_multihop if self.ebgp else 0

    @property
    def min_ttl(self) -> int:
        """The least TTL that a packet of the peer may come with, 0 for any (RFC 5082)."""
        hops = self.config.ttl_security
        return 256 - hops if hops else 0

    @property
    def passive(self) -> bool:
        """Whether only the peer connects."""
        return self.config.passive or self.address is None

    @property
    def state(self) -> State:
        """The state that is shown."""
        return self.connections.primary.state

    @property
    def reason(self) -> str:
        """Why the session is not Established, for people; empty when it is."""
        return peer_status.reason(self)

    # ------------------------------------------------------------ start, stop

    @property
    def may_come_up(self) -> bool:
        """Whether nobody has decided that it stays down."""
        return self.config.disabled_reason is None and not self.stopped and self.down is None

    def start(self) -> None:
        """Begin, unless the configuration keeps the peer down."""
        if self.may_come_up:
            self.connections.primary.fire(
                Event.AUTOMATIC_START_WITH_PASSIVE_TCP_ESTABLISHMENT
                if self.passive
                else Event.AUTOMATIC_START
            )

    def stop(self, cease: Notification, *, silent: bool = False) -> None:
        """End for good."""
        self.stopped = True
        self.silent_stop = silent
        self._end(cease)

    def disable(self) -> None:
        """End the session because the configuration keeps the peer down from now on."""
        self._end(SHUTDOWN)

    def shut_down(self, communication: str) -> None:
        """End the session by hand, and stay down (RFC 9003)."""
        self.down = f"shut down: {communication}" if communication else "shut down"
        self._end(Notification.cease(CeaseSubcode.ADMINISTRATIVE_SHUTDOWN, communication))

    def _end(self, cease: Notification) -> None:
        self.cease = cease
        self.connections.end_secondary(cease)
        self.connections.primary.fire(Event.MANUAL_STOP)
        self.connections.primary.timers.stop_all()

    def enable(self) -> None:
        """Begin again after `shut_down`."""
        if self.down is not None:
            self.down = None
            self.backoff.forgive()
            self.start()

    def over_limit(self, reason: str, cease: Notification, restart_after: int | None) -> None:
        """End a session whose peer sends too much, and wait (RFC 4271 section 6.7)."""
        self.session_end.failed(reason)
        self.cease = cease
        self.backoff.held = None if restart_after is None else float(restart_after)
        self.connections.primary.fire(Event.AUTOMATIC_STOP)

    def reset(self, cease: Notification, reason: str) -> None:
        """End the session and begin again at once."""
        self.session_end.failed(reason)
        self.backoff.held = 0.0
        self.backoff.forgive()
        self.cease = cease
        self.connections.end_secondary(cease)
        if self.connections.primary.state is State.IDLE:
            self.connections.primary.timers.stop_all()
            self.start()
            return
        self.backoff.at_once = True
        self.connections.primary.fire(Event.AUTOMATIC_STOP)
        self.backoff.at_once = False

    def neighbor_changed(self, address: str | None) -> None:
        """Begin with who is at the other end of the interface now, or wait for somebody."""
        primary = self.connections.primary
        if primary.state is State.ESTABLISHED:
            # The session itself tells whether the other side is gone; until then somebody else on
            # the same link is nobody.
            return
        had, self.neighbor = self.neighbor, address
        if not self.may_come_up:
            return
        if had is None and primary.state is State.ACTIVE and primary.connection is None:
            primary.timers.stop_all()
            primary.state = State.IDLE
            self.start()
            return
        self.reset(
            Notification.cease(CeaseSubcode.OTHER_CONFIGURATION_CHANGE),
            "another neighbour was found at the interface"
            if address
            else "nobody is at the interface",
        )

    def start_idle_hold(self, session: Session) -> None:
        """Begin the pause after a session, for the FSM."""
        if (
            session is not self.connections.primary
            or self.stopped
            or self.config.disabled_reason is not None
        ):
            return
        pause = self.backoff.after_session(self.config.idle_hold_time, lost=self.session_end.lost)
        if pause is not None:
            session.timers.start(Timer.IDLE_HOLD, pause)

    def idle_hold_over(self) -> None:
        """Start again after the pause (events 6 and 7)."""
        self.connections.primary.fire(Event.IDLE_HOLD_TIMER_EXPIRES)
        self.connections.primary.fire(
            Event.AUTOMATIC_START_WITH_DAMP_PEER_OSCILLATIONS_AND_PASSIVE_TCP_ESTABLISHMENT
            if self.passive
            else Event.AUTOMATIC_START_WITH_DAMP_PEER_OSCILLATIONS
        )

    @property
    def delays_open(self) -> bool:
        """DelayOpen of RFC 4271 section 8.1.1."""
        return bool(self.config.delay_open_time)

    # --------------------------------------------------------------- session

    def opened(self, session: Session, body: bytes) -> None:
        """Judge the peer's OPEN, and go on unless a collision is lost. Raises `NotificationError`."""
        opened = decode_open(body)
        session.peer_open = opened
        negotiated = open_exchange.accept_open(
            self.config,
            opened,
            local_asn=self.local_asn,
            local_router_id=self.instance.router_id,
            offered=self._offered(),
            confederation=self.confederation_peer,
        )
        session.negotiated = negotiated
        session.stream.maximum = negotiated.max_message_size
        session.timers.hold_time = negotiated.hold_time
        session.timers.keepalive_time = negotiated.keepalive_time
        if not self.connections.survives(session, opened):
            return
        session.fire(
            Event.BGP_OPEN
            if session.state is State.OPEN_SENT
            else Event.BGP_OPEN_WITH_DELAY_OPEN_TIMER_RUNNING
        )

    def moved(self, session: Session, before: State) -> None:
        """Follow a session that entered another state."""
        ended = session.state in (State.IDLE, State.ACTIVE)
        connections = self.connections
        if session is connections.secondary:
            if ended:
                connections.secondary_ended(session)
            return
        if session is not connections.primary:
            return
        if ended and before is not State.IDLE and connections.succeed():
            self._report(before)
            connections.primary.release()
            return
        if before is State.ESTABLISHED:
            self.flaps += 1
            self.instance.session_down(self, restart=self.may_restart(session))
            self.backoff.ended()
            self.session_end.reckoned()
        self._report(before)
        if (
            ended
            and before > State.ACTIVE
            and self.dynamic is not None
            and not self.instance.keeps(self)
        ):
            self.given_up()

    def given_up(self) -> None:
        """Forget a dynamic peer: nothing of it is left, unless it is just coming back."""
        primary = self.connections.primary
        if primary.state in (State.IDLE, State.ACTIVE) and self.connections.secondary is None:
            self.stopped = True
            primary.timers.stop_all()
            self.instance.gone(self)

    def may_restart(self, session: Session) -> bool:
        """Tell whether the end of a session leaves the routes in place (RFC 4724, RFC 8538)."""
        negotiated = session.negotiated
        return (
            negotiated is not None
            and negotiated.peer_graceful_restart is not None
            and not self.stopped
            and self.config.disabled_reason is None
            and self.down is None
            and not self.session_end.hard
        )

    def _report(self, before: State) -> None:
        self.context.report(
            StateChanged(
                instance=self.instance.name,
                peer=self.name,
                address=self.address,
                old=str(before),
                new=str(self.connections.primary.state),
                reason=self.reason,
            )
        )

    def make_open(self, session: Session) -> bytes:
        """Return our OPEN."""
        del session
        return Open(
            asn=self.local_asn,
            hold_time=self.config.hold_time,
            router_id=self.instance.router_id,
            capabilities=self._offered(),
        ).encode()

    def _offered(self) -> tuple[Capability, ...]:
        return open_exchange.offered_capabilities(
            self.config,
            self.local_asn,
            plain=self.session_end.refused_capabilities,
            restarting=self.instance.restarting and not self._was_up,
            external=self.ebgp and not self.confederation_peer,
        )

    def session_up(self, session: Session) -> None:
        """Begin to exchange routes, and end what is left of a collision."""
        self.connections.established(session)
        self.session_end.established()
        self.backoff.established()
        self._was_up = True
        self.instance.session_up(self, session)

    def usual_updates(self, session: Session, bodies: Sequence[bytes], start: int) -> int:
        """Take in UPDATEs from one of them on, as long as they are usual; how many those are."""
        return self.instance.usual_updates(self, session, bodies, start)

    def update(self, session: Session, body: bytes) -> None:
        """Take in an UPDATE. Raises `NotificationError`."""
        self.instance.update(self, session, body)

    def refresh(self, session: Session, body: bytes) -> None:
        """Answer a ROUTE-REFRESH. Raises `NotificationError`."""
        self.instance.refresh(self, session, body)

    def notification(self, message: Notification, *, sent: bool, text: str | None = None) -> None:
        """Remember a NOTIFICATION for people, and report it."""
        if message.code == ErrorCode.CEASE and message.subcode == COLLISION.subcode:
            return
        described = text or str(message)
        negotiated = self.connections.primary.negotiated
        graceful = negotiated is not None and negotiated.graceful_notification
        self.session_end.notified(message, described, sent=sent, graceful=graceful)
        self.context.report(
            SessionError(
                instance=self.instance.name,
                peer=self.name,
                address=self.address,
                sent=sent,
                code=message.code,
                subcode=message.subcode,
                text=described,
                data=message.data[:SHOWN].hex(),
            )
        )
