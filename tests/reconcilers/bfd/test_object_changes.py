"""What a change of an object does to the BFD session of a peer, and to its BGP session."""

from __future__ import annotations

from typing import Any, NamedTuple

import pytest

from reconcilers.apply.to_speaker import peer_config
from reconcilers.bfd.wanted_session import wanted_session
from resources.host.network import Host
from speaker.api import PeerConfig
from speaker.bfd.session_values import SessionKey, Settings, State
from speaker.engine.effect_of_change import Effect, effect_of
from tests.reconcilers.metallb.build import MetalLBNode
from tests.reconcilers.metallb.objects import advertisement, peer, pool, profile
from tests.speaker.bfd.build import MS, SECOND, Pair


class Wanted(NamedTuple):
    """The sessions that the objects give."""

    bgp: PeerConfig
    bfd: tuple[SessionKey, Settings] | None


class Lab(MetalLBNode):
    """A node with a peer that has a profile."""

    def __init__(self) -> None:
        super().__init__()
        self.put(profile("quick"), pool("front", "198.18.30.0/24"), TOR)

    def wanted(self) -> Wanted:
        """Return the sessions."""
        snapshot = self.db.snapshot()
        (row,) = self.intent.peers.all(snapshot)
        (instance,) = self.intent.instances.all(snapshot)
        assert row.bfd is not None
        bgp = peer_config(row, instance.local_asn, lambda _: None)
        return Wanted(bgp, wanted_session(row, instance, None, Host()))


TOR = peer("tor", bfdProfile="quick")


@pytest.mark.parametrize(
    "change",
    [
        pool("front", "198.18.31.0/24"),
        advertisement("some", localPref=200, ipAddressPools=["front"]),
        profile("slow", transmitInterval=5000),
        peer("tor", bfdProfile="quick", nodeSelectors=[]),
        peer("tor", bfdProfile="quick", connectTime="5s"),
    ],
    ids=lambda change: change["kind"],
)
def test_a_change_of_anything_else_bounces_neither_bfd_nor_bgp(change: dict[str, Any]) -> None:
    lab = Lab()
    before = lab.wanted()
    lab.put(change)
    after = lab.wanted()
    assert after.bfd == before.bfd
    assert effect_of(before.bgp, after.bgp) in (Effect.NONE, Effect.SOFT)


@pytest.mark.parametrize(
    "changes",
    [
        [profile("quick", transmitInterval=900, receiveInterval=700, detectMultiplier=5)],
        [profile("slow", transmitInterval=900), peer("tor", bfdProfile="slow")],
        [profile("quick", echoMode=True, echoInterval=100)],
    ],
)
def test_a_changed_profile_is_another_setting_of_the_same_session_and_nothing_to_bgp(
    changes: list[dict[str, Any]],
) -> None:
    lab = Lab()
    before = lab.wanted()
    lab.put(*changes)
    after = lab.wanted()
    assert before.bfd is not None
    assert after.bfd is not None
    assert after.bfd[0] == before.bfd[0]
    assert after.bfd[1] != before.bfd[1]
    assert effect_of(before.bgp, after.bgp) is Effect.NONE


def test_new_intervals_are_in_use_after_a_poll_sequence_with_the_session_up() -> None:
    lab = Lab()
    before = lab.wanted().bfd
    lab.put(profile("quick", transmitInterval=900, receiveInterval=100))
    after = lab.wanted().bfd
    assert before is not None
    assert after is not None
    line = Pair(before[1], Settings())
    line.run(5 * SECOND)
    assert line.up()
    changes = len(line.left.changes)
    line.left.sent.clear()
    line.configure(line.left, after[1])
    line.run(5 * SECOND)
    assert any(packet.poll for _, packet in line.left.sent)
    assert (line.left.state, len(line.left.changes)) == (State.UP, changes)
    assert line.left.session.transmit_interval == 900 * MS
    assert line.right.session.detection_time == 3 * 900 * MS
