"""The messages between the agent and the writer of kernel routes, as frozen values.

The agent sends `Hello`, `Settings`, `Batch`, `Track` and `Read`; the writer answers with
`Hello`, `Listing`, `Confirmed`, `Changed`, `Resolved` and `Health`. After `Settings` the
writer reads the kernel once and lists the routes that are ours, so that a new agent, or a new writer,
adopts them. What the kernel already has of a batch is not written again.

Prefixes are in wire form (RFC 4271 section 4.3): the length in bits, and the octets that it needs, bits
behind the length 0. Several prefixes are concatenated. Addresses are 4 or 16 octets. All values are
tuples: the process of the writer imports nothing that would make it large.
"""

from __future__ import annotations

import enum
from typing import Final, NamedTuple, TypeAlias

VERSIONS: Final = (1, 1)
"""The first and the last version of the messages that this code speaks."""
MAX_ROUTES: Final = 2_000
"""Routes of a batch, as the agent sends them, at the most: about 8 ms of the kernel's time."""

IPV4: Final = 2
IPV6: Final = 10
"""The families of the kernel (AF_INET, AF_INET6), which `RouteTable.family` holds."""


class RouteTable(NamedTuple):
    """The place of a route: with its prefix this is the key of a route in the kernel."""

    table: int
    family: int
    metric: int
    """The priority of the kernel; a lower one is preferred."""


class NextHop(NamedTuple):
    """One next hop of the kernel, resolved: the gateway is reached directly by the interface."""

    gateway: bytes = b""
    """Empty for a route by interface alone. IPv6 for an IPv4 route as well (RFC 8950)."""
    interface: int = 0
    """Index; 0 in `BLACKHOLE` alone, as objects of the kernel have an interface."""
    onlink: bool = False
    """The gateway is taken to be on the interface's link, whatever addresses the interface has."""
    weight: int = 1
    """1 to 256, among the next hops of a set; 1 if the set has no other."""


NextHopSet: TypeAlias = tuple[NextHop, ...]
"""Next hops that a route uses together, sorted, without duplicates, never empty."""

BLACKHOLE: Final[NextHopSet] = (NextHop(),)
"""The kernel discards what is sent to the prefix (RFC 7999)."""


class Routes(NamedTuple):
    """Prefixes of a table."""

    table: RouteTable
    prefixes: bytes


class SetRoutes(NamedTuple):
    """Prefixes that use a set of next hops."""

    next_hops: NextHopSet
    routes: tuple[Routes, ...]


class Move(NamedTuple):
    """All routes that use one set of next hops use another set from now, or go, whatever their tables.

    One message to the kernel, however many routes there are. For a peer that is lost: every set that
    has its next hop moves to the set without it.
    """

    old: NextHopSet
    new: NextHopSet | None
    """None: there is no other next hop, so the routes are removed."""


# From the agent to the writer


class Hello(NamedTuple):
    """The first message in both directions. Versions that do not overlap end the connection."""

    program: str
    """Name and version of the program, for the logs of its peer."""
    versions: tuple[int, int] = VERSIONS


class Settings(NamedTuple):
    """How routes are written; sent once, after `Hello`. The writer answers with `Listing`."""

    protocol: int = 186
    """The protocol number of our routes (RTPROT_BGP). It is no proof that a route is ours."""
    keep: bool = True
    """Whether routes stay when the agent ends the writer in an orderly way (`Goodbye`)."""


class Batch(NamedTuple):
    """Changes of routes, confirmed as one. Applied in this order: moves, removed, routes."""

    number: int
    moves: tuple[Move, ...] = ()
    removed: tuple[Routes, ...] = ()
    """A route that is not ours, or does not exist, is no error and stays as it is.

    Many are removed soonest with the greatest prefix first: the kernel takes five times as long for
    ascending ones. `Move` removes all routes of a set at once.
    """
    routes: tuple[SetRoutes, ...] = ()
    """Routes that shall exist with these next hops."""
    urgent: bool = False
    """Applied before messages that wait: none of them has these prefixes, or moves routes."""


class TrackedAddress(NamedTuple):
    """A BGP next hop, which the routes of a table resolve."""

    table: int
    address: bytes


