"""The base of the router drivers: settings, results, and the life of the process.

A driver writes a configuration file into a directory of its own, runs the daemon in the
foreground inside a network namespace, and queries it over its own control socket. Results are in our
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
from tests.support.wait import NotReadyError, eventually

CONTROL_SECONDS = 60.0
"""Timeout of an answer of a daemon: a busy machine may keep it from running for a while."""
AS_TRANS = 23456
"""What an old speaker sees instead of an AS number that needs four octets (RFC 6793)."""
IPV4 = "ipv4-unicast"
IPV6 = "ipv6-unicast"
FAMILIES = (IPV4, IPV6)


@dataclasses.dataclass(frozen=True, slots=True)
class PeerSettings:
    """The configuration of one session at the router. Times are in seconds.

    A driver rejects what its daemon does not support (`Router.CANNOT`); every daemon supports the
    defaults of all fields after `hold_time`.
    """

    address: str
    asn: int
    port: int = 179
    """The port to connect to; of no use to a passive router."""
    local_asn: int | None = None
    """The router's AS as this neighbour sees it, if it differs."""
    passive: bool = True
    families: tuple[str, ...] = FAMILIES
    hold_time: int = 90
    """No test waits for its end, and a daemon that the machine keeps from running ends no session."""
    connect_retry_time: int = 1
    password: str | None = None
    multihop: int | None = None
    """The TTL of an eBGP session to a router that need not be on the same network."""
    extended_next_hop: bool = False
    """RFC 8950: IPv4 prefixes with IPv6 next hops."""
    interface: str | None = None
    """Unnumbered: the neighbour is the sender of router advertisements there, whatever `address`."""
    local_address: str | None = None
    """Which of the router's addresses this session has; the first of its family if None."""
    other_next_hop: str | None = None
    """The router's address for prefixes of the family that the session's address is not of; where
    that is left open, its first one of that family, or what the daemon finds."""
    ttl_security: bool = False
    """GTSM (RFC 5082) towards a neighbour on the same network."""
    four_octet_as: bool = True
    """False makes it an old speaker, of two-octet AS numbers only (RFC 6793)."""
    add_path: str = "none"
    """``none``, ``receive``, ``send`` or ``both`` (RFC 7911)."""
    transit: bool = False
    """Whether routes of other neighbours are advertised as well. GoBGP always advertises them."""
    maximum_prefixes: int | None = None
    """How many prefixes of a family it takes before it ends the session."""
    reconnects_after_limit: bool = False
    """Whether it accepts the next session after that one by itself, as soon as it can."""
    role: str | None = None
    """Its own role towards the neighbour (RFC 9234), as ``customer``."""
    restart_time: int | None = None
    """Graceful restart with this time (RFC 4724)."""
    long_lived_time: int | None = None
    """Long-lived graceful restart with this time (RFC 9494); with `restart_time` only."""
    any_external: bool = False
    """The neighbour may be of any other AS, and of another AS the next time."""
    internal_confederation: bool = False
    """The neighbour is a member of the same confederation (RFC 5065)."""
    bfd_interval: int | None = None
    """BFD with this interval in milliseconds, three times; multihop where the session is."""
    bfd_keeps_routes: bool = False
    """A path that BFD has lost is a graceful restart of the neighbour (BIRD: ``bfd graceful``)."""


@dataclasses.dataclass(frozen=True, slots=True)
class RouterSettings:
    """One router: its addresses, its AS and router ID, its peers."""

    asn: int
    router_id: str
    addresses: tuple[str, ...]
    """Its own addresses: it listens on these only. The first of a family is its next hop."""
    peers: tuple[PeerSettings, ...]
    port: int = 179
    confederation: int | None = None
    """The AS that the outside sees of a confederation (RFC 5065); `asn` is then a member's."""

    def next_hop_towards(self, peer: PeerSettings, family: str) -> str | None:
        """Return the next hop that stands for the router itself, or None where it has no such."""
        session = self.address_towards(peer)
        if family_of(session) == family:
            return session
        if peer.other_next_hop is not None:
            return peer.other_next_hop
        return next((a for a in self.addresses if family_of(a) == family), None)

    def address_towards(self, peer: PeerSettings) -> str:
        """Return the own address that the session has."""
        if peer.local_address is not None:
            return peer.local_address
        version = ipaddress.ip_address(peer.address).version
        return next(a for a in self.addresses if ipaddress.ip_address(a).version == version)


