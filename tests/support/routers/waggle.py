"""``waggle router``, the speaker alone, behind the same methods as the other routers.

So that it can take a real router's place on either side of a session. Not one of `KINDS`.
"""

from __future__ import annotations

import importlib.metadata
import json
import socket
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.support.routers.base import (
    Originated,
    PeerSettings,
    Router,
    RouterPeer,
    RouterRoute,
    split_as_path,
)
from tests.support.wait import NotReadyError


class Waggle(Router):
    """A ``waggle router`` process. It imports and exports everything."""

    kind = "waggle"

    @classmethod
    def missing(cls) -> str | None:
        return None

    @classmethod
    def version(cls) -> str:
        return "Waggle " + importlib.metadata.version("waggle-bgp")

    def command(self) -> Sequence[str | Path]:
        return [sys.executable, "-m", "waggle", "router", "-c", self.directory / "router.yaml"]

    def configuration(self) -> Mapping[str, str]:
        settings = self.settings
        document = {
            "asn": settings.asn,
            "routerID": settings.router_id,
            "listen": [{"address": a, "port": settings.port} for a in settings.addresses],
            "originate": [p for p, value in self.announced.items() if value == Originated()],
            "apiSocket": str(self.directory / "api"),
            "neighbors": [self._neighbor(peer) for peer in settings.peers],
        }
        # JSON is YAML.
        return {"router.yaml": json.dumps(document)}

    def _neighbor(self, peer: PeerSettings) -> dict[str, Any]:
        neighbor: dict[str, Any] = {
            # A prefix stands for whoever connects from there.
            "prefix" if "/" in peer.address else "address": peer.address,
            "asn": peer.asn,
            "families": list(peer.families),
            "import": "all",
            "export": "all",
            "holdTime": peer.hold_time,
        }
        if "/" not in peer.address:
            neighbor |= {
                "port": peer.port,
                "passive": peer.passive,
                "connectRetryTime": peer.connect_retry_time,
                "localAddress": self.settings.address_towards(peer),
            }
        if peer.password is not None:
            neighbor["password"] = peer.password
        if peer.multihop is not None:
            neighbor["ebgpMultihop"] = peer.multihop
        return neighbor

    def ask(self, op: str, **arguments: object) -> dict[str, Any]:
        """Ask over its socket; raises `NotReadyError` while it is not there."""
        with socket.socket(socket.AF_UNIX) as api:
            try:
                api.settimeout(5)
                api.connect(str(self.directory / "api"))
                api.sendall(json.dumps({"op": op, **arguments}).encode() + b"\n")
                line = api.makefile("rb").readline()
            except (FileNotFoundError, ConnectionError) as error:
                raise NotReadyError(f"waggle router: {error!r}") from error
        answer: dict[str, Any] = json.loads(line)
        if not answer["ok"]:
            raise RuntimeError(f"waggle router: {op}: {answer['error']}")
        return answer

    def _ready(self) -> None:
        # Its configuration has routes without attributes only.
        self._announce({p: v for p, v in self.announced.items() if v != Originated()}, ())

    def peers(self) -> dict[str, RouterPeer]:
        return {
            peer["address"]: RouterPeer(
                peer["address"],
                peer["state"] == "Established",
                f"{peer['state']} {peer['reason']}",
                f"{peer['flaps']}",
            )
            for peer in self.ask("peers")["peers"]
            if peer["address"] is not None
        }

    def paths(self, family: str, peer: str | None = None) -> list[RouterRoute]:
        address = self.peer(peer).address
        answer = self.ask("routes", table="available", family=family, peer=None)
        return [
            RouterRoute(
                prefix=route["prefix"],
                next_hop=route["nextHop"],
                as_path=split_as_path(route["asPath"]),
                origin=route["origin"].lower(),
                communities=frozenset(route["communities"]),
                large_communities=frozenset(route["largeCommunities"]),
                local_preference=route["localPreference"],
                med=route["med"],
            )
            for route in answer["routes"]
            if route["peer"] == address
        ]

    def received_cease(self) -> bool:
        return any(
            "Cease" in (peer["lastError"] or "") and "received" in peer["lastError"].lower()
            for peer in self.ask("peers")["peers"]
        )

    def _announce(self, new: Mapping[str, Originated], gone: Sequence[str]) -> None:
        for prefix, value in new.items():
            self.ask(
                "announce",
                prefixes=[prefix],
                communities=value.communities,
                largeCommunities=value.large_communities,
            )
        if gone:
            self.ask("withdraw", prefixes=list(gone))
