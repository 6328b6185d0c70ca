"""RFC 4271 section 8.2.2, state by state and event by event, written down a second time.

Transcribed from the text of the RFC, not from `speaker.fsm`. An outcome is the next state, and a letter
for each action that the peer can observe or that determines what follows::

    o  our OPEN is sent           C  Cease is sent                  x  the connection is dropped
    k  a KEEPALIVE is sent        H  Hold Timer Expired is sent     +  the ConnectRetryCounter counts
                                  S  Send Hold Timer Expired is sent
    t  a connection is begun      F  FSM Error is sent              0  the ConnectRetryCounter is zero
    r  the connect-retry timer    E  the message's error is sent    d  Idle lasts for a pause
       is started                 u  the session is up, U an UPDATE is handled
    h  the hold timer restarts, L with the large value, N both timers with what was negotiated
    K  the keepalive timer restarts

`DEPARTURES` are the intended deviations from the RFC, each with its reason.
"""

from __future__ import annotations

import pytest

from speaker.fsm import Action, Event, State, step

LETTERS = {
    Action.SEND_OPEN: "o",
    Action.SEND_KEEPALIVE: "k",
    Action.INITIATE_CONNECT: "t",
    Action.START_CONNECT_RETRY: "r",
    Action.SEND_CEASE: "C",
    Action.SEND_HOLD_EXPIRED: "H",
    Action.SEND_SEND_HOLD_EXPIRED: "S",
    Action.SEND_FSM_ERROR: "F",
    Action.SEND_ERROR: "E",
    Action.DROP: "x",
    Action.COUNT_RETRY: "+",
    Action.ZERO_RETRY_COUNTER: "0",
    Action.START_IDLE_HOLD: "d",
    Action.SESSION_UP: "u",
    Action.PROCESS_UPDATE: "U",
    Action.RESTART_HOLD: "h",
    Action.START_LARGE_HOLD: "L",
    Action.START_NEGOTIATED_TIMERS: "N",
    Action.RESTART_KEEPALIVE: "K",
}
SILENT = {
    Action.STOP_CONNECT_RETRY,
    Action.START_DELAY_OPEN,
    Action.STOP_DELAY_OPEN,
    Action.STOP_IDLE_HOLD,
}
"""Timers that stop: seen by what does not happen later."""

# Events by their numbers in section 8.1; columns as in the RFC's description of each state.
TABLE = {
    # "In this state, BGP FSM refuses all incoming BGP connections for this peer."
    "Idle": {
        (1, 3): "Connect 0rt",
        (4, 5): "Active 0",
        (6,): "Connect rt",
        (7,): "Active",
        (2, 8): "Idle",
        (9, 10, 11, 12, 13): "Idle",
        (14, 15, 16, 17): "Idle x",
        (18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29): "Idle",
    },
    "Connect": {
        (1, 3, 4, 5, 6, 7): "Connect",
        (2,): "Idle 0x",
        (9,): "Connect xrt",
        (12,): "OpenSent oL",
        (14, 15): "Connect",
        (16, 17): "OpenSent oL",
        (18,): "Active x+r",
        (20,): "OpenConfirm okN",
        (21, 22): "Idle Ex+d",
        (24,): "Idle x+d",
        (8, 10, 11, 13, 19, 23, 25, 26, 27, 28, 29): "Idle x+d",
    },
    "Active": {
        (1, 3, 4, 5, 6, 7): "Active",
        (2,): "Idle 0x",
        (9,): "Connect rt",
        (12,): "OpenSent oL",
        (14, 15): "Active",
        (16, 17): "OpenSent oL",
        (18,): "Idle x+d",
        (20,): "OpenConfirm okN",
        (21, 22): "Idle Ex+d",
        (24,): "Idle x+d",
        (8, 10, 11, 13, 19, 23, 25, 26, 27, 28, 29): "Idle x+d",
    },
    "OpenSent": {
        (1, 3, 4, 5, 6, 7): "OpenSent",
        (2,): "Idle Cx0",
        (8,): "Idle Cx+d",
        (10,): "Idle Hx+d",
        (14, 15, 16, 17): "OpenSent",
        (18,): "Active x+r",
        (19,): "OpenConfirm kN",
        (21, 22): "Idle Ex+d",
        (23,): "Idle Cx+d",
        (24,): "Idle xd",
        (25,): "Idle x+d",
        (9, 11, 12, 13, 20, 26, 27, 28, 29): "Idle Fx+d",
    },
    "OpenConfirm": {
        (1, 3, 4, 5, 6, 7): "OpenConfirm",
        (2,): "Idle Cx0",
        (8,): "Idle Cx+d",
        (10,): "Idle Hx+d",
        (11,): "OpenConfirm kK",
        (14, 15, 16, 17): "OpenConfirm",
        (18,): "Idle x+d",
        (21, 22): "Idle Ex+d",
        (23,): "Idle Cx+d",
        (24,): "Idle xd",
        (25,): "Idle x+d",
        (26,): "Established hu",
        (19,): "Idle Fx+d",
        (9, 12, 13, 20, 27, 28, 29): "Idle Fx+d",
    },
    "Established": {
        (1, 3, 4, 5, 6, 7): "Established",
        (2,): "Idle Cx0",
        (8,): "Idle Cx+d",
        (10,): "Idle Hx+d",
        (11,): "Established kK",
        (14, 15, 16, 17): "Established",
        (18,): "Idle x+d",
        (21, 22): "Idle Ex+d",
        (23,): "Idle Cx+d",
        (24,): "Idle xd",
        (25,): "Idle x+d",
        (26,): "Established h",
        (27,): "Established hU",
        (28,): "Idle Ex+d",
        # RFC 9687 section 3.3, which leaves the other states as they are.
        (29,): "Idle Sx+d",
        (9, 12, 13, 19, 20): "Idle Fx+d",
    },
}

