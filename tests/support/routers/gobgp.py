"""GoBGP: the daemon with a TOML file, queried by its own command-line client in JSON."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.support.routers.base import (
    IPV4,
    IPV6,
    MessageCounts,
    Originated,
    PeerSettings,
    Router,
    RouterPeer,
    RouterRoute,
    family_of,
)
from tests.support.wait import NotReadyError

WORDS = {IPV4: "ipv4", IPV6: "ipv6"}
ESTABLISHED = 6
CEASE = 6
SEQUENCE, MEMBERS = 2, 3
"""Types of segments of an AS path."""
MOST_PATHS = 8
LEAST_RETRY_TIME = 5
"""Seconds. It waits for once to twice the time before each attempt, also before the first."""
STATES = ("Unknown", "Idle", "Connect", "Active", "OpenSent", "OpenConfirm", "Established")
ORIGINS = ("igp", "egp", "incomplete")
# RFC numbers of path attributes, as its JSON has them.
ORIGIN, AS_PATH, NEXT_HOP, MED, LOCAL_PREF, COMMUNITIES, MP_REACH, LARGE = 1, 2, 3, 4, 5, 8, 14, 32


class GoBGP(Router):
    """A ``gobgpd`` process."""

    kind = "gobgp"
    RESTARTED = ("-r",)
    CANNOT = frozenset({"bfd_interval", "four_octet_as", "role", "interface", "any_external"})
    _mute = False
    """Peers are added after its routes: otherwise its End-of-RIB would precede them."""

    @classmethod
    def missing(cls) -> str | None:
        if shutil.which("gobgpd") and shutil.which("gobgp"):
            return None
        return "gobgpd is not installed (Debian: gobgpd)"

    @classmethod
    def version(cls) -> str:
        done = subprocess.run(["gobgpd", "--version"], capture_output=True, text=True, check=True)
        return "GoBGP " + done.stdout.split()[-1]

    def command(self) -> Sequence[str | Path]:
        return [
            "gobgpd",
            "-f", self.directory / "gobgpd.toml",
            "--api-hosts", f"unix://{self.directory / 'api'}",
            "--pprof-disable",
        ]  # fmt: skip

    def configuration(self) -> Mapping[str, str]:
        # A killed daemon leaves its socket, which is then in the way.
        (self.directory / "api").unlink(missing_ok=True)
        settings = self.settings
        addresses = ", ".join(f'"{address}"' for address in settings.addresses)
        lines = [
            "[global.config]",
            f"as = {settings.asn}",
            f'router-id = "{settings.router_id}"',
            f"port = {settings.port}",
            f"local-address-list = [{addresses}]",
        ]
        if settings.confederation is not None:
            members = [str(peer.asn) for peer in settings.peers if peer.internal_confederation]
            lines += [
                "[global.confederation.config]",
                "enabled = true",
                f"identifier = {settings.confederation}",
                f"member-as-list = [{', '.join(members)}]",
            ]
        for peer in settings.peers:
            lines += self._neighbor(peer)
        return {"gobgpd.toml": "\n".join(lines) + "\n"}

    def _neighbor(self, peer: PeerSettings) -> list[str]:
        lines = [
            "[[neighbors]]",
            "[neighbors.config]",
            f'neighbor-address = "{peer.address}"',
            f"peer-as = {peer.asn}",
            f"admin-down = {'true' if self._mute else 'false'}",
        ]
        if peer.local_asn is not None:
            lines.append(f"local-as = {peer.local_asn}")
        if peer.password is not None:
            lines.append(f'auth-password = "{peer.password}"')
        lines += [
            "[neighbors.transport.config]",
            f'local-address = "{self.settings.address_towards(peer)}"',
            f"remote-port = {peer.port}",
            f"passive-mode = {'true' if peer.passive else 'false'}",
            "[neighbors.timers.config]",
            f"hold-time = {peer.hold_time}",
            f"keepalive-interval = {max(1, peer.hold_time // 3)}",
            f"connect-retry = {min(peer.connect_retry_time, LEAST_RETRY_TIME)}",
            "idle-hold-time-after-reset = 1",
        ]
        if peer.multihop is not None and peer.asn != self.settings.asn:
            lines += [
                "[neighbors.ebgp-multihop.config]",
                "enabled = true",
                f"multihop-ttl = {peer.multihop}",
            ]
        if peer.ttl_security:
            lines += ["[neighbors.ttl-security.config]", "enabled = true", "ttl-min = 255"]
        if peer.restart_time is not None:
            lines += [
                "[neighbors.graceful-restart.config]",
                "enabled = true",
                f"restart-time = {peer.restart_time}",
                f"long-lived-enabled = {'true' if peer.long_lived_time is not None else 'false'}",
            ]
        for family in peer.families:
            lines += _family(peer, family)
        return lines

    def ask(self, *arguments: str) -> Any:  # noqa: ANN401 - JSON of many shapes
        """Run the client and give its JSON, or None for no output."""
        done = subprocess.run(
            ["gobgp", "--target", f"unix://{self.directory / 'api'}", "-j", *arguments],
            capture_output=True,
            text=True,
            check=False,
        )
        if "BGP session is not established" in done.stdout:
            # It has no table then.
            return None
        if done.returncode != 0:
            raise NotReadyError(f"gobgp {' '.join(arguments)}: {done.stdout}{done.stderr}")
        # Commands that change something answer in text, also with --json.
        return json.loads(done.stdout) if done.stdout.startswith(("[", "{", "null")) else None

    def peers(self) -> dict[str, RouterPeer]:
        found = {}
        for entry in self.ask("neighbor") or []:
            state = entry["state"]
            address = state["neighbor_address"]
            number = state.get("session_state", 0)
            found[address] = RouterPeer(
                address,
                number == ESTABLISHED,
                STATES[number],
                f"{entry.get('timers', {}).get('state', {}).get('uptime', {}).get('seconds')}",
                router_id=state.get("router_id") or None,
                hold_time=_whole(entry.get("timers", {}).get("state", {}), "negotiated_hold_time"),
            )
        return found

    def paths(self, family: str, peer: str | None = None) -> list[RouterRoute]:
        address = self.peer(peer).address
        table = self.ask("neighbor", address, "adj-in", "-a", WORDS[family]) or {}
        return [_route(prefix, path) for prefix, paths in table.items() for path in paths]

    def received_cease(self) -> bool:
        log = (self.directory / "log").read_text()
        return any(
            '"received notification"' in line and f'"Code":{CEASE}' in line
            for line in log.splitlines()
        )

    def message_counts(self, address: str) -> MessageCounts:
        (entry,) = [e for e in self.ask("neighbor") if e["state"]["neighbor_address"] == address]
        counted = entry["state"]["messages"]["received"]
        return MessageCounts(
            updates=int(counted.get("update", 0)),
            refresh_requests=int(counted.get("refresh", 0)),
            refresh_begins=None,
            refresh_ends=None,
        )

    def request_refresh(self, address: str) -> None:
        self.ask("neighbor", address, "softresetin")

    def shut_down(self, address: str, text: str) -> None:
        self.ask("neighbor", address, "shutdown", "--reason", text)

    def last_notification(self, address: str) -> str:
        log = (self.directory / "log").read_text()
        lines = [
            line
            for line in log.splitlines()
            if '"received notification"' in line and f'"Key":"{address}"' in line
        ]
        return lines[-1] if lines else ""

    def _announce(self, new: Mapping[str, Originated], gone: Sequence[str]) -> None:
        for prefix in gone:
            self.ask("global", "rib", "del", prefix, "-a", WORDS[family_of(prefix)])
        for prefix, value in new.items():
            words = [prefix, "origin", "igp"]
            if value.communities:
                words += ["community", ",".join(value.communities)]
            if value.large_communities:
                words += ["large-community", ",".join(value.large_communities)]
            self.ask("global", "rib", "add", *words, "-a", WORDS[family_of(prefix)])

    def resume(self) -> None:
        self._mute = True
        super().resume()

    def finish(self) -> None:
        # It has no configuration for routes of its own.
        self._announce(self.announced, ())
        if self._mute:
            self._mute = False
            for peer in self.settings.peers:
                self.ask("neighbor", peer.address, "enable")


def _family(peer: PeerSettings, family: str) -> list[str]:
    lines = [
        "[[neighbors.afi-safis]]",
        "[neighbors.afi-safis.config]",
        f'afi-safi-name = "{family}"',
    ]
    if peer.restart_time is not None:
        lines += ["[neighbors.afi-safis.mp-graceful-restart.config]", "enabled = true"]
    if peer.long_lived_time is not None:
        lines += [
            "[neighbors.afi-safis.long-lived-graceful-restart.config]",
            "enabled = true",
            f"restart-time = {peer.long_lived_time}",
        ]
    if peer.add_path != "none":
        lines += [
            "[neighbors.afi-safis.add-paths.config]",
            f"receive = {'true' if peer.add_path in {'receive', 'both'} else 'false'}",
            f"send-max = {MOST_PATHS if peer.add_path in {'send', 'both'} else 0}",
        ]
    if peer.maximum_prefixes is not None:
        lines += [
            "[neighbors.afi-safis.prefix-limit.config]",
            f"max-prefixes = {peer.maximum_prefixes}",
        ]
    return lines


def _whole(values: Mapping[str, Any], name: str) -> int | None:
    return int(values[name]) if values.get(name) else None


def _route(prefix: str, path: Mapping[str, Any]) -> RouterRoute:
    attributes = {attribute["type"]: attribute for attribute in path["attrs"]}
    segments = attributes.get(AS_PATH, {}).get("as_paths") or []
    next_hop = attributes.get(NEXT_HOP) or attributes.get(MP_REACH) or {}
    return RouterRoute(
        prefix=prefix,
        next_hop=next_hop.get("nexthop", ""),
        as_path=tuple(asn for s in segments if s["segment_type"] == SEQUENCE for asn in s["asns"]),
        members=tuple(asn for s in segments if s["segment_type"] == MEMBERS for asn in s["asns"]),
        origin=ORIGINS[attributes[ORIGIN]["value"]],
        communities=frozenset(
            f"{number >> 16}:{number & 0xFFFF}"
            for number in attributes.get(COMMUNITIES, {}).get("communities", [])
        ),
        large_communities=frozenset(
            f"{value['ASN']}:{value['LocalData1']}:{value['LocalData2']}"
            for value in attributes.get(LARGE, {}).get("value", [])
        ),
        local_preference=attributes.get(LOCAL_PREF, {}).get("value"),
        med=attributes.get(MED, {}).get("metric"),
    )
