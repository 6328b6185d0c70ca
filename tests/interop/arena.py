"""One router of a kind and one speaker of ours with many sessions between them, one a feature.

Each session (a `Wire`) has addresses and settings of its own, so that what a test does to one leaves
the others alone, and daemons are started once. A third router, ours as well, gives both of them
routes of another AS to pass on. All kinds are started together: most of that is waiting.
"""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from tests.support.netns import Link, linked_namespaces, router_between
from tests.support.routers import FAMILIES, KINDS, PeerSettings, Router, RouterSettings
from tests.support.routers.base import IPV4, IPV6
from tests.support.routers.waggle import Waggle

OUR_ASN, THEIR_ASN, THIRD_ASN = 65001, 65002, 4200000103
BIG_ASN = 4200000001
"""Our AS as one neighbour sees it, too large for two octets."""
PORT = 1790
PASSWORD = "only-the-two-of-us-know"

OUR_IPV4 = ("192.0.2.0/24", "198.18.1.0/24", "198.18.2.0/24")
OUR_IPV6 = ("2001:db8:1::/48",)
THEIR_IPV4 = ("198.51.100.0/24", "198.18.101.0/24", "198.18.102.0/24")
THEIR_IPV6 = ("2001:db8:2::/48",)
OUR_COLOURED, THEIR_COLOURED = "198.18.3.0/24", "198.18.103.0/24"
OUR_COMMUNITIES, THEIR_COMMUNITIES = ("65001:7", "65535:65281"), ("65002:7", "65002:8")
OUR_LARGE_COMMUNITIES = ("65001:1:2", "4200000001:4294967295:0")
THEIR_LARGE_COMMUNITIES = ("65002:1:2", "4200000102:0:4294967295")
THIRD_PREFIX = "198.18.201.0/24"
SHARED = "203.0.113.0/24"
"""A prefix that all three originate, so that there are two paths of it to advertise."""
PREFIX_LIMIT = 2
PATIENCE = 20
"""Seconds after which an attempt to connect that got no answer is given up for another."""


@dataclasses.dataclass(frozen=True, slots=True)
class Wire:
    """One session: the settings of each end besides addresses and AS numbers.

    ``ours`` and ``theirs`` are fields of `PeerSettings`, of our neighbour and of theirs.
    """

    name: str
    version: int = 4
    families: tuple[str, ...] = (IPV4,)
    ours: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    theirs: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    both: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    two_hops: bool = False
    """Whether there is a router in between."""
    lost: bool = False
    """Whether nothing arrives at either end, until `Arena.mend`."""


WIRES = (
    Wire("ipv4"),
    Wire("ipv6", version=6, families=(IPV6,)),
    Wire("both", families=FAMILIES),
    Wire("ipv6-over-ipv4", families=(IPV6,)),
    Wire("md5", both={"password": PASSWORD}),
    Wire("md5-wrong", ours={"password": "another"}, theirs={"password": PASSWORD}),
    Wire("gtsm", both={"ttl_security": True}),
    Wire("gtsm-far", both={"ttl_security": True}, two_hops=True),
    Wire("multihop", both={"multihop": 2}, two_hops=True),
    Wire("as4", ours={"local_asn": BIG_ASN}, theirs={"asn": BIG_ASN}),
    Wire("as2", ours={"transit": True}, theirs={"four_octet_as": False, "transit": True}),
    Wire(
        "add-path-send", ours={"add_path": "send", "transit": True}, theirs={"add_path": "receive"}
    ),
    Wire(
        "add-path-receive",
        ours={"add_path": "receive"},
        theirs={"add_path": "send", "transit": True},
    ),
    Wire("ipv4-over-ipv6", version=6, families=FAMILIES, both={"extended_next_hop": True}),
    # FRR answers no request before it has sent End-of-RIB, which only peers with graceful restart get.
    Wire("refresh", families=FAMILIES, ours={"restart_time": 60}),
    Wire("limit-theirs", theirs={"maximum_prefixes": PREFIX_LIMIT}),
    Wire("limit-ours", ours={"maximum_prefixes": PREFIX_LIMIT}),
    Wire("shutdown-ours"),
    Wire("shutdown-theirs"),
    # An attempt lasts until it is let through.
    Wire("collision", both={"passive": False, "connect_retry_time": PATIENCE}, lost=True),
    Wire("role", ours={"role": "provider"}, theirs={"role": "customer"}),
    Wire("role-wrong", ours={"role": "provider"}, theirs={"role": "peer"}),
)
THIRD = 200
"""The third router's numbers in addresses: this one towards us, the next towards them."""


