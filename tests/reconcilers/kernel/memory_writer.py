"""A writer of kernel routes in memory: it applies the messages, when the test lets it."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from reconcilers.kernel.batches import split
from reconcilers.kernel.writer.protocol_messages import (
    Batch,
    Cause,
    Change,
    Changed,
    Confirmed,
    Failure,
    Freed,
    FromWriter,
    KernelRoute,
    Listing,
    Move,
    NextHopSet,
    Read,
    Reason,
    Resolution,
    Resolved,
    Routes,
    RouteTable,
    SetRoutes,
    Settings,
    ToWriter,
    Track,
    TrackedAddress,
)

Place = tuple[RouteTable, bytes]


class MemoryWriter:
    """A kernel and its writer."""

    def __init__(self) -> None:
        self.kernel: dict[Place, NextHopSet] = {}
        """Our routes."""
        self.foreign: set[Place] = set()
        self.unusable: set[Place] = set()
        """Routes whose next hop the kernel does not reach."""
        self.reject: Reason | None = None
        """Why the kernel takes no route."""
        self.sent: list[ToWriter] = []
        """Messages that have not been processed."""
        self.batches: list[Batch] = []
        self.seconds_per_route = 0.000001
        self.own_routes: dict[TrackedAddress, KernelRoute | None] = {}
        self.tracked: Track = Track()
        self._connected: Callable[[], None] = lambda: None
        self._received: Callable[[FromWriter], None] = lambda _: None

    def send(self, message: ToWriter) -> None:
        """See `KernelWriter`."""
        if isinstance(message, Batch) and message.urgent:
            self.sent.insert(0, message)
        else:
            self.sent.append(message)

    def follow(self, connected: Callable[[], None], received: Callable[[FromWriter], None]) -> None:
        """See `KernelWriter`."""
        self._connected, self._received = connected, received

    def connect(self) -> None:
        """Begin a connection, as after the start of the writer: what was sent is lost."""
        self.sent.clear()
        self.tracked = Track()
        self._connected()

    def run(self) -> None:
        """Process all messages, and the messages that follow from the answers."""
        while self.sent:
            self.step()

    def step(self) -> None:
        """Process one message."""
        message = self.sent.pop(0)
        match message:
            case Settings():
                routes = [
                    SetRoutes(hops, (Routes(table, nlri),))
                    for (table, nlri), hops in self.kernel.items()
                ]
                self._received(Listing(0, tuple(routes), last=False))
                self._received(Listing(0, (), last=True))
            case Batch():
                self.batches.append(message)
                self._received(self._written(message))
            case Track(addresses):
                new = [one for one in addresses if one not in self.tracked.addresses]
                self.tracked = message
                self.resolve(new)
            case Read(number):
                pieces = (SetRoutes(h, (Routes(*place),)) for place, h in self.kernel.items())
                self._received(Listing(number, tuple(pieces), last=True))
            case _:
                raise AssertionError(message)

    def report(self, message: FromWriter) -> None:
        """Send a message of the writer's own."""
        self._received(message)

    def resolve(self, addresses: Iterable[TrackedAddress]) -> None:
        """Report what leads to some addresses."""
        found = [Resolution(one, self.own_routes.get(one)) for one in addresses]
        if found:
            self._received(Resolved(tuple(found)))

    def _written(self, batch: Batch) -> Confirmed:
        failures: list[Failure] = []
        written = 0
        self._move(batch.moves)
        for table, octets in batch.removed:
            for nlri in split(octets):
                self.kernel.pop((table, nlri), None)
        for hops, routes in batch.routes:
            for table, octets in routes:
                for nlri in split(octets):
                    written += 1
                    reason = Reason.OCCUPIED if (table, nlri) in self.foreign else self.reject
                    if (table, nlri) in self.unusable:
                        reason = Reason.UNUSABLE_NEXT_HOP
                    if reason is None:
                        self.kernel[table, nlri] = hops
                    else:
                        self.kernel.pop((table, nlri), None)
                        failures.append(Failure(reason, 1, "no", (Routes(table, nlri),)))
        return Confirmed(batch.number, 1, tuple(failures), written * self.seconds_per_route)

    def _move(self, moves: Iterable[Move]) -> None:
        places_of: dict[NextHopSet, list[Place]] = {}
        for place, hops in self.kernel.items() if moves else ():
            places_of.setdefault(hops, []).append(place)
        for old, new in moves:
            places = places_of.pop(old, [])
            if new is None:
                for place in places:
                    del self.kernel[place]
            else:
                self.kernel.update(dict.fromkeys(places, new))
                places_of.setdefault(new, []).extend(places)

    def change(self, reason: Reason, table: RouteTable, nlri: bytes) -> None:
        """Another program changes a route."""
        if reason is Reason.MISSING:
            del self.kernel[table, nlri]
        self._received(Changed(Cause.EVENT, (Change(reason, (Routes(table, nlri),)),)))

    def free(self, table: RouteTable, nlri: bytes) -> None:
        """Another program removes its route."""
        self.foreign.discard((table, nlri))
        self._received(Freed((Routes(table, nlri),)))
