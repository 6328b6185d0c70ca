"""The finite state machine of one connection: the table of RFC 4271 section 8.2.2, with RFC 9687.

Pure: state and event in, next state and actions out. `speaker.peer` performs the actions. Events have
the RFC's names and numbers, and the table has an entry for every state and event.

Intended deviations from RFC 4271:

* Connect, event 18 (TcpConnectionFails): the RFC moves to Idle unless the DelayOpenTimer runs, and Idle
  rejects connections. If only one of two speakers can reach the other, they would never meet; so the
  next state is Active, until the ConnectRetryTimer expires, as the RFC has it with DelayOpen.
* A message that is unexpected in a state is answered with the subcodes of RFC 6608.
* Errors before the peer's OPEN are answered with a NOTIFICATION if there is a connection (the optional
  attribute SendNOTIFICATIONwithoutOPEN is TRUE).
"""

from __future__ import annotations

import enum
from typing import Final, NamedTuple


class State(enum.IntEnum):
    """RFC 4271 section 8.2.2; the value is that of the BGP-4 MIB (RFC 4273)."""

    IDLE = 1
    CONNECT = 2
    ACTIVE = 3
    OPEN_SENT = 4
    OPEN_CONFIRM = 5
    ESTABLISHED = 6

    def __str__(self) -> str:
        """Return the state's name in the RFC."""
        return _STATE_NAMES[self]


_STATE_NAMES: Final = {
    State.IDLE: "Idle",
    State.CONNECT: "Connect",
    State.ACTIVE: "Active",
    State.OPEN_SENT: "OpenSent",
    State.OPEN_CONFIRM: "OpenConfirm",
    State.ESTABLISHED: "Established",
}


class Event(enum.IntEnum):
    """RFC 4271 section 8.1; the values are the RFC's event numbers."""

    MANUAL_START = 1
    MANUAL_STOP = 2
    AUTOMATIC_START = 3
    MANUAL_START_WITH_PASSIVE_TCP_ESTABLISHMENT = 4
    AUTOMATIC_START_WITH_PASSIVE_TCP_ESTABLISHMENT = 5
    AUTOMATIC_START_WITH_DAMP_PEER_OSCILLATIONS = 6
    AUTOMATIC_START_WITH_DAMP_PEER_OSCILLATIONS_AND_PASSIVE_TCP_ESTABLISHMENT = 7
    AUTOMATIC_STOP = 8
    CONNECT_RETRY_TIMER_EXPIRES = 9
    HOLD_TIMER_EXPIRES = 10
    KEEPALIVE_TIMER_EXPIRES = 11
    DELAY_OPEN_TIMER_EXPIRES = 12
    IDLE_HOLD_TIMER_EXPIRES = 13
    TCP_CONNECTION_VALID = 14
    TCP_CR_INVALID = 15
    TCP_CR_ACKED = 16
    TCP_CONNECTION_CONFIRMED = 17
    TCP_CONNECTION_FAILS = 18
    BGP_OPEN = 19
    BGP_OPEN_WITH_DELAY_OPEN_TIMER_RUNNING = 20
    BGP_HEADER_ERR = 21
    BGP_OPEN_MSG_ERR = 22
    OPEN_COLLISION_DUMP = 23
    NOTIF_MSG_VER_ERR = 24
    NOTIF_MSG = 25
    KEEPALIVE_MSG = 26
    UPDATE_MSG = 27
    UPDATE_MSG_ERR = 28
    SEND_HOLD_TIMER_EXPIRES = 29
    """RFC 9687 section 3.2."""


