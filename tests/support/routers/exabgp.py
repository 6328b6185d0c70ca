"""ExaBGP: it advertises what its configuration and commands define, and propagates no routes.

Queried over its API: `exabgp_control` lends its pipes to a client of a socket. Everything
that happens to its sessions is written to a file by another helper. It keeps an Adj-RIB-In for
people to look at; it has no table with best paths.
"""

from __future__ import annotations

import json
import shutil
import socket
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.support.netns import Namespace
from tests.support.routers.base import (
    CONTROL_SECONDS,
    IPV4,
    IPV6,
    CannotError,
    MessageCounts,
    Originated,
    PeerSettings,
    Router,
    RouterPeer,
    RouterRoute,
    RouterSettings,
    family_of,
)
from tests.support.wait import NotReadyError

WORDS = {IPV4: "ipv4 unicast", IPV6: "ipv6 unicast"}
AFI = {IPV4: "ipv4", IPV6: "ipv6"}
CONTROL = Path(__file__).with_name("exabgp_control.py")
ADD_PATH = {"receive": "receive", "send": "send", "both": "send/receive"}
GTSM_TTL = 255
ADMINISTRATIVE_SHUTDOWN = 2


def program() -> str | None:
    """Return the path of the program: of this environment, or the system's."""
    beside = Path(sys.executable).with_name("exabgp")
    return str(beside) if beside.exists() else shutil.which("exabgp")


