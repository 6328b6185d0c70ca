"""BFD with GoBGP 4.8.0, which ends BFD with BGP and does not follow the other end's intervals."""

from __future__ import annotations

import os
import time
from functools import partial
from pathlib import Path
from typing import Any, Final

import pytest

from tests.interop.test_router_bfd import ADDRESSES, PORT, Router
from tests.support import gobgp
from tests.support.daemon import Daemon
from tests.support.netns import Namespace, linked_namespaces
from tests.support.realtime import preferred
from tests.support.wait import eventually, settles

pytestmark = [
    pytest.mark.gobgp,
    pytest.mark.interop,
    pytest.mark.netns,
    pytest.mark.program,
]

KILLS: Final = int(os.environ.get("GOBGP_KILLS", "2"))
"""``GOBGP_KILLS=20``: twenty, 16 minutes (``-o timeout=3600``), as pauses double."""
INTERVAL = 300
"""Milliseconds."""
WINDOWS, PACKETS = 3, 8
"""In which the interval of received packets is measured."""
STAYS = 3.0
"""Seconds for which both sessions stay Up, in which a loop would have ended them again."""


def gobgpd(namespace: Namespace, directory: Path, interval: int = INTERVAL) -> Daemon:
    """Return a GoBGP with one neighbor and BFD."""
    program = gobgp.find()
    if isinstance(program, str):
        pytest.skip(program)
    ours, theirs = ADDRESSES
    file = directory / "gobgpd.toml"
    file.write_text(
        f"""
[global.config]
as = 65002
router-id = "{theirs}"
port = {PORT}
local-address-list = ["{theirs}"]
[[neighbors]]
[neighbors.config]
neighbor-address = "{ours}"
peer-as = 65001
[neighbors.transport.config]
local-address = "{theirs}"
remote-port = {PORT}
[neighbors.timers.config]
connect-retry = 5
idle-hold-time-after-reset = 1
[neighbors.bfd.config]
enabled = true
desired-minimum-tx-interval = {interval * 1000}
required-minimum-receive = {interval * 1000}
detection-multiplier = 3
"""
    )
    command: list[str | Path] = [program, "-f", file, "--pprof-disable"]
    command += ["--api-hosts", f"unix://{directory / 'gobgp.api'}"]
    # As on another machine: a busy one would keep it waiting, and both ends would lose BFD for that.
    command = preferred(command)
    return Daemon("gobgpd", command, log=directory / "gobgpd.log", namespace=namespace)


def test_a_gobgp_that_is_killed_is_one_loss_and_one_return(tmp_path: Path) -> None:
    """Its BFD ends with its BGP, and begins with the next attempt: that is no second loss."""
    profile = {"receiveInterval": INTERVAL, "transmitInterval": INTERVAL}
    with linked_namespaces() as link:
        for side, address in zip((link.left, link.right), ADDRESSES, strict=True):
            side.add_address(f"{address}/24")
        router = Router(tmp_path / "ours", link.left, 0, profile)
        other = gobgpd(link.right, tmp_path)
        try:
            router.daemon.start()
            other.start()

            def context() -> str:
                return f"{router.daemon.tail()}\n{other.tail()}"

            def up() -> None:
                assert router.states == ("Established", "Up")

            def down() -> None:
                assert router.states[0] != "Established"

            eventually(up, context=context)
            settles(up, stays=STAYS, context=context)
            first = router.read("peers").get("flaps", 0)

            def counted(number: int) -> None:
                # The process reports how often its sessions came Up after a while.
                assert router.read("peers").get("flaps", 0) == first + number, "one loss"
                assert router.read("bfd").get("ups") == 1 + number, "one return"

            eventually(partial(counted, 0), context=context)
            for number in range(1, KILLS + 1):
                other.kill()
                eventually(down, context=context)
                (tmp_path / "gobgp.api").unlink(missing_ok=True)
                other.start()
                eventually(up, within=200, context=context)
                settles(up, stays=STAYS, context=context)
                eventually(partial(counted, number), context=context)
        finally:
            other.stop()
            router.daemon.stop()


def test_gobgp_keeps_its_own_interval_whatever_ours_is(tmp_path: Path) -> None:
    """It sends more often than we ask for, which RFC 5880 section 6.8.7 forbids: nothing is lost."""
    slow = {"receiveInterval": 600, "transmitInterval": 600}
    with linked_namespaces() as link:
        for side, address in zip((link.left, link.right), ADDRESSES, strict=True):
            side.add_address(f"{address}/24")
        router = Router(tmp_path / "ours", link.left, 0, slow)
        # It expects our packets in its own time, which is shorter than what we agreed on.
        other = gobgpd(link.right, tmp_path, interval=300)
        try:
            router.daemon.start()
            other.start()

            def received(least: int) -> dict[str, Any]:
                item = router.read("bfd")
                assert (item["state"], item.get("ups")) == ("Up", 1)
                assert item["packetsReceived"] >= least
                return item

            item = eventually(partial(received, 1), context=other.tail)
            # The process reports its counts together: from one report to another report.
            item = eventually(partial(received, item["packetsReceived"] + 1), context=other.tail)
            intervals = []
            for _ in range(WINDOWS):
                began, before = time.monotonic(), item["packetsReceived"]
                item = eventually(partial(received, before + PACKETS), context=other.tail)
                packets = item["packetsReceived"] - before
                intervals.append((time.monotonic() - began) / packets)
        finally:
            other.stop()
            router.daemon.stop()
        assert (item["transmitIntervalSeconds"], item["detectionSeconds"]) == (0.6, 1.8)
        # A busy machine makes them longer; with our interval each would be 450 to 600 ms.
        assert min(intervals) < 0.45
