"""FRR's bgpd, without zebra unless it has to know interfaces.

Read over its vty socket (the protocol of vtysh).
"""

from __future__ import annotations

import datetime as dt
import hashlib
import json
import re
import socket
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.support.daemon import Daemon
from tests.support.netns import Namespace
from tests.support.routers.base import (
    CONTROL_SECONDS,
    IPV4,
    IPV6,
    MessageCounts,
    Originated,
    PeerSettings,
    Router,
    RouterPeer,
    RouterRoute,
    RouterSettings,
    family_of,
    split_as_path,
    split_members,
)
from tests.support.wait import NotReadyError, eventually

PROGRAM = Path("/usr/lib/frr/bgpd")
ZEBRA = PROGRAM.with_name("zebra")
WORDS = {IPV4: "ipv4 unicast", IPV6: "ipv6 unicast"}


def ask(path: Path, *commands: str) -> str:
    """Send commands to a vty socket in one session and give the output of the last."""
    output, daemon = "", path.stem
    with socket.socket(socket.AF_UNIX) as vty:
        try:
            vty.settimeout(CONTROL_SECONDS)
            vty.connect(str(path))
            for command in ("enable", *commands):
                vty.sendall(command.encode() + b"\0")
                output, status = _read(vty)
                if status:
                    raise RuntimeError(f"{daemon}: {command}: status {status}: {output.strip()}")
        except (FileNotFoundError, ConnectionError, EOFError) as error:
            raise NotReadyError(f"{daemon}: {error!r}") from error
    return output


def _read(vty: socket.socket) -> tuple[str, int]:
    # An answer ends with three zero octets and the status.
    data = b""
    while data[-4:-1] != b"\0\0\0":
        part = vty.recv(65536)
        if not part:
            raise EOFError
        data += part
    return data[:-4].decode(), data[-1]


