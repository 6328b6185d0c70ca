"""BIRD 2: one protocol a peer, read over its control socket (the protocol of birdc)."""

from __future__ import annotations

import dataclasses
import datetime as dt
import re
import shutil
import socket
import subprocess
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from tests.support.daemon import LOG_TAIL
from tests.support.netns import DEVICE, Namespace
from tests.support.realtime import preferred
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
from tests.support.wait import NotReadyError

CONTROL = "control"
LOG = "bird.log"
ADD_PATH = {"receive": "rx", "send": "tx", "both": "on"}
TABLES = {IPV4: "master4", IPV6: "master6"}
FIRST_ERROR_CODE = 8000
# It shows the subcodes of RFC 4486 by name, without the code.
CEASE = ("Administrative shutdown", "Peer de-configured", "Administrative reset")


def program() -> str | None:
    """Return the path of the daemon."""
    return shutil.which("bird", path="/usr/sbin:/usr/local/sbin:/usr/bin:/usr/local/bin")


def ask(path: Path, command: str) -> list[tuple[int, str]]:
    """Send a command to a control socket and give the lines of the answer, each with its code."""
    answer: list[tuple[int, str]] = []
    with socket.socket(socket.AF_UNIX) as control:
        try:
            control.settimeout(CONTROL_SECONDS)
            control.connect(str(path))
            stream = control.makefile("rw")
            _read(stream.readline, answer)
            answer.clear()
            stream.write(f"{command}\n")
            stream.flush()
            _read(stream.readline, answer)
            stream.close()
        except (FileNotFoundError, ConnectionError, EOFError) as error:
            raise NotReadyError(f"bird: {error!r}") from error
    code, text = answer[-1]
    if code >= FIRST_ERROR_CODE:
        raise RuntimeError(f"bird: {command}: {code} {text}")
    return answer


def _read(readline: Callable[[], str], answer: list[tuple[int, str]]) -> None:
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


