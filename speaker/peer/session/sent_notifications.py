"""The NOTIFICATIONs that a session sends on its own: of the state machine, and of errors. Pure.

A Cease is a decision of the peer, or of the operator, and is not made here.
"""

from __future__ import annotations

from typing import Final

from speaker.errors import NotificationError
from speaker.fsm import Action, State
from speaker.iana import ErrorCode, FsmSubcode
from speaker.message import HEADER_SIZE, Notification
from speaker.negotiated import MAX_MESSAGE

FSM_SUBCODE: Final = {
    State.OPEN_SENT: FsmSubcode.UNEXPECTED_IN_OPEN_SENT,
    State.OPEN_CONFIRM: FsmSubcode.UNEXPECTED_IN_OPEN_CONFIRM,
    State.ESTABLISHED: FsmSubcode.UNEXPECTED_IN_ESTABLISHED,
}
"""RFC 6608 section 3; no other state has one."""
EXPIRY_CODE: Final = {
    Action.SEND_HOLD_EXPIRED: ErrorCode.HOLD_TIMER_EXPIRED,
    Action.SEND_SEND_HOLD_EXPIRED: ErrorCode.SEND_HOLD_TIMER_EXPIRED,
}
MAX_ERROR_DATA: Final = MAX_MESSAGE - HEADER_SIZE - 2
"""Octets of data that fit into a NOTIFICATION."""


def notification_for(action: Action, state: State) -> Notification | None:
    """Return the message of an action, of a session that was in ``state``; None if it has none."""
    if action is Action.SEND_FSM_ERROR:
        return Notification(ErrorCode.FSM, FSM_SUBCODE.get(state, 0))
    code = EXPIRY_CODE.get(action)
    return None if code is None else Notification(code)


def notification_of_error(error: NotificationError) -> Notification:
    """Return the message for an error in a received message; its data is cut to what fits."""
    return Notification(error.code, error.subcode, error.data[:MAX_ERROR_DATA])