class Frr(Router):
    """A ``bgpd`` process."""

    kind = "frr"

    @classmethod
    def missing(cls) -> str | None:
        return None if PROGRAM.exists() else "FRR is not installed (Debian: frr)"

    @classmethod
    def version(cls) -> str:
        done = subprocess.run([PROGRAM, "--version"], capture_output=True, text=True, check=True)
        return "FRR " + done.stdout.split()[2]

    def __init__(self, settings: RouterSettings, namespace: Namespace, directory: Path) -> None:
        super().__init__(settings, namespace, directory)
        self._zebra: Daemon | None = None
        if self._has_interfaces():
            command: list[str | Path] = [
                # It insists on a user of its own group for vtysh, which root need not be in.
                "unshare", "--mount", "sh", "-c", 'mount --bind "$0" /etc/group && exec "$@"',
                directory / "group",
                ZEBRA,
                "-f", directory / "zebra.conf",
                "-i", directory / "zebra.pid",
                "-z", directory / "zserv",
                "--vty_socket", directory,
                "-A", "127.0.0.1", "-P", "0",
                "-u", "root", "-g", "root",
                "--log", "stdout",
            ]  # fmt: skip
            self._zebra = Daemon(
                f"zebra AS{settings.asn}", command, log=directory / "zebra.log", namespace=namespace
            )

    def start(self) -> None:
        if self._zebra is not None:
            (self.directory / "zebra.conf").touch()
            (self.directory / "group").write_text("root:x:0:\nfrrvty:x:999:root\n")
            self._zebra.start()
            eventually(self._zebra_is_there, context=self._zebra.tail)
        super().start()

    def _zebra_is_there(self) -> None:
        assert (self.directory / "zserv").exists()

    def stop(self) -> None:
        super().stop()
        if self._zebra is not None:
            self._zebra.stop()

    def _has_interfaces(self) -> bool:
        return any(peer.interface is not None for peer in self.settings.peers)

    def command(self) -> Sequence[str | Path]:
        listen = [part for address in self.settings.addresses for part in ("-l", address)]
        if self._has_interfaces() or any(p.local_address is not None for p in self.settings.peers):
            # It sets keys on the first listening socket of a family only, so that there is one.
            listen = []
        return [
            PROGRAM,
            # Of interfaces it knows from zebra, which is needed for nothing else.
            *(["-z", self.directory / "zserv"] if self._has_interfaces() else ["-Z"]),
            "-S",
            *listen,
            "-p", str(self.settings.port),
            "-f", self.directory / "bgpd.conf",
            "-i", self.directory / "pid",
            "--vty_socket", self.directory,
            "-A", "127.0.0.1", "-P", "0",
            "-u", "root", "-g", "root",
            "--log", "stdout",
        ]  # fmt: skip

    def configuration(self) -> Mapping[str, str]:
        lines = [
            f"router bgp {self.settings.asn}",
            f" bgp router-id {self.settings.router_id}",
            " no bgp ebgp-requires-policy",
            " no bgp network import-check",
            " no bgp default ipv4-unicast",
            # Its default waits a second and more before the first UPDATE.
            " coalesce-time 1",
            *self._restart(),
            *self._confederation(),
            *(line for peer in self.settings.peers for line in self._neighbor(peer)),
        ]
        for family, words in WORDS.items():
            lines.append(f" address-family {words}")
            for peer in self.settings.peers:
                if family in peer.families:
                    lines += self._activated(peer)
            lines += [
                f"  network {prefix}{_route_map_of(value)}"
                for prefix, value in self.announced.items()
                if family_of(prefix) == family
            ]
            lines.append(" exit-address-family")
        maps = [line for value in {*self.announced.values()} for line in _route_map(value)]
        lines.append("bgp as-path access-list own permit ^$")
        return {
            "bgpd.conf": "\n".join(
                ("log timestamp precision 3", "debug bgp neighbor-events", *lines, *maps)
            )
            + "\n"
        }

    def _restart(self) -> list[str]:
        # Only for all neighbours together; the output distinguishes them.
        times = {peer.restart_time for peer in self.settings.peers} - {None}
        lines = []
        if times:
            lines = [
                " bgp graceful-restart",
                f" bgp graceful-restart restart-time {times.pop()}",
                " bgp graceful-restart preserve-fw-state",
            ]
        long_times = {peer.long_lived_time for peer in self.settings.peers} - {None}
        if long_times:
            lines.append(f" bgp long-lived-graceful-restart stale-time {long_times.pop()}")
        return lines

    def _confederation(self) -> list[str]:
        if self.settings.confederation is None:
            return []
        members = [str(peer.asn) for peer in self.settings.peers if peer.internal_confederation]
        return [
            f" bgp confederation identifier {self.settings.confederation}",
            f" bgp confederation peers {' '.join(members)}",
        ]

    @staticmethod
    def _activated(peer: PeerSettings) -> list[str]:
        name = f"  neighbor {_name(peer)}"
        lines = [f"{name} activate"]
        if not peer.transit:
            lines.append(f"{name} filter-list own out")
        if peer.add_path in {"send", "both"}:
            lines.append(f"{name} addpath-tx-all-paths")
        if peer.add_path not in {"receive", "both"}:
            lines.append(f"{name} disable-addpath-rx")
        if peer.maximum_prefixes is not None:
            restart = " restart 1" if peer.reconnects_after_limit else ""
            lines.append(f"{name} maximum-prefix {peer.maximum_prefixes}{restart}")
        return lines

    def _neighbor(self, peer: PeerSettings) -> list[str]:
        name = f" neighbor {_name(peer)}"
        asn = "external" if peer.any_external else peer.asn
        lines = [
            f"{name} {'remote-as' if peer.interface is None else 'interface remote-as'} {asn}",
            f"{name} port {peer.port}",
            f"{name} timers {max(1, peer.hold_time // 3)} {peer.hold_time}",
            f"{name} timers connect {peer.connect_retry_time}",
            f"{name} advertisement-interval 0",
        ]
        if peer.interface is None:
            lines.append(f"{name} update-source {self.settings.address_towards(peer)}")
        if peer.passive and peer.interface is None:
            lines.append(f"{name} passive")
        if peer.password is not None:
            lines.append(f"{name} password {peer.password}")
        if peer.local_asn is not None:
            lines.append(f"{name} local-as {peer.local_asn} no-prepend replace-as")
        if not peer.four_octet_as:
            # It can only omit all capabilities.
            lines.append(f"{name} dont-capability-negotiate")
        if peer.role is not None:
            lines.append(f"{name} local-role {peer.role}")
        if peer.restart_time is not None:
            lines.append(f"{name} graceful-restart")
        if peer.ttl_security:
            lines.append(f"{name} ttl-security hops 1")
        elif peer.multihop is not None and peer.asn != self.settings.asn:
            lines.append(f"{name} ebgp-multihop {peer.multihop}")
        elif peer.interface is None:
            # Without zebra it knows no interfaces, so nothing is connected.
            lines.append(f"{name} disable-connected-check")
        if peer.extended_next_hop:
            lines.append(f"{name} capability extended-nexthop")
        return lines

    def ask(self, *commands: str) -> str:
        """Send commands in one session and give the output of the last."""
        return ask(self.directory / "bgpd.vty", *commands)

    def _json(self, command: str) -> dict[str, Any]:
        text = self.ask(command)
        answer: dict[str, Any] = json.loads(text) if text.strip() else {}
        return answer

    def peers(self) -> dict[str, RouterPeer]:
        found = {}
        for address, state in self._json("show bgp neighbors json").items():
            if not isinstance(state, dict):
                continue
            word = state["bgpState"]
            found[address] = RouterPeer(
                address,
                word == "Established",
                word,
                # Another process counts from the beginning.
                f"{self.daemon.pid} {state.get('connectionsEstablished', 0)}",
                router_id=state.get("remoteRouterId"),
                hold_time=state["bgpTimerHoldTimeMsecs"] // 1000,
            )
        return found

    def paths(self, family: str, peer: str | None = None) -> list[RouterRoute]:
        settings = self.peer(peer)
        table = self._json(f"show bgp {WORDS[family]} json detail")
        return [
            _route(prefix, path)
            for prefix, entry in table.get("routes", {}).items()
            # Newer releases have an object with the paths, older ones a list, header first.
            for path in (entry if isinstance(entry, list) else entry["paths"])
            if _is_from(path.get("peer", {}), settings)
        ]

    def only_to_customer(self, prefix: str, peer: str) -> int | None:
        # In its JSON it leaves that out.
        text = self.ask(f"show bgp {WORDS[family_of(prefix)]} {prefix}")
        attributes = re.search(rf" from {re.escape(peer)} .*\n\s+Origin (.*)", text)
        found = None if attributes is None else re.search(r"\botc (\d+)", attributes[1])
        return None if found is None else int(found[1])

    def received_cease(self) -> bool:
        states = self._json("show bgp neighbors json").values()
        return any(
            isinstance(state, dict) and state.get("lastNotificationReason", "").startswith("Cease")
            for state in states
        )

    def message_counts(self, address: str) -> MessageCounts:
        counted = self._json(f"show bgp neighbors {address} json")[address]["messageStats"]
        return MessageCounts(
            updates=counted["updatesRecv"],
            refresh_requests=counted["routeRefreshRecv"],
            refresh_begins=self._marks(address, "BoRR"),
            refresh_ends=self._marks(address, "EoRR"),
        )

    def _marks(self, address: str, mark: str) -> int:
        # It counts these nowhere.
        log = (self.directory / "log").read_text(errors="replace")
        return len(re.findall(rf"{re.escape(address)}\S* rcvd route-refresh \({mark}\)", log))

    def request_refresh(self, address: str) -> None:
        self.ask(f"clear bgp {address} in")

    def shut_down(self, address: str, text: str) -> None:
        self.ask(
            "configure terminal",
            f"router bgp {self.settings.asn}",
            f"neighbor {address} shutdown message {text}",
        )

    def last_notification(self, address: str) -> str:
        state = self._json(f"show bgp neighbors {address} json")[address]
        parts = (state.get("lastNotificationReason"), state.get("lastShutdownDescription"))
        return " ".join(part for part in parts if part)

    def ends(self, address: str) -> list[tuple[float, str]]:
        """Return when it received NOTIFICATIONs of a neighbour, and which, by its log."""
        pattern = rf"^(\S+ \S+) BGP: .*%NOTIFICATION: received from neighbor {address} (\S+)"
        log = (self.directory / "log").read_text(errors="replace")
        return [
            (dt.datetime.fromisoformat(match[1].replace("/", "-")).timestamp(), match[2])
            for match in re.finditer(pattern, log, re.MULTILINE)
        ]

    def _announce(self, new: Mapping[str, Originated], gone: Sequence[str]) -> None:
        for value in {*new.values()}:
            lines = _route_map(value)
            if lines:
                self.ask("configure terminal", *lines)
        changes = [
            *((prefix, f"no network {prefix}") for prefix in gone),
            *((prefix, f"network {prefix}{_route_map_of(value)}") for prefix, value in new.items()),
        ]
        for prefix, line in changes:
            words = WORDS[family_of(prefix)]
            self.ask(
                "configure terminal",
                f"router bgp {self.settings.asn}",
                f"address-family {words}",
                line,
            )