class Track(NamedTuple):
    """The next hops whose resolution the writer reports, in place of the last `Track`."""

    addresses: tuple[TrackedAddress, ...] = ()


class Read(NamedTuple):
    """Requests our routes as the kernel has them now, in `Listing` with the same number."""

    number: int
    """1 or higher; 0 is the listing that follows `Settings`."""
    table: RouteTable | None = None
    """None: all tables."""


class Goodbye(NamedTuple):
    """The agent ends in an orderly way: without `Settings.keep` the writer removes our routes."""


# From the writer to the agent


class Listing(NamedTuple):
    """Our routes, in pieces. A route that another program put in place of ours is not among them."""

    number: int
    routes: tuple[SetRoutes, ...]
    last: bool


class Reason(enum.StrEnum):
    """Why a route is not installed as it should be."""

    OCCUPIED = "Occupied"
    """A route of another program has its table, prefix and metric; it is left as it is."""
    MISSING = "Missing"
    """Another program removed it, or the kernel did when the interface went down."""
    DIFFERENT = "Different"
    """The kernel has it with other next hops."""
    NOT_PERMITTED = "NotPermitted"
    """EPERM, EACCES: the writer has no CAP_NET_ADMIN in its network namespace. EROFS: read-only."""
    TABLE_FULL = "TableFull"
    """ENOSPC, ENOMEM, ENOBUFS: the kernel takes no more routes."""
    UNUSABLE_NEXT_HOP = "UnusableNextHop"
    """The kernel does not reach the gateway by the interface, or the interface is down or gone."""
    UNEXPECTED = "Unexpected"
    """The kernel has a route of ours that no batch has."""
    REFUSED = "Refused"
    """Any other error."""


class Failure(NamedTuple):
    """Routes of a batch that the kernel did not take, for one reason.

    A route that stood there with other next hops is removed, if the kernel lets us.
    """

    reason: Reason
    error: int
    """errno; 0 without one."""
    text: str
    """The kernel's message, for people."""
    routes: tuple[Routes, ...]


class Confirmed(NamedTuple):
    """A batch is done: all its routes are in the kernel, except for ``failures``."""

    number: int
    written: int
    """Messages to the kernel; 0 if everything was right."""
    failures: tuple[Failure, ...] = ()
    seconds: float = 0.0
    """Of the writer's time, by the clock."""


class Cause(enum.StrEnum):
    """How the writer noticed a change."""

    EVENT = "event"
    """A notification of the kernel: of the route, or of the interface that it uses."""
    OVERFLOW = "overflow"
    """Notifications were lost (ENOBUFS), and everything was read again."""
    VERIFICATION = "verification"
    """The table was read as each minute one is."""


class Change(NamedTuple):
    """Confirmed routes that the kernel no longer has as they were confirmed."""

    reason: Reason
    """`OCCUPIED`, `MISSING`, `DIFFERENT` or `UNEXPECTED`."""
    routes: tuple[Routes, ...]


class Changed(NamedTuple):
    """Another program or the kernel changed our routes. The agent sends again what it wants."""

    cause: Cause
    changes: tuple[Change, ...]


class Freed(NamedTuple):
    """Foreign routes that occupied the place of ours are gone: the agent may send ours again."""

    routes: tuple[Routes, ...]


class KernelRoute(NamedTuple):
    """A route that is not ours."""

    table: RouteTable
    prefix: bytes
    protocol: int
    next_hops: NextHopSet
    """A next hop without a gateway is a connected network. `BLACKHOLE`: any type without next hops."""


class Resolution(NamedTuple):
    """The most specific foreign route to a tracked address; of equal ones the least metric's."""

    address: TrackedAddress
    route: KernelRoute | None
    """None: no foreign route of the table, not even a default route, covers the address."""


class Resolved(NamedTuple):
    """Tracked addresses whose resolution changed; at first all of them."""

    resolutions: tuple[Resolution, ...]


class Health(NamedTuple):
    """The state of the writer, when it changes."""

    problem: str
    """Empty: it works."""


ToWriter: TypeAlias = Hello | Settings | Batch | Track | Read | Goodbye
FromWriter: TypeAlias = Hello | Listing | Confirmed | Changed | Freed | Resolved | Health
