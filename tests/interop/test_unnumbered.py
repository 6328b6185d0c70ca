"""Unnumbered sessions: two routers that know nothing of each other but the cable between them."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from cells.api.client import AgentError, at_socket
from tests.support.daemon import Daemon
from tests.support.kernel_writer import gateways, routes
from tests.support.netns import DEVICE, Link, Namespace
from tests.support.wait import NotReadyError, eventually

pytestmark = [pytest.mark.interop, pytest.mark.netns, pytest.mark.program]


class Unnumbered:
    """A ``waggle router`` with one neighbour, by interface."""

    def __init__(self, directory: Path, namespace: Namespace, number: int) -> None:
        directory.mkdir()
        self.socket = directory / "api"
        self.prefixes = {f"10.{number}.0.0/16", f"fd00:{number}::/48"}
        document = {
            "asn": 65000 + number,
            "routerID": f"192.0.2.{number}",
            "listen": [{"address": "::", "port": 1790}],
            "originate": sorted(self.prefixes),
            "apiSocket": str(self.socket),
            "kernel": number == 1,
            "neighbors": [
                {
                    "interface": DEVICE,
                    "port": 1790,
                    "import": "all",
                    "export": "all",
                    "bfd": {"detectMultiplier": 100},
                }
            ],
        }
        (directory / "router.yaml").write_text(json.dumps(document))
        command = (sys.executable, "-m", "waggle", "router", "-c", directory / "router.yaml")
        name = f"waggle {number}"
        self.daemon = Daemon(name, command, log=directory / "log", namespace=namespace)

    def learnt(self) -> dict[str, str]:
        """Received prefixes and their next hops."""
        routes = self._ask("routes", table="received")
        return {route["prefix"]: route["nextHop"] for route in routes if route["best"]}

    def peer(self) -> dict[str, object]:
        """The one session."""
        (peer,) = self._ask("peers")
        return dict(peer)

    def bfd(self) -> list[dict[str, Any]]:
        """The sessions of its `waggle-bfd`."""
        return self._ask("bfd")

    def _ask(self, name: str, **query: str | None) -> list[dict[str, Any]]:
        """Return the items of an answer; a socket that is there may not listen yet."""
        try:
            return list(at_socket(self.socket, "router").get(f"/v1/{name}", query)["items"])
        except AgentError as error:
            raise NotReadyError(str(error)) from error


def test_unnumbered_peers_connect_and_exchange_both_families(link: Link, tmp_path: Path) -> None:
    left = Unnumbered(tmp_path / "left", link.left, 1)
    right = Unnumbered(tmp_path / "right", link.right, 2)

    def logs() -> str:
        return f"{left.daemon.tail()}\n{right.daemon.tail()}"

    def undiscovered() -> None:
        peer = left.peer()
        assert peer["reason"] == f"no neighbour was discovered on interface {DEVICE} yet", peer

    def learnt() -> None:
        for one, other in ((left, right), (right, left)):
            found = one.learnt()
            assert set(found) == other.prefixes
            # IPv4 as well: RFC 8950 with the link-local address.
            assert all(hop.startswith("fe80::") for hop in found.values()), found

    def watched() -> None:
        """Both ends find the address of the other by itself, BFD as well as BGP."""
        for one in (left, right):
            assert one.peer()["bfd"] == "Up"
            (session,) = one.bfd()
            assert str(session["address"]).startswith("fe80::")
            assert session["device"] == DEVICE

    def installed() -> None:
        """In the kernel both families have the link-local gateway, IPv4 as well (RFC 8950)."""
        found = {}
        for family in (4, 6):
            for prefix, row in routes(link.left, family).items():
                ((gateway, device, _),) = gateways(row)
                found[prefix] = (gateway, device)
        (next_hop,) = set(left.learnt().values())
        assert found == dict.fromkeys(right.prefixes, (next_hop, DEVICE))

    left.daemon.start()
    try:
        eventually(undiscovered, context=logs)
        right.daemon.start()
        eventually(learnt, context=logs)
        eventually(installed, context=logs)
        eventually(watched, context=logs)
        assert str(left.peer()["address"]).endswith(f"%{DEVICE}")
        # The other end goes and another end comes, with the same address.
        right.daemon.kill()
        right.daemon.start()
        eventually(learnt, context=logs)
    finally:
        left.daemon.stop()
        right.daemon.stop()
