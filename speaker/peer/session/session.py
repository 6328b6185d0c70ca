"""One connection in the state machine, from a start event to its end.

Owns the framing of the byte stream, the negotiated parameters, and the timers. What concerns the
peer as a whole (collisions, damping, routes, status) belongs to its owner, by `SessionOwner`. A
connection never outlives its end here: input that arrives later is ignored.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, final

from speaker.errors import NotificationError
from speaker.fsm import Action, Event, State, step
from speaker.iana import CeaseSubcode, ErrorCode, MessageType
from speaker.message import KEEPALIVE, Notification, Open, decode_open
from speaker.negotiated import Negotiated
from speaker.peer.actions import Close, Write
from speaker.peer.engine_context import EngineContext, Timer
from speaker.peer.message_counts import TYPE_POSITION
from speaker.peer.message_stream import MessageStream
from speaker.peer.session.event_tables import ERROR_EVENT, EXPIRY_EVENT
from speaker.peer.session.message_fault import message_fault
from speaker.peer.session.sent_notifications import notification_for, notification_of_error
from speaker.peer.session.session_owner import SessionOwner
from speaker.peer.session.session_timers import SessionTimers
from speaker.peer.session.update_receiver import UpdateReceiver
from speaker.peer.session_end import NO_ANSWER

COLLISION_WAIT_SECONDS: Final = 5.0
# For each UPDATE: a member of an enumeration takes several calls, a name of this module one step.
_UPDATE: Final = int(MessageType.UPDATE)
_ESTABLISHED: Final = State.ESTABLISHED


@final
class Session:
    """One state machine with, at most, one connection (`ConnectionHandler`, `TimerOwner`)."""

    __slots__ = (
        "_cease",
        "_context",
        "_control_received",
        "_control_sent",
        "_early_keepalive",
        "_error",
        "connection",
        "interface_address",
        "left_by",
        "local",
        "negotiated",
        "notified",
        "open_received",
        "open_sent",
        "outgoing",
        "owner",
        "peer_open",
        "queued",
        "remote",
        "since",
        "state",
        "stream",
        "timers",
        "updates",
        "updates_sent",
        "withheld",
    )

    def __init__(
        self, context: EngineContext, owner: SessionOwner[Session], *, outgoing: bool
    ) -> None:
        self._context = context
        self.owner = owner
        self.timers = SessionTimers(context, self)
        self.outgoing = outgoing
        """Whether this side initiated the connection."""
        self.state = State.IDLE
        self.since = context.now
        self.left_by = Event.MANUAL_STOP
        """The event that led to the present state."""
        self.connection: int | None = None
        self._error: NotificationError | None = None
        self._cease: Notification | None = None
        self._clear()

    def _clear(self) -> None:
        self._forget_connection()
        self.local: tuple[str, int] = ("", 0)
        self.remote: tuple[str, int] = ("", 0)
        self.interface_address: str | None = None
        """An address of the other IP version on the interface with the local address."""
        self.negotiated: Negotiated | None = None
        self.peer_open: Open | None = None
        self.open_sent = b""
        self.open_received = b""
        """The body of the peer's OPEN, as received."""
        self.notified: tuple[Notification, bool] | None = None
        """The NOTIFICATION that ended the session, and whether it was sent."""
        self.timers.forget_negotiated()
        self.updates_sent = 0
        self.queued = 0
        """Octets that wait to be sent."""
        self.withheld = False
        """In OpenConfirm with the KEEPALIVE withheld, until a collision is resolved."""
        self._early_keepalive = False
        self.stream = MessageStream()
        self.updates = UpdateReceiver(self._context, self.timers, self.owner.messages)
        self._control_received = 0
        self._control_sent = 0

    @property
    def where(self) -> tuple[str, str | None]:
        """The names of the instance and the peer."""
        return self.owner.where

    @property
    def messages_received(self) -> int:
        """Messages of all types."""
        return self._control_received + self.updates.received

    @property
    def messages_sent(self) -> int:
        """Messages of all types."""
        return self._control_sent + self.updates_sent

    # ------------------------------------------------------- the state machine

    def fire(self, event: Event) -> None:
        """Process an event by the table of `speaker.fsm`."""
        before = self.state
        transition = step(before, event, delay_open=bool(self.owner.config.delay_open_time))
        self.state = transition.state
        for action in transition.actions:
            self._perform(action, before)
        if transition.state is not before:
            self.since = self._context.now
            self.left_by = event
            self.owner.state_changed(self, before)

    def end(self, event: Event, cease: Notification | None, reason: str | None = None) -> None:
        """End the session by a local decision; no other place does.

        ``event`` is ManualStop, AutomaticStop or OpenCollisionDump (RFC 4271 section 8.1). Without
        ``cease`` the connection ends without a NOTIFICATION, so that a peer with graceful restart
        keeps the routes (RFC 4724 section 4). ``reason`` is recorded for the status.
        """
        if reason is not None:
            self.owner.session_end.failed(reason)
        self._cease = cease
        self.fire(event)

    def _perform(self, action: Action, before: State) -> None:
        if not (
            self.timers.perform(action, outgoing=self.outgoing, keepalive=not self.withheld)
            or self._send_for(action, before)
        ):
            self._change(action)

    def _send_for(self, action: Action, before: State) -> bool:
        """Perform an action that sends a message; False for any other action."""
        match action:
            case Action.SEND_KEEPALIVE:
                if not self.withheld:
                    self.send(KEEPALIVE)
            case Action.SEND_OPEN:
                self.open_sent = self.owner.open_message()
                self.send(self.open_sent)
            case Action.SEND_CEASE:
                if self._cease is not None:
                    self._notify(self._cease)
            case Action.SEND_ERROR:
                error, self._error = self._error, None
                if error is not None:
                    self._notify(notification_of_error(error), str(error))
            case _:
                message = notification_for(action, before)
                if message is None:
                    return False
                self._notify(message)
        return True

    def _change(self, action: Action) -> None:
        """Perform an action that changes the connection, its attempts or the routes."""
        owner = self.owner
        match action:
            case Action.START_CONNECT_RETRY:
                configured = owner.config.connect_retry_time
                seconds = owner.backoff.connect_retry(self.state, configured)
                self.timers.start(Timer.CONNECT_RETRY, seconds)
            case Action.START_DELAY_OPEN:
                self.timers.start(Timer.DELAY_OPEN, owner.config.delay_open_time)
            case Action.START_IDLE_HOLD:
                owner.start_idle_hold(self)
            case Action.INITIATE_CONNECT:
                self._connect()
            case Action.DROP:
                self._drop()
            case Action.ZERO_RETRY_COUNTER:
                owner.backoff.retries = 0
            case Action.COUNT_RETRY:
                owner.backoff.retries += 1
            case Action.SESSION_UP:
                owner.connections.established(self)
                owner.session_up(self)
            case _:
                # PROCESS_UPDATE has its message in `UpdateReceiver`, which performs it.
                pass

    # ----------------------------------------------------------------- timers

    def expired(self, timer: Timer, due: float) -> None:
        """Handle a timer that expired at ``due`` (`TimerOwner`)."""
        match timer:
            case Timer.IDLE_HOLD:
                self.owner.idle_hold_expired()
            case Timer.COLLISION:
                self.release()
            case Timer.SEND_HOLD:
                self.owner.session_end.failed("send hold timer expired: the peer does not read")
                self.fire(Event.SEND_HOLD_TIMER_EXPIRES)
            case Timer.HOLD:
                if self.timers.extend_late_hold(due):
                    return
                self.owner.session_end.failed("hold timer expired")
                self.fire(Event.HOLD_TIMER_EXPIRES)
            case _:
                if timer is Timer.CONNECT_RETRY and self.state is State.CONNECT:
                    # The attempt is given up for a new one before its own time-out.
                    self.owner.session_end.connect_failed(NO_ANSWER)
                self.fire(EXPIRY_EVENT[timer])

    # -------------------------------------------------------------- transport

    def _connect(self) -> None:
        self._clear()
        self.outgoing = True
        self.connection = self._context.new_connection()
        self._context.connections[self.connection] = self
        self._context.out.append(self.owner.connect_request(self.connection))

    def attach(
        self,
        connection: int,
        local: tuple[str, int],
        remote: tuple[str, int],
        interface_address: str | None,
        *,
        outgoing: bool,
    ) -> None:
        """Take over an open connection; the caller fires the event."""
        self._clear()
        self.outgoing = outgoing
        self.connection = connection
        self._context.connections[connection] = self
        self.local = local
        self.remote = remote
        self.interface_address = interface_address

    def connected(
        self, local: tuple[str, int], remote: tuple[str, int], interface_address: str | None
    ) -> None:
        """Handle the success of the connection attempt (`ConnectionHandler`)."""
        connection = self.connection
        if connection is None or self.state is not State.CONNECT:
            if connection is not None:
                self._context.out.append(Close(connection, abort=True))
            return
        if self.owner.connections.rival_confirmed(self):
            # The KEEPALIVE was sent on the other connection: the peer may be Established there,
            # and an OPEN on this one could make it end that session.
            self.end(Event.OPEN_COLLISION_DUMP, None)
            return
        self.attach(connection, local, remote, interface_address, outgoing=True)
        self.fire(Event.TCP_CR_ACKED)

    def connect_failed(self, reason: str) -> None:
        """Handle the failure of the connection attempt (`ConnectionHandler`)."""
        self.owner.session_end.connect_failed(reason)
        self._lost()

    def closed(self, reason: str) -> None:
        """Handle the loss of the connection (`ConnectionHandler`)."""
        if self.owner.connections.is_primary(self):
            opened = self.state > State.OPEN_SENT
            is_established = self.state is State.ESTABLISHED
            lasted = self._context.now - self.since if is_established else None
            self.owner.session_end.connection_lost(reason, opened=opened, established_for=lasted)
        self._lost()

    def _lost(self) -> None:
        self._forget_connection()
        self.fire(Event.TCP_CONNECTION_FAILS)

    def queue_changed(self, octets: int, limit: int) -> None:
        """Supervise the octets that the peer does not read (`ConnectionHandler`; RFC 9687)."""
        progress = octets < self.queued
        self.queued = octets
        if octets > limit:
            self.queued = 0
            self.end(
                Event.AUTOMATIC_STOP,
                Notification.cease(CeaseSubcode.OUT_OF_RESOURCES),
                f"the peer does not read: {octets} octets are waiting",
            )
        elif octets == 0:
            self.timers.stop(Timer.SEND_HOLD)
        elif self.state is State.ESTABLISHED:
            # RFC 9687 section 3.3: it runs in Established only. Before, the hold timer suffices.
            self.timers.supervise_sending(progress=progress)

    def _drop(self) -> None:
        self.timers.connection_dropped()
        if self.connection is not None:
            self._context.out.append(Close(self.connection))
        # The negotiated parameters stay readable until the next connection.
        self._forget_connection()
        self.updates.stop()
        self.queued = 0
        self.withheld = False

    def _forget_connection(self) -> None:
        if self.connection is not None:
            self._context.connections.pop(self.connection, None)
            self.connection = None

    # ---------------------------------------------------------- sent messages

    def send(self, message: bytes) -> None:
        """Send one message."""
        if self.connection is not None:
            self._control_sent += 1
            self.owner.messages.sent[message[TYPE_POSITION]] += 1
            self._context.out.append(Write(self.connection, (message,)))

    def send_updates(self, parts: tuple[bytes, ...], messages: int, prefixes: int) -> None:
        """Send UPDATEs that were encoded for a whole update group."""
        if self.connection is not None:
            self.updates_sent += messages
            self.owner.messages.updates_sent += messages
            self._context.out.append(Write(self.connection, parts, prefixes))

    def _notify(self, message: Notification, text: str | None = None) -> None:
        """Send a NOTIFICATION; the transition's next action drops the connection."""
        if self.connection is None:
            return
        if self.negotiated is not None and self.negotiated.graceful_notification:
            message = message.for_graceful_restart()
        self.notified = (message, True)
        self.send(message.encode())
        self.owner.notification(message, sent=True, text=text)

    def release(self) -> None:
        """Send the withheld KEEPALIVE: the other connection ended, or did not come up in time."""
        if not self.withheld:
            return
        self.timers.stop(Timer.COLLISION)
        self.withheld = False
        self.send(KEEPALIVE)
        self.timers.restart_keepalive()
        if self._early_keepalive:
            self.fire(Event.KEEPALIVE_MSG)

    # ------------------------------------------------------ received messages

    def received(self, data: bytes) -> None:
        """Process octets: every message that is complete (`ConnectionHandler`).

        Octets behind a message that ends the connection are ignored.
        """
        connection = self.connection
        try:
            for kind, bodies in self.stream.messages(data):
                self.timers.hold_extended = False
                self._messages(kind, bodies)
                if self.connection is not connection:
                    return
        except NotificationError as error:
            self._fail(Event.BGP_HEADER_ERR, error)

    def _messages(self, kind: int, bodies: Sequence[bytes]) -> None:
        # The fence of every message: an internal error costs this session, and is reported.
        try:
            if kind == _UPDATE and self.state is _ESTABLISHED:
                self.updates.receive(bodies)
            else:
                self._control_received += 1
                self.owner.messages.received[kind] += 1
                self._control(kind, bodies[0])
        except NotificationError as error:
            self._fail(ERROR_EVENT.get(ErrorCode(error.code), Event.UPDATE_MSG_ERR), error)
        except Exception as error:  # noqa: BLE001  the documented fence
            self._context.report(message_fault(self.owner.where, kind, bodies, error))
            self.end(
                Event.AUTOMATIC_STOP,
                Notification.cease(CeaseSubcode.OUT_OF_RESOURCES),
                "internal error while handling a message",
            )

    def _control(self, kind: int, body: bytes) -> None:
        """Process any message but an UPDATE in Established. Raises `NotificationError`."""
        if kind == MessageType.KEEPALIVE:
            if self.withheld:
                self._early_keepalive = True
            else:
                self.fire(Event.KEEPALIVE_MSG)
        elif kind == MessageType.OPEN:
            self._open(body)
        elif kind == MessageType.NOTIFICATION:
            self._notification(body)
        elif kind == MessageType.ROUTE_REFRESH and self.updates.handler is not None:
            self.timers.restart_hold()
            self.updates.handler.route_refresh(body)
        else:
            # RFC 2918 gives ROUTE-REFRESH no event of its own: in other states than Established
            # both messages end the session (RFC 4271 section 8.2.2, event 27).
            name = "UPDATE" if kind == MessageType.UPDATE else "ROUTE-REFRESH"
            self.owner.session_end.failed(f"{name} received in {self.state}")
            self.fire(Event.UPDATE_MSG)

    def _fail(self, event: Event, error: NotificationError) -> None:
        self._error = error
        self.owner.session_end.failed(
            error.detail if error.code == ErrorCode.OPEN_MESSAGE else str(error)
        )
        self.fire(event)

    def _open(self, body: bytes) -> None:
        if self.state is not State.OPEN_SENT and self.timers.deadline(Timer.DELAY_OPEN) is None:
            self.owner.session_end.failed(f"OPEN received in {self.state}")
            self.fire(Event.BGP_OPEN)
            return
        self.open_received = body
        opened = self.peer_open = decode_open(body)
        negotiated = self.negotiated = self.owner.accept_open(opened)
        self.stream.maximum = negotiated.max_message_size
        self.timers.hold_time = negotiated.hold_time
        self.timers.keepalive_time = negotiated.keepalive_time
        if self.owner.connections.survives(self, opened):
            self.fire(
                Event.BGP_OPEN
                if self.state is State.OPEN_SENT
                else Event.BGP_OPEN_WITH_DELAY_OPEN_TIMER_RUNNING
            )

    def _notification(self, body: bytes) -> None:
        message = Notification.decode(body)
        self.notified = (message, False)
        self.owner.notification(message, sent=False)
        self.fire(Event.NOTIF_MSG_VER_ERR if message.is_version_error else Event.NOTIF_MSG)
