"""One peer: its configuration, its sessions from start to end, and the OPEN that it sends.

A peer never touches another: all that peers share is behind `PeerContext`. Its connections, the
record of how sessions ended, and the retry backoff are units of their own.
"""

from __future__ import annotations

from typing import Final

from speaker.api import (
    PeerConfig,
    PeerPrefixLimit,
    SessionError,
    StateChanged,
)
from speaker.capability import Capability
from speaker.fsm import Event, State
from speaker.iana import CeaseSubcode, ErrorCode
from speaker.message import Notification, Open
from speaker.negotiated import ConfiguredParameters, Negotiated
from speaker.peer import open_exchange, peer_status
from speaker.peer.actions import Connect
from speaker.peer.connections import COLLISION, Connections
from speaker.peer.engine_context import EngineContext, Timer
from speaker.peer.message_counts import MessageCounters
from speaker.peer.peer_context import PeerContext
from speaker.peer.peer_identity import PeerIdentity
from speaker.peer.retry_backoff import RetryBackoff
from speaker.peer.session import Session
from speaker.peer.session_end import SessionEnd

MAX_REPORTED_DATA: Final = 32
"""Octets of a NOTIFICATION's data that an event reports."""
SHUTDOWN: Final = Notification.cease(CeaseSubcode.ADMINISTRATIVE_SHUTDOWN)
BFD_DOWN: Final = Notification.cease(CeaseSubcode.BFD_DOWN)
CONFIGURATION_CHANGE: Final = Notification.cease(CeaseSubcode.OTHER_CONFIGURATION_CHANGE)
CONFIGURATION_CHANGED: Final = "configuration changed"


