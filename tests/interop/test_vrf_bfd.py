"""BFD in VRFs: three sessions to one address, in the default VRF and in two others."""

from __future__ import annotations

import contextlib

import pytest

from speaker.bfd.session_values import SessionKey, Settings, State
from tests.interop.test_vrfs import make_vrf
from tests.support.bfd_process import BfdProcess, bfd_in
from tests.support.netns import DEVICE, Link, neighbors_of
from tests.support.wait import eventually

pytestmark = [
    pytest.mark.interop,
    pytest.mark.netns,
    pytest.mark.program,
    pytest.mark.vrf,
    pytest.mark.xdist_group("vrf"),
]

OURS, THEIRS = "10.7.0.1", "10.7.0.2"
TABLES = {"": 254, "red": 1001, "blue": 1002}
CABLES = {"": "to-main", "red": "to-red", "blue": "to-blue"}
SETTINGS = Settings(desired_min_tx=1_000_000, required_min_rx=1_000_000, detect_multiplier=20)
"""Nothing is measured: an emulated machine is late, by seconds where its processor has other work."""
BETWEEN_READINGS = 2.0
"""Seconds in which the sessions have the emulated processor."""
ORDINARY = "-sys_nice"
"""Real-time processes would leave an emulated processor no time for others."""


def test_three_sessions_to_one_address_are_three(link: Link) -> None:
    """Each has its own neighbor, and is lost alone."""
    node = link.left
    keys = {vrf: SessionKey(THEIRS, "", vrf) for vrf in TABLES}
    with neighbors_of(node, *CABLES.values()) as others, contextlib.ExitStack() as stack:
        for vrf in ("red", "blue"):
            make_vrf(node, vrf, TABLES[vrf])
        for cable in CABLES.values():
            node.batch(f"addr add {OURS}/24 dev {cable}")
            others[cable].batch(f"addr add {THEIRS}/24 dev {DEVICE}")
        ours = stack.enter_context(bfd_in(node, lacking=ORDINARY))
        theirs: dict[str, BfdProcess] = {}
        ends: dict[str, contextlib.ExitStack] = {}
        for vrf, cable in CABLES.items():
            ends[vrf] = stack.enter_context(contextlib.ExitStack())
            theirs[vrf] = ends[vrf].enter_context(bfd_in(others[cable], lacking=ORDINARY))
            theirs[vrf].set(SessionKey(OURS, ""), SETTINGS)
            ours.set(keys[vrf], SETTINGS)

        def up(*vrfs: str) -> None:
            statuses = ours.connect()
            states = {vrf: statuses[key].state for vrf, key in keys.items()}
            assert states == {vrf: State.UP if vrf in vrfs else State.DOWN for vrf in TABLES}, (
                statuses
            )

        eventually(lambda: up(*TABLES), interval=BETWEEN_READINGS)
        numbers = {
            status.remote_discriminator: vrf
            for vrf, key in keys.items()
            for status in [ours.status(key)]
        }
        assert len(numbers) == len(TABLES), "of three neighbors"
        for vrf, other in theirs.items():
            (session,) = other.connect().values()
            assert numbers[session.local_discriminator] == vrf
        ends["red"].close()
        eventually(lambda: up("", "blue"), interval=BETWEEN_READINGS)
