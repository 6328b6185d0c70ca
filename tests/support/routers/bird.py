"""BIRD 2: one protocol a peer, read over its control socket (the protocol of birdc)."""

from __future__ import annotations

import re
import shutil
import socket
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.support.routers.base import (
    IPV4,
    IPV6,
    Originated,
    PeerSettings,
    Router,
    RouterPeer,
    RouterRoute,
    family_of,
    split_as_path,
)
from tests.support.wait import NotReadyError

CONTROL = "control"
TABLES = {IPV4: "master4", IPV6: "master6"}
FIRST_ERROR_CODE = 8000
# It knows the subcodes of RFC 4486 by name, and does not say the code.
CEASE = ("Administrative shutdown", "Peer de-configured", "Administrative reset")


def program() -> str | None:
    """Return the path of the daemon."""
    return shutil.which("bird", path="/usr/sbin:/usr/local/sbin:/usr/bin:/usr/local/bin")


STEADY = 0.05
"""Seconds by which BIRD's account of one moment may differ."""


def _seconds(clock: str) -> float:
    """Read a time of day such as 04:53:43.158."""
    hours, minutes, seconds = clock.split(":")
    return int(hours) * 3600 + int(minutes) * 60 + float(seconds)


class Bird(Router):
    """A ``bird`` process."""

    kind = "bird"

    @classmethod
    def missing(cls) -> str | None:
        return None if program() else "bird is not installed (Debian: bird2)"

    @classmethod
    def version(cls) -> str:
        done = subprocess.run(
            [program() or "bird", "--version"], capture_output=True, text=True, check=True
        )
        # It says so on standard error.
        return "BIRD " + (done.stdout + done.stderr).split()[-1]

    def command(self) -> Sequence[str | Path]:
        return [
            program() or "bird",
            "-f",
            "-c", self.directory / "bird.conf",
            "-s", self.directory / CONTROL,
            "-P", self.directory / "pid",
        ]  # fmt: skip

    def configuration(self) -> Mapping[str, str]:
        blocks = [
            f"router id {self.settings.router_id};",
            f'log "{self.directory / "bird.log"}" all;',
            "protocol device { scan time 1; }",
            self._statics(IPV4),
            self._statics(IPV6),
            *(self._protocol(index, peer) for index, peer in enumerate(self.settings.peers)),
        ]
        return {"bird.conf": "\n".join(blocks) + "\n"}

    def _statics(self, family: str) -> str:
        routes = " ".join(
            f"route {prefix} blackhole{_attributes(value)};"
            for prefix, value in self.announced.items()
            if family_of(prefix) == family
        )
        channel = family.split("-")[0]
        return f"protocol static own_{channel} {{ {channel}; {routes} }}"

    def _protocol(self, index: int, peer: PeerSettings) -> str:
        settings = self.settings
        lines = [
            f"local {settings.address_towards(peer)} port {settings.port} as {settings.asn};",
            f"neighbor {peer.address} port {peer.port} as {peer.asn};",
            "strict bind on;",
            f"hold time {peer.hold_time};",
            f"connect retry time {peer.connect_retry_time};",
            "connect delay time 1; error wait time 1, 2; startup hold time 9;",
        ]
        if peer.passive:
            lines.append("passive on;")
        if peer.password is not None:
            lines.append(f'password "{peer.password}";')
        if peer.multihop is not None:
            lines.append(f"multihop {peer.multihop};")
        lines += [self._channel(peer, family) for family in peer.families]
        return f"protocol bgp p{index} {{\n  " + "\n  ".join(lines) + "\n}"

    def _channel(self, peer: PeerSettings, family: str) -> str:
        options = ["import all;", "export where source = RTS_STATIC;", "next hop self;"]
        extended = peer.extended_next_hop and family == IPV4
        if extended:
            options.append("extended next hop on;")
        own = [a for a in self.settings.addresses if family_of(a) == family]
        if family_of(peer.address) != family and own and not extended:
            # Of itself it would send an unspecified next hop in the session's other family.
            options.append(f"next hop address {own[0]};")
        return f"{family.split('-')[0]} {{ {' '.join(options)} }};"

    def ask(self, command: str) -> list[tuple[int, str]]:
        """Send a command and give the lines of the answer, each with its code."""
        answer: list[tuple[int, str]] = []
        with socket.socket(socket.AF_UNIX) as control:
            try:
                control.settimeout(5)
                control.connect(str(self.directory / CONTROL))
                stream = control.makefile("rw")
                self._read(stream.readline, answer)
                answer.clear()
                stream.write(f"{command}\n")
                stream.flush()
                self._read(stream.readline, answer)
                stream.close()
            except (FileNotFoundError, ConnectionError, EOFError) as error:
                raise NotReadyError(f"bird: {error!r}") from error
        code, text = answer[-1]
        if code >= FIRST_ERROR_CODE:
            raise RuntimeError(f"bird: {command}: {code} {text}")
        return answer

    @staticmethod
    def _read(readline: object, answer: list[tuple[int, str]]) -> None:
        assert callable(readline)
        code = 0
        while True:
            line = readline()
            if not line:
                raise EOFError
            line = line.rstrip("\n")
            if match := re.match(r"(\d{4})([ -])", line):
                code = int(match[1])
                answer.append((code, line[5:]))
                if match[2] == " ":
                    return
            else:
                # A continuation: the code is that of the line before.
                answer.append((code, line[1:]))

    def peers(self) -> dict[str, RouterPeer]:
        found: dict[str, RouterPeer] = {}
        since = info = ""
        address: str | None = None
        for code, text in self.ask("show protocols all"):
            if match := re.match(r"p\d+\s+BGP\s+\S+\s+\S+\s+(\S+)\s*(.*)", text):
                since, info, address = match[1], match[2].strip(), None
            elif code and (match := re.match(r"\s+Neighbor address:\s+(\S+)", text)):
                address = match[1].split("%")[0]
                up = info.startswith("Established")
                found[address] = RouterPeer(address, up, info, self._steady(address, since))
        return found

    def _steady(self, address: str, since: str) -> str:
        """Spell a moment as it was spelled before, unless it is another one.

        BIRD reckons it anew from its monotonic clock each time, and is a millisecond off now and
        then; a session that was established again is so by a good deal more.
        """
        tokens: dict[str, str] = self.__dict__.setdefault("_tokens", {})
        before = tokens.get(address, since)
        same = abs(_seconds(before) - _seconds(since)) < STEADY if before != since else True
        tokens[address] = before if same else since
        return tokens[address]

    def paths(self, family: str, peer: str | None = None) -> list[RouterRoute]:
        index = self.settings.peers.index(self.peer(peer))
        command = f"show route table {TABLES[family]} protocol p{index} all"
        found: list[tuple[str, dict[str, str]]] = []
        for _, text in self.ask(command):
            # Another path of the same prefix begins without it.
            if match := re.match(r"([0-9a-f.:]+/\d+)?\s+\S+ \[p\d+ ", text):
                found.append((match[1] or found[-1][0], {}))
            elif match := re.match(r"\s*BGP\.(\w+): (.*)", text):
                found[-1][1][match[1]] = match[2].strip()
        return [_route(prefix, attributes) for prefix, attributes in found]

    def received_cease(self) -> bool:
        log = (self.directory / "bird.log").read_text()
        return any(f"Received: {subcode}" in log for subcode in CEASE)

    def _announce(self, new: Mapping[str, Originated], gone: Sequence[str]) -> None:
        del new, gone  # it compares the whole configuration itself
        (self.directory / "bird.conf").write_text(self.configuration()["bird.conf"])
        self.ask("configure")


def _attributes(value: Originated) -> str:
    if value == Originated():
        return ""
    steps = [f"bgp_community.add(({c.replace(':', ',')}));" for c in value.communities]
    steps += [f"bgp_large_community.add(({c.replace(':', ',')}));" for c in value.large_communities]
    return " { " + " ".join(steps) + " }"


def _route(prefix: str, attributes: Mapping[str, str]) -> RouterRoute:
    def number(name: str) -> int | None:
        return int(attributes[name]) if name in attributes else None

    def tuples(name: str) -> frozenset[str]:
        # Written as "(65000,99) (65000,100)", the large ones with blanks after the commas.
        return frozenset(
            re.sub(r",\s*", ":", inner)
            for inner in re.findall(r"\(([^)]*)\)", attributes.get(name, ""))
        )

    return RouterRoute(
        prefix=prefix,
        # A global address may be followed by a link-local one.
        next_hop=attributes.get("next_hop", "").split(" ")[0],
        as_path=split_as_path(attributes.get("as_path", "")),
        origin=attributes.get("origin", "").lower(),
        communities=tuples("community"),
        large_communities=tuples("large_community"),
        local_preference=number("local_pref"),
        med=number("med"),
    )
