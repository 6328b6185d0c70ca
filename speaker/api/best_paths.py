"""The best paths of an instance as a stream: for what forwards, or records, the routes of a Loc-RIB.

Frozen values without any work, and the protocols of the stream's two ends. What a reader is given:

1. `TableBegin`: the whole table follows. A route that the reader knows from before, and that is not
   named by a change until `SelectionEnd`, does not exist any more.
2. `BestPathChange` for each group of prefixes of the table, with nothing before.
3. `TableEnd`: the table of the beginning is complete.
4. `SelectionEnd`: route selection after a restart is complete, too (RFC 4724 section 4.1): each peer
   that keeps its routes has sent End-of-RIB, or the deferral has ended. Without a restart it follows
   `TableEnd` immediately.
5. `BestPathChange` for what changes, between 3 and 4 as well as afterwards, once per turn of the loop.

The order holds for one instance that exists once. When it is removed its routes are gone, without
withdrawals: `InstanceRemoved`. When it is created again, also as another router (another AS or
identifier), the stream goes on with `TableBegin`.

A reader that does not read costs the speaker one entry per changed prefix, and never more than the
table has: it is given the last state of a prefix then, not every step. ``before`` is always what this
reader was given last, so that changes can be applied in their order without a look-up.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

import msgspec

from speaker.nlri import Family

if TYPE_CHECKING:
    from opentelemetry.trace import SpanContext


class BestPath(msgspec.Struct, frozen=True, kw_only=True, weakref=True, cache_hash=True):
    """One of the best paths of a prefix: what forwarding depends on."""

    peer: str | None
    """The name of the peer that announced it; None for a route of this router."""
    address: str | None
    """The address of the peer, without a zone; None for a route of this router."""
    interface: str | None
    """The interface of the peer's session where it is configured or the address is link-local."""
    instance: str
    """The instance that the session, or the local route, belongs to: the VRF of the next hop."""
    imported: bool = False
    """Whether ``instance`` is another instance, whose routes this instance imports."""
    direct: bool = False
    """Whether the session reaches a neighbour of its links only: eBGP of one hop, or unnumbered."""
    next_hop: bytes = b""
    """The next hop as announced or set by the import policy, 4 or 16 octets; IPv4 prefixes may have
    16 (RFC 8950). Empty where there is only a link-local one, and for a route without any."""
    link_local: bytes = b""
    """The link-local next hop (RFC 2545 section 3), 16 octets, or empty."""
    communities: tuple[int, ...] = ()
    """Standard communities in the order of the path, such as BLACKHOLE (RFC 7999)."""

    @property
    def local(self) -> bool:
        """Whether a router's own configuration is the source: ``instance``'s, not a peer."""
        return self.peer is None


class PathSet(msgspec.Struct, frozen=True, weakref=True, cache_hash=True):
    """The best paths of a prefix: the best one first, then paths that are equal up to the router ID.

    Equal sets of one speaker are one object while any reader refers to it: prefixes can be grouped
    by identity.
    """

    paths: tuple[BestPath, ...]

    def __bool__(self) -> bool:
        """Whether there is any path."""
        return bool(self.paths)


NO_PATHS: Final = PathSet(())
"""No route."""


class BestPathChange(NamedTuple):
    """The best paths of some prefixes changed."""

    family: Family
    before: PathSet
    """The reader's last path set for each of the prefixes; `NO_PATHS` if nothing or no route."""
    after: PathSet
    """`NO_PATHS` withdraws the prefixes."""
    prefixes: Sequence[bytes]
    """In wire form, each of them once; not empty."""


class TableBegin(NamedTuple):
    """The whole table follows: see the top of the module."""


class TableEnd(NamedTuple):
    """The whole table was given."""


class SelectionEnd(NamedTuple):
    """Route selection after a restart is complete: stale routes of the last run can be removed."""


class InstanceRemoved(NamedTuple):
    """The instance was removed; none of its routes is left."""


BestPathItem = BestPathChange | TableBegin | TableEnd | SelectionEnd | InstanceRemoved


class Multipath(msgspec.Struct, frozen=True):
    """How many paths of a prefix are best (RFC 4271 section 9.1.2.2, steps a to e)."""

    maximum: int = 1
    """1 is the best path alone."""
    relax: bool = False
    """Whether AS paths of equal length are equal; otherwise their contents have to be equal."""


ONE_PATH: Final = Multipath()


FEW_PREFIXES: Final = 16
"""A change of no more prefixes is a change of single routes; of more, part of a table."""


class BestPathReader(Protocol):
    """The reader's end of a stream; belongs to the event loop's thread."""

    on_few: Callable[[Sequence[BestPathItem]], None] | None
    """Called within the speaker's turn with a batch of `FEW_PREFIXES` or fewer, the last one of what
    `take` returns then: a single route does not wait for a turn of the loop, which takes long while a
    table is received. Raises nothing."""

    def take(self) -> Sequence[BestPathItem]:
        """Return what has arrived since the last call, in order; empty without anything.

        The speaker sends on after it: a reader that calls it once per turn of its own work has
        back-pressure. At most some thousand prefixes at a time, whatever the table's size.
        """

    def take_causes(self) -> Sequence[SpanContext]:
        """Return the spans that caused what `take` returns next; call it before.

        Empty without tracing, and for what peers have sent.
        """

    async def wait(self) -> None:
        """Return once `take` has something, at once where it has now. Raises `StreamClosed`."""

    def close(self) -> None:
        """End the stream; `take` returns nothing any more."""


class StreamClosed(Exception):  # noqa: N818  named after the fault
    """The stream was closed, by its reader or with the speaker."""


class BestPathSource(Protocol):
    """The part of `speaker.api.SpeakerPort` that a Loc-RIB's best paths are read from."""

    def follow_best_paths(self, instance: str, multipath: Multipath = ONE_PATH) -> BestPathReader:
        """Open a stream of the best paths of an instance, all families, the whole table first.

        Any number of readers may follow one instance, each with its own ``multipath`` and its own
        pace. The instance may be created later. A reader that is not closed is kept for ever.
        """