def _is_from(origin: Mapping[str, Any], peer: PeerSettings) -> bool:
    """Whether a path is from this neighbour."""
    if peer.interface is not None:
        return origin.get("interface") == peer.interface
    return origin.get("peerId") == peer.address


def _name(peer: PeerSettings) -> str:
    """Return what the daemon calls a neighbour."""
    return peer.address if peer.interface is None else peer.interface


# A line of configuration cannot be much longer.
COMMUNITIES_PER_LINE = 50


def _route_map_of(value: Originated) -> str:
    """Return what names the route map in a ``network`` line; nothing where none is needed."""
    return "" if value == Originated() else f" route-map {_map_name(value)}"


def _map_name(value: Originated) -> str:
    words = " ".join((*value.communities, *value.large_communities))
    return "own-" + hashlib.sha256(words.encode()).hexdigest()[:12]


def _route_map(value: Originated) -> list[str]:
    """Return the lines that define a route map which sets these attributes."""
    sets = [
        f"set {kind} {' '.join(words[start : start + COMMUNITIES_PER_LINE])} additive"
        for kind, words in (
            ("community", value.communities),
            ("large-community", value.large_communities),
        )
        for start in range(0, len(words), COMMUNITIES_PER_LINE)
    ]
    name = _map_name(value)
    return [
        line
        for number, each in enumerate(sets, 1)
        for line in (
            f"route-map {name} permit {number}",
            each,
            *(["on-match next"] if number < len(sets) else []),
        )
    ]