class Peer(PeerIdentity):
    """One peer of one instance (`speaker.peer.session.SessionOwner`)."""

    def __init__(
        self,
        context: EngineContext,
        instance: PeerContext[Peer],
        config: PeerConfig,
        *,
        dynamic: str | None = None,
    ) -> None:
        self._context = context
        self.instance = instance
        self.config = config
        self.dynamic = dynamic
        """The name of the dynamic peer configuration that it was created by."""
        self.session_end = SessionEnd()
        self.backoff = RetryBackoff(context)
        self.messages = MessageCounters()
        self.connections = Connections(context, self, outgoing=not config.passive)
        self.flaps = 0
        self.down_since = context.now
        """When the session was last Established; before the first one, when the peer was configured."""
        self.neighbor: str | None = None
        self.stopped = False
        self.down: str | None = None
        """Why the peer is administratively down, until it is enabled again."""
        self._was_up = False
        self._beyond_prefix_limit = False
        """Whether the last session was ended by a prefix limit."""

    # ------------------------------------------------------------- properties

    @property
    def state(self) -> State:
        """The state of the primary session."""
        return self.connections.primary.state

    @property
    def is_silent(self) -> bool:
        """Whether no connection of the peer has brought an OPEN."""
        connections = self.connections
        return connections.primary.peer_open is None and (
            connections.secondary is None or connections.secondary.peer_open is None
        )

    @property
    def reason(self) -> str:
        """Why the session is not Established, as text; empty when it is."""
        return peer_status.reason(
            self.connections.primary, self.config, address=self.address, down=self.down
        )

    @property
    def likely_cause(self) -> str:
        """A text with things to check where the session does not come up; empty if none is known."""
        if self.address is None or self.down is not None:
            return ""
        return peer_status.likely_cause(self.connections.primary, self.config)

    @property
    def since(self) -> float:
        """When the session became Established, or since when it is not (`down_since`)."""
        primary = self.connections.primary
        return primary.since if primary.state is State.ESTABLISHED else self.down_since

    @property
    def was_established(self) -> bool:
        """Whether the peer has had an Established session."""
        return self._was_up

    @property
    def may_come_up(self) -> bool:
        """Whether neither the configuration nor a command keeps the peer down."""
        return self.config.disabled_reason is None and not self.stopped and self.down is None

    @property
    def waits(self) -> bool:
        """Whether nothing but a condition outside of BGP keeps it down, and only for a while."""
        return self.config.disabled_for_a_while and not self.stopped and self.down is None

    # ---------------------------------------------------------- start and end

    def start(self) -> None:
        """Start the session, unless the peer is kept down."""
        if self.may_come_up:
            self.connections.primary.fire(
                Event.AUTOMATIC_START_WITH_PASSIVE_TCP_ESTABLISHMENT
                if self.passive
                else Event.AUTOMATIC_START
            )

    def _end_sessions(
        self, event: Event, cease: Notification | None, reason: str | None = None
    ) -> None:
        """End all sessions of the peer by a local decision; no other method does."""
        self.connections.end_secondary(cease)
        self.connections.primary.end(event, cease, reason)

    def _stay_down(self, cease: Notification | None) -> None:
        self._end_sessions(Event.MANUAL_STOP, cease)
        self.connections.primary.timers.stop_all()

    def stop(self, cease: Notification | None) -> None:
        """End the peer for good; without ``cease`` it keeps the routes (RFC 4724 section 4)."""
        self.stopped = True
        self._stay_down(cease)

    def shut_down(self, communication: str) -> None:
        """Administratively shut the peer down, with a shutdown communication (RFC 9003)."""
        self.down = f"shut down: {communication}" if communication else "shut down"
        self._stay_down(Notification.cease(CeaseSubcode.ADMINISTRATIVE_SHUTDOWN, communication))

    def enable(self) -> None:
        """Start again after `shut_down`."""
        if self.down is not None:
            self.down = None
            if self._leave_prefix_limit():
                return
            self.backoff.reset()
            self.session_end.failed(None)
            self.start()

    def path_down(self, reason: str, *, independent: bool) -> None:
        """End an Established session: BFD has found the path down (RFC 5882, RFC 9384).

        A session that is being set up goes on: BFD may have ended with the session before. Where the
        peer's BFD depends on its control plane (not ``independent``), a peer with graceful restart
        may be restarting: the session ends without a NOTIFICATION, and the routes are kept.
        """
        session = self.connections.primary
        if session.state is State.ESTABLISHED:
            restarts = not independent and self.may_restart(session)
            cease = None if restarts else BFD_DOWN
            self._end_sessions(Event.AUTOMATIC_STOP, cease, f"BFD: {reason}")

    def reconfigure(self, config: PeerConfig) -> None:
        """Apply a configuration that needs a new session, or that keeps the peer down."""
        was_enabled, self.config = self.config.disabled_reason is None, config
        if was_enabled and config.disabled_reason is not None:
            self._stay_down(SHUTDOWN)
        else:
            self.reset(CONFIGURATION_CHANGE, CONFIGURATION_CHANGED if was_enabled else None)

    def prefix_limit_exceeded(
        self, reason: str, cease: Notification, restart_after: int | None
    ) -> None:
        """End the session and stay in Idle for some seconds, or without end (RFC 4486)."""
        self._beyond_prefix_limit = True
        self.backoff.imposed = None if restart_after is None else float(restart_after)
        self._end_sessions(Event.AUTOMATIC_STOP, cease, reason)

    def prefix_limit_changed(self) -> None:
        """Start again at once where the former limit keeps the peer in Idle."""
        if self._beyond_prefix_limit and self.state is State.IDLE and self.may_come_up:
            self.reset(CONFIGURATION_CHANGE, CONFIGURATION_CHANGED)

    def _leave_prefix_limit(self) -> bool:
        """End the pause of a peer beyond its prefix limit; True where that removes a dynamic one."""
        if self.dynamic is None or not self._beyond_prefix_limit:
            return False
        self._beyond_prefix_limit = False
        if self.instance.keeps_routes(self):
            return False
        self.remove_if_idle()
        return self.stopped

    def reset(self, cease: Notification, reason: str | None) -> None:
        """End the session and start again at once."""
        if self._leave_prefix_limit():
            return
        primary = self.connections.primary
        self.backoff.imposed = 0.0
        self.backoff.reset()
        if primary.state is State.IDLE:
            self.connections.end_secondary(cease)
            self.session_end.failed(reason)
            primary.timers.stop_all()
            self.start()
            return
        self.backoff.immediate = True
        self._end_sessions(Event.AUTOMATIC_STOP, cease, reason)
        self.backoff.immediate = False

    def neighbor_changed(self, address: str | None) -> None:
        """Start with the neighbour on the interface, or wait for one (None: there is none)."""
        primary = self.connections.primary
        if primary.state is State.ESTABLISHED:
            # The session's own timers detect the loss of the neighbour; until then another router
            # on the link does not replace it.
            return
        had, self.neighbor = self.neighbor, address
        if not self.may_come_up:
            return
        if had is None and primary.state is State.ACTIVE and primary.connection is None:
            self.retry()
            return
        self.reset(
            CONFIGURATION_CHANGE,
            "another neighbour was discovered on the interface"
            if address
            else "no neighbour is on the interface",
        )

    def retry(self) -> None:
        """Open a connection at once, if the peer waits to do so after a failed attempt."""
        primary = self.connections.primary
        waits = primary.state is State.ACTIVE and primary.connection is None
        is_held = primary.state is State.IDLE and not self._beyond_prefix_limit
        if self.may_come_up and (waits or is_held):
            primary.timers.stop_all()
            primary.state = State.IDLE
            self.start()

    # --------------------------------------------------------- for the session

    def start_idle_hold(self, session: Session) -> None:
        """Start the idle hold timer, unless the peer stays down (`SessionOwner`)."""
        if (
            session is not self.connections.primary
            or self.stopped
            or self.config.disabled_reason is not None
        ):
            return
        pause = self.backoff.idle_hold(self.config.idle_hold_time, lost=self.session_end.lost)
        if pause is not None:
            session.timers.start(Timer.IDLE_HOLD, pause)

    def idle_hold_expired(self) -> None:
        """Start again after the idle hold time (`SessionOwner`; events 6 and 7)."""
        if self._leave_prefix_limit():
            return
        self.connections.primary.fire(Event.IDLE_HOLD_TIMER_EXPIRES)
        self.connections.primary.fire(
            Event.AUTOMATIC_START_WITH_DAMP_PEER_OSCILLATIONS_AND_PASSIVE_TCP_ESTABLISHMENT
            if self.passive
            else Event.AUTOMATIC_START_WITH_DAMP_PEER_OSCILLATIONS
        )

    def connect_request(self, connection: int) -> Connect:
        """Return the action that opens a connection to the peer (`SessionOwner`)."""
        config = self.config
        assert self.address is not None  # noqa: S101  a peer without address is passive
        return Connect(
            connection=connection,
            instance=self.instance.name,
            peer=config.name,
            address=self.address,
            port=config.port,
            interface=config.interface,
            local_address=config.local_address,
            local_port=config.local_port,
            ttl=self.ttl,
            min_ttl=self.min_ttl,
            password=config.password,
        )

    def open_message(self) -> bytes:
        """Return the OPEN to send (`SessionOwner`)."""
        return Open(
            asn=self.local_asn,
            hold_time=self.config.hold_time,
            router_id=self.instance.router_id,
            capabilities=self._offered(),
        ).encode()

    def configured_parameters(self, peer_asn: int) -> ConfiguredParameters:
        """Return the parameters that are not negotiated, with a peer of an AS."""
        return open_exchange.configured_parameters(
            self.config,
            peer_asn,
            local_asn=self.local_asn,
            local_router_id=self.instance.router_id,
            confederation=self.confederation_peer,
        )

    def accept_open(self, opened: Open) -> Negotiated:
        """Validate the peer's OPEN and negotiate (`SessionOwner`). Raises `NotificationError`."""
        return open_exchange.accept_open(
            self.config,
            opened,
            local_asn=self.local_asn,
            instance_asn=self.instance.local_asn,
            local_router_id=self.instance.router_id,
            offered=self._offered(),
            confederation=self.confederation_peer,
        )

    def _offered(self) -> tuple[Capability, ...]:
        return open_exchange.offered_capabilities(
            self.config,
            self.local_asn,
            plain=self.session_end.refused_capabilities,
            restarting=self.instance.restarting and not self._was_up,
            external=self.ebgp and not self.confederation_peer,
        )

    def session_up(self, session: Session) -> None:
        """Start the exchange of routes (`SessionOwner`)."""
        self._beyond_prefix_limit = False
        self.session_end.established()
        self.backoff.established()
        self._was_up = True
        self.instance.session_up(self, session)

    def state_changed(self, session: Session, before: State) -> None:
        """Follow a session that entered another state (`SessionOwner`)."""
        ended = session.state in (State.IDLE, State.ACTIVE)
        connections = self.connections
        if session is connections.secondary:
            if ended:
                connections.secondary_ended(session)
            return
        if session is not connections.primary:
            return
        if ended and before is not State.IDLE and connections.promote_secondary():
            self._report(before)
            connections.primary.release()
            return
        routes = 0
        peer_limit: PeerPrefixLimit | None = None
        if before is State.ESTABLISHED:
            self.flaps += 1
            peer_limit = self._peer_limit(session)
            self.down_since = self._context.now
            routes = self.instance.session_down(self, restart=self.may_restart(session))
            self.backoff.ended()
            self.session_end.damped()
        self._report(before, routes, peer_limit)
        if (
            ended
            and before > State.ACTIVE
            and self.dynamic is not None
            and not self.instance.keeps_routes(self)
        ):
            self.remove_if_idle()

    def remove_if_idle(self) -> None:
        """Remove a dynamic peer without a session, unless it connects again, or may not yet."""
        primary = self.connections.primary
        if self._beyond_prefix_limit:
            return
        if primary.state in (State.IDLE, State.ACTIVE) and self.connections.secondary is None:
            self.stopped = True
            primary.timers.stop_all()
            self.instance.remove_dynamic_peer(self)

    def may_restart(self, session: Session) -> bool:
        """Return whether the routes outlive the end of the session (RFC 4724, RFC 8538)."""
        negotiated = session.negotiated
        return (
            negotiated is not None
            and negotiated.peer_graceful_restart is not None
            and self.may_come_up
            and not self.session_end.hard
        )

    def _peer_limit(self, session: Session) -> PeerPrefixLimit | None:
        """Return the limit of the peer for which it has ended the session, with what it was sent."""
        if session.notified is None:
            return None
        message, sent = session.notified
        if sent or not message.is_prefix_limit:
            return None
        advertised = self.instance.advertised(self)
        named = message.prefix_limit
        for family, _ in advertised:
            if named is not None and (named.afi, named.safi) == (family.afi, family.safi):
                return PeerPrefixLimit(family=family, limit=named.limit, advertised=advertised)
        return PeerPrefixLimit(advertised=advertised)

    def _report(
        self, before: State, routes: int = 0, peer_limit: PeerPrefixLimit | None = None
    ) -> None:
        session = self.connections.primary
        self._context.report(
            StateChanged(
                instance=self.instance.name,
                peer=self.name,
                address=self.address,
                old=str(before),
                new=str(session.state),
                reason=self.reason,
                routes=routes,
                local_address="" if session.connection is None else session.local[0],
                peer_limit=peer_limit,
            )
        )

    def notification(self, message: Notification, *, sent: bool, text: str | None = None) -> None:
        """Record and report a NOTIFICATION (`SessionOwner`); ``text`` in place of its own."""
        if message.code == ErrorCode.CEASE and message.subcode == COLLISION.subcode:
            return
        described = text or str(message)
        negotiated = self.connections.primary.negotiated
        graceful = negotiated is not None and negotiated.graceful_notification
        self.session_end.notified(message, described, sent=sent, graceful=graceful)
        self._context.report(
            SessionError(
                instance=self.instance.name,
                peer=self.name,
                address=self.address,
                sent=sent,
                code=message.code,
                subcode=message.subcode,
                text=described,
                data=message.data[:MAX_REPORTED_DATA].hex(),
            )
        )