DEPARTURES = {
    (
        "Connect",
        18,
    ): "Idle there, unless the DelayOpenTimer runs; here it is listened until the next"
    " attempt, which comes later each time: so it is counted, too",
    ("OpenSent", 18): "counts no retry there; here the counter determines the backoff",
    ("OpenSent", 25): "among the FSM errors there, but a NOTIFICATION is never answered",
    (
        "OpenConfirm",
        19,
    ): "a collision there; here that is decided before the event is fired, and what"
    " is left is a second OPEN on one connection",
    ("Established", 19): "only with CollisionDetectEstablishedState there; as in OpenConfirm here",
    ("Established", 21): "among the FSM errors there; section 6.1 has a code of its own",
    ("Established", 22): "among the FSM errors there; an OPEN out of state is event 19 here",
    ("Established", 24): "counts a retry there; as in the other states here",
}
"""Pairs with another transition in section 8.2.2 of the RFC."""

PAIRS = [
    (state, Event(number), outcome)
    for state, rows in TABLE.items()
    for numbers, outcome in rows.items()
    for number in numbers
]


def test_every_pair_of_state_and_event_is_listed_once() -> None:
    pairs = [(state, event) for state, event, _ in PAIRS]
    assert len(pairs) == len(set(pairs)) == len(State) * len(Event)
    assert set(LETTERS) | SILENT == set(Action)
    assert {(state, Event(number)) for state, number in DEPARTURES} <= set(pairs)


@pytest.mark.parametrize(
    ("state", "event", "outcome"),
    PAIRS,
    ids=[f"{state}-{event}-{event.name.lower()}" for state, event, _ in PAIRS],
)
def test_pair(state: str, event: Event, outcome: str) -> None:
    before = next(one for one in State if str(one) == state)
    transition = step(before, event)
    after, _, letters = outcome.partition(" ")
    done = [LETTERS[action] for action in transition.actions if action not in SILENT]
    assert str(transition.state) == after
    assert sorted(done) == sorted(letters)


@pytest.mark.parametrize("state", [State.CONNECT, State.ACTIVE])
@pytest.mark.parametrize("event", [Event.TCP_CR_ACKED, Event.TCP_CONNECTION_CONFIRMED])
def test_with_delay_open_a_connection_waits_for_the_peers_open(state: State, event: Event) -> None:
    """Sections 8.1.1 and 8.2.2: the connect-retry timer stops, the DelayOpenTimer runs."""
    transition = step(state, event, delay_open=True)
    assert transition.state is state
    assert transition.actions == (Action.STOP_CONNECT_RETRY, Action.START_DELAY_OPEN)


@pytest.mark.parametrize("state", [State.CONNECT, State.ACTIVE])
def test_with_delay_open_a_version_error_counts_no_retry(state: State) -> None:
    """Section 8.2.2, event 24 while the DelayOpenTimer runs: without it no message could come."""
    transition = step(state, Event.NOTIF_MSG_VER_ERR, delay_open=True)
    assert transition.state is State.IDLE
    assert Action.DROP in transition.actions
    assert Action.STOP_DELAY_OPEN in transition.actions
    assert Action.COUNT_RETRY not in transition.actions
