"""Network namespaces for tests: two namespaces joined by a veth pair, with given addresses.

Uses iproute2's ``ip``. Names carry the test process's id, so that runs do not meet; what a killed
run left behind is removed by the next. Never touches an interface or a route outside of the
namespaces that it made. Without root they are made in a user namespace (`userns`).
"""

from __future__ import annotations

import contextlib
import functools
import ipaddress
import itertools
import os
import re
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.support import userns
from tests.support.userns import UserNamespace

PREFIX = "waggle-test"
DEVICE = "cable"
NO_VRF = "this kernel has no VRF devices: make test-vm has such a kernel"
_numbers = itertools.count(1)


@functools.cache
def _user_namespace() -> UserNamespace | str | None:
    """The user namespace to make namespaces in, None for root, or the reason why neither works."""
    if shutil.which("ip") is None:
        return "network namespaces need the program ip (Debian: iproute2)"
    if os.geteuid() != 0:
        made = userns.make()
        if isinstance(made, str):
            return f"network namespaces need root, or a user namespace, which fails: {made}"
        return made
    name = f"{PREFIX}-{os.getpid()}-probe"
    probe = subprocess.run(
        ["ip", "netns", "add", name], capture_output=True, text=True, check=False
    )
    if probe.returncode != 0:
        return f"network namespaces do not work here: {probe.stderr.strip()}"
    subprocess.run(["ip", "netns", "delete", name], check=True)
    return None


def unavailable() -> str | None:
    """Why namespaces cannot be made here, in one sentence, or None where they can."""
    found = _user_namespace()
    return found if isinstance(found, str) else None


def has_all_users() -> bool:
    """Whether a program in a namespace can change to another user than root."""
    found = _user_namespace()
    return found is None or (isinstance(found, UserNamespace) and found.has_all_users)


def _entered(*command: str) -> list[str]:
    found = _user_namespace()
    if isinstance(found, str):
        raise RuntimeError(found)  # noqa: TRY004  no argument has a wrong type
    return [*(found.command() if found is not None else []), *command]


def _output(*command: str, batch: str | None = None) -> str:
    done = subprocess.run(
        _entered(*command), input=batch, capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(command)}: {done.stderr.strip()}\n{batch or ''}")
    return done.stdout


def _ip(*arguments: str, batch: str | None = None) -> None:
    _output("ip", *arguments, batch=batch)


@dataclass(frozen=True, slots=True)
class Namespace:
    """One network namespace with the loopback interface and one end of the cable."""

    name: str

    def command(self) -> list[str]:
        """Return what goes before a command to run it inside."""
        return _entered("ip", "netns", "exec", self.name)

    def run(self, *command: str) -> str:
        """Run a command inside and give its standard output; raises if it fails."""
        return _output("ip", "netns", "exec", self.name, *command)

    def batch(self, *lines: str) -> None:
        """Run lines of ``ip`` inside, all in one process."""
        _ip("-n", self.name, "-batch", "-", batch="".join(f"{line}\n" for line in lines))

    def add_address(self, *interfaces: str) -> None:
        """Give the cable's end addresses, as ``192.0.2.1/24``."""
        self.batch(
            *(
                f"addr add {interface} dev {DEVICE}{' nodad' if ':' in interface else ''}"
                for interface in interfaces
            )
        )

    def lose(self, address: str, *, lost: bool) -> None:
        """Drop packets to an IPv4 address on the link, or deliver them again."""
        if lost:
            # A locally administered address that no interface has.
            self.batch(
                f"neigh replace {address} lladdr 02:00:00:00:00:01 nud permanent dev {DEVICE}"
            )
        else:
            self.batch(f"neigh del {address} dev {DEVICE}")

    def ask_every_second(self) -> None:
        """Let a SYN without an answer be repeated each second, where the kernel can (Linux 6.5)."""
        setting = Path("/proc/sys/net/ipv4/tcp_syn_linear_timeouts")
        if setting.exists():
            self.run("sh", "-c", f"echo 127 >{setting}")

    def connections(self, own: str, far: str) -> list[tuple[str, int]]:
        """Return TCP connections between two IPv4 addresses: the state, and the own port."""
        lines = self._sockets("-Htna", "src", own, "dst", far)
        return [(line.split()[0], int(line.split()[3].rpartition(":")[2])) for line in lines]

    def unread(self) -> list[int]:
        """Return how many octets each TCP connection has that its program has not read."""
        lines = sorted(self._sockets("-Htn"), key=lambda line: line.split()[3:5])
        return [int(line.split()[1]) for line in lines]

    def _sockets(self, *arguments: str) -> list[str]:
        return _output("ss", "-N", self.name, *arguments).splitlines()

    def counter(self, name: str) -> int:
        """Return one of the kernel's counters, as ``TCPMD5Failure``."""
        lines = [line.split() for line in self.run("cat", "/proc/net/netstat").splitlines()]
        for names, values in zip(lines[::2], lines[1::2], strict=True):
            if name in names:
                return int(values[names.index(name)])
        raise LookupError(name)

    def cable(self, *, up: bool) -> None:
        """Pull the cable out, or plug it in."""
        self.batch(f"link set {DEVICE} {'up' if up else 'down'}")


