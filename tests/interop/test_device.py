"""A router whose sockets are bound to a device: an interface, or a VRF where the kernel has those.

Two routers on a cable; the left one has ``vrf``. A connection by another device than that is
refused.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from cells.api.client import AgentError, at_socket
from tests.support.daemon import Daemon
from tests.support.netns import DEVICE, NO_VRF, Link, Namespace
from tests.support.wait import NotReadyError, eventually

pytestmark = [pytest.mark.interop, pytest.mark.netns, pytest.mark.program]

PORT = 1790
LEFT, RIGHT = "192.0.2.1", "192.0.2.2"
VRF = "red"
REACH = """
import socket, sys
address, port, seconds = sys.argv[1:]
socket.create_connection((address, int(port)), float(seconds)).close()
"""


def _give_device(kind: str, left: Namespace) -> str:
    """Make the device that the left router is bound to, and the only way right; its name."""
    if kind == "interface":
        # Of two routes the better one is wrong, for a socket that is not bound.
        left.batch(f"route add {RIGHT}/32 dev lo")
        # What comes by the other way is taken nevertheless.
        left.run(
            "sh", "-c", "for i in all cable; do echo 0 >/proc/sys/net/ipv4/conf/$i/rp_filter; done"
        )
        return DEVICE
    try:
        left.batch(f"link add {VRF} type vrf table 10", f"link set {VRF} up")
    except RuntimeError as error:
        if "Unknown device type" not in str(error):
            raise
        pytest.skip(NO_VRF)
    left.batch(f"link set {DEVICE} master {VRF}")
    return VRF


class Side:
    """One ``waggle router`` with one neighbour."""

    def __init__(
        self,
        directory: Path,
        namespace: Namespace,
        asn: int,
        *,
        passive: bool,
        vrf: str | None = None,
    ) -> None:
        directory.mkdir()
        own, other = (LEFT, RIGHT) if asn == 65001 else (RIGHT, LEFT)
        self.socket = directory / "api"
        document: dict[str, Any] = {
            "asn": asn,
            "routerID": own,
            "listen": [{"address": "0.0.0.0", "port": PORT}],
            "apiSocket": str(self.socket),
            "neighbors": [
                {
                    "address": other,
                    "asn": 65001 if asn == 65002 else 65002,
                    "port": PORT,
                    "passive": passive,
                    "connectRetryTime": 1,
                }
            ],
        }
        if vrf is not None:
            document["vrf"] = vrf
        (directory / "router.yaml").write_text(json.dumps(document))
        command = (sys.executable, "-m", "waggle", "router", "-c", directory / "router.yaml")
        self.daemon = Daemon(f"AS{asn}", command, log=directory / "log", namespace=namespace)

    def peer(self) -> dict[str, Any]:
        """The one session."""
        self.daemon.check()
        try:
            (peer,) = at_socket(self.socket, "router").get("/v1/peers", {})["items"]
        except AgentError as error:
            raise NotReadyError(str(error)) from error
        return dict(peer)

    def reset(self) -> None:
        """End its session, whose connection may be dead."""
        body = {"peer": self.peer()["name"], "message": ""}
        at_socket(self.socket, "router").post("/v1/clear", body)

    def assert_established(self) -> None:
        """Check the session."""
        peer = self.peer()
        assert peer["state"] == "Established", peer


@pytest.mark.parametrize("connects", ["left", "right"])
@pytest.mark.parametrize("kind", ["interface", pytest.param("vrf", marks=pytest.mark.vrf)])
def test_a_session_passes_the_device_and_no_other_interface(
    kind: str, connects: str, link: Link, tmp_path: Path
) -> None:
    device = _give_device(kind, link.left)
    link.left.add_address(f"{LEFT}/24")
    link.right.add_address(f"{RIGHT}/24")
    left = Side(tmp_path / "left", link.left, 65001, passive=connects == "right", vrf=device)
    right = Side(tmp_path / "right", link.right, 65002, passive=connects == "left")
    try:
        for side in (left, right):
            side.daemon.start()
        for side in (left, right):
            eventually(side.assert_established, context=side.daemon.tail)
        # Both listen on every address; only the left one not on every device.
        with pytest.raises(RuntimeError, match="ConnectionRefusedError"):
            link.left.run(sys.executable, "-c", REACH, "127.0.0.1", str(PORT), "60")
        link.right.run(sys.executable, "-c", REACH, "127.0.0.1", str(PORT), "60")
        # And a socket that is bound to no device does not even get out to the right one.
        with pytest.raises(RuntimeError, match=r"TimeoutError|unreachable"):
            link.left.run(sys.executable, "-c", REACH, RIGHT, str(PORT), "0.5")
    finally:
        left.daemon.stop()
        right.daemon.stop()


def test_a_session_waits_for_its_device(link: Link, tmp_path: Path) -> None:
    link.left.add_address(f"{LEFT}/24")
    link.right.add_address(f"{RIGHT}/24")
    left = Side(tmp_path / "left", link.left, 65001, passive=False, vrf="later0")
    right = Side(tmp_path / "right", link.right, 65002, passive=True)

    def without_device() -> None:
        reason = left.peer()["reason"]
        assert "interface later0: no such device" in reason, reason

    try:
        left.daemon.start()
        right.daemon.start()
        eventually(without_device, context=left.daemon.tail)
        link.left.batch(
            f"link set {DEVICE} down", f"link set {DEVICE} name later0", "link set later0 up"
        )
        eventually(left.assert_established, context=left.daemon.tail)
    finally:
        left.daemon.stop()
        right.daemon.stop()


@pytest.mark.parametrize("connects", ["left", "right"])
def test_a_session_follows_a_device_that_is_made_again(
    connects: str, link: Link, tmp_path: Path
) -> None:
    def give_addresses() -> None:
        link.left.add_address(f"{LEFT}/24")
        link.right.add_address(f"{RIGHT}/24")

    def lost() -> None:
        reason = left.peer()["reason"]
        assert f"interface {DEVICE}" in reason, reason

    give_addresses()
    left = Side(tmp_path / "left", link.left, 65001, passive=connects == "right", vrf=DEVICE)
    right = Side(tmp_path / "right", link.right, 65002, passive=connects == "left")
    try:
        for side in (left, right):
            side.daemon.start()
        eventually(left.assert_established, context=left.daemon.tail)
        link.left.batch(f"link del {DEVICE}")
        # Neither the hold timer nor the connection retry timer: the device itself.
        eventually(lost, context=left.daemon.tail)
        link.left.batch(
            f"link add {DEVICE} type veth peer name {DEVICE} netns {link.right.name}",
            f"link set {DEVICE} up",
        )
        link.right.batch(f"link set {DEVICE} up")
        give_addresses()
        right.reset()
        eventually(left.assert_established, context=left.daemon.tail)
    finally:
        left.daemon.stop()
        right.daemon.stop()
