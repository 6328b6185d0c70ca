"""``waggle router``, the speaker alone, behind the same methods as the other routers.

So that it can take a real router's place on either side of a session. Not one of `KINDS`.
"""

from __future__ import annotations

import importlib.metadata
import json
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from cells.api.client import AgentError, at_socket
from tests.support.routers.base import (
    MessageCounts,
    Originated,
    PeerSettings,
    Router,
    RouterPeer,
    RouterRoute,
    split_as_path,
    split_members,
)
from tests.support.wait import NotReadyError


class Waggle(Router):
    """A ``waggle router`` process. It imports everything, and exports what is its own."""

    kind = "waggle"
    RESTARTED = ("--restarted",)
    CANNOT = frozenset({"bfd_interval", "four_octet_as", "any_external"})

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
        if settings.confederation is not None:
            members = [peer.asn for peer in settings.peers if peer.internal_confederation]
            document["confederation"] = {
                "identifier": settings.confederation,
                "members": members,
            }
        # JSON is YAML.
        return {"router.yaml": json.dumps(document)}

    def _neighbor(self, peer: PeerSettings) -> dict[str, Any]:
        neighbor: dict[str, Any] = {
            "asn": peer.asn,
            "families": list(peer.families),
            "import": "all",
            "export": "all" if peer.transit else "local",
            "addPath": peer.add_path,
            "holdTime": peer.hold_time,
        }
        if peer.interface is not None:
            neighbor |= {"interface": peer.interface, "port": peer.port}
        elif "/" in peer.address:
            # Any peer that connects from there.
            neighbor["prefix"] = peer.address
        else:
            neighbor |= {
                "address": peer.address,
                "port": peer.port,
                "passive": peer.passive,
                "connectRetryTime": peer.connect_retry_time,
                "localAddress": self.settings.address_towards(peer),
            }
        if peer.password is not None:
            neighbor["password"] = peer.password
        if peer.multihop is not None:
            neighbor["ebgpMultihop"] = peer.multihop
        if peer.other_next_hop is not None:
            version = "6" if ":" in peer.other_next_hop else "4"
            neighbor[f"nextHopIPv{version}"] = peer.other_next_hop
        if peer.ttl_security:
            neighbor["ttlSecurity"] = 1
        if peer.local_asn is not None:
            neighbor["localASN"] = peer.local_asn
        if peer.role is not None:
            neighbor["role"] = peer.role
        if peer.maximum_prefixes is not None:
            neighbor["maximumPrefixes"] = [{"limit": peer.maximum_prefixes}]
        if peer.restart_time is not None:
            neighbor["gracefulRestart"] = {
                "restartTime": peer.restart_time,
                "longLivedTime": peer.long_lived_time or 0,
            }
        return neighbor

    def ask(self, name: str, **query: str | None) -> list[dict[str, Any]]:
        """Return the items of an answer; raises `NotReadyError` while the socket is not there."""
        return self._items(lambda api: at_socket(api, "router").get(f"/v1/{name}", query))

    def act(self, name: str, **body: object) -> None:
        """Perform an action, as `ask`."""
        self._items(lambda api: at_socket(api, "router").post(f"/v1/{name}", body))

    def _items(self, request: Callable[[Path], dict[str, Any]]) -> list[dict[str, Any]]:
        try:
            answer = request(self.directory / "api")
        except AgentError as error:
            if error.code not in ("AgentNotRunning", "AgentUnreachable"):
                raise RuntimeError(f"waggle router: {error}") from error
            raise NotReadyError(f"waggle router: {error}") from error
        for problem in answer["errors"]:
            raise RuntimeError(f"waggle router: {problem['message']}")
        return list(answer["items"])

    def finish(self) -> None:
        # Its configuration has routes without attributes only.
        self._announce({p: v for p, v in self.announced.items() if v != Originated()}, ())

    def peers(self) -> dict[str, RouterPeer]:
        return {
            peer["address"]: RouterPeer(
                peer["address"],
                peer["state"] == "Established",
                f"{peer['state']} {peer.get('reason', '')}",
                f"{peer['flaps']}",
            )
            for peer in self.ask("peers")
            if "address" in peer
        }

    def paths(self, family: str, peer: str | None = None) -> list[RouterRoute]:
        return self.paths_from(family, self.peer(peer).address)

    def paths_from(self, family: str, name: str) -> list[RouterRoute]:
        """Return routes learnt from a peer by its name: an address, or an interface."""
        routes = self.ask("routes", table="available", family=family)
        return [
            RouterRoute(
                prefix=route["prefix"],
                next_hop=route["nextHop"],
                as_path=split_as_path(route["asPath"]),
                members=split_members(route["asPath"]),
                origin=route["origin"].lower(),
                communities=frozenset(route.get("communities", ())),
                large_communities=frozenset(route.get("largeCommunities", ())),
                local_preference=route.get("localPreference"),
                med=route.get("med"),
            )
            for route in routes
            if route.get("peer") == name
        ]

    def received_cease(self) -> bool:
        return any(
            "Cease" in (error := peer.get("lastError", "")) and "received" in error.lower()
            for peer in self.ask("peers")
        )

    def message_counts(self, address: str) -> MessageCounts:
        (peer,) = [p for p in self.ask("peers") if p.get("address") == address]
        return MessageCounts(
            updates=peer["updatesReceived"],
            refresh_requests=None,
            refresh_begins=None,
            refresh_ends=None,
        )

    def request_refresh(self, address: str) -> None:
        self.act("clear", peer=address, soft="in")

    def shut_down(self, address: str, text: str) -> None:
        self.act("shutdown", peer=address, message=text)

    def last_notification(self, address: str) -> str:
        (peer,) = [p for p in self.ask("peers") if p.get("address") == address]
        error: str = peer.get("lastError", "")
        return error if "received" in error.lower() else ""

    def _announce(self, new: Mapping[str, Originated], gone: Sequence[str]) -> None:
        for prefix, value in new.items():
            self.act(
                "announce",
                prefixes=[prefix],
                communities=value.communities,
                largeCommunities=value.large_communities,
            )
        if gone:
            self.act("withdraw", prefixes=list(gone))
