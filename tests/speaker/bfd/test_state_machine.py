"""The state machine of RFC 5880 section 6.2: each state with each state that a packet can have."""

from __future__ import annotations

import pytest

from speaker.bfd.session_values import Diagnostic, State
from speaker.bfd.state_machine import transition

LOST = (State.DOWN, Diagnostic.NEIGHBOR_SIGNALED_SESSION_DOWN)
UP = (State.UP, Diagnostic.NONE)


@pytest.mark.parametrize(
    ("state", "received", "expected"),
    [
        (State.DOWN, State.ADMIN_DOWN, None),
        (State.DOWN, State.DOWN, (State.INIT, None)),
        (State.DOWN, State.INIT, UP),
        (State.DOWN, State.UP, None),
        (State.INIT, State.ADMIN_DOWN, LOST),
        (State.INIT, State.DOWN, None),
        (State.INIT, State.INIT, UP),
        (State.INIT, State.UP, UP),
        (State.UP, State.ADMIN_DOWN, LOST),
        (State.UP, State.DOWN, LOST),
        (State.UP, State.INIT, None),
        (State.UP, State.UP, None),
    ],
)
def test_rfc5880_6_2_the_transitions(
    state: State, received: State, expected: tuple[State, Diagnostic | None] | None
) -> None:
    assert transition(state, received) == expected
