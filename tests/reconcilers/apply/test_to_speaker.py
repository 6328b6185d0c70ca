"""What the speaker is given for rows of the intent."""

from __future__ import annotations

from reconcilers.apply.to_speaker import instance_config, peer_config
from reconcilers.model import Instance, Peer
from speaker import api
from speaker.api import Confederation


def test_a_confederation_reaches_the_speaker() -> None:
    row = Instance("i", None, 64620, "192.0.2.1", confederation=Confederation(65010, (64621,)))
    assert instance_config(row).confederation == api.Confederation(65010, (64621,))


def test_the_pause_after_a_session_reaches_the_speaker() -> None:
    row = Peer("i", "p", "192.0.2.9", None, 64600, idle_hold_time=7)
    assert peer_config(row, 64620, lambda _: None).idle_hold_time == 7


def test_a_session_with_a_hold_time_has_keepalives() -> None:
    for hold, keepalive, expected in ((90, 0, 30), (90, 20, 20), (3, 0, 1), (0, 0, 0)):
        row = Peer("i", "p", "192.0.2.9", None, 64600, hold_time=hold, keepalive_time=keepalive)
        assert peer_config(row, 64620, lambda _: None).keepalive_time == expected