class Bird(Router):
    """A ``bird`` process."""

    kind = "bird"
    RESTARTED = ("-R",)

    def __init__(self, settings: RouterSettings, namespace: Namespace, directory: Path) -> None:
        super().__init__(settings, namespace, directory)
        self._sessions: Counter[str] = Counter()
        self._read_octets = 0

    @classmethod
    def missing(cls) -> str | None:
        return None if program() else "bird is not installed (Debian: bird2)"

    @classmethod
    def version(cls) -> str:
        done = subprocess.run(
            [program() or "bird", "--version"], capture_output=True, text=True, check=True
        )
        # It prints it on standard error.
        return "BIRD " + (done.stdout + done.stderr).split()[-1]

    def command(self) -> Sequence[str | Path]:
        command: list[str | Path] = [
            program() or "bird",
            "-f",
            "-c", self.directory / "bird.conf",
            "-s", self.directory / CONTROL,
            "-P", self.directory / "pid",
        ]  # fmt: skip
        # With BFD as on another machine: a busy one would keep it waiting for a detection time.
        has_bfd = any(peer.bfd_interval is not None for peer in self.settings.peers)
        return preferred(command) if has_bfd else command

    def configuration(self) -> Mapping[str, str]:
        blocks = [
            f"router id {self.settings.router_id};",
            f'log "{self.directory / LOG}" all;',
            "timeformat log iso long ms;",
            "protocol device { scan time 1; }",
            self._statics(IPV4),
            self._statics(IPV6),
            *self._advertisements(),
            *self._bfd(),
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

    def _advertisements(self) -> Iterator[str]:
        for peer in self.settings.peers:
            if peer.interface is not None:
                times = "min ra interval 3; max ra interval 4;"
                yield f'protocol radv {{ interface "{peer.interface}" {{ {times} }}; }}'

    def _bfd(self) -> Iterator[str]:
        intervals = {peer.bfd_interval for peer in self.settings.peers} - {None}
        if intervals:
            (interval,) = intervals
            options = f"{{ interval {interval} ms; multiplier 3; }}"
            # Of itself it ends a session together with BGP's.
            kept = "".join(
                f'neighbor {peer.address} dev "{DEVICE}"; '
                for peer in self.settings.peers
                if peer.multihop is None
            )
            debug = "debug { events };"
            yield f'protocol bfd {{ {debug} interface "*" {options}; multihop {options}; {kept}}}'

    def _protocol(self, index: int, peer: PeerSettings) -> str:
        settings = self.settings
        asn = settings.asn if peer.local_asn is None else peer.local_asn
        if peer.interface is not None:
            # It accepts connections from any address, and sends router advertisements.
            lines = [
                f"local port {settings.port} as {asn};",
                f"neighbor range fe80::/10 as {peer.asn};",
                f'interface "{peer.interface}";',
                f'dynamic name "p{index}dyn"; dynamic name digits 1;',
            ]
        else:
            lines = [
                f"local {settings.address_towards(peer)} port {settings.port} as {asn};",
                f"neighbor {peer.address} port {peer.port} {_asn(peer)};",
                "strict bind on;",
            ]
        lines += [
            f"hold time {peer.hold_time};",
            f"connect retry time {peer.connect_retry_time};",
            "connect delay time 1; error wait time 1, 2; startup hold time 9;",
            "enable extended messages on; debug { packets, events };",
        ]
        if peer.passive and peer.interface is None:
            lines.append("passive on;")
        if peer.password is not None:
            lines.append(f'password "{peer.password}";')
        if peer.multihop is not None:
            lines.append(f"multihop {peer.multihop};")
        if peer.ttl_security:
            lines.append("ttl security on;")
        if peer.bfd_interval is not None:
            lines.append(f"bfd {'graceful' if peer.bfd_keeps_routes else 'on'};")
        if not peer.four_octet_as:
            lines.append("enable as4 off;")
        if peer.role is not None:
            lines.append(f"local role {peer.role.replace('-', '_')};")
        if peer.restart_time is not None:
            lines.append(f"graceful restart on; graceful restart time {peer.restart_time};")
        if peer.long_lived_time is not None:
            lines.append("long lived graceful restart on;")
            lines.append(f"long lived stale time {peer.long_lived_time};")
        if settings.confederation is not None:
            lines.append(f"confederation {settings.confederation};")
        if peer.internal_confederation:
            lines.append("confederation member on;")
        lines += [self._channel(peer, family) for family in peer.families]
        return f"protocol bgp p{index} {{\n  " + "\n  ".join(lines) + "\n}"

    def _channel(self, peer: PeerSettings, family: str) -> str:
        exported = "source ~ [RTS_STATIC, RTS_BGP]" if peer.transit else "source = RTS_STATIC"
        options = ["import all;", f"export where {exported};", "next hop self;"]
        if peer.add_path != "none":
            options.append(f"add paths {ADD_PATH[peer.add_path]};")
        if peer.maximum_prefixes is not None:
            action = "restart" if peer.reconnects_after_limit else "disable"
            options.append(f"receive limit {peer.maximum_prefixes} action {action};")
        extended = peer.extended_next_hop and family == IPV4
        if extended:
            options.append("extended next hop on;")
        own = self.settings.next_hop_towards(peer, family)
        if family_of(peer.address) != family and own and not extended:
            # Of itself it would send an unspecified next hop in the session's other family.
            options.append(f"next hop address {own};")
        return f"{family.split('-')[0]} {{ {' '.join(options)} }};"

    def ask(self, command: str) -> list[tuple[int, str]]:
        """Send a command and give the lines of the answer, each with its code."""
        return ask(self.directory / CONTROL, command)

    def peers(self) -> dict[str, RouterPeer]:
        found: dict[str, RouterPeer] = {}
        shown = self.ask("show protocols all")
        sessions = self._count_sessions()
        name = info = ""
        address: str | None = None
        neighbour = False
        for code, text in shown:
            if address is not None and (match := re.match(r"\s+Neighbor ID:\s+(\S+)", text)):
                found[address] = dataclasses.replace(found[address], router_id=match[1])
            elif match := re.match(r"\s+(Local|Neighbor) capabilities", text):
                neighbour = match[1] == "Neighbor"
                if neighbour and address is not None:
                    found[address] = dataclasses.replace(found[address], knows_restart_time=True)
            elif neighbour and address and (match := re.match(r"\s+Restart time:\s+(\d+)", text)):
                found[address] = dataclasses.replace(found[address], restart_time=int(match[1]))
            elif address and (match := re.match(r"\s+Hold timer:\s+[\d.]+/(\d+)", text)):
                found[address] = dataclasses.replace(found[address], hold_time=int(match[1]))
            elif match := re.match(r"(p\d+(?:dyn\d+)?)\s+BGP\s+\S+\s+\S+\s+\S+\s*(.*)", text):
                name, info, address = match[1], match[2].strip(), None
            elif code and (match := re.match(r"\s+Neighbor address:\s+(\S+)", text)):
                address = match[1].split("%")[0]
                up = info.startswith("Established")
                # Its own times of the past differ by what it waits between two clocks.
                found[address] = RouterPeer(address, up, info, str(sessions[name]))
        return found

    def bfd(self) -> dict[str, tuple[str, float, float]]:
        """Return the BFD sessions by neighbor: state, interval, detection time."""
        found = {}
        for _, text in self.ask("show bfd sessions"):
            words = text.split()
            if len(words) == 6 and words[0] != "IP":
                found[words[0]] = (words[2], float(words[4]), float(words[5]))
        return found

    def bfd_changes(self, address: str) -> int:
        """Return how often the BFD session with a neighbor has changed its state, by its log."""
        return self._log_text().count(f": Session to {address} changed state from ")

    def events(self) -> str:
        """Return the end of what it has logged."""
        return self._log_text()[-LOG_TAIL:]

    def _count_sessions(self) -> Counter[str]:
        """Return how many sessions each protocol has had, by what its log has more than before."""
        path = self.directory / LOG
        if path.exists():
            with path.open("rb") as log:
                log.seek(self._read_octets)
                # The last line may not be whole yet.
                lines = log.read().rpartition(b"\n")[0]
            self._read_octets += len(lines)
            names = re.findall(rb" (\w+): BGP session established(?=\n|$)", lines)
            self._sessions.update(name.decode() for name in names)
        return self._sessions

    def _log_text(self) -> str:
        path = self.directory / LOG
        return path.read_text() if path.exists() else ""

    def paths(self, family: str, peer: str | None = None) -> list[RouterRoute]:
        name = self._name_of(self.peer(peer).address)
        command = f"show route table {TABLES[family]} protocol {name} all"
        found: list[tuple[str, dict[str, str]]] = []
        for _, text in self.ask(command):
            # Another path of the same prefix begins without it.
            if match := re.match(r"([0-9a-f.:]+/\d+)?\s+\S+ \[p\w+ ", text):
                found.append((match[1] or found[-1][0], {}))
            elif match := re.match(r"\s*BGP\.(\w+): (.*)", text):
                found[-1][1][match[1]] = match[2].strip()
        return [_route(prefix, attributes) for prefix, attributes in found]

    def received_cease(self) -> bool:
        log = self._log_text()
        return any(f"Received: {subcode}" in log for subcode in CEASE)

    def count_where(self, address: str, condition: str) -> int:
        """Count routes from a neighbour that a filter expression is true of.

        For attributes that are too long for it to show: it breaks lists off at some length.
        """
        command = f"show route table master4 protocol {self._name_of(address)} where {condition}"
        return sum(1 for _, text in self.ask(command) if re.match(r"[0-9.]+/\d+\s", text))

    def _name_of(self, address: str) -> str:
        peer = self.peer(address)
        own = f"p{self.settings.peers.index(peer)}"
        # Of neighbours that come to an interface there is one protocol each.
        return own if peer.interface is None else f"{own}dyn1"

    def message_counts(self, address: str) -> MessageCounts:
        name = self._name_of(address)
        counted = [
            int(match[1])
            for _, text in self.ask(f"show protocols all {name}")
            if (match := re.match(r"\s+Import updates:\s+(\d+)", text))
        ]
        # It counts these nowhere; they are in its log of the session's messages.
        log = self._log_text()
        return MessageCounts(
            updates=sum(counted),
            refresh_requests=log.count(f"{name}: Got ROUTE-REFRESH"),
            refresh_begins=log.count(f"{name}: Got BEGIN-OF-RR"),
            refresh_ends=log.count(f"{name}: Got END-OF-RR"),
        )

    def request_refresh(self, address: str) -> None:
        self.ask(f"reload in {self._name_of(address)}")

    def shut_down(self, address: str, text: str) -> None:
        self.ask(f'disable {self._name_of(address)} "{text}"')

    def last_notification(self, address: str) -> str:
        log = self._log_text()
        words = re.findall(rf"{self._name_of(address)}: Received: (.*)", log)
        return words[-1] if words else ""

    def ends(self, address: str) -> list[tuple[float, str]]:
        """Return when its sessions with a neighbour ended, and why, by its log."""
        name = self._name_of(address)
        what = r"Received: .*|BFD session down|Neighbor graceful restart detected|Error: .*"
        return [
            (dt.datetime.fromisoformat(match[1]).astimezone().timestamp(), match[2])
            for match in re.finditer(
                rf"^(\S+ \S+) <\w+> {name}: ({what})$",
                self._log_text(),
                re.MULTILINE,
            )
        ]

    def _announce(self, new: Mapping[str, Originated], gone: Sequence[str]) -> None:
        del new, gone  # it compares the whole configuration itself
        (self.directory / "bird.conf").write_text(self.configuration()["bird.conf"])
        self.ask("configure")


def _asn(peer: PeerSettings) -> str:
    return "external" if peer.any_external else f"as {peer.asn}"


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
        # A global address may be followed by a link-local one; "::" means none.
        next_hop=attributes.get("next_hop", "").removeprefix(":: ").split(" ")[0],
        as_path=split_as_path(attributes.get("as_path", "")),
        members=split_members(attributes.get("as_path", "")),
        origin=attributes.get("origin", "").lower(),
        communities=tuples("community"),
        large_communities=tuples("large_community"),
        local_preference=number("local_pref"),
        med=number("med"),
        only_to_customer=number("otc"),
    )
