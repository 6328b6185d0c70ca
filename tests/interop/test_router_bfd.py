"""BFD of two ``waggle router`` in namespaces: strict, a lost path, a changed profile."""

from __future__ import annotations

import contextlib
import json
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from cells.api.client import AgentError, at_socket
from tests.support.daemon import Daemon
from tests.support.netns import Namespace, linked_namespaces
from tests.support.wait import NotReadyError, eventually

pytestmark = [pytest.mark.interop, pytest.mark.netns, pytest.mark.program]

ADDRESSES = ("10.99.1.1", "10.99.1.2")
PORT = 1790
EXPIRED = "Control Detection Time Expired"


class Router:
    """A router with one neighbour."""

    def __init__(self, directory: Path, namespace: Namespace, number: int, bfd: Any) -> None:  # noqa: ANN401
        directory.mkdir()
        self._number, self._socket = number, directory / "api"
        self._file = directory / "router.yaml"
        self.write(bfd)
        command = [sys.executable, "-m", "waggle", "router", "-c", str(self._file)]
        self.daemon = Daemon(
            f"router {number}", command, log=directory / "log", namespace=namespace
        )

    def write(self, bfd: Any) -> None:  # noqa: ANN401
        own, far = ADDRESSES[self._number], ADDRESSES[1 - self._number]
        neighbor = {
            "address": far,
            "name": "far",
            "asn": 65002 - self._number,
            "port": PORT,
            "connectRetryTime": 1,
        }
        document = {
            "asn": 65001 + self._number,
            "routerID": own,
            "listen": [{"address": own, "port": PORT}],
            "apiSocket": str(self._socket),
            "neighbors": [neighbor if bfd is None else {**neighbor, "bfd": bfd}],
        }
        self._file.write_text(json.dumps(document))

    def reload(self, bfd: Any) -> None:  # noqa: ANN401
        self.write(bfd)
        self.daemon.signal(signal.SIGHUP)

    def read(self, path: str) -> dict[str, Any]:
        try:
            (item,) = at_socket(self._socket, "router").get(f"/v1/{path}", {})["items"]
        except AgentError as error:
            raise NotReadyError(str(error)) from None
        return dict(item)

    @property
    def states(self) -> tuple[str, str]:
        """The states of BGP and of BFD."""
        item = self.read("peers")
        return item["state"], item.get("bfd", "")


@contextlib.contextmanager
def routers(directory: Path, left: Any, right: Any) -> Iterator[tuple[Router, Router, Namespace]]:  # noqa: ANN401
    with linked_namespaces() as link, contextlib.ExitStack() as stack:
        found = []
        for number, (namespace, bfd) in enumerate(((link.left, left), (link.right, right))):
            namespace.add_address(f"{ADDRESSES[number]}/24")
            router = Router(directory / str(number), namespace, number, bfd)
            router.daemon.start()
            stack.callback(router.daemon.stop)
            found.append(router)
        yield found[0], found[1], link.right


def test_strict_waits_for_bfd_and_a_lost_path_ends_bgp(tmp_path: Path) -> None:
    # A busy machine may be silent for 0.3 s, and the session is to come Up once.
    quick = {"receiveInterval": 300, "transmitInterval": 300}
    with routers(tmp_path, {**quick, "strict": True}, None) as (left, right, far):

        def waits() -> None:
            item = left.read("peers")
            assert (item["state"], "BFD is not Up" in item["reason"]) == ("Idle", True)
            right.read("peers")  # until it runs, SIGHUP would end it

        eventually(waits, context=left.daemon.tail)
        right.reload(quick)

        def both_up() -> None:
            assert left.states == right.states == ("Established", "Up")

        eventually(both_up, context=left.daemon.tail)
        # Intervals change by a Poll Sequence: neither session ends.
        left.reload({"receiveInterval": 400, "transmitInterval": 600, "strict": True})

        def negotiated() -> None:
            item = right.read("bfd")
            assert (item["detectionSeconds"], item["ups"]) == (1.8, 1)

        eventually(negotiated, context=left.daemon.tail)
        assert left.read("peers")["state"] == "Established"
        assert left.read("peers").get("flaps", 0) == 0
        far.cable(up=False)

        def lost() -> None:
            item = left.read("bfd")
            assert (left.states, item["diagnostic"]) == (("Idle", "Down"), EXPIRED)

        eventually(lost, context=left.daemon.tail)
        assert f"BFD: {EXPIRED}" in left.daemon.tail()


def test_both_ends_may_be_strict(tmp_path: Path) -> None:
    """Each waits for BFD, which waits for neither; and again after a loss."""
    strict = {"receiveInterval": 100, "transmitInterval": 100, "strict": True}
    with routers(tmp_path, strict, strict) as (left, right, far):

        def both_up() -> None:
            assert left.states == right.states == ("Established", "Up")

        def both_wait() -> None:
            for end in (left, right):
                assert end.read("peers")["state"] == "Idle"
                assert "BFD is not Up" in end.read("peers")["reason"]

        eventually(both_up, context=left.daemon.tail)
        far.cable(up=False)
        eventually(both_wait, context=left.daemon.tail)
        far.cable(up=True)
        eventually(both_up, context=left.daemon.tail)
