"""One peer: its configuration, its one or two connections, and what people want to know of it.

Two connections exist for as long as a collision is undecided (RFC 4271 section 6.8). `primary` is
the one that is shown; `secondary` is always a connection that was accepted while the primary was
busy. A peer never touches another: everything that it shares is behind `Host`.
"""

from __future__ import annotations

from typing import Final, Protocol

from speaker.api import Confederation, PeerConfig, SessionError, StateChanged
from speaker.capability import Capability
from speaker.fsm import Event, State
from speaker.iana import CeaseSubcode, ErrorCode
from speaker.message import Notification, Open, decode_open
from speaker.peer import opening, telling
from speaker.peer.actions import Close, Configure, Write
from speaker.peer.collision import keep_outgoing
from speaker.peer.core import Core, Timer
from speaker.peer.damping import Damping, retry_after
from speaker.peer.session import COLLISION_WAIT, Session

SHOWN: Final = 32
"""Octets of a NOTIFICATION's data that people are shown."""
COLLISION: Final = Notification.cease(CeaseSubcode.CONNECTION_COLLISION_RESOLUTION)
SHUTDOWN: Final = Notification.cease(CeaseSubcode.ADMINISTRATIVE_SHUTDOWN)


class Host(Protocol):
    """The instance that a peer belongs to."""

    name: str
    local_asn: int
    router_id: int
    confederation: Confederation | None

    @property
    def restarting(self) -> bool:
        """Whether this router has just started again (RFC 4724 section 4.1)."""

    def session_up(self, peer: Peer, session: Session) -> None:
        """Begin to exchange routes."""

    def session_down(self, peer: Peer, *, restart: bool) -> None:
        """Forget the session's routes, or keep them for a peer that restarts."""

    def keeps(self, peer: Peer) -> bool:
        """Tell whether routes of the peer are kept without a session."""

    def update(self, peer: Peer, session: Session, body: bytes) -> None:
        """Take in an UPDATE."""

    def refresh(self, peer: Peer, session: Session, body: bytes) -> None:
        """Answer a ROUTE-REFRESH."""

    def gone(self, peer: Peer) -> None:
        """Forget a dynamic peer whose session has ended."""


