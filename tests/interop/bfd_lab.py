"""BFD sessions of one ``waggle-bfd`` with one router: BIRD, or FRR's bfdd, in network namespaces.

Each session has a pair of addresses of its own, so that a test disturbs it alone. What the router
reports is read by its own commands.
"""

from __future__ import annotations

import contextlib
import json
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

from msgspec.structs import replace

from speaker.bfd.session_values import Key, SessionKey, Settings, State
from tests.support.bfd_process import BfdProcess, bfd_in
from tests.support.daemon import Daemon
from tests.support.netns import DEVICE, Link, Namespace, linked_namespaces, router_between
from tests.support.realtime import preferred
from tests.support.routers import frr
from tests.support.routers.bird import CONTROL, ask, program
from tests.support.wait import eventually

MS: Final = 1000
INTERVAL: Final = 300
"""Milliseconds, of both ends."""
ECHO: Final = 100
SETTINGS: Final = Settings(INTERVAL * MS, INTERVAL * MS, 3)
MANY: Final = 100
"""Intervals after which an end finds a session lost that no late packet shall end: half a minute."""
PATIENT: Final = replace(SETTINGS, detect_multiplier=MANY)
SECRET: Final = "a secret of BFD"
KEY_ID: Final = 7


class Line(NamedTuple):
    """A session of the lab, by the addresses of its ends."""

    ours: str
    theirs: str
    device: str = DEVICE
    multihop: bool = False
    settings: Settings = SETTINGS
    """Of our end."""
    their: tuple[int, int, int] = (INTERVAL, INTERVAL, 3)
    """Of the router: transmit and receive interval in milliseconds, multiplier."""
    needs: str = ""
    """The only router that has it; empty for each."""

    @property
    def key(self) -> SessionKey:
        """Our end's key; the kernel chooses the address, but for link-local ones."""
        link_local = self.ours.startswith("fe80")
        device = self.device if link_local else ""
        return SessionKey(self.theirs, self.ours if link_local else "", device, self.multihop)


def _line(number: int, **more: Any) -> Line:  # noqa: ANN401
    return Line(f"10.99.{number}.1", f"10.99.{number}.2", **more)


def _signed(*, meticulous: bool) -> Settings:
    return replace(SETTINGS, key=Key(KEY_ID, SECRET.encode(), meticulous))


LINES: Final[Mapping[str, Line]] = {
    "ipv4": _line(0),
    "ipv6": Line("2001:db8::1", "2001:db8::2"),
    "link-local": Line("fe80::1", "fe80::2"),
    "multihop": Line("10.98.0.1", "10.98.0.2", "", True, replace(SETTINGS, minimum_ttl=60)),
    "intervals": _line(
        1, device="other", settings=Settings(200 * MS, 400 * MS, 4), their=(500, 100, 5)
    ),
    "keyed": _line(2, device="keyed", settings=_signed(meticulous=False), needs="bird"),
    "meticulous": _line(3, device="meticulous", settings=_signed(meticulous=True), needs="bird"),
    "link-down": _line(4, device="loose"),
    "lost-in": _line(5),
    "lost-out": _line(6, device="outward", their=(INTERVAL, INTERVAL, MANY)),
    "lost-both": _line(7),
    "our-end": _line(8),
    "their-end": _line(9, device="their-end", their=(INTERVAL, INTERVAL, MANY)),
    "poll-ours": _line(10, device="our-poll", settings=PATIENT, their=(INTERVAL, INTERVAL, MANY)),
    "poll-theirs": _line(
        12, device="their-poll", settings=PATIENT, their=(INTERVAL, INTERVAL, MANY)
    ),
    "echo": _line(
        11,
        settings=replace(SETTINGS, echo_interval=ECHO * MS, required_min_echo_rx=ECHO * MS),
        needs="frr",
    ),
}


class Reading(NamedTuple):
    """What a router reports of a session."""

    up: bool
    transmit_interval: int
    """In use, in milliseconds."""
    detection_time: int


class Router(ABC):
    """A router's end of sessions; the first one has the ordinary cable."""

    def __init__(
        self, namespace: Namespace, directory: Path, lines: Mapping[str, Line] = LINES
    ) -> None:
        self.namespace, self.directory, self.lines = namespace, directory, lines
        self.removed: set[str] = set()
        """Sessions that it does not have, by name."""

    @abstractmethod
    def start(self) -> None:
        """Start its processes."""

    @abstractmethod
    def stop(self) -> None:
        """End them."""

    @abstractmethod
    def kill(self) -> None:
        """Let them end as by a failure of power."""

    @abstractmethod
    def readings(self) -> dict[str, Reading]:
        """Return what it reports of its sessions, by our address."""

    def read(self, name: str) -> Reading:
        """Return what it reports of a session. Raises LookupError: it has none."""
        return self.readings()[self.lines[name].ours]

    @abstractmethod
    def set_intervals(self, name: str, transmit: int, receive: int) -> None:
        """Change the intervals of a session, in milliseconds."""

    @abstractmethod
    def switch(self, name: str, *, on: bool) -> None:
        """Switch a session off, as its administrator does, or on again."""

    @abstractmethod
    def tail(self) -> str:
        """Return the end of its log."""


