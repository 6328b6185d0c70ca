"""One connection's run through the state machine, from a start event to its end.

Owns the framing of the byte stream, what was negotiated on it, and, in `timing`, its timers.
What concerns the peer as a whole (collisions, damping, routes, what people read) is its owner's:
`speaker.peer.peer.Peer`. A connection never outlives its end here: what comes late is ignored.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, final

from speaker.api import Fault
from speaker.errors import NotificationError
from speaker.fsm import Action, Event, State, step
from speaker.iana import CeaseSubcode, ErrorCode, FsmSubcode, MessageType
from speaker.message import HEADER_SIZE, KEEPALIVE, Notification, Open
from speaker.negotiated import MAX_MESSAGE, Negotiated
from speaker.peer.actions import Close, Connect, Write
from speaker.peer.engine_context import EngineContext, Timer
from speaker.peer.session.session_timers import SessionTimers
from speaker.peer.stream import Stream

if TYPE_CHECKING:
    from speaker.peer.peer import Peer

OPEN_DEADLINE: Final = 240.0
"""Seconds until the peer's OPEN has to be there: the large hold time of RFC 4271 section 8.2.2."""
ACCEPTED_OPEN_DEADLINE: Final = 60.0
"""The same for a connection that was accepted: anybody can hold one open without a word."""
LATE: Final = 1.0
"""A hold timer that fires this late says that we were not running, not that the peer was silent."""
COLLISION_WAIT: Final = 5.0

_FSM_SUBCODE: Final = {
    State.OPEN_SENT: FsmSubcode.UNEXPECTED_IN_OPEN_SENT,
    State.OPEN_CONFIRM: FsmSubcode.UNEXPECTED_IN_OPEN_CONFIRM,
    State.ESTABLISHED: FsmSubcode.UNEXPECTED_IN_ESTABLISHED,
}


