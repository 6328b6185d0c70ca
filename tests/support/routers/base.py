"""What every router driver has in common: settings, answers, and the life of its process.

A driver writes a configuration file into a directory of its own, runs the daemon in the
foreground inside a network namespace, and asks it over its own control socket. Answers are in our
terms (families as ``ipv4-unicast``, communities as ``65000:99``), values are the router's.
"""

from __future__ import annotations

import abc
import dataclasses
import ipaddress
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Self

from tests.support.daemon import Daemon
from tests.support.netns import Namespace
from tests.support.wait import eventually

IPV4 = "ipv4-unicast"
IPV6 = "ipv6-unicast"
FAMILIES = (IPV4, IPV6)


@dataclasses.dataclass(frozen=True, slots=True)
class PeerSettings:
    """One session as the router is told to expect it. Times are seconds."""

    address: str
    asn: int
    port: int = 179
    """The port to connect to; of no use to a passive router."""
    passive: bool = True
    families: tuple[str, ...] = FAMILIES
    hold_time: int = 9
    connect_retry_time: int = 1
    password: str | None = None
    multihop: int | None = None
    """The TTL of an eBGP session to a router that need not be on the same network."""
    extended_next_hop: bool = False
    """RFC 8950: IPv4 prefixes with IPv6 next hops."""


@dataclasses.dataclass(frozen=True, slots=True)
class RouterSettings:
    """One router: where it listens, who it is, whom it knows."""

    asn: int
    router_id: str
    addresses: tuple[str, ...]
    """Its own addresses: it listens on these only. The first of a family is its next hop."""
    peers: tuple[PeerSettings, ...]
    port: int = 179

    def address_towards(self, peer: PeerSettings) -> str:
        """Return the own address of the same family as the peer's."""
        version = ipaddress.ip_address(peer.address).version
        return next(a for a in self.addresses if ipaddress.ip_address(a).version == version)


@dataclasses.dataclass(frozen=True, slots=True)
class RouterPeer:
    """A session as the router shows it."""

    address: str
    established: bool
    state: str
    """The router's own word."""
    uptime_token: str
    """Changes if, and only if, the session was established anew."""


@dataclasses.dataclass(frozen=True, slots=True)
class RouterRoute:
    """A route as the router's table has it after its import policy, which takes everything."""

    prefix: str
    next_hop: str
    as_path: tuple[int, ...]
    origin: str
    """``igp``, ``egp`` or ``incomplete``."""
    communities: frozenset[str] = frozenset()
    large_communities: frozenset[str] = frozenset()
    local_preference: int | None = None
    med: int | None = None


class Router(abc.ABC):
    """One daemon. Use as a context manager, or `start`, `wait_ready` and `stop` it."""

    kind: str
    extended_next_hop: bool
    """Whether the daemon can be taught RFC 8950."""

    def __init__(self, settings: RouterSettings, namespace: Namespace, directory: Path) -> None:
        self.settings = settings
        self.namespace = namespace
        self.directory = directory
        self.announced: tuple[str, ...] = ()
        directory.mkdir(parents=True, exist_ok=True)
        self.daemon = Daemon(
            f"{self.kind} AS{settings.asn}",
            self.command(),
            log=directory / "log",
            namespace=namespace,
        )

    @classmethod
    @abc.abstractmethod
    def missing(cls) -> str | None:
        """Say what has to be installed, or None if it is there."""

    @classmethod
    @abc.abstractmethod
    def version(cls) -> str:
        """Return name and version, as ``BIRD 2.0.12``."""

    @abc.abstractmethod
    def command(self) -> Sequence[str | Path]:
        """Return the daemon's command line, in the foreground."""

    @abc.abstractmethod
    def configuration(self) -> Mapping[str, str]:
        """Return the files that it needs, by name."""

    @abc.abstractmethod
    def peers(self) -> dict[str, RouterPeer]:
        """Return its sessions by the peer's address."""

    @abc.abstractmethod
    def routes(self, family: str, peer: str | None = None) -> dict[str, RouterRoute]:
        """Return routes learnt from ``peer`` (an address), or from its only peer, by prefix."""

    @abc.abstractmethod
    def received_cease(self) -> bool:
        """Whether a session with the router's only peer, or first, ended by a Cease (code 6)."""

    @abc.abstractmethod
    def _announce(self, before: tuple[str, ...]) -> None:
        """Make the daemon originate exactly `announced`; ``before`` is what it originated."""

    def announce(self, *prefixes: str) -> None:
        """Originate prefixes; survives a restart of the daemon."""
        before = self.announced
        self.announced = tuple(dict.fromkeys((*before, *prefixes)))
        self._announce(before)

    def withdraw(self, *prefixes: str) -> None:
        """Stop originating prefixes."""
        before = self.announced
        self.announced = tuple(p for p in before if p not in prefixes)
        self._announce(before)

    def start(self) -> None:
        """Write the configuration and start the daemon; it need not answer yet."""
        for name, text in self.configuration().items():
            (self.directory / name).write_text(text)
        self.daemon.start()

    def wait_ready(self) -> None:
        """Wait until the daemon answers."""

        def answers() -> None:
            self.daemon.check()
            self.peers()

        eventually(answers, within=20, context=self.daemon.tail)
        self._ready()

    def _ready(self) -> None:
        """Do what can only be done once the daemon answers; for most that is nothing."""
        return

    def stop(self) -> None:
        """End the daemon politely; its sessions get a Cease or lose TCP, as it likes."""
        self.daemon.stop()

    def restart(self) -> None:
        """End the daemon and start it again."""
        self.stop()
        self.start()
        self.wait_ready()

    def all_routes(self, peer: str | None = None) -> dict[str, RouterRoute]:
        """Return the routes of all families that the peer is to speak, by prefix."""
        settings = self.peer(peer)
        found: dict[str, RouterRoute] = {}
        for family in settings.families:
            found.update(self.routes(family, settings.address))
        return found

    def peer(self, address: str | None = None) -> PeerSettings:
        """Return the settings of the peer at ``address``, or of the only one."""
        if address is None:
            (only,) = self.settings.peers
            return only
        return next(peer for peer in self.settings.peers if peer.address == address)

    def __enter__(self) -> Self:
        self.start()
        self.wait_ready()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()


def family_of(prefix: str) -> str:
    """Return the family of a prefix in text."""
    return IPV6 if ":" in prefix else IPV4


def split_as_path(text: str) -> tuple[int, ...]:
    """Read an AS path of one sequence, as ``65001 65002``."""
    return tuple(int(part) for part in text.split())
