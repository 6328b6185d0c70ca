"""UPDATEs in Established have the effect that the state machine's table gives event 27."""

from __future__ import annotations

from speaker.fsm import Action, Event, State, step
from speaker.message import KEEPALIVE, frame_message
from speaker.peer.engine_context import Timer
from speaker.peer.session import Session
from tests.speaker.peer.session.states import at
from tests.speaker.raw import ATTRIBUTES, INSTANCE, NLRI, Raw, update


def session_of(raw: Raw) -> Session:
    return raw.engine.instance(INSTANCE).peer("p").connections.primary


def test_rfc4271_8_2_2_event_27_in_established_has_the_two_actions_of_the_receiver() -> None:
    transition = step(State.ESTABLISHED, Event.UPDATE_MSG, delay_open=False)
    assert transition.state is State.ESTABLISHED
    assert set(transition.actions) == {Action.RESTART_HOLD, Action.PROCESS_UPDATE}


def test_an_update_restarts_the_hold_timer_as_a_keepalive_does() -> None:
    deadlines = []
    for message in (update(ATTRIBUTES, NLRI), KEEPALIVE):
        raw = at("established")
        raw.now += 10
        raw.send(message)
        deadlines.append(session_of(raw).timers.deadline(Timer.HOLD))
    assert deadlines == [100, 100]


def test_every_update_of_a_run_counts_on_either_path() -> None:
    raw = at("established")
    before = raw.status.messages_received
    unusual = update(ATTRIBUTES + bytes.fromhex("c0c80101"), NLRI)
    raw.send(update(ATTRIBUTES, NLRI) * 3 + unusual + update(ATTRIBUTES, NLRI))
    assert raw.status.updates_received == 5
    assert raw.status.messages_received - before == 5


def test_updates_after_the_end_of_the_session_are_ignored() -> None:
    raw = at("established")
    broken = frame_message(2, b"\0\xff\0\0")
    raw.send(update(ATTRIBUTES, NLRI) + broken + update(ATTRIBUTES, b"\x18\x0a\x02\x00") * 2)
    assert raw.is_closed
    assert session_of(raw).updates.received == 2
    assert session_of(raw).updates.handler is None