class BirdEnd(Router):
    """BIRD; the settings of a session belong to its interface."""

    def __init__(
        self, namespace: Namespace, directory: Path, lines: Mapping[str, Line] = LINES
    ) -> None:
        super().__init__(namespace, directory, lines)
        self._their = {name: line.their for name, line in lines.items()}
        files = ("-c", directory / "bird.conf", "-s", directory / CONTROL)
        command: list[str | Path] = [program() or "bird", "-f", *files, "-P", directory / "pid"]
        # As on another machine: a busy one would keep it waiting for a detection time.
        command = preferred(command)
        self._daemon = Daemon("bird", command, log=directory / "log", namespace=namespace)

    def _write(self) -> None:
        text = "router id 10.0.0.2;\nprotocol device { scan time 1; }\nprotocol bfd bfd1 {\n"
        for name, line in self.lines.items():
            if line.device not in {DEVICE, ""}:
                text += f'interface "{line.device}" {{ {self._options(name)} }};\n'
        plain = self._options(next(iter(self.lines)))
        text += f'interface "{DEVICE}" {{ {plain} }};\nmultihop {{ {plain} }};\n'
        for name, line in self.lines.items():
            if name not in self.removed and line.needs in {"", "bird"}:
                device = f'dev "{line.device}"' if line.device else ""
                hops = "multihop on" if line.multihop else ""
                text += f"neighbor {line.ours} {device} local {line.theirs} {hops};\n"
        (self.directory / "bird.conf").write_text(text + "}\n")

    def _options(self, name: str) -> str:
        transmit, receive, multiplier = self._their[name]
        text = f"min tx interval {transmit} ms; min rx interval {receive} ms; "
        text += f"multiplier {multiplier};"
        if name in {"keyed", "meticulous"}:
            kind = "meticulous keyed" if name == "meticulous" else "keyed"
            text += f' authentication {kind} sha1; password "{SECRET}" {{ id {KEY_ID}; }};'
        return text

    def start(self) -> None:
        self._write()
        self._daemon.start()

    def stop(self) -> None:
        self._daemon.stop()

    def kill(self) -> None:
        self._daemon.kill()

    def _ask(self, command: str) -> list[tuple[int, str]]:
        return ask(self.directory / CONTROL, command)

    def readings(self) -> dict[str, Reading]:
        found = {}
        for _, text in self._ask("show bfd sessions"):
            words = text.split()
            if len(words) == 6 and words[0] != "IP":
                interval, detection = (round(float(word) * 1000) for word in words[4:])
                found[words[0]] = Reading(words[2] == "Up", interval, detection)
        return found

    def set_intervals(self, name: str, transmit: int, receive: int) -> None:
        self._their[name] = (transmit, receive, self.lines[name].their[2])
        self._write()
        self._ask("configure")

    def switch(self, name: str, *, on: bool) -> None:
        (self.removed.discard if on else self.removed.add)(name)
        self._write()
        self._ask("configure")

    def tail(self) -> str:
        return self._daemon.tail()