@final
class Session:
    """One state machine with, at most, one connection."""

    __slots__ = (
        "_early_keepalive",
        "_heard",
        "_late",
        "connection",
        "context",
        "error",
        "left_by",
        "local",
        "messages_received",
        "messages_sent",
        "negotiated",
        "notified",
        "open_received",
        "open_sent",
        "outgoing",
        "peer",
        "peer_open",
        "queued",
        "remote",
        "since",
        "state",
        "stream",
        "timers",
        "updates_received",
        "updates_sent",
        "withheld",
    )

    def __init__(self, context: EngineContext, peer: Peer, *, outgoing: bool) -> None:
        self.context = context
        self.peer = peer
        self.timers = SessionTimers(context, self)
        self.outgoing = outgoing
        self.state = State.IDLE
        self.since = context.now
        self.error: NotificationError | None = None
        self.left_by = Event.MANUAL_STOP
        """The event that led to the present state."""
        self.connection: int | None = None
        self._clear()

    def _clear(self) -> None:
        self._forget_connection()
        self.local: tuple[str, int] = ("", 0)
        self.remote: tuple[str, int] = ("", 0)
        self.negotiated: Negotiated | None = None
        self.peer_open: Open | None = None
        self.open_sent = b""
        self.open_received = b""
        """The body of the peer's OPEN, as it came."""
        self.notified: tuple[Notification, bool] | None = None
        """The NOTIFICATION that ended the session, and whether it was ours."""
        self.timers.hold_time = 0
        self.timers.keepalive_time = 0
        self.messages_received = 0
        self.messages_sent = 0
        self.updates_received = 0
        self.updates_sent = 0
        self.queued = 0
        self.withheld = False
        """In OpenConfirm with our KEEPALIVE held back, until a collision is decided."""
        self._early_keepalive = False
        self.stream = Stream()
        self._late = False
        self._heard: float | None = None
        """When an UPDATE was heard last: the hold time begins again once for all of an input."""

    # ------------------------------------------------------------ the machine

    def fire(self, event: Event) -> None:
        """Take an event through the table."""
        before = self.state
        transition = step(before, event, delay_open=self.peer.delays_open)
        self.state = transition.state
        for action in transition.actions:
            self._do(action, before)
        if transition.state is not before:
            self.since = self.context.now
            self.left_by = event
            self.peer.moved(self, before)

    def _do(self, action: Action, before: State) -> None:  # noqa: C901  the list of actions
        match action:
            case Action.START_CONNECT_RETRY:
                self.timers.start(
                    Timer.CONNECT_RETRY,
                    self.peer.backoff.connect_retry(
                        self.state, self.peer.config.connect_retry_time
                    ),
                )
            case Action.STOP_CONNECT_RETRY:
                self.timers.stop(Timer.CONNECT_RETRY)
            case Action.START_DELAY_OPEN:
                self.timers.start(Timer.DELAY_OPEN, self.peer.config.delay_open_time)
            case Action.STOP_DELAY_OPEN:
                self.timers.stop(Timer.DELAY_OPEN)
            case Action.START_IDLE_HOLD:
                self.peer.start_idle_hold(self)
            case Action.STOP_IDLE_HOLD:
                self.timers.stop(Timer.IDLE_HOLD)
            case Action.START_LARGE_HOLD:
                self.timers.start(
                    Timer.HOLD, OPEN_DEADLINE if self.outgoing else ACCEPTED_OPEN_DEADLINE
                )
            case Action.START_NEGOTIATED_TIMERS:
                self.timers.start_negotiated(keepalive=not self.withheld)
            case Action.RESTART_HOLD:
                self.timers.restart_hold()
            case Action.RESTART_KEEPALIVE:
                self.timers.restart_keepalive()
            case Action.INITIATE_CONNECT:
                self._connect()
            case Action.SEND_OPEN:
                self.open_sent = self.peer.make_open(self)
                self.send(self.open_sent)
            case Action.SEND_KEEPALIVE:
                if not self.withheld:
                    self.send(KEEPALIVE)
            case Action.SEND_CEASE:
                self._cease()
            case Action.SEND_HOLD_EXPIRED:
                self.notify(Notification(ErrorCode.HOLD_TIMER_EXPIRED))
            case Action.SEND_SEND_HOLD_EXPIRED:
                self.notify(Notification(ErrorCode.SEND_HOLD_TIMER_EXPIRED))
            case Action.SEND_FSM_ERROR:
                self.notify(Notification(ErrorCode.FSM, _FSM_SUBCODE.get(before, 0)))
            case Action.SEND_ERROR:
                self._send_error()
            case Action.DROP:
                self._drop()
            case Action.ZERO_RETRY_COUNTER:
                self.peer.backoff.retries = 0
            case Action.COUNT_RETRY:
                self.peer.backoff.retries += 1
            case Action.SESSION_UP:
                self.peer.session_up(self)
            case Action.PROCESS_UPDATE:
                # Only from `_update`, which has the message; see there.
                pass

    # ----------------------------------------------------------------- timers

    @property
    def where(self) -> tuple[str, str | None]:
        """The instance and the peer (`TimerOwner`)."""
        return (self.peer.instance.name, self.peer.name)

    def expired(self, timer: Timer, due: float) -> None:
        """Handle a timer that ran out at ``due``."""
        match timer:
            case Timer.CONNECT_RETRY:
                self.fire(Event.CONNECT_RETRY_TIMER_EXPIRES)
            case Timer.KEEPALIVE:
                self.fire(Event.KEEPALIVE_TIMER_EXPIRES)
            case Timer.DELAY_OPEN:
                self.fire(Event.DELAY_OPEN_TIMER_EXPIRES)
            case Timer.IDLE_HOLD:
                self.peer.idle_hold_over()
            case Timer.COLLISION:
                self.release()
            case Timer.SEND_HOLD:
                self.peer.session_end.failed("send hold timer expired: the peer does not read")
                self.fire(Event.SEND_HOLD_TIMER_EXPIRES)
            case Timer.HOLD:
                if self.context.now - due > LATE and not self._late:
                    # The whole process stood still; what the peer sent meanwhile is not read yet.
                    self._late = True
                    self.timers.start(Timer.HOLD, LATE)
                    return
                self.peer.session_end.failed("hold timer expired")
                self.fire(Event.HOLD_TIMER_EXPIRES)

    # -------------------------------------------------------------- transport

    def _connect(self) -> None:
        self._clear()
        self.outgoing = True
        self.connection = self.context.new_connection()
        self.context.connections[self.connection] = self
        peer = self.peer
        config = peer.config
        assert peer.address is not None  # noqa: S101  a peer without address is passive
        self.context.out.append(
            Connect(
                connection=self.connection,
                instance=peer.instance.name,
                peer=config.name,
                address=peer.address,
                port=config.port,
                interface=config.interface,
                local_address=config.local_address,
                local_port=config.local_port,
                ttl=peer.ttl,
                min_ttl=peer.min_ttl,
                password=config.password,
            )
        )

    def attach(
        self, connection: int, local: tuple[str, int], remote: tuple[str, int], *, outgoing: bool
    ) -> None:
        """Take a connection that is up; the event that says so comes next."""
        self._clear()
        self.outgoing = outgoing
        self.connection = connection
        self.context.connections[connection] = self
        self.local = local
        self.remote = remote

    def _drop(self) -> None:
        self.timers.connection_dropped()
        if self.connection is not None:
            self.context.out.append(Close(self.connection))
        self._clear_connection()

    def _clear_connection(self) -> None:
        # What was negotiated stays readable until the next connection.
        self._forget_connection()
        self.queued = 0
        self.withheld = False

    def lost(self) -> None:
        """Handle the end of the transport that nobody here asked for."""
        self._forget_connection()
        self.fire(Event.TCP_CONNECTION_FAILS)

    def _forget_connection(self) -> None:
        if self.connection is not None:
            self.context.connections.pop(self.connection, None)
            self.connection = None

    # -------------------------------------------------------------- messages

    def send(self, message: bytes) -> None:
        """Send one message."""
        if self.connection is not None:
            self.messages_sent += 1
            self.context.out.append(Write(self.connection, (message,)))

    def send_updates(self, parts: tuple[bytes, ...], messages: int, prefixes: int) -> None:
        """Send UPDATEs that were encoded for the whole group."""
        if self.connection is not None:
            self.messages_sent += messages
            self.updates_sent += messages
            self.context.out.append(Write(self.connection, parts, prefixes))

    def notify(self, message: Notification, text: str | None = None) -> None:
        """Send a NOTIFICATION; the caller ends the connection."""
        if self.connection is None:
            return
        if self.negotiated is not None and self.negotiated.graceful_notification:
            message = message.for_graceful_restart()
        self.notified = (message, True)
        self.send(message.encode())
        self.peer.notification(message, sent=True, text=text)

    def _send_error(self) -> None:
        error, self.error = self.error, None
        if error is not None:
            data = error.data[: MAX_MESSAGE - HEADER_SIZE - 2]
            self.notify(Notification(error.code, error.subcode, data), str(error))

    def _cease(self) -> None:
        if not self.peer.silent_stop:
            self.notify(self.peer.cease)

    def release(self) -> None:
        """Go on with a connection whose rival is gone, or did not come up in time."""
        if not self.withheld:
            return
        self.timers.stop(Timer.COLLISION)
        self.withheld = False
        self.send(KEEPALIVE)
        self.timers.restart_keepalive()
        if self._early_keepalive:
            self.fire(Event.KEEPALIVE_MSG)

    def received(self, data: bytes) -> None:
        """Take octets in, and handle each message that is complete.

        What follows the message that ends a connection is not looked at.
        """
        connection = self.connection
        try:
            for kind, bodies in self.stream.messages(data):
                self._late = False
                self._messages(kind, bodies)
                if self.connection is not connection:
                    return
        except NotificationError as error:
            self._fail(Event.BGP_HEADER_ERR, error)

    def _messages(self, kind: int, bodies: Sequence[bytes]) -> None:
        # The fence of every message: an error of ours costs this session, and is reported.
        body = bodies[0]
        try:
            if kind == MessageType.UPDATE:
                self._updates(bodies)
                return
            self.messages_received += 1
            if kind == MessageType.KEEPALIVE:
                if self.withheld:
                    self._early_keepalive = True
                else:
                    self.fire(Event.KEEPALIVE_MSG)
            elif kind == MessageType.OPEN:
                self._open(body)
            elif kind == MessageType.NOTIFICATION:
                self._notification(body)
            else:
                self._route_refresh(body)
        except NotificationError as error:
            self._fail(_ERROR_EVENT.get(ErrorCode(error.code), Event.UPDATE_MSG_ERR), error)
        except Exception as error:  # noqa: BLE001  the documented fence
            self.context.report(
                Fault(
                    instance=self.peer.instance.name,
                    peer=self.peer.name,
                    where=f"handling messages of type {kind}: {len(bodies)}, of"
                    f" {sum(map(len, bodies))} octets",
                    error=f"{type(error).__name__}: {error}",
                )
            )
            self.peer.session_end.failed("internal error while handling a message")
            self.peer.cease = Notification.cease(CeaseSubcode.OUT_OF_RESOURCES)
            self.fire(Event.AUTOMATIC_STOP)

    def _fail(self, event: Event, error: NotificationError) -> None:
        self.error = error
        self.peer.session_end.failed(
            error.detail if error.code == ErrorCode.OPEN_MESSAGE else str(error)
        )
        self.fire(event)

    def _updates(self, bodies: Sequence[bytes]) -> None:
        if self.state is not State.ESTABLISHED:
            self.messages_received += 1
            self.peer.session_end.failed(f"UPDATE received in {self.state}")
            # Which ends the connection, in every other state.
            self.fire(Event.UPDATE_MSG)
            return
        # Event 27 in Established leads to Established: the table's two actions, done directly,
        # because this is where a full table passes through.
        now = self.context.now
        if self._heard != now:
            self._heard = now
            self.timers.restart_hold()
        connection = self.connection
        peer = self.peer
        position = 0
        while position < len(bodies) and self.connection is connection:
            usual = peer.usual_updates(self, bodies, position)
            if not usual:
                self.messages_received += 1
                self.updates_received += 1
                peer.update(self, bodies[position])
                position += 1
                continue
            self.messages_received += usual
            self.updates_received += usual
            position += usual

    def _open(self, body: bytes) -> None:
        if self.state is State.OPEN_SENT or self.timers.deadline(Timer.DELAY_OPEN) is not None:
            self.open_received = body
            self.peer.opened(self, body)
        else:
            self.peer.session_end.failed(f"OPEN received in {self.state}")
            self.fire(Event.BGP_OPEN)

    def _notification(self, body: bytes) -> None:
        message = Notification.decode(body)
        self.notified = (message, False)
        self.peer.notification(message, sent=False)
        if message.is_version_error:
            self.fire(Event.NOTIF_MSG_VER_ERR)
        else:
            self.fire(Event.NOTIF_MSG)

    def _route_refresh(self, body: bytes) -> None:
        if self.state is not State.ESTABLISHED:
            # RFC 2918 gives no event of its own; it fits the state as little as an UPDATE does.
            self.peer.session_end.failed(f"ROUTE-REFRESH received in {self.state}")
            self.fire(Event.UPDATE_MSG)
            return
        self.timers.restart_hold()
        self.peer.refresh(self, body)


_ERROR_EVENT: Final = {
    ErrorCode.MESSAGE_HEADER: Event.BGP_HEADER_ERR,
    ErrorCode.OPEN_MESSAGE: Event.BGP_OPEN_MSG_ERR,
    ErrorCode.UPDATE_MESSAGE: Event.UPDATE_MSG_ERR,
}