@dataclass(frozen=True, slots=True)
class Link:
    """Two namespaces and the cable: ``left`` is ours, ``right`` is the routers'."""

    left: Namespace
    right: Namespace

    def connect(self, left: str, right: str) -> None:
        """Make two addresses of one family neighbours, whatever networks they are of.

        Each side gets its address as a host address, with a route to the other's out of the
        cable; the route prefers this address as its source.
        """
        width = ipaddress.ip_address(left).max_prefixlen
        nodad = " nodad" if width == 128 else ""
        for side, ours, theirs in ((self.left, left, right), (self.right, right, left)):
            side.batch(
                f"addr replace {ours}/{width} dev {DEVICE}{nodad}",
                f"route replace {theirs}/{width} dev {DEVICE} src {ours}",
            )


@contextlib.contextmanager
def router_between(link: Link, *pairs: tuple[str, str]) -> Iterator[None]:
    """Put a third namespace between pairs of IPv4 addresses, left and right: two hops apart.

    It routes. The addresses are of the ends' loopback interfaces.
    """
    name = f"{link.left.name[:-1]}m"
    middle = Namespace(name)
    _ip("netns", "add", name)
    try:
        middle.run("sh", "-c", "echo 1 >/proc/sys/net/ipv4/ip_forward")
        middle.batch("link set lo up")
        for number, side in enumerate((link.left, link.right), 1):
            ends = [pair if number == 1 else pair[::-1] for pair in pairs]
            side.batch(
                f"link add far type veth peer name side{number} netns {name}",
                f"addr add 169.254.{number}.1/30 dev far",
                "link set far up",
                *(f"addr add {own}/32 dev lo" for own, _ in ends),
            )
            middle.batch(
                f"addr add 169.254.{number}.2/30 dev side{number}",
                f"link set side{number} up",
                *(f"route add {own}/32 via 169.254.{number}.1" for own, _ in ends),
            )
            side.batch(
                *(f"route add {far}/32 via 169.254.{number}.2 src {own}" for own, far in ends)
            )
        yield
    finally:
        with contextlib.suppress(RuntimeError):
            _ip("netns", "del", name)


@contextlib.contextmanager
def nodes_at(link: Link, routers: Sequence[str], nodes: Sequence[str]) -> Iterator[list[Namespace]]:
    """Make a namespace for each node, each joined to the routers' by a cable of its own.

    The addresses are IPv4; the routers' are on the loopback interface of ``link.right``.
    """
    made: list[Namespace] = []
    try:
        link.right.batch(*(f"addr replace {address}/32 dev lo" for address in routers))
        for number, address in enumerate(nodes):
            node = Namespace(f"{link.left.name[:-1]}n{number}")
            _ip("netns", "add", node.name)
            made.append(node)
            node.batch(
                "link set lo up",
                f"link add {DEVICE} type veth peer name node{number} netns {link.right.name}",
                f"link set {DEVICE} up",
                f"addr add {address}/32 dev {DEVICE}",
                *(f"route add {router}/32 dev {DEVICE} src {address}" for router in routers),
            )
            link.right.batch(
                f"link set node{number} up", f"route add {address}/32 dev node{number}"
            )
        yield made
    finally:
        for node in made:
            with contextlib.suppress(RuntimeError):
                _ip("netns", "del", node.name)


@contextlib.contextmanager
def neighbors_of(center: Namespace, *names: str) -> Iterator[dict[str, Namespace]]:
    """Make a namespace for each name, joined to one namespace by a cable of that name there."""
    made: dict[str, Namespace] = {}
    try:
        for number, name in enumerate(names):
            made[name] = other = Namespace(f"{center.name[:-1]}n{number}")
            _ip("netns", "add", other.name)
            other.batch("link set lo up")
            center.batch(
                f"link add {name} type veth peer name {DEVICE} netns {other.name}",
                f"link set {name} up",
            )
            other.batch(f"link set {DEVICE} up")
        yield made
    finally:
        for other in made.values():
            with contextlib.suppress(RuntimeError):
                _ip("netns", "del", other.name)


@functools.cache
def _sweep() -> None:
    """Remove, once in a test process, what test processes that are no more left behind."""
    for line in _output("ip", "netns", "list").splitlines():
        found = re.match(rf"({PREFIX}-(\d+)-\S+)", line)
        if found and not Path(f"/proc/{found[2]}").exists():
            with contextlib.suppress(RuntimeError):
                _ip("netns", "del", found[1])


@contextlib.contextmanager
def linked_namespaces() -> Iterator[Link]:
    """Make two joined namespaces; both are gone afterwards, whatever happens."""
    _sweep()
    number = next(_numbers)
    names = [f"{PREFIX}-{os.getpid()}-{number}{side}" for side in "lr"]
    link = Link(*(Namespace(name) for name in names))
    try:
        _ip("-batch", "-", batch="".join(f"netns add {name}\n" for name in names))
        for side in (link.left, link.right):
            # Duplicate address detection would delay the first IPv6 packet by a second.
            side.run(
                "sh", "-c", "for f in /proc/sys/net/ipv6/conf/*/accept_dad; do echo 0 >$f; done"
            )
        link.left.batch(
            "link set lo up",
            f"link add {DEVICE} type veth peer name {DEVICE} netns {link.right.name}",
            f"link set {DEVICE} up",
        )
        link.right.batch("link set lo up", f"link set {DEVICE} up")
        yield link
    finally:
        with contextlib.suppress(RuntimeError):
            _ip("-force", "-batch", "-", batch="".join(f"netns del {name}\n" for name in names))