def _route(prefix: str, path: Mapping[str, Any]) -> RouterRoute:
    def listed(name: str) -> frozenset[str]:
        named = path.get(name, {}).get("string", "")
        return frozenset(_numeric(word) for word in named.split())

    as_path = path["aspath"]["string"].replace("Local", "")
    hops = [hop for hop in path.get("nexthops", []) if hop.get("scope", "global") == "global"]
    return RouterRoute(
        prefix=prefix,
        next_hop=hops[0]["ip"] if hops else "",
        as_path=split_as_path(as_path),
        members=split_members(as_path),
        origin=path["origin"].lower(),
        communities=listed("community"),
        large_communities=listed("largeCommunity"),
        local_preference=path.get("locPrf"),
        med=path.get("metric"),
    )


WELL_KNOWN = {
    "internet": "0:0",
    "graceful-shutdown": "65535:0",
    "accept-own": "65535:1",
    "route-filter-translated-v4": "65535:2",
    "route-filter-v4": "65535:3",
    "route-filter-translated-v6": "65535:4",
    "route-filter-v6": "65535:5",
    "llgr-stale": "65535:6",
    "no-llgr": "65535:7",
    "accept-own-nexthop": "65535:8",
    "blackhole": "65535:666",
    "no-export": "65535:65281",
    "no-advertise": "65535:65282",
    "local-AS": "65535:65283",
    "no-peer": "65535:65284",
}


def _numeric(word: str) -> str:
    """Undo FRR's names of well-known communities."""
    return WELL_KNOWN.get(word, re.sub(r"\s", "", word))
