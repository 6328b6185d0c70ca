"""OpenBGPD: ``bgpd`` in the foreground, queried by ``bgpctl`` in JSON.

Its four processes are ended by ending the first. It never changes the kernel's routes.
"""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.support import netns
from tests.support.routers.base import (
    FAMILIES,
    IPV4,
    IPV6,
    MessageCounts,
    Originated,
    PeerSettings,
    Router,
    RouterPeer,
    RouterRoute,
    split_as_path,
)
from tests.support.wait import NotReadyError

PROGRAM = Path("/usr/sbin/bgpd")
CONTROL_PROGRAM = Path("/usr/sbin/bgpctl")
CHROOT = Path("/run/openbgpd")
"""Its unprivileged processes live there; where services are managed, the manager makes it."""
WORDS = {IPV4: "inet", IPV6: "inet6"}
ANNOUNCED = {IPV4: "IPv4", IPV6: "IPv6"}


class OpenBGPD(Router):
    """A ``bgpd`` of OpenBSD."""

    kind = "openbgpd"
    CANNOT = frozenset(
        {
            "bfd_interval",
            "any_external",
            "interface",
            "extended_next_hop",
            "restart_time",
            "long_lived_time",
            "internal_confederation",
            "confederation",
        }
    )
    # It sets keys on listening sockets before it knows of any neighbour.
    CONNECTS_FOR = frozenset({"password"})

    @classmethod
    def missing(cls) -> str | None:
        if not PROGRAM.exists():
            return "OpenBGPD is not installed (Debian: openbgpd)"
        if netns.unavailable() is None and not netns.has_all_users():
            return (
                "OpenBGPD changes its user, which needs root,"
                " or newuidmap and a range in /etc/subuid (Debian: uidmap)"
            )
        return None

    @classmethod
    def version(cls) -> str:
        done = subprocess.run([PROGRAM, "-V"], capture_output=True, text=True, check=True)
        # "OpenBGPD 7.7", on standard error.
        return (done.stdout + done.stderr).strip()

    def command(self) -> Sequence[str | Path]:
        return [PROGRAM, "-d", "-v", "-f", self.directory / "bgpd.conf"]

    def configuration(self) -> Mapping[str, str]:
        self.namespace.run("mkdir", "-p", "-m", "755", str(CHROOT))
        settings = self.settings
        lines = [
            f"AS {settings.asn}",
            f"router-id {settings.router_id}",
            *(f"listen on {address} port {settings.port}" for address in settings.addresses),
            f'socket "{self.directory / "control"}"',
            "fib-update no",
            f"connect-retry {self._connect_retry_time()}",
            *(f"network {prefix}{_configured(value)}" for prefix, value in self.announced.items()),
        ]
        for peer in settings.peers:
            lines += self._neighbor(peer)
        lines += ["allow from any", "allow to any"]
        # Of itself it would take the loopback's.
        lines += [
            f"match to {peer.address} inet6 set nexthop {value}"
            for peer in settings.peers
            if peer.other_next_hop is not None
            for value in (peer.other_next_hop, "no-modify")
        ]
        # Without transit nothing that has been in another AS.
        lines += [
            f"deny to {peer.address} max-as-len 0" for peer in settings.peers if not peer.transit
        ]
        return {"bgpd.conf": "\n".join(lines) + "\n"}

    def _connect_retry_time(self) -> int:
        times = [peer.connect_retry_time for peer in self.settings.peers if not peer.passive]
        return min(times, default=1)

    def _neighbor(self, peer: PeerSettings) -> list[str]:
        lines = [
            f"neighbor {peer.address} {{",
            f"  remote-as {peer.asn}",
            f"  local-address {self.settings.address_towards(peer)}",
            f"  port {peer.port}",
            f"  holdtime {peer.hold_time}",
        ]
        lines += [
            f"  announce {ANNOUNCED[family]} {'unicast' if family in peer.families else 'none'}"
            for family in FAMILIES
        ]
        lines.append("  announce enhanced refresh yes")
        if peer.local_asn is not None:
            lines.append(f"  local-as {peer.local_asn}")
        if peer.password is not None:
            lines.append(f'  tcp md5sig password "{peer.password}"')
        if peer.passive:
            lines.append("  passive")
        hops = peer.multihop
        if peer.other_next_hop is not None:
            # Only there a next hop can be configured.
            hops = hops or 2
        if hops is not None and peer.asn != self.settings.asn:
            lines.append(f"  multihop {hops}")
        if peer.ttl_security:
            lines.append("  ttl-security yes")
        if not peer.four_octet_as:
            lines.append("  announce as-4byte no")
        if peer.add_path in {"receive", "both"}:
            lines.append("  announce add-path recv yes")
        if peer.add_path in {"send", "both"}:
            lines.append("  announce add-path send all")
        if peer.maximum_prefixes is not None:
            lines.append(f"  max-prefix {peer.maximum_prefixes}")
        if peer.role is not None:
            lines.append(f"  announce policy {ROLES[peer.role]}")
        return [*lines, "}"]

    def ask(self, *arguments: str) -> Any:  # noqa: ANN401 - JSON of many shapes
        """Run the client and give its JSON, or None for no output."""
        done = subprocess.run(
            [CONTROL_PROGRAM, "-s", self.directory / "control", "-j", *arguments],
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode != 0:
            raise NotReadyError(f"bgpctl {' '.join(arguments)}: {done.stdout}{done.stderr}")
        text = done.stdout.strip()
        return json.loads(text) if text.startswith("{") else None

    def peers(self) -> dict[str, RouterPeer]:
        answer = self.ask("show", "neighbor") or {}
        return {
            entry["remote_addr"]: RouterPeer(
                entry["remote_addr"],
                entry["state"] == "Established",
                entry["state"],
                self._token(entry["remote_addr"]),
            )
            for entry in answer.get("neighbors", [])
        }

    def _token(self, address: str) -> str:
        # Its own "since" counts whole seconds; each change of state is in its log.
        return str(self._log().count(f"neighbor {address}: state change OpenConfirm -> Estab"))

    def _log(self) -> str:
        return (self.directory / "log").read_text(errors="replace")

    def paths(self, family: str, peer: str | None = None) -> list[RouterRoute]:
        address = self.peer(peer).address
        answer = self.ask("show", "rib", "detail", WORDS[family], "neighbor", address) or {}
        return [_route(entry) for entry in answer.get("rib", [])]

    def received_cease(self) -> bool:
        return bool(re.search(r"received notification: Cease", self._log()))

    def _entry(self, address: str) -> dict[str, Any]:
        entry: dict[str, Any] = self.ask("show", "neighbor", address)["neighbors"][0]
        return entry

    def message_counts(self, address: str) -> MessageCounts:
        counted = self._entry(address)["stats"]
        refreshes = counted["route-refresh"]["received"]
        return MessageCounts(
            updates=counted["update"]["received"]["updates"],
            refresh_requests=refreshes["request"],
            refresh_begins=refreshes["borr"],
            refresh_ends=refreshes["eorr"],
        )

    def request_refresh(self, address: str) -> None:
        self.ask("neighbor", address, "refresh")

    def shut_down(self, address: str, text: str) -> None:
        self.ask("neighbor", address, "down", text)

    def last_notification(self, address: str) -> str:
        # What it shows is gone when the session is tried again.
        notifications = re.findall(
            rf"neighbor {re.escape(address)}: received (?:notification|shutdown reason): (.*)",
            self._log(),
        )
        return " ".join(notifications)

    def _announce(self, new: Mapping[str, Originated], gone: Sequence[str]) -> None:
        for prefix in gone:
            self.ask("network", "delete", prefix)
        for prefix, value in new.items():
            words = [word for c in value.communities for word in ("community", c)]
            words += [word for c in value.large_communities for word in ("large-community", c)]
            self.ask("network", "add", prefix, *words)


ROLES = {
    "provider": "provider",
    "customer": "customer",
    "peer": "peer",
    "rs-server": "rs",
    "rs-client": "rs-client",
}


def _configured(value: Originated) -> str:
    if value == Originated():
        return ""
    words = [f"community {c}" for c in value.communities]
    words += [f"large-community {c}" for c in value.large_communities]
    return f" set {{ {' '.join(words)} }}"


def _numeric(word: str) -> str:
    """Undo its names of well-known communities."""
    return WELL_KNOWN.get(word, word)


WELL_KNOWN = {
    "GRACEFUL_SHUTDOWN": "65535:0",
    "BLACKHOLE": "65535:666",
    "NO_EXPORT": "65535:65281",
    "NO_ADVERTISE": "65535:65282",
    "NO_EXPORT_SUBCONFED": "65535:65283",
    "NO_PEER": "65535:65284",
}


def _route(entry: Mapping[str, Any]) -> RouterRoute:
    return RouterRoute(
        prefix=entry["prefix"],
        next_hop=entry["exit_nexthop"],
        as_path=split_as_path(entry["aspath"]),
        origin=entry["origin"].lower(),
        communities=frozenset(map(_numeric, entry.get("communities", ()))),
        large_communities=frozenset(entry.get("large_communities", ())),
        local_preference=entry.get("localpref"),
        med=entry.get("metric"),
        only_to_customer=next(
            (a["as"] for a in entry.get("attributes", ()) if a["type"] == "OTC"), None
        ),
    )