class ExaBGP(Router):
    """An ``exabgp`` process."""

    kind = "exabgp"
    CANNOT = frozenset(
        {
            "bfd_interval",
            "any_external",
            "interface",
            "transit",
            "maximum_prefixes",
            "role",
            "long_lived_time",
            "internal_confederation",
            "confederation",
        }
    )
    # Its listening socket answers with the system's TTL.
    CONNECTS_FOR = frozenset({"ttl_security"})
    SHUTDOWN_TEXT = "Administrative Shutdown"

    def __init__(self, settings: RouterSettings, namespace: Namespace, directory: Path) -> None:
        super().__init__(settings, namespace, directory)
        self._events: list[dict[str, Any]] = []
        self._read_octets = 0

    @classmethod
    def missing(cls) -> str | None:
        return None if program() else "ExaBGP is not installed (PyPI or Debian: exabgp)"

    @classmethod
    def version(cls) -> str:
        done = subprocess.run(
            [program() or "exabgp", "version"], capture_output=True, text=True, check=True
        )
        # "ExaBGP : 5.0.15" is the first line.
        return "ExaBGP " + done.stdout.split()[2].split("-")[0]

    def command(self) -> Sequence[str | Path]:
        return [program() or "exabgp", "server", self.directory / "exabgp.conf"]

    def environment(self) -> Mapping[str, str]:
        return {
            "exabgp_daemon_drop": "false",
            "exabgp_daemon_user": "root",
            "exabgp_log_destination": "stdout",
            # The other control program of its own would look for named pipes in /run.
            "exabgp_api_cli": "false",
            "exabgp_api_show-routes-format": "v2",
        }

    def configuration(self) -> Mapping[str, str]:
        (self.directory / "control").unlink(missing_ok=True)
        return {"exabgp.conf": "\n".join(self._lines()) + "\n"}

    def _lines(self) -> Iterator[str]:
        yield from (
            "process control {",
            f"  run {sys.executable} {CONTROL} commands {self.directory / 'control'};",
            "  encoder json;",
            "}",
            "process events {",
            f"  run {sys.executable} {CONTROL} events {self.directory / 'events'};",
            "  encoder json;",
            "}",
        )
        for number, peer in enumerate(self.settings.peers):
            yield from self._neighbor(number, peer)

    def _neighbor(self, number: int, peer: PeerSettings) -> Iterator[str]:
        settings = self.settings
        yield from (
            f"neighbor {peer.address} {{",
            f"  router-id {settings.router_id};",
            f"  local-address {settings.address_towards(peer)};",
            f"  local-as {settings.asn if peer.local_asn is None else peer.local_asn};",
            f"  peer-as {peer.asn};",
            f"  hold-time {peer.hold_time};",
            f"  passive {'true' if peer.passive else 'false'};",
            f"  listen {settings.port};",
            f"  connect {peer.port};",
            "  adj-rib-in true;",
            "  adj-rib-out true;",
        )
        if peer.password is not None:
            yield f'  md5-password "{peer.password}";'
        if peer.ttl_security:
            yield f"  outgoing-ttl {GTSM_TTL}; incoming-ttl {GTSM_TTL};"
        elif peer.multihop is not None:
            yield f"  outgoing-ttl {peer.multihop};"
        yield f"  family {{ {' '.join(f'{WORDS[family]};' for family in peer.families)} }}"
        yield "  capability {"
        yield f"    asn4 {'enable' if peer.four_octet_as else 'disable'};"
        yield "    route-refresh enable;"
        if peer.restart_time is not None:
            yield f"    graceful-restart {peer.restart_time};"
        if peer.add_path != "none":
            yield f"    add-path {ADD_PATH[peer.add_path]};"
        if peer.extended_next_hop:
            yield "    nexthop enable;"
        yield "  }"
        if peer.extended_next_hop:
            yield "  nexthop { ipv4 unicast ipv6; }"
        yield f"  api commands{number} {{ processes [ control ]; }}"
        yield (
            f"  api happenings{number} {{ processes [ events ]; neighbor-changes;"
            " receive { parsed; open; notification; refresh; } send { notification; } }"
        )
        yield "  static {"
        yield from (
            f"    route {line};"
            for prefix, value in self.announced.items()
            if (line := self._route_line(peer, prefix, value))
        )
        yield "  }"
        yield "}"

    def _route_line(self, peer: PeerSettings, prefix: str, value: Originated) -> str | None:
        """Return a route as it is configured and announced, or None where it cannot be advertised."""
        family = family_of(prefix)
        if family not in peer.families:
            return None
        if peer.extended_next_hop and family == IPV4:
            next_hop: str | None = self.settings.address_towards(peer)
        else:
            next_hop = self.settings.next_hop_towards(peer, family)
        if next_hop is None:
            return None
        words = [prefix, "next-hop", next_hop]
        if value.communities:
            words += ["community", "[", *value.communities, "]"]
        if value.large_communities:
            words += ["large-community", "[", *value.large_communities, "]"]
        return " ".join(words)

    def ask(self, command: str) -> list[str]:
        """Send a command and give the lines of the answer except the last, which ends it.

        Raises RuntimeError if it is refused.
        """
        with socket.socket(socket.AF_UNIX) as control:
            try:
                control.settimeout(CONTROL_SECONDS)
                control.connect(str(self.directory / "control"))
                control.sendall(f"{command}\n".encode())
                lines = control.makefile("r", encoding="utf-8").read().splitlines()
            except (FileNotFoundError, ConnectionError, TimeoutError) as error:
                raise NotReadyError(f"exabgp: {error!r}") from error
        if not lines:
            raise NotReadyError("exabgp: no answer")
        end = lines.pop()
        if "done" not in end:
            raise RuntimeError(f"exabgp: {command}: {end}")
        return lines

    def events(self) -> list[dict[str, Any]]:
        """Return what has happened to its sessions so far."""
        path = self.directory / "events"
        if path.exists():
            with path.open("rb") as file:
                file.seek(self._read_octets)
                new = file.read()
            # The last line may not be whole yet.
            whole = new[: new.rfind(b"\n") + 1]
            self._read_octets += len(whole)
            self._events += map(json.loads, whole.splitlines())
        return self._events

    def _events_of(self, address: str, kind: str) -> list[dict[str, Any]]:
        return [
            event["neighbor"]
            for event in self.events()
            if event["type"] == kind and event["neighbor"]["address"]["peer"] == address
        ]

    def peers(self) -> dict[str, RouterPeer]:
        (answer,) = self.ask("show neighbor json")
        ups = Counter(
            event["neighbor"]["address"]["peer"]
            for event in self.events()
            if event["type"] == "state" and event["neighbor"]["state"] == "up"
        )
        found = {}
        for entry in json.loads(answer):
            address, state = entry["peer"]["address"], entry["fsm"]
            # It reports it in two places, one after the other.
            established = state == "ESTABLISHED" and ups[address] > 0
            found[address] = RouterPeer(address, established, state, str(ups[address]))
        return found

    def paths(self, family: str, peer: str | None = None) -> list[RouterRoute]:
        address = self.peer(peer).address
        if not self.peers()[address].established:
            # What it still shows is of the session before.
            return []
        entries = [json.loads(line) for line in self.ask("show adj-rib in json")]
        return [
            _route(entry["route"])
            for entry in entries
            if entry["peer"]["address"] == address
            and entry["route"]["nlri"]["family"]["afi"] == AFI[family]
        ]

    def received_cease(self) -> bool:
        return any(
            event["type"] == "notification" and event["neighbor"]["direction"] == "receive"
            for event in self.events()
        )

    def message_counts(self, address: str) -> MessageCounts:
        (answer,) = self.ask("show neighbor json")
        (entry,) = [e for e in json.loads(answer) if e["peer"]["address"] == address]
        refreshes = [e["route-refresh"]["subtype"] for e in self._events_of(address, "refresh")]
        return MessageCounts(
            updates=entry["messages"]["received"]["update"],
            refresh_requests=refreshes.count("query"),
            refresh_begins=refreshes.count("begin"),
            refresh_ends=refreshes.count("end"),
        )

    def request_refresh(self, address: str) -> None:
        for family in self.peer(address).families:
            self.ask(f"neighbor {address} announce route-refresh {WORDS[family]}")

    def shut_down(self, address: str, text: str) -> None:
        if text != self.SHUTDOWN_TEXT:
            raise CannotError(f"exabgp cannot send {text}")
        self.ask(f"neighbor {address} teardown {ADMINISTRATIVE_SHUTDOWN}")

    def last_notification(self, address: str) -> str:
        notifications = [
            event["notification"]
            for event in self._events_of(address, "notification")
            if event["direction"] == "receive"
        ]
        if not notifications:
            return ""
        last = notifications[-1]
        return f"{last['code']}/{last['subcode']} {last['message']}"

    def _announce(self, new: Mapping[str, Originated], gone: Sequence[str]) -> None:
        for peer in self.settings.peers:
            for prefix in gone:
                line = self._route_line(peer, prefix, Originated())
                if line is not None:
                    self.ask(f"neighbor {peer.address} withdraw route {line}")
            for prefix, value in new.items():
                line = self._route_line(peer, prefix, value)
                if line is not None:
                    self.ask(f"neighbor {peer.address} announce route {line}")


def _route(route: Mapping[str, Any]) -> RouterRoute:
    attributes = route["attributes"]
    return RouterRoute(
        prefix=route["nlri"]["prefix"],
        next_hop=route["nlri"]["nexthop"] or "",
        as_path=tuple(
            asn for segment in attributes.get("as-path", {}).values() for asn in segment["value"]
        ),
        origin=attributes["origin"],
        communities=frozenset(WELL_KNOWN.get(c, c) for c in attributes.get("community", ())),
        large_communities=frozenset(attributes.get("large-community", ())),
        local_preference=attributes.get("local-preference"),
        med=attributes.get("med"),
    )


WELL_KNOWN = {
    "no-export": "65535:65281",
    "no-advertise": "65535:65282",
    "no-export-subconfed": "65535:65283",
    "no-peer": "65535:65284",
    "blackhole": "65535:666",
}
