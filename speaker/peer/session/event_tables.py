"""Tables of a session: the events of errors, and of timers that expire."""

from __future__ import annotations

from typing import Final

from speaker.fsm import Event
from speaker.iana import ErrorCode
from speaker.peer.engine_context import Timer

ERROR_EVENT: Final = {
    ErrorCode.MESSAGE_HEADER: Event.BGP_HEADER_ERR,
    ErrorCode.OPEN_MESSAGE: Event.BGP_OPEN_MSG_ERR,
    ErrorCode.UPDATE_MESSAGE: Event.UPDATE_MSG_ERR,
}
EXPIRY_EVENT: Final = {
    Timer.CONNECT_RETRY: Event.CONNECT_RETRY_TIMER_EXPIRES,
    Timer.KEEPALIVE: Event.KEEPALIVE_TIMER_EXPIRES,
    Timer.DELAY_OPEN: Event.DELAY_OPEN_TIMER_EXPIRES,
}