class Action(enum.Enum):
    """The session's actions for a transition, in the order given."""

    START_CONNECT_RETRY = enum.auto()
    STOP_CONNECT_RETRY = enum.auto()
    START_DELAY_OPEN = enum.auto()
    STOP_DELAY_OPEN = enum.auto()
    START_IDLE_HOLD = enum.auto()
    """The IdleHoldTimer of peer oscillation damping, before the automatic start."""
    STOP_IDLE_HOLD = enum.auto()
    START_LARGE_HOLD = enum.auto()
    """The HoldTimer with a large value (4 minutes suggested), until the peer's OPEN is received."""
    START_NEGOTIATED_TIMERS = enum.auto()
    """HoldTimer and KeepaliveTimer with the negotiated times; neither with a hold time of zero."""
    RESTART_HOLD = enum.auto()
    RESTART_KEEPALIVE = enum.auto()
    INITIATE_CONNECT = enum.auto()
    SEND_OPEN = enum.auto()
    SEND_KEEPALIVE = enum.auto()
    SEND_CEASE = enum.auto()
    """With the subcode of the reason (RFC 4486)."""
    SEND_HOLD_EXPIRED = enum.auto()
    SEND_SEND_HOLD_EXPIRED = enum.auto()
    """To a peer that does not read: in case that it reads again (RFC 9687 section 3)."""
    SEND_FSM_ERROR = enum.auto()
    """With the subcode of the state (RFC 6608)."""
    SEND_ERROR = enum.auto()
    """With code, subcode and data of the malformed message."""
    DROP = enum.auto()
    """Drop the TCP connection and release all resources of the session, routes included."""
    ZERO_RETRY_COUNTER = enum.auto()
    COUNT_RETRY = enum.auto()
    SESSION_UP = enum.auto()
    PROCESS_UPDATE = enum.auto()


class Transition(NamedTuple):
    """The next state, and the actions before it is entered."""

    state: State
    actions: tuple[Action, ...] = ()


_A = Action
_E = Event
_S = State

_STARTS: Final = (
    _E.MANUAL_START,
    _E.AUTOMATIC_START,
    _E.AUTOMATIC_START_WITH_DAMP_PEER_OSCILLATIONS,
)
_PASSIVE_STARTS: Final = (
    _E.MANUAL_START_WITH_PASSIVE_TCP_ESTABLISHMENT,
    _E.AUTOMATIC_START_WITH_PASSIVE_TCP_ESTABLISHMENT,
    _E.AUTOMATIC_START_WITH_DAMP_PEER_OSCILLATIONS_AND_PASSIVE_TCP_ESTABLISHMENT,
)
_ALL_STARTS: Final = (*_STARTS, *_PASSIVE_STARTS)

_ACTIVE_OPEN: Final = Transition(
    _S.CONNECT,
    (_A.STOP_IDLE_HOLD, _A.ZERO_RETRY_COUNTER, _A.START_CONNECT_RETRY, _A.INITIATE_CONNECT),
)
_PASSIVE_OPEN: Final = Transition(_S.ACTIVE, (_A.STOP_IDLE_HOLD, _A.ZERO_RETRY_COUNTER))
_STAY_IDLE: Final = Transition(_S.IDLE)
# Events 6, 7 and 13 belong to damping, which depends on the ConnectRetryCounter: it is kept.
_DAMPED_OPEN: Final = Transition(
    _S.CONNECT, (_A.STOP_IDLE_HOLD, _A.START_CONNECT_RETRY, _A.INITIATE_CONNECT)
)
_DAMPED_PASSIVE_OPEN: Final = Transition(_S.ACTIVE, (_A.STOP_IDLE_HOLD,))

_OPEN_SENT: Final = Transition(
    _S.OPEN_SENT, (_A.STOP_CONNECT_RETRY, _A.STOP_DELAY_OPEN, _A.SEND_OPEN, _A.START_LARGE_HOLD)
)
_STOP_UNCONNECTED: Final = Transition(
    _S.IDLE, (_A.STOP_DELAY_OPEN, _A.ZERO_RETRY_COUNTER, _A.STOP_CONNECT_RETRY, _A.DROP)
)
_FAIL_UNCONNECTED: Final = Transition(
    _S.IDLE,
    (_A.STOP_CONNECT_RETRY, _A.STOP_DELAY_OPEN, _A.DROP, _A.COUNT_RETRY, _A.START_IDLE_HOLD),
)
_ERROR_UNCONNECTED: Final = Transition(
    _S.IDLE,
    (
        _A.SEND_ERROR,
        _A.STOP_CONNECT_RETRY,
        _A.STOP_DELAY_OPEN,
        _A.DROP,
        _A.COUNT_RETRY,
        _A.START_IDLE_HOLD,
    ),
)
_OPEN_DELAYED: Final = Transition(
    _S.OPEN_CONFIRM,
    (
        _A.STOP_CONNECT_RETRY,
        _A.STOP_DELAY_OPEN,
        _A.SEND_OPEN,
        _A.SEND_KEEPALIVE,
        _A.START_NEGOTIATED_TIMERS,
    ),
)


