"""BFD in VRFs: three sessions to one address, in the default VRF and in two others.

One ``waggle-bfd`` has them. Each neighbor is a BIRD, or FRR's bfdd, in a namespace of its own; what it
has of its session is read by its own commands.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Final

import pytest
from msgspec.structs import replace

from speaker.bfd.session_values import SessionKey, State
from tests.interop.bfd_lab import MS, ROUTERS, SETTINGS, Line, Reading, Router
from tests.interop.conftest import NeedRouter
from tests.interop.test_vrfs import make_vrf
from tests.support.bfd_process import BfdProcess, bfd_in
from tests.support.netns import DEVICE, Namespace, linked_namespaces, neighbors_of
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
KEYS = {vrf: SessionKey(THEIRS, "", vrf) for vrf in TABLES}
SLOW: Final = 1000
"""Milliseconds, of all ends. Nothing is measured: an emulated machine is late, by seconds where its
processor has other work."""
MANY: Final = 20
MULTIPLIERS = {"": MANY + 1, "red": MANY, "blue": MANY + 2}
"""Of the neighbors: each is known by its own."""
BETWEEN_READINGS = 2.0
"""Seconds in which the sessions have the emulated processor."""
ORDINARY = "-sys_nice"
"""Real-time processes would leave an emulated processor no time for others."""
NAME = "session"


class Node:
    """The process with the three sessions, and the namespaces of their neighbors by VRF."""

    def __init__(self, ours: BfdProcess, others: dict[str, Namespace]) -> None:
        self.ours, self.others = ours, others


@pytest.fixture(scope="module")
def node(no_namespaces: str | None) -> Iterator[Node]:
    if no_namespaces:
        pytest.skip(no_namespaces)
    with linked_namespaces() as link, neighbors_of(link.left, *CABLES.values()) as others:
        for vrf in ("red", "blue"):
            make_vrf(link.left, vrf, TABLES[vrf])
        for cable in CABLES.values():
            link.left.batch(f"addr add {OURS}/24 dev {cable}")
            others[cable].batch(f"addr add {THEIRS}/24 dev {DEVICE}")
        with bfd_in(link.left, lacking=ORDINARY) as ours:
            settings = replace(SETTINGS, desired_min_tx=SLOW * MS, required_min_rx=SLOW * MS)
            for key in KEYS.values():
                ours.set(key, replace(settings, detect_multiplier=MANY))
            yield Node(ours, {vrf: others[cable] for vrf, cable in CABLES.items()})


@pytest.mark.parametrize("kind", ROUTERS)
def test_three_sessions_to_one_address_are_three(
    node: Node, kind: str, need_router: NeedRouter, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Each has its own neighbor, is lost alone and returns."""
    need_router(kind)
    routers: dict[str, Router] = {}
    with contextlib.ExitStack() as stack:
        for vrf, namespace in node.others.items():
            line = Line(OURS, THEIRS, their=(SLOW, SLOW, MULTIPLIERS[vrf]))
            directory = tmp_path_factory.mktemp(kind)
            routers[vrf] = ROUTERS[kind](namespace, directory, {NAME: line})
            stack.callback(routers[vrf].stop)
            routers[vrf].start()

        def up(*vrfs: str) -> None:
            statuses = node.ours.connect()
            states = {vrf: statuses[key].state is State.UP for vrf, key in KEYS.items()}
            assert states == {vrf: vrf in vrfs for vrf in KEYS}, statuses
            for vrf in vrfs:
                assert routers[vrf].readings() == {OURS: Reading(True, SLOW, MANY * SLOW)}
                assert statuses[KEYS[vrf]].remote_detect_multiplier == MULTIPLIERS[vrf]

        def logs() -> str:
            return "\n".join(router.tail() for router in routers.values())

        eventually(lambda: up(*KEYS), interval=BETWEEN_READINGS, context=logs)
        routers["red"].switch(NAME, on=False)
        eventually(lambda: up("", "blue"), interval=BETWEEN_READINGS, context=logs)
        routers["red"].switch(NAME, on=True)
        eventually(lambda: up(*KEYS), interval=BETWEEN_READINGS, context=logs)
