"""The text of FRRNodeState's configuration: lines of one neighbour."""

from __future__ import annotations

import pytest

from reconcilers.frrk8s.configuration_text import desired_text
from reconcilers.model import Instance, Peer
from speaker.api import BfdProfile

INSTANCE = Instance("i", None, 64900, "192.0.2.1")


@pytest.mark.parametrize(
    ("profile", "lines"),
    [
        (None, []),
        (BfdProfile(), ["neighbor 203.0.113.9 bfd"]),
        (
            BfdProfile(name="fast", receive_interval=50, passive=True),
            ["neighbor 203.0.113.9 bfd", "neighbor 203.0.113.9 bfd profile fast"],
        ),
    ],
)
def test_a_neighbour_has_the_commands_and_the_values_of_its_bfd_profile(
    profile: BfdProfile | None, lines: list[str]
) -> None:
    text = desired_text([INSTANCE], [Peer("i", "p", "203.0.113.9", None, 64950, bfd=profile)])
    of_bfd = [line.strip() for line in text.splitlines() if " bfd" in line]
    *commands, values = of_bfd if profile is not None else ([*of_bfd, ""])
    assert commands == lines
    if profile is not None:
        assert values.startswith("! neighbor 203.0.113.9: bfd receive-interval ")
        assert f"receive-interval {profile.receive_interval}, transmit-interval" in values
        assert ("passive-mode" in values) == profile.passive


def test_scripts_find_the_lines_of_frr() -> None:
    red = Instance("red", "red", 64901, "192.0.2.1")
    peers = [Peer(name, "p", "203.0.113.9", None, 64950) for name in ("i", "red")]
    lines = desired_text([INSTANCE, red], peers).splitlines()
    assert lines.count("router bgp 64900") == lines.count("router bgp 64901 vrf red") == 1
    assert lines.count("  neighbor 203.0.113.9 activate") >= 2