class Peer:
    """One peer of one instance."""

    def __init__(
        self, core: Core, host: Host, config: PeerConfig, *, dynamic: str | None = None
    ) -> None:
        self.core = core
        self.host = host
        self.config = config
        self.dynamic = dynamic
        """The name of the dynamic peer configuration that it came in by."""
        self.primary = Session(core, self, outgoing=not config.passive)
        self.secondary: Session | None = None
        self.cease = SHUTDOWN
        """What a Cease that is sent now says."""
        self.silent_stop = False
        """End without a NOTIFICATION, so that the peer keeps our routes (RFC 4724 section 4)."""
        self.retries = 0
        """ConnectRetryCounter of RFC 4271 section 8."""
        self.flaps = 0
        self.last_error: str | None = None
        self.failure: str | None = None
        """Why the last session ended, until the next one is Established."""
        self.trouble: str | None = None
        """What the transport did since: it must not hide the failure, which says more."""
        self.neighbor: str | None = None
        """Of an unnumbered peer: who is at the other end of its interface."""
        self.stopped = False
        self._plain = False
        """The peer refused our capabilities: the next OPEN goes without optional ones."""
        self._damping = Damping(core.rng)
        self._restart_at_once = False
        self.held: float | None = 0.0
        """A pause after the session that is longer than damping has it; None is for good."""
        self.down: str | None = None
        """Why the peer is shut down by hand, until it is enabled again."""
        self._lost_transport = False
        self._protocol_error = False
        self._established_at: float | None = None
        self._was_up = False
        self._ended_hard = False
        """A NOTIFICATION ended the session that lets go of its routes (RFC 8538)."""

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
        confederation = self.host.confederation
        if confederation is not None and not self._inside(confederation):
            return confederation.identifier
        return self.host.local_asn

    def _inside(self, confederation: Confederation) -> bool:
        # An AS that is to be learnt counts as outside: our OPEN may have to be the first.
        asn = self.config.peer_asn
        return asn == self.host.local_asn or asn in confederation.members

    @property
    def confederation_peer(self) -> bool:
        """Whether the peer is in another member AS of our confederation."""
        confederation = self.host.confederation
        return confederation is not None and self.ebgp and self._inside(confederation)

    @property
    def remote_asn(self) -> int:
        """The peer's AS, learnt where it was not configured; 0 while unknown."""
        opened = self.primary.peer_open
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
        return self.primary.state

    @property
    def reason(self) -> str:
        """Why the session is not Established, for people; empty when it is."""
        return telling.reason(self)

    # ------------------------------------------------------------ start, stop

    @property
    def may_come_up(self) -> bool:
        """Whether nobody has decided that it stays down."""
        return self.config.disabled_reason is None and not self.stopped and self.down is None

    def start(self) -> None:
        """Begin, unless the configuration keeps the peer down."""
        if self.may_come_up:
            self.primary.fire(
                Event.AUTOMATIC_START_WITH_PASSIVE_TCP_ESTABLISHMENT
                if self.passive
                else Event.AUTOMATIC_START
            )

    def stop(self, cease: Notification, *, silent: bool = False) -> None:
        """End for good."""
        self.stopped = True
        self.cease = cease
        self.silent_stop = silent
        if self.secondary is not None:
            self._dump(self.secondary, cease)
        self.primary.fire(Event.MANUAL_STOP)
        self.primary.stop_all_timers()

    def disable(self) -> None:
        """End the session because the configuration keeps the peer down from now on."""
        self.cease = SHUTDOWN
        if self.secondary is not None:
            self._dump(self.secondary, SHUTDOWN)
        self.primary.fire(Event.MANUAL_STOP)
        self.primary.stop_all_timers()

    def shut_down(self, communication: str) -> None:
        """End the session by hand, and stay down (RFC 9003)."""
        self.down = f"shut down: {communication}" if communication else "shut down"
        self.cease = Notification.cease(CeaseSubcode.ADMINISTRATIVE_SHUTDOWN, communication)
        if self.secondary is not None:
            self._dump(self.secondary, self.cease)
        self.primary.fire(Event.MANUAL_STOP)
        self.primary.stop_all_timers()

    def enable(self) -> None:
        """Begin again after `shut_down`."""
        if self.down is not None:
            self.down = None
            self._damping.forgive()
            self.start()

    def over_limit(self, reason: str, cease: Notification, restart_after: int | None) -> None:
        """End a session whose peer sends too much, and wait (RFC 4271 section 6.7)."""
        self.failed(reason)
        self.cease = cease
        self.held = None if restart_after is None else float(restart_after)
        self.primary.fire(Event.AUTOMATIC_STOP)

    def reset(self, cease: Notification, reason: str) -> None:
        """End the session and begin again at once."""
        self.failed(reason)
        self.held = 0.0
        self._damping.forgive()
        self.cease = cease
        if self.secondary is not None:
            self._dump(self.secondary, cease)
        if self.primary.state is State.IDLE:
            self.primary.stop_all_timers()
            self.start()
            return
        self._restart_at_once = True
        self.primary.fire(Event.AUTOMATIC_STOP)
        self._restart_at_once = False

    def neighbor_changed(self, address: str | None) -> None:
        """Begin with who is at the other end of the interface now, or wait for somebody."""
        if self.primary.state is State.ESTABLISHED:
            # The session itself tells whether the other side is gone; until then somebody else on
            # the same link is nobody.
            return
        had, self.neighbor = self.neighbor, address
        if not self.may_come_up:
            return
        if had is None and self.primary.state is State.ACTIVE and self.primary.connection is None:
            self.primary.stop_all_timers()
            self.primary.state = State.IDLE
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
        if session is not self.primary or self.stopped or self.config.disabled_reason is not None:
            return
        held, self.held = self.held, 0.0
        if self._restart_at_once:
            pause = 0.0
        elif held is None:
            return
        elif held:
            pause = held
        else:
            up = self._established_at
            pause = self._damping.pause(
                self.config.idle_hold_time,
                None if up is None else self.core.now - up,
                lost=self._lost_transport and not self._protocol_error,
            )
        session.start_timer(Timer.IDLE_HOLD, pause)

    def idle_hold_over(self) -> None:
        """Start again after the pause (events 6 and 7)."""
        self.primary.fire(Event.IDLE_HOLD_TIMER_EXPIRES)
        self.primary.fire(
            Event.AUTOMATIC_START_WITH_DAMP_PEER_OSCILLATIONS_AND_PASSIVE_TCP_ESTABLISHMENT
            if self.passive
            else Event.AUTOMATIC_START_WITH_DAMP_PEER_OSCILLATIONS
        )

    def connect_retry(self, state: State) -> float:
        """Return the connect-retry time for a state, with jitter."""
        if state is State.ACTIVE:
            return self.core.jitter(retry_after(self.retries, self.config.connect_retry_time))
        return self.core.jitter(self.config.connect_retry_time)

    # -------------------------------------------------------------- transport

    def session_of(self, connection: int) -> Session | None:
        """Return the session that has a connection."""
        if self.primary.connection == connection:
            return self.primary
        if self.secondary is not None and self.secondary.connection == connection:
            return self.secondary
        return None

    def connected(self, connection: int, local: tuple[str, int], remote: tuple[str, int]) -> None:
        """Take the connection that we asked for."""
        session = self.session_of(connection)
        if session is None or session.state is not State.CONNECT:
            self.core.out.append(Close(connection, abort=True))
            return
        rival = self.secondary
        if rival is not None and rival.state is State.OPEN_CONFIRM:
            # Our KEEPALIVE is out on the other one: the peer may be Established there, and an
            # OPEN on this one could make it give that up.
            self._discard(session)
            return
        session.attach(connection, local, remote, outgoing=True)
        session.fire(Event.TCP_CR_ACKED)

    def connect_failed(self, connection: int, reason: str) -> None:
        """Handle an attempt of ours that came to nothing."""
        session = self.session_of(connection)
        if session is not None:
            self.trouble = reason
            session.lost()

    def accepted(self, connection: int, local: tuple[str, int], remote: tuple[str, int]) -> bool:
        """Take a connection that the peer made; False refuses it without a word."""
        primary = self.primary
        if not self.may_come_up:
            return False
        match primary.state:
            case State.IDLE:
                return False
            case State.ACTIVE if primary.connection is None:
                self._take(primary, connection, local, remote)
                return True
            case State.ESTABLISHED if self._restartable(primary) and not self._is_young:
                # RFC 4724 section 5: the peer has restarted, and the old connection is dead. Just
                # after the session came up it is rather the rest of a collision.
                self.failed("the peer has connected again")
                primary.fire(Event.TCP_CONNECTION_FAILS)
                if self.stopped:
                    return False
                primary.stop_all_timers()
                self._take(primary, connection, local, remote)
                return True
            case State.ESTABLISHED | State.OPEN_CONFIRM if not primary.withheld:
                self._refuse(connection)
                return True
        rival = self.secondary
        self.secondary = Session(self.core, self, outgoing=False)
        if rival is not None:
            # The peer has one attempt at a time, so the older one is dead.
            self._discard(rival)
        self._take(self.secondary, connection, local, remote)
        if not primary.outgoing and self.secondary is not None:
            self._discard(primary)
        return True

    @property
    def _is_young(self) -> bool:
        up = self._established_at
        return up is None or self.core.now - up < COLLISION_WAIT

    def _take(
        self, session: Session, connection: int, local: tuple[str, int], remote: tuple[str, int]
    ) -> None:
        session.state = State.ACTIVE
        session.attach(connection, local, remote, outgoing=False)
        if self.ttl:
            self.core.out.append(Configure(connection, self.ttl, self.min_ttl))
        session.fire(Event.TCP_CONNECTION_CONFIRMED)

    @property
    def delays_open(self) -> bool:
        """DelayOpen of RFC 4271 section 8.1.1."""
        return bool(self.config.delay_open_time)

    def _refuse(self, connection: int) -> None:
        self.core.out.append(Write(connection, (COLLISION.encode(),)))
        self.core.out.append(Close(connection))

    def closed(self, connection: int, reason: str) -> None:
        """Handle a connection that ended without our doing."""
        session = self.session_of(connection)
        if session is None:
            return
        if session is self.primary:
            self.last_error = f"connection lost: {reason}"
            if session.state > State.OPEN_SENT:
                self.failed(self.last_error)
            else:
                self.trouble = self.last_error
            self._lost_transport = True
        session.lost()

    def queue_changed(self, connection: int, octets: int, limit: int) -> None:
        """Watch what the peer does not take (RFC 9687)."""
        session = self.session_of(connection)
        if session is None:
            return
        progress = octets < session.queued
        session.queued = octets
        if octets > limit:
            self._give_up(session, f"the peer does not read: {octets} octets are waiting")
        elif octets == 0:
            self.core.timers.stop((session, Timer.SEND_HOLD))
        elif session.state is not State.ESTABLISHED or not session.hold_time:
            # RFC 9687 section 3.3: it runs in Established only. Before, the hold timer is enough.
            return
        elif progress or session.deadline(Timer.SEND_HOLD) is None:
            # Section 3.1: the greater of eight minutes and twice the hold time.
            session.start_timer(Timer.SEND_HOLD, max(480.0, 2.0 * session.hold_time))

    def _give_up(self, session: Session, reason: str) -> None:
        self.failed(reason)
        self.cease = Notification.cease(CeaseSubcode.OUT_OF_RESOURCES)
        session.queued = 0
        session.fire(Event.AUTOMATIC_STOP)

    # -------------------------------------------------------------- collision

    def _rival(self, session: Session) -> Session | None:
        return self.secondary if session is self.primary else self.primary

    def opened(self, session: Session, body: bytes) -> None:
        """Judge the peer's OPEN, and decide a collision. Raises `NotificationError`."""
        opened = decode_open(body)
        session.peer_open = opened
        negotiated = opening.judge(
            self.config,
            opened,
            local_asn=self.local_asn,
            local_router_id=self.host.router_id,
            offered=self._offered(),
            confederation=self.confederation_peer,
        )
        session.negotiated = negotiated
        session.stream.maximum = negotiated.max_message_size
        session.hold_time = negotiated.hold_time
        session.keepalive_time = negotiated.keepalive_time
        rival = self._rival(session)
        if rival is not None and rival.connection is not None:
            wins = session.outgoing == keep_outgoing(
                self.host.router_id, self.local_asn, opened.router_id, opened.asn
            )
            if rival.state is State.ESTABLISHED or (rival.state is State.OPEN_CONFIRM and not wins):
                self._dump(session, COLLISION)
                return
            if rival.state is State.OPEN_CONFIRM:
                self._dump(rival, COLLISION)
            elif rival.state is State.OPEN_SENT and not wins:
                # The rival would win, if the peer keeps it. Until that is known, the peer must
                # not become Established here: it would refuse the other one, and we this one.
                session.withheld = True
                session.start_timer(Timer.COLLISION, COLLISION_WAIT)
        session.fire(
            Event.BGP_OPEN
            if session.state is State.OPEN_SENT
            else Event.BGP_OPEN_WITH_DELAY_OPEN_TIMER_RUNNING
        )

    def _dump(self, session: Session, cease: Notification) -> None:
        """End one of two connections with a Cease."""
        self.cease = cease
        session.fire(Event.OPEN_COLLISION_DUMP)

    def _discard(self, session: Session) -> None:
        """End one of two connections without a word."""
        silent, self.silent_stop = self.silent_stop, True
        session.fire(Event.OPEN_COLLISION_DUMP)
        self.silent_stop = silent

    def moved(self, session: Session, before: State) -> None:
        """Follow a session that entered another state."""
        ended = session.state in (State.IDLE, State.ACTIVE)
        if session is self.secondary:
            if ended:
                self.secondary = None
                session.stop_all_timers()
                self.primary.release()
            return
        if session is not self.primary:
            return
        if ended and self.secondary is not None and before is not State.IDLE:
            session.stop_all_timers()
            self.primary, self.secondary = self.secondary, None
            self._report(before)
            self.primary.release()
            return
        if before is State.ESTABLISHED:
            self.flaps += 1
            self.host.session_down(self, restart=self._restartable(session))
            self._established_at = None
            self._lost_transport = self._protocol_error = False
        self._report(before)
        if (
            ended
            and before > State.ACTIVE
            and self.dynamic is not None
            and not self.host.keeps(self)
        ):
            self.given_up()

    def given_up(self) -> None:
        """Forget a dynamic peer: nothing of it is left, unless it is just coming back."""
        if self.primary.state in (State.IDLE, State.ACTIVE) and self.secondary is None:
            self.stopped = True
            self.primary.stop_all_timers()
            self.host.gone(self)

    def _restartable(self, session: Session) -> bool:
        """Tell whether the end of a session leaves the routes in place (RFC 4724, RFC 8538)."""
        negotiated = session.negotiated
        return (
            negotiated is not None
            and negotiated.peer_graceful_restart is not None
            and not self.stopped
            and self.config.disabled_reason is None
            and self.down is None
            and not self._ended_hard
        )

    def _report(self, before: State) -> None:
        self.core.tell(
            StateChanged(
                instance=self.host.name,
                peer=self.name,
                address=self.address,
                old=str(before),
                new=str(self.primary.state),
                reason=self.reason,
            )
        )

    # ----------------------------------------------------------------- session

    def make_open(self, session: Session) -> bytes:
        """Return our OPEN."""
        del session
        return Open(
            asn=self.local_asn,
            hold_time=self.config.hold_time,
            router_id=self.host.router_id,
            capabilities=self._offered(),
        ).encode()

    def _offered(self) -> tuple[Capability, ...]:
        return opening.capabilities(
            self.config,
            self.local_asn,
            plain=self._plain,
            restarting=self.host.restarting and not self._was_up,
            external=self.ebgp and not self.confederation_peer,
        )

    def session_up(self, session: Session) -> None:
        """Begin to exchange routes, and end what is left of a collision."""
        if session is self.secondary:
            loser, self.primary, self.secondary = self.primary, session, None
            self._end_loser(loser)
        elif self.secondary is not None:
            loser, self.secondary = self.secondary, None
            self._end_loser(loser)
        self.failure = self.trouble = None
        self.retries = 0
        self._plain = False
        self._was_up = True
        self._ended_hard = False
        self._established_at = self.core.now
        self._lost_transport = self._protocol_error = False
        self.host.session_up(self, session)

    def _end_loser(self, loser: Session) -> None:
        # Neither primary nor secondary any more: `moved` and `start_idle_hold` pass it over.
        if loser.state is State.CONNECT:
            self._discard(loser)
        else:
            self._dump(loser, COLLISION)
        loser.stop_all_timers()

    def update(self, session: Session, body: bytes) -> None:
        """Take in an UPDATE. Raises `NotificationError`."""
        self.host.update(self, session, body)

    def refresh(self, session: Session, body: bytes) -> None:
        """Answer a ROUTE-REFRESH. Raises `NotificationError`."""
        self.host.refresh(self, session, body)

    # -------------------------------------------------------------------- text

    def failed(self, reason: str) -> None:
        """Remember why a session ends."""
        self.failure = reason
        self.trouble = None

    def notification(self, message: Notification, *, sent: bool, text: str | None = None) -> None:
        """Remember a NOTIFICATION for people, and report it."""
        if message.code == ErrorCode.CEASE and message.subcode == COLLISION.subcode:
            return
        described = text or str(message)
        self.last_error = f"{'sent' if sent else 'received'}: {described}"
        if not sent:
            self.failed(f"the peer sent {described}")
            if message.code == ErrorCode.OPEN_MESSAGE and message.subcode in (4, 7):
                self._plain = True
        negotiated = self.primary.negotiated
        self._ended_hard = (
            message.is_hard_reset or negotiated is None or not negotiated.graceful_notification
        )
        self._protocol_error = message.code != ErrorCode.CEASE
        self._lost_transport = self._lost_transport or not sent
        self.core.tell(
            SessionError(
                instance=self.host.name,
                peer=self.name,
                address=self.address,
                sent=sent,
                code=message.code,
                subcode=message.subcode,
                text=described,
                data=message.data[:SHOWN].hex(),
            )
        )