def can(driver: type[Router], wire: Wire) -> bool:
    """Whether the router can be taught its end of a session."""
    return not (driver.CANNOT - {"transit"}) & {*wire.both, *wire.theirs}


def they_connect(driver: type[Router], wire: Wire) -> bool:
    """Whether it is the router that connects; we do where we may."""
    return bool(driver.CONNECTS_FOR & {*wire.both, *wire.theirs})


def number_of(wire: str) -> int:
    """Return a wire's number, of which its addresses are made."""
    return [each.name for each in WIRES].index(wire) + 1


def addresses(number: int) -> tuple[tuple[str, str], tuple[str, str]]:
    """Return both ends' addresses of a session, each of both versions."""
    return (
        (f"10.98.{number}.1", f"fd00:98:{number}::1"),
        (f"10.98.{number}.2", f"fd00:98:{number}::2"),
    )


def _other(wire: Wire, own: tuple[str, str]) -> str | None:
    """Return the next hop for IPv6 over IPv4; the other way round it is RFC 8950's."""
    return own[1] if wire.version == 4 and IPV6 in wire.families else None


@dataclasses.dataclass(slots=True)
class Arena:
    """The running routers, and the peers of each wire."""

    kind: str
    ours: Waggle
    theirs: Router
    third: Waggle
    ends: dict[str, tuple[str, str]]
    """Of each wire our address and theirs."""

    @property
    def routers(self) -> tuple[Router, ...]:
        """All of them."""
        return (self.theirs, self.third, self.ours)

    def here(self, wire: str) -> str:
        """Return our address on a wire: what they know us by."""
        return self.ends[wire][0]

    def there(self, wire: str) -> str:
        """Return their address on a wire: what we know them by."""
        return self.ends[wire][1]

    def peer(self, wire: str) -> dict[str, Any]:
        """Return the status of the session from our speaker."""
        found = [p for p in self.ours.ask("peers") if p.get("address") == self.there(wire)]
        (peer,) = found
        return dict(peer)

    def assert_up(self, wire: str) -> None:
        """Check that both ends call the session Established."""
        ours = self.peer(wire)
        assert ours["state"] == "Established", ours
        theirs = self.theirs.peers()[self.here(wire)]
        assert theirs.established, theirs

    def connections(self, wire: str) -> tuple[list[tuple[str, int]], list[tuple[str, int]]]:
        """Return the wire's TCP connections, states and own ports, at our end and at theirs."""
        here, there = self.ends[wire]
        return (
            self.ours.namespace.connections(here, there),
            self.theirs.namespace.connections(there, here),
        )

    def mend(self, wire: str) -> None:
        """Let what is sent on a lost wire arrive from now on."""
        self.ours.namespace.lose(self.there(wire), lost=False)
        self.theirs.namespace.lose(self.here(wire), lost=False)

    @contextlib.contextmanager
    def frozen(self) -> Iterator[None]:
        """Let ours and theirs do nothing for a while; their kernels go on."""
        with contextlib.ExitStack() as stack:
            for router in (self.ours, self.theirs):
                router.daemon.freeze()
                stack.callback(router.daemon.thaw)
            yield

    def dropped(self, counter: str) -> int:
        """Return what the kernels of both ends have counted."""
        return sum(r.namespace.counter(counter) for r in (self.ours, self.theirs))

    def logs(self) -> str:
        """Return the ends of all logs."""
        return "\n".join(router.daemon.tail() for router in self.routers)