def _end(*notify: Action) -> Transition:
    """Return the transition to Idle after an error: notify, drop, count the retry, idle hold."""
    return Transition(
        _S.IDLE,
        (*notify, _A.STOP_CONNECT_RETRY, _A.DROP, _A.COUNT_RETRY, _A.START_IDLE_HOLD),
    )


_MANUAL_END: Final = Transition(
    _S.IDLE, (_A.SEND_CEASE, _A.STOP_CONNECT_RETRY, _A.DROP, _A.ZERO_RETRY_COUNTER)
)
_AUTOMATIC_END: Final = _end(_A.SEND_CEASE)
_HOLD_END: Final = _end(_A.SEND_HOLD_EXPIRED)
_SEND_HOLD_END: Final = _end(_A.SEND_SEND_HOLD_EXPIRED)
_FSM_END: Final = _end(_A.SEND_FSM_ERROR)
_ERROR_END: Final = _end(_A.SEND_ERROR)
_SILENT_END: Final = _end()
# RFC 4271 does not increment the ConnectRetryCounter for a version error (event 24).
_VERSION_END: Final = Transition(_S.IDLE, (_A.STOP_CONNECT_RETRY, _A.DROP, _A.START_IDLE_HOLD))

TABLE: Final[dict[State, dict[Event, Transition]]] = {
    _S.IDLE: {
        _E.MANUAL_START: _ACTIVE_OPEN,
        _E.MANUAL_STOP: Transition(_S.IDLE, (_A.STOP_IDLE_HOLD,)),
        _E.AUTOMATIC_START: _ACTIVE_OPEN,
        _E.MANUAL_START_WITH_PASSIVE_TCP_ESTABLISHMENT: _PASSIVE_OPEN,
        _E.AUTOMATIC_START_WITH_PASSIVE_TCP_ESTABLISHMENT: _PASSIVE_OPEN,
        _E.AUTOMATIC_START_WITH_DAMP_PEER_OSCILLATIONS: _DAMPED_OPEN,
        _E.AUTOMATIC_START_WITH_DAMP_PEER_OSCILLATIONS_AND_PASSIVE_TCP_ESTABLISHMENT: (
            _DAMPED_PASSIVE_OPEN
        ),
        _E.AUTOMATIC_STOP: Transition(_S.IDLE, (_A.STOP_IDLE_HOLD,)),
        # RFC 4271: any other event does not change the Idle state.
        _E.CONNECT_RETRY_TIMER_EXPIRES: _STAY_IDLE,
        _E.HOLD_TIMER_EXPIRES: _STAY_IDLE,
        _E.KEEPALIVE_TIMER_EXPIRES: _STAY_IDLE,
        _E.DELAY_OPEN_TIMER_EXPIRES: _STAY_IDLE,
        # The peer answers it with event 6 or 7, by its configuration.
        _E.IDLE_HOLD_TIMER_EXPIRES: _STAY_IDLE,
        _E.TCP_CONNECTION_VALID: Transition(_S.IDLE, (_A.DROP,)),
        _E.TCP_CR_INVALID: Transition(_S.IDLE, (_A.DROP,)),
        _E.TCP_CR_ACKED: Transition(_S.IDLE, (_A.DROP,)),
        _E.TCP_CONNECTION_CONFIRMED: Transition(_S.IDLE, (_A.DROP,)),
        _E.TCP_CONNECTION_FAILS: _STAY_IDLE,
        _E.BGP_OPEN: _STAY_IDLE,
        _E.BGP_OPEN_WITH_DELAY_OPEN_TIMER_RUNNING: _STAY_IDLE,
        _E.BGP_HEADER_ERR: _STAY_IDLE,
        _E.BGP_OPEN_MSG_ERR: _STAY_IDLE,
        _E.OPEN_COLLISION_DUMP: _STAY_IDLE,
        _E.NOTIF_MSG_VER_ERR: _STAY_IDLE,
        _E.NOTIF_MSG: _STAY_IDLE,
        _E.KEEPALIVE_MSG: _STAY_IDLE,
        _E.UPDATE_MSG: _STAY_IDLE,
        _E.UPDATE_MSG_ERR: _STAY_IDLE,
        _E.SEND_HOLD_TIMER_EXPIRES: _STAY_IDLE,
    },
    _S.CONNECT: {
        **dict.fromkeys(_ALL_STARTS, Transition(_S.CONNECT)),
        _E.MANUAL_STOP: _STOP_UNCONNECTED,
        _E.AUTOMATIC_STOP: _FAIL_UNCONNECTED,
        _E.CONNECT_RETRY_TIMER_EXPIRES: Transition(
            _S.CONNECT,
            (_A.DROP, _A.STOP_DELAY_OPEN, _A.START_CONNECT_RETRY, _A.INITIATE_CONNECT),
        ),
        _E.HOLD_TIMER_EXPIRES: _FAIL_UNCONNECTED,
        _E.KEEPALIVE_TIMER_EXPIRES: _FAIL_UNCONNECTED,
        _E.DELAY_OPEN_TIMER_EXPIRES: _OPEN_SENT,
        _E.IDLE_HOLD_TIMER_EXPIRES: _FAIL_UNCONNECTED,
        _E.TCP_CONNECTION_VALID: Transition(_S.CONNECT),
        _E.TCP_CR_INVALID: Transition(_S.CONNECT),
        _E.TCP_CR_ACKED: _OPEN_SENT,
        _E.TCP_CONNECTION_CONFIRMED: _OPEN_SENT,
        _E.TCP_CONNECTION_FAILS: Transition(
            _S.ACTIVE, (_A.STOP_DELAY_OPEN, _A.DROP, _A.COUNT_RETRY, _A.START_CONNECT_RETRY)
        ),
        _E.BGP_OPEN: _FAIL_UNCONNECTED,
        _E.BGP_OPEN_WITH_DELAY_OPEN_TIMER_RUNNING: _OPEN_DELAYED,
        _E.BGP_HEADER_ERR: _ERROR_UNCONNECTED,
        _E.BGP_OPEN_MSG_ERR: _ERROR_UNCONNECTED,
        _E.OPEN_COLLISION_DUMP: _FAIL_UNCONNECTED,
        _E.NOTIF_MSG_VER_ERR: _FAIL_UNCONNECTED,
        _E.NOTIF_MSG: _FAIL_UNCONNECTED,
        _E.KEEPALIVE_MSG: _FAIL_UNCONNECTED,
        _E.UPDATE_MSG: _FAIL_UNCONNECTED,
        _E.UPDATE_MSG_ERR: _FAIL_UNCONNECTED,
        _E.SEND_HOLD_TIMER_EXPIRES: _FAIL_UNCONNECTED,
    },
    _S.ACTIVE: {
        **dict.fromkeys(_ALL_STARTS, Transition(_S.ACTIVE)),
        _E.MANUAL_STOP: _STOP_UNCONNECTED,
        _E.AUTOMATIC_STOP: _FAIL_UNCONNECTED,
        _E.CONNECT_RETRY_TIMER_EXPIRES: Transition(
            _S.CONNECT, (_A.START_CONNECT_RETRY, _A.INITIATE_CONNECT)
        ),
        _E.HOLD_TIMER_EXPIRES: _FAIL_UNCONNECTED,
        _E.KEEPALIVE_TIMER_EXPIRES: _FAIL_UNCONNECTED,
        _E.DELAY_OPEN_TIMER_EXPIRES: _OPEN_SENT,
        _E.IDLE_HOLD_TIMER_EXPIRES: _FAIL_UNCONNECTED,
        _E.TCP_CONNECTION_VALID: Transition(_S.ACTIVE),
        _E.TCP_CR_INVALID: Transition(_S.ACTIVE),
        _E.TCP_CR_ACKED: _OPEN_SENT,
        _E.TCP_CONNECTION_CONFIRMED: _OPEN_SENT,
        _E.TCP_CONNECTION_FAILS: _FAIL_UNCONNECTED,
        _E.BGP_OPEN: _FAIL_UNCONNECTED,
        _E.BGP_OPEN_WITH_DELAY_OPEN_TIMER_RUNNING: _OPEN_DELAYED,
        _E.BGP_HEADER_ERR: _ERROR_UNCONNECTED,
        _E.BGP_OPEN_MSG_ERR: _ERROR_UNCONNECTED,
        _E.OPEN_COLLISION_DUMP: _FAIL_UNCONNECTED,
        _E.NOTIF_MSG_VER_ERR: _FAIL_UNCONNECTED,
        _E.NOTIF_MSG: _FAIL_UNCONNECTED,
        _E.KEEPALIVE_MSG: _FAIL_UNCONNECTED,
        _E.UPDATE_MSG: _FAIL_UNCONNECTED,
        _E.UPDATE_MSG_ERR: _FAIL_UNCONNECTED,
        _E.SEND_HOLD_TIMER_EXPIRES: _FAIL_UNCONNECTED,
    },
    _S.OPEN_SENT: {
        **dict.fromkeys(_ALL_STARTS, Transition(_S.OPEN_SENT)),
        _E.MANUAL_STOP: _MANUAL_END,
        _E.AUTOMATIC_STOP: _AUTOMATIC_END,
        _E.CONNECT_RETRY_TIMER_EXPIRES: _FSM_END,
        _E.HOLD_TIMER_EXPIRES: _HOLD_END,
        _E.KEEPALIVE_TIMER_EXPIRES: _FSM_END,
        _E.DELAY_OPEN_TIMER_EXPIRES: _FSM_END,
        _E.IDLE_HOLD_TIMER_EXPIRES: _FSM_END,
        # A second connection has a state machine of its own: no effect of events 14, 16 and 17.
        _E.TCP_CONNECTION_VALID: Transition(_S.OPEN_SENT),
        _E.TCP_CR_INVALID: Transition(_S.OPEN_SENT),
        _E.TCP_CR_ACKED: Transition(_S.OPEN_SENT),
        _E.TCP_CONNECTION_CONFIRMED: Transition(_S.OPEN_SENT),
        _E.TCP_CONNECTION_FAILS: Transition(
            _S.ACTIVE, (_A.DROP, _A.COUNT_RETRY, _A.START_CONNECT_RETRY)
        ),
        _E.BGP_OPEN: Transition(
            _S.OPEN_CONFIRM,
            (
                _A.STOP_DELAY_OPEN,
                _A.STOP_CONNECT_RETRY,
                _A.SEND_KEEPALIVE,
                _A.START_NEGOTIATED_TIMERS,
            ),
        ),
        _E.BGP_OPEN_WITH_DELAY_OPEN_TIMER_RUNNING: _FSM_END,
        _E.BGP_HEADER_ERR: _ERROR_END,
        _E.BGP_OPEN_MSG_ERR: _ERROR_END,
        _E.OPEN_COLLISION_DUMP: _AUTOMATIC_END,
        _E.NOTIF_MSG_VER_ERR: _VERSION_END,
        # The RFC lists event 25 among the FSM errors, but a NOTIFICATION is never answered with a
        # NOTIFICATION (RFC 4271 section 6.4).
        _E.NOTIF_MSG: _SILENT_END,
        _E.KEEPALIVE_MSG: _FSM_END,
        _E.UPDATE_MSG: _FSM_END,
        _E.UPDATE_MSG_ERR: _FSM_END,
        _E.SEND_HOLD_TIMER_EXPIRES: _FSM_END,
    },
    _S.OPEN_CONFIRM: {
        **dict.fromkeys(_ALL_STARTS, Transition(_S.OPEN_CONFIRM)),
        _E.MANUAL_STOP: _MANUAL_END,
        _E.AUTOMATIC_STOP: _AUTOMATIC_END,
        _E.CONNECT_RETRY_TIMER_EXPIRES: _FSM_END,
        _E.HOLD_TIMER_EXPIRES: _HOLD_END,
        _E.KEEPALIVE_TIMER_EXPIRES: Transition(
            _S.OPEN_CONFIRM, (_A.SEND_KEEPALIVE, _A.RESTART_KEEPALIVE)
        ),
        _E.DELAY_OPEN_TIMER_EXPIRES: _FSM_END,
        _E.IDLE_HOLD_TIMER_EXPIRES: _FSM_END,
        _E.TCP_CONNECTION_VALID: Transition(_S.OPEN_CONFIRM),
        _E.TCP_CR_INVALID: Transition(_S.OPEN_CONFIRM),
        _E.TCP_CR_ACKED: Transition(_S.OPEN_CONFIRM),
        _E.TCP_CONNECTION_CONFIRMED: Transition(_S.OPEN_CONFIRM),
        _E.TCP_CONNECTION_FAILS: _SILENT_END,
        # A second OPEN on the same connection; a collision has its OPEN on another connection.
        _E.BGP_OPEN: _FSM_END,
        _E.BGP_OPEN_WITH_DELAY_OPEN_TIMER_RUNNING: _FSM_END,
        _E.BGP_HEADER_ERR: _ERROR_END,
        _E.BGP_OPEN_MSG_ERR: _ERROR_END,
        _E.OPEN_COLLISION_DUMP: _AUTOMATIC_END,
        _E.NOTIF_MSG_VER_ERR: _VERSION_END,
        _E.NOTIF_MSG: _SILENT_END,
        _E.KEEPALIVE_MSG: Transition(_S.ESTABLISHED, (_A.RESTART_HOLD, _A.SESSION_UP)),
        _E.UPDATE_MSG: _FSM_END,
        _E.UPDATE_MSG_ERR: _FSM_END,
        _E.SEND_HOLD_TIMER_EXPIRES: _FSM_END,
    },
    _S.ESTABLISHED: {
        **dict.fromkeys(_ALL_STARTS, Transition(_S.ESTABLISHED)),
        _E.MANUAL_STOP: _MANUAL_END,
        _E.AUTOMATIC_STOP: _AUTOMATIC_END,
        _E.CONNECT_RETRY_TIMER_EXPIRES: _FSM_END,
        _E.HOLD_TIMER_EXPIRES: _HOLD_END,
        _E.KEEPALIVE_TIMER_EXPIRES: Transition(
            _S.ESTABLISHED, (_A.SEND_KEEPALIVE, _A.RESTART_KEEPALIVE)
        ),
        _E.DELAY_OPEN_TIMER_EXPIRES: _FSM_END,
        _E.IDLE_HOLD_TIMER_EXPIRES: _FSM_END,
        _E.TCP_CONNECTION_VALID: Transition(_S.ESTABLISHED),
        _E.TCP_CR_INVALID: Transition(_S.ESTABLISHED),
        _E.TCP_CR_ACKED: Transition(_S.ESTABLISHED),
        _E.TCP_CONNECTION_CONFIRMED: Transition(_S.ESTABLISHED),
        _E.TCP_CONNECTION_FAILS: _SILENT_END,
        _E.BGP_OPEN: _FSM_END,
        _E.BGP_OPEN_WITH_DELAY_OPEN_TIMER_RUNNING: _FSM_END,
        _E.BGP_HEADER_ERR: _ERROR_END,
        _E.BGP_OPEN_MSG_ERR: _ERROR_END,
        _E.OPEN_COLLISION_DUMP: _AUTOMATIC_END,
        _E.NOTIF_MSG_VER_ERR: _VERSION_END,
        _E.NOTIF_MSG: _SILENT_END,
        _E.KEEPALIVE_MSG: Transition(_S.ESTABLISHED, (_A.RESTART_HOLD,)),
        _E.UPDATE_MSG: Transition(_S.ESTABLISHED, (_A.RESTART_HOLD, _A.PROCESS_UPDATE)),
        _E.UPDATE_MSG_ERR: _ERROR_END,
        _E.SEND_HOLD_TIMER_EXPIRES: _SEND_HOLD_END,
    },
}


_DELAYED: Final = (_A.STOP_CONNECT_RETRY, _A.START_DELAY_OPEN)
_DELAYED_VERSION_END: Final = Transition(
    _S.IDLE, (_A.STOP_CONNECT_RETRY, _A.STOP_DELAY_OPEN, _A.DROP, _A.START_IDLE_HOLD)
)
DELAY_OPEN_TABLE: Final[dict[State, dict[Event, Transition]]] = {
    state: {
        _E.TCP_CR_ACKED: Transition(state, _DELAYED),
        _E.TCP_CONNECTION_CONFIRMED: Transition(state, _DELAYED),
        # While the DelayOpenTimer runs, a version error is no retry.
        _E.NOTIF_MSG_VER_ERR: _DELAYED_VERSION_END,
    }
    for state in (_S.CONNECT, _S.ACTIVE)
}
"""The entries that differ with the DelayOpen attribute: a new connection waits for the peer's OPEN."""


def step(state: State, event: Event, *, delay_open: bool = False) -> Transition:
    """Return the transition of an event in a state; total over all states and events."""
    if delay_open:
        delayed = DELAY_OPEN_TABLE.get(state, {}).get(event)
        if delayed is not None:
            return delayed
    return TABLE[state][event]
