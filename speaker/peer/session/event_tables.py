"""Tables of a session: timers, events, error codes and subcodes of the state machine's actions."""

from __future__ import annotations

from typing import Final

from speaker.fsm import Action, Event, State
from speaker.iana import ErrorCode, FsmSubcode
from speaker.message import HEADER_SIZE
from speaker.negotiated import MAX_MESSAGE
from speaker.peer.engine_context import Timer

FSM_SUBCODE: Final = {
    State.OPEN_SENT: FsmSubcode.UNEXPECTED_IN_OPEN_SENT,
    State.OPEN_CONFIRM: FsmSubcode.UNEXPECTED_IN_OPEN_CONFIRM,
    State.ESTABLISHED: FsmSubcode.UNEXPECTED_IN_ESTABLISHED,
}
ERROR_EVENT: Final = {
    ErrorCode.MESSAGE_HEADER: Event.BGP_HEADER_ERR,
    ErrorCode.OPEN_MESSAGE: Event.BGP_OPEN_MSG_ERR,
    ErrorCode.UPDATE_MESSAGE: Event.UPDATE_MSG_ERR,
}
STOPS_TIMER: Final = {
    Action.STOP_CONNECT_RETRY: Timer.CONNECT_RETRY,
    Action.STOP_DELAY_OPEN: Timer.DELAY_OPEN,
    Action.STOP_IDLE_HOLD: Timer.IDLE_HOLD,
}
EXPIRY_EVENT: Final = {
    Timer.CONNECT_RETRY: Event.CONNECT_RETRY_TIMER_EXPIRES,
    Timer.KEEPALIVE: Event.KEEPALIVE_TIMER_EXPIRES,
    Timer.DELAY_OPEN: Event.DELAY_OPEN_TIMER_EXPIRES,
}
EXPIRY_CODE: Final = {
    Action.SEND_HOLD_EXPIRED: ErrorCode.HOLD_TIMER_EXPIRED,
    Action.SEND_SEND_HOLD_EXPIRED: ErrorCode.SEND_HOLD_TIMER_EXPIRED,
}
MAX_ERROR_DATA: Final = MAX_MESSAGE - HEADER_SIZE - 2
"""Octets of data that fit into a NOTIFICATION."""