def make_arena(kind: str, link: Link, directory: Path) -> Arena:
    """Give the cable its addresses and make the routers; they are not started."""
    driver = KINDS[kind]
    ours: list[PeerSettings] = []
    theirs: list[PeerSettings] = []
    ends: dict[str, tuple[str, str]] = {}
    left: list[str] = []
    right: list[str] = []
    for number, wire in enumerate(WIRES, 1):
        here, there = addresses(number)
        for side, own in ((left, here), (right, there)):
            if not wire.two_hops:
                side += [f"{own[0]}/24", f"{own[1]}/64"]
        if not can(driver, wire):
            continue
        pick = 0 if wire.version == 4 else 1
        ends[wire.name] = (here[pick], there[pick])
        shared = {"port": PORT, "families": wire.families, **wire.both}
        ours.append(
            PeerSettings(
                **{
                    "address": there[pick],
                    "asn": THEIR_ASN,
                    "passive": they_connect(driver, wire),
                    "local_address": here[pick],
                    "other_next_hop": _other(wire, here),
                    **shared,
                    **wire.ours,
                }
            )
        )
        theirs.append(
            PeerSettings(
                **{
                    "address": here[pick],
                    "asn": OUR_ASN,
                    "passive": not they_connect(driver, wire),
                    "local_address": there[pick],
                    "other_next_hop": _other(wire, there),
                    **shared,
                    **{k: v for k, v in wire.theirs.items() if k not in driver.CANNOT},
                }
            )
        )
    third = []
    # The third router is at our end of the cable.
    for number, asn, end in ((THIRD, OUR_ASN, ours), (THIRD + 1, THEIR_ASN, theirs)):
        near, away = (pair[0] for pair in addresses(number))
        left.append(f"{near}/24")
        (right if end is theirs else left).append(f"{away}/24")
        third.append(
            PeerSettings(away, asn, port=PORT, passive=False, families=(IPV4,), local_address=near)
        )
        end.append(
            PeerSettings(
                near, THIRD_ASN, port=PORT, passive=True, families=(IPV4,), local_address=away
            )
        )
    for namespace, own_addresses in ((link.left, left), (link.right, right)):
        namespace.ask_every_second()
        namespace.add_address(*own_addresses)
    for wire in WIRES:
        if wire.lost and wire.name in ends:
            here_address, there_address = ends[wire.name]
            link.left.lose(there_address, lost=True)
            link.right.lose(here_address, lost=True)

    def settings(asn: int, number: int, peers: list[PeerSettings]) -> RouterSettings:
        own = tuple(dict.fromkeys(p.local_address for p in peers if p.local_address))
        return RouterSettings(
            asn=asn, router_id=f"10.98.0.{number}", addresses=own, peers=tuple(peers), port=PORT
        )

    return Arena(
        kind,
        Waggle(settings(OUR_ASN, 1, ours), link.left, directory / "ours"),
        driver(settings(THEIR_ASN, 2, theirs), link.right, directory / kind),
        Waggle(settings(THIRD_ASN, 3, third), link.left, directory / "third"),
        ends,
    )


@contextlib.contextmanager
def running_arenas(kinds: list[str], directory: Path) -> Iterator[dict[str, Arena]]:
    """Run arenas of several kinds at once; no session need be up yet."""
    with contextlib.ExitStack() as stack:
        arenas = {}
        for kind in kinds:
            link = stack.enter_context(linked_namespaces())
            far = [addresses(number_of(wire.name)) for wire in WIRES if wire.two_hops]
            stack.enter_context(router_between(link, *((a[0], b[0]) for a, b in far)))
            arenas[kind] = make_arena(kind, link, directory / kind)
        routers = [router for arena in arenas.values() for router in arena.routers]
        for router in routers:
            router.start()
            stack.callback(router.stop)
        for router in routers:
            router.wait_ready()
        for arena in arenas.values():
            arena.ours.announce(*OUR_IPV4, *OUR_IPV6, SHARED)
            arena.theirs.announce(*THEIR_IPV4, *THEIR_IPV6, SHARED)
            arena.ours.announce(
                OUR_COLOURED,
                communities=OUR_COMMUNITIES,
                large_communities=OUR_LARGE_COMMUNITIES,
            )
            arena.theirs.announce(
                THEIR_COLOURED,
                communities=THEIR_COMMUNITIES,
                large_communities=THEIR_LARGE_COMMUNITIES,
            )
            arena.third.announce(THIRD_PREFIX, SHARED)
        yield arenas