@dataclasses.dataclass(frozen=True, slots=True)
class RouterPeer:
    """A session as the router shows it."""

    address: str
    established: bool
    state: str
    """The router's own name of the state."""
    uptime_token: str
    """Changes if, and only if, the session was established anew."""
    router_id: str | None = None
    """Of the neighbour; this and the rest are None where the driver does not query them."""
    hold_time: int | None = None
    """Negotiated."""
    knows_restart_time: bool = False
    restart_time: int | None = None
    """The neighbour's (RFC 4724), None where it does not offer graceful restart."""


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
    members: tuple[int, ...] = ()
    """The ASes of the confederation in front of the AS path (RFC 5065)."""
    only_to_customer: int | None = None
    """RFC 9234; None also where the router does not show it."""


@dataclasses.dataclass(frozen=True, slots=True)
class MessageCounts:
    """Counts of the messages that a router has received from a neighbour in this session."""

    updates: int
    """UPDATEs, or prefixes in them: what the router counts."""
    refresh_requests: int | None
    """None where the router has no such counter; so with the others."""
    refresh_begins: int | None
    """RFC 7313."""
    refresh_ends: int | None


@dataclasses.dataclass(frozen=True, slots=True)
class Originated:
    """What a router's own route carries besides what every route has."""

    communities: tuple[str, ...] = ()
    large_communities: tuple[str, ...] = ()


class CannotError(Exception):
    """A configuration that the daemon does not support."""


