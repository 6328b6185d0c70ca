"""The NOTIFICATIONs of the state machine's actions, and of errors in received messages."""

from __future__ import annotations

import pytest

from speaker.errors import NotificationError
from speaker.fsm import Action, State
from speaker.iana import ErrorCode, FsmSubcode
from speaker.message import Notification
from speaker.peer.session.sent_notifications import notification_for, notification_of_error


@pytest.mark.parametrize(
    ("state", "subcode"),
    [
        (State.CONNECT, 0),
        (State.OPEN_SENT, FsmSubcode.UNEXPECTED_IN_OPEN_SENT),
        (State.OPEN_CONFIRM, FsmSubcode.UNEXPECTED_IN_OPEN_CONFIRM),
        (State.ESTABLISHED, FsmSubcode.UNEXPECTED_IN_ESTABLISHED),
    ],
)
def test_rfc6608_3_an_fsm_error_has_the_subcode_of_the_state(state: State, subcode: int) -> None:
    expected = Notification(ErrorCode.FSM, subcode)
    assert notification_for(Action.SEND_FSM_ERROR, state) == expected


def test_a_timer_that_expired_has_its_error_code() -> None:
    established = State.ESTABLISHED
    assert notification_for(Action.SEND_HOLD_EXPIRED, established) == Notification(4)
    assert notification_for(Action.SEND_SEND_HOLD_EXPIRED, established) == Notification(8)


@pytest.mark.parametrize("action", [Action.SEND_KEEPALIVE, Action.SEND_CEASE, Action.DROP])
def test_no_other_action_has_a_message_of_its_own(action: Action) -> None:
    assert notification_for(action, State.ESTABLISHED) is None


def test_the_data_of_an_error_is_cut_to_what_a_message_has_room_for() -> None:
    error = NotificationError(ErrorCode.UPDATE_MESSAGE, 5, bytes(5000))
    message = notification_of_error(error)
    assert (message.code, message.subcode) == (ErrorCode.UPDATE_MESSAGE, 5)
    assert len(message.encode()) == 4096
