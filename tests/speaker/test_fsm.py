"""The table of RFC 4271 section 8.2.2, pair by pair."""

from __future__ import annotations

import pytest

from speaker.fsm import TABLE, Action, Event, State, step

UNCONNECTED = (State.CONNECT, State.ACTIVE)
CONNECTED = (State.OPEN_SENT, State.OPEN_CONFIRM, State.ESTABLISHED)
STARTS = [event for event in Event if "START" in event.name]


def test_the_events_have_the_numbers_of_rfc_4271_section_8_1() -> None:
    assert [event.value for event in Event] == list(range(1, 30))


def test_the_states_have_the_names_of_the_rfc() -> None:
    assert [str(state) for state in State] == [
        "Idle", "Connect", "Active", "OpenSent", "OpenConfirm", "Established",
    ]  # fmt: skip


@pytest.mark.parametrize("state", State)
def test_every_event_has_a_transition_in_every_state(state: State) -> None:
    """What each pair leads to is in `test_fsm_table`; here and below is what holds of all."""
    assert set(TABLE[state]) == set(Event)
    for event in Event:
        assert step(state, event) is TABLE[state][event]


@pytest.mark.parametrize("state", [state for state in State if state is not State.IDLE])
def test_a_connection_that_ends_in_idle_is_dropped(state: State) -> None:
    for event in Event:
        transition = step(state, event)
        assert transition.state is not State.IDLE or Action.DROP in transition.actions, event


@pytest.mark.parametrize("state", State)
def test_at_most_one_notification_is_sent_and_before_the_connection_is_dropped(
    state: State,
) -> None:
    notifying = {
        Action.SEND_CEASE,
        Action.SEND_ERROR,
        Action.SEND_FSM_ERROR,
        Action.SEND_HOLD_EXPIRED,
        Action.SEND_SEND_HOLD_EXPIRED,
    }
    for event in Event:
        actions = step(state, event).actions
        sent = [action for action in actions if action in notifying]
        assert len(sent) <= 1, event
        if sent:
            assert actions.index(sent[0]) < actions.index(Action.DROP), event


@pytest.mark.parametrize("state", State)
@pytest.mark.parametrize("event", [Event.NOTIF_MSG, Event.NOTIF_MSG_VER_ERR])
def test_a_notification_is_never_answered(state: State, event: Event) -> None:
    assert not any(action.name.startswith("SEND") for action in step(state, event).actions)


@pytest.mark.parametrize("event", [e for e in Event if e not in STARTS])
def test_idle_ignores_events_other_than_starts(event: Event) -> None:
    transition = step(State.IDLE, event)
    assert transition.state is State.IDLE
    assert not {Action.SEND_OPEN, Action.INITIATE_CONNECT} & set(transition.actions)


@pytest.mark.parametrize("state", [s for s in State if s is not State.IDLE])
@pytest.mark.parametrize("event", STARTS)
def test_a_start_is_ignored_outside_of_idle(state: State, event: Event) -> None:
    assert step(state, event) == (state, ())


@pytest.mark.parametrize("state", CONNECTED)
def test_the_hold_timer_ends_a_connection_with_its_own_code(state: State) -> None:
    transition = step(state, Event.HOLD_TIMER_EXPIRES)
    assert transition.state is State.IDLE
    assert Action.SEND_HOLD_EXPIRED in transition.actions


@pytest.mark.parametrize("state", CONNECTED)
@pytest.mark.parametrize("event", [Event.BGP_HEADER_ERR, Event.BGP_OPEN_MSG_ERR])
def test_a_malformed_message_is_answered_with_its_error(state: State, event: Event) -> None:
    assert Action.SEND_ERROR in step(state, event).actions


@pytest.mark.parametrize(
    ("state", "event"),
    [
        (State.OPEN_SENT, Event.KEEPALIVE_MSG),
        (State.OPEN_SENT, Event.UPDATE_MSG),
        (State.OPEN_CONFIRM, Event.BGP_OPEN),
        (State.OPEN_CONFIRM, Event.UPDATE_MSG),
        (State.ESTABLISHED, Event.BGP_OPEN),
    ],
)
def test_a_message_that_does_not_fit_the_state_is_an_fsm_error(state: State, event: Event) -> None:
    transition = step(state, event)
    assert transition.state is State.IDLE
    assert Action.SEND_FSM_ERROR in transition.actions


def test_the_active_transitions_to_established() -> None:
    state = State.IDLE
    for event in (
        Event.AUTOMATIC_START,
        Event.TCP_CR_ACKED,
        Event.BGP_OPEN,
        Event.KEEPALIVE_MSG,
    ):
        state = step(state, event).state
    assert state is State.ESTABLISHED


def test_the_passive_transitions_to_established() -> None:
    state = State.IDLE
    for event in (
        Event.AUTOMATIC_START_WITH_PASSIVE_TCP_ESTABLISHMENT,
        Event.TCP_CONNECTION_CONFIRMED,
        Event.BGP_OPEN,
        Event.KEEPALIVE_MSG,
    ):
        state = step(state, event).state
    assert state is State.ESTABLISHED


@pytest.mark.parametrize("state", UNCONNECTED)
def test_a_manual_stop_resets_the_retry_counter(state: State) -> None:
    assert Action.ZERO_RETRY_COUNTER in step(state, Event.MANUAL_STOP).actions