class Router(abc.ABC):
    """One daemon. Use as a context manager, or `start`, `wait_ready` and `stop` it."""

    kind: str
    RESTARTED: tuple[str, ...] = ()
    """What the command line has besides after a restart that neighbours were to bridge."""
    CANNOT: frozenset[str] = frozenset()
    """Fields of the settings that the daemon does not support."""
    CONNECTS_FOR: frozenset[str] = frozenset()
    """Fields that have an effect only on connections that the daemon makes itself."""
    SHUTDOWN_TEXT: str | None = None
    """The only text that it can send, after which the session is established again; None: any, and it
    stays down."""

    def __init__(self, settings: RouterSettings, namespace: Namespace, directory: Path) -> None:
        given: tuple[RouterSettings | PeerSettings, ...] = (settings, *settings.peers)
        for each in given:
            for field in dataclasses.fields(each):
                if field.name in self.CANNOT and getattr(each, field.name) != field.default:
                    raise CannotError(f"{self.kind} has no {field.name}")
        self.settings = settings
        self.namespace = namespace
        self.directory = directory
        self.announced: dict[str, Originated] = {}
        directory.mkdir(parents=True, exist_ok=True)
        self.daemon = Daemon(
            f"{self.kind} AS{settings.asn}",
            self.command(),
            log=directory / "log",
            namespace=namespace,
            environment=self.environment(),
        )

    @classmethod
    @abc.abstractmethod
    def missing(cls) -> str | None:
        """Return what has to be installed, or None if it is installed."""

    @classmethod
    @abc.abstractmethod
    def version(cls) -> str:
        """Return name and version, as ``BIRD 2.0.12``."""

    @abc.abstractmethod
    def command(self) -> Sequence[str | Path]:
        """Return the daemon's command line, in the foreground."""

    def environment(self) -> Mapping[str, str]:
        """Return environment variables that the daemon is given besides ours."""
        return {}

    @abc.abstractmethod
    def configuration(self) -> Mapping[str, str]:
        """Return the files that it needs, by name."""

    @abc.abstractmethod
    def peers(self) -> dict[str, RouterPeer]:
        """Return its sessions by the peer's address."""

    @abc.abstractmethod
    def paths(self, family: str, peer: str | None = None) -> list[RouterRoute]:
        """Return routes learnt from ``peer`` (an address), or from its only peer.

        With ADD-PATH there may be several of a prefix.
        """

    def routes(self, family: str, peer: str | None = None) -> dict[str, RouterRoute]:
        """Return `paths` by prefix, for where there is one of a prefix."""
        return {route.prefix: route for route in self.paths(family, peer)}

    def only_to_customer(self, prefix: str, peer: str) -> int | None:
        """Return the AS in the Only to Customer attribute of a route (RFC 9234), or None."""
        return self.routes(family_of(prefix), peer)[prefix].only_to_customer

    @abc.abstractmethod
    def received_cease(self) -> bool:
        """Whether a session with the router's only peer, or first, ended by a Cease (code 6)."""

    @abc.abstractmethod
    def message_counts(self, address: str) -> MessageCounts:
        """Return the message counts of the session with ``address``."""

    @abc.abstractmethod
    def request_refresh(self, address: str) -> None:
        """Send a ROUTE-REFRESH to a neighbour (RFC 2918)."""

    @abc.abstractmethod
    def shut_down(self, address: str, text: str) -> None:
        """End a session with a shutdown communication (RFC 9003). See `SHUTDOWN_TEXT`."""

    @abc.abstractmethod
    def last_notification(self, address: str) -> str:
        """Return what it shows, or has logged, of the last NOTIFICATION from ``address``."""

    @abc.abstractmethod
    def _announce(self, new: Mapping[str, Originated], gone: Sequence[str]) -> None:
        """Make the running daemon originate ``new`` and no longer originate ``gone``.

        `announced` is the whole of what it then originates.
        """

    def announce(
        self,
        *prefixes: str,
        communities: Sequence[str] = (),
        large_communities: Sequence[str] = (),
    ) -> None:
        """Originate prefixes, all with the same attributes; survives a restart of the daemon."""
        value = Originated(tuple(communities), tuple(large_communities))
        new = {p: value for p in prefixes if self.announced.get(p) != value}
        self.announced.update(new)
        self._announce_when_ready(new, ())

    def withdraw(self, *prefixes: str) -> None:
        """Stop originating prefixes."""
        gone = [p for p in prefixes if self.announced.pop(p, None) is not None]
        self._announce_when_ready({}, gone)

    def _announce_when_ready(self, new: Mapping[str, Originated], gone: Sequence[str]) -> None:
        try:
            self._announce(new, gone)
        except NotReadyError:  # it has just been started
            self._wait_for_answer()
            self._announce(new, gone)

    def start(self) -> None:
        """Write the configuration and start the daemon; it need not answer yet."""
        for name, text in self.configuration().items():
            path = self.directory / name
            path.touch(mode=0o600)
            path.write_text(text)
        self.daemon.start()

    def wait_ready(self) -> None:
        """Wait until the daemon answers, and do what can only be done then."""
        self._wait_for_answer()
        self.finish()

    def _wait_for_answer(self) -> None:
        eventually(self.answers, context=self.daemon.tail)

    def answers(self) -> None:
        """Raise `NotReadyError` while a started daemon does not answer yet."""
        self.daemon.check()
        self.peers()

    def finish(self) -> None:
        """Do what can only be done once the daemon answers; for most that is nothing."""
        return

    def stop(self) -> None:
        """Terminate the daemon; its sessions end with a Cease or with TCP, as it implements."""
        self.daemon.stop()

    def restart(self) -> None:
        """End the daemon and start it again."""
        self.stop()
        self.start()
        self.wait_ready()

    def kill(self) -> None:
        """Kill the daemon; its neighbours receive no NOTIFICATION."""
        self.daemon.kill()

    def resume(self) -> None:
        """Start a daemon that has ended while its routes were kept; it need not answer yet."""
        self.daemon.command = [str(part) for part in (*self.command(), *self.RESTARTED)]
        self.start()

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
    """Read the sequence of an AS path, as ``65001 65002`` after what `split_members` reads."""
    return tuple(int(part) for part in text.rpartition(")")[2].split())


def split_members(text: str) -> tuple[int, ...]:
    """Read the sequence of member ASes in front of an AS path, as ``(65001 65002)``."""
    return tuple(int(part) for part in text.rpartition(")")[0].replace("(", "").split())