class Bfdd(Router):
    """FRR's ``bfdd`` and its ``zebra``, by which it knows interfaces."""

    def __init__(
        self, namespace: Namespace, directory: Path, lines: Mapping[str, Line] = LINES
    ) -> None:
        super().__init__(namespace, directory, lines)
        (directory / "zebra.conf").touch()
        # It insists on a user of its own group for vtysh, which root need not be in.
        (directory / "group").write_text("root:x:0:\nfrrvty:x:999:root\n")
        self._zebra = self._daemon("zebra")
        self._bfdd = self._daemon("bfdd", "--bfdctl", str(directory / "bfdd.sock"))

    def _daemon(self, name: str, *flags: str) -> Daemon:
        here = self.directory
        mount = 'mount --bind "$0" /etc/group && exec "$@"'
        command: list[str | Path] = [
            *("unshare", "--mount", "sh", "-c", mount, here / "group"),
            *(f"/usr/lib/frr/{name}", "-f", here / f"{name}.conf", "-i", here / f"{name}.pid"),
            *("-z", here / "zserv", "--vty_socket", here, "-A", "127.0.0.1", "-P", "0"),
            *("-u", "root", "-g", "root", "--log", "stdout", *flags),
        ]
        command = preferred(command)
        return Daemon(name, command, log=here / f"{name}.log", namespace=self.namespace)

    @staticmethod
    def _peer(line: Line) -> str:
        device = f"interface {line.device}" if line.device else ""
        hops = "multihop" if line.multihop else ""
        return f"peer {line.ours} {hops} local-address {line.theirs} {device}".strip()

    def start(self) -> None:
        text = "bfd\n"
        for name, line in self.lines.items():
            if line.needs in {"", "frr"}:
                transmit, receive, multiplier = line.their
                text += (
                    f" {self._peer(line)}\n  detect-multiplier {multiplier}\n"
                    f"  receive-interval {receive}\n  transmit-interval {transmit}\n"
                )
                if name == "echo":
                    text += (
                        f"  echo-mode\n  echo transmit-interval {ECHO}\n"
                        f"  echo receive-interval {ECHO}\n"
                    )
                text += "  no shutdown\n exit\n"
        (self.directory / "bfdd.conf").write_text(text)
        if not self._zebra.running:
            self._zebra.start()

            def listens() -> None:
                assert (self.directory / "zserv").exists()

            eventually(listens, context=self._zebra.tail)
        self._bfdd.start()

    def stop(self) -> None:
        self._bfdd.stop()
        self._zebra.stop()

    def kill(self) -> None:
        self._bfdd.kill()

    def _ask(self, *commands: str) -> str:
        return frr.ask(self.directory / "bfdd.vty", *commands)

    def _show(self, what: str = "") -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = json.loads(self._ask(f"show bfd peers {what} json"))
        return found

    def show(self, name: str, what: str = "") -> dict[str, Any]:
        """Return what it shows of a session."""
        (shown,) = (peer for peer in self._show(what) if peer["peer"] == self.lines[name].ours)
        return shown

    def readings(self) -> dict[str, Reading]:
        found = {}
        for shown in self._show():
            receive = max(shown["receive-interval"], shown["remote-transmit-interval"])
            found[shown["peer"]] = Reading(
                shown["status"] == "up",
                max(shown["transmit-interval"], shown["remote-receive-interval"]),
                shown["remote-detect-multiplier"] * receive,
            )
        return found

    def _configure(self, name: str, *lines: str) -> None:
        self._ask("configure terminal", "bfd", self._peer(self.lines[name]), *lines)

    def set_intervals(self, name: str, transmit: int, receive: int) -> None:
        self._configure(name, f"transmit-interval {transmit}", f"receive-interval {receive}")

    def switch(self, name: str, *, on: bool) -> None:
        self._configure(name, "no shutdown" if on else "shutdown")

    def tail(self) -> str:
        return self._bfdd.tail()


ROUTERS: Final[Mapping[str, type[Router]]] = {"bird": BirdEnd, "frr": Bfdd}


class Lab:
    """Both ends of all sessions."""

    def __init__(self, kind: str, link: Link, ours: BfdProcess, theirs: Router) -> None:
        self.link, self.ours, self.theirs = link, ours, theirs
        self.lines = {n: line for n, line in LINES.items() if line.needs in {"", kind}}

    def both(self, *names: str, up: bool) -> None:
        """Wait until both ends have sessions Up, or have them not."""

        def seen() -> None:
            sessions, readings = self.ours.connect(), self.theirs.readings()
            for name in names:
                line = LINES[name]
                theirs = readings.get(line.ours)
                found = sessions[line.key].state is State.UP, theirs is not None and theirs.up
                assert found == (up, up), name

        eventually(seen, context=self.theirs.tail)

    def ups(self, name: str) -> int:
        """Return how often a session came Up."""
        return self.ours.status(LINES[name].key).ups


@contextlib.contextmanager
def lab(kind: str, directory: Path) -> Iterator[Lab]:
    """Start both ends, and wait until all sessions are Up."""
    multihop = LINES["multihop"]
    with (
        linked_namespaces() as link,
        router_between(link, (multihop.ours, multihop.theirs)),
        bfd_in(link.left) as ours,
    ):
        _cable(link)
        theirs = ROUTERS[kind](link.right, directory)
        theirs.start()
        try:
            found = Lab(kind, link, ours, theirs)
            for line in found.lines.values():
                ours.set(line.key, line.settings)
            found.both(*found.lines, up=True)
            yield found
        finally:
            theirs.stop()


def _cable(link: Link) -> None:
    """Join the namespaces by a cable for each device, and give the ends their addresses."""
    devices = {line.device for line in LINES.values()} - {DEVICE, ""}
    link.left.batch(
        *(
            f"link add {each} type veth peer name {each} netns {link.right.name}"
            for each in devices
        ),
        *(f"link set {each} up" for each in devices),
    )
    link.right.batch(*(f"link set {each} up" for each in devices))
    for side, of in ((link.left, "ours"), (link.right, "theirs")):
        side.run("sh", "-c", "echo 1 >/proc/sys/net/ipv4/ip_forward")
        for line in LINES.values():
            if line.device:
                address: str = getattr(line, of)
                width = "64 dev {} nodad" if ":" in address else "24 dev {}"
                side.batch(f"addr add {address}/{width.format(line.device)}")
