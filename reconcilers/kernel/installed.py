"""The routes that the writer has put into the kernel, and the changes that are on their way to it.

The actual state of the kernel as a target: what the writer listed and confirmed, with the changes that
were handed to it and are not answered. Of a prefix that changes faster than the kernel takes it the
last state is sent, not every step. Nothing here waits.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Final, NamedTuple, cast, final

from reconcilers.kernel.answers import Answers
from reconcilers.kernel.batch_spans import BatchSpans
from reconcilers.kernel.batches import BatchSize, RouteChanges, batch_of, moved_routes, split
from reconcilers.kernel.counts import Counts
from reconcilers.kernel.failed_routes import RouteFailure
from reconcilers.kernel.reading import Reading
from reconcilers.kernel.route_failures import RouteFailures
from reconcilers.kernel.unsettled_moves import UnsettledMoves
from reconcilers.kernel.waiting import take_some
from reconcilers.kernel.writer.port import KernelWriter
from reconcilers.kernel.writer.protocol_messages import (
    Batch,
    Changed,
    Confirmed,
    Failure,
    Freed,
    FromWriter,
    Health,
    Listing,
    Move,
    NextHop,
    NextHopSet,
    Read,
    Reason,
    Resolved,
    Routes,
    RouteTable,
    Settings,
)
from reconcilers.sliced_work import Slices, finish

IN_FLIGHT: Final = 2
"""Batches that are not confirmed: the writer has the next one when it is done with one."""
URGENT_IN_FLIGHT: Final = 16
"""Batches of urgent changes beside them."""
UNKNOWN: Final[NextHopSet] = (NextHop(weight=0),)
"""Next hops of a route that the kernel has against our will: no route shall have them."""


class _InFlight(NamedTuple):
    """A batch that is not confirmed."""

    changes: Mapping[RouteTable, Mapping[bytes, NextHopSet | None]]
    urgent: bool = False


@final
class InstalledRoutes:
    """The state of the kernel as far as it is ours."""

    def __init__(
        self,
        writer: KernelWriter,
        settings: Settings,
        on_change: Callable[[], None],
        on_resolved: Callable[[Resolved], None] = lambda _: None,
        on_connected: Callable[[], None] = lambda: None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """``on_change`` is called when `take_changed` has something. ``clock`` is in seconds.

        ``on_connected``: a writer is there that knows nothing of what was sent before.
        """
        self._writer = writer
        self._settings = settings
        self._on_change = on_change
        self._on_resolved = on_resolved
        self._on_connected = on_connected
        self.listed = False
        """Whether it is known which routes are in the kernel."""
        self.health = ""
        """The writer's report; empty without a problem."""
        self.answers = Answers(clock)
        self.counts = Counts()
        self.failures = RouteFailures(clock)
        self.spans = BatchSpans()
        self._held: dict[RouteTable, dict[bytes, NextHopSet]] = {}
        self._moves = UnsettledMoves()
        """Of `_held`."""
        self._waiting: RouteChanges = {}
        """Changes that are not handed over yet; the oldest first."""
        self._batch_size = BatchSize()
        self._in_flight: dict[int, _InFlight] = {}
        self._number = 0
        self._changed: dict[RouteTable, set[bytes] | None] = {}
        self._listing: dict[RouteTable, dict[bytes, NextHopSet]] = {}
        self._reading: Reading | None = None
        self._compared = True
        """False from a reading to `end_reading`: a verification repairs what differs."""
        writer.follow(self._connected, self._received)

    # ------------------------------------------------------------- the target

    @property
    def tables(self) -> Collection[RouteTable]:
        """The kernel's tables with installed routes of ours."""
        return [table for table, held in self._held.items() if held]

    def count(self, table: RouteTable) -> int:
        """The number of installed routes of a table."""
        return len(self._held.get(table, ()))

    def held(self, table: RouteTable, prefixes: Collection[bytes]) -> dict[bytes, NextHopSet]:
        """Return the next hops of prefixes that are installed, or on their way into the kernel."""
        if self._moves.tables:
            self._moves.settle(table, self._held, prefixes)
        known = self._held.get(table)
        if not known or known.keys().isdisjoint(prefixes):
            return {}
        get = known.get
        return {nlri: hops for nlri in prefixes if (hops := get(nlri)) is not None}

    def prefixes(self, table: RouteTable) -> tuple[bytes, ...]:
        """Return all prefixes that are installed in a table; a copy."""
        return tuple(self._held.get(table, ()))

    def is_confirmed(self, table: RouteTable, nlri: bytes) -> bool:
        """True if no change of an installed prefix is on its way."""
        if nlri in self._waiting.get(table, ()):
            return False
        return all(nlri not in batch.changes.get(table, ()) for batch in self._in_flight.values())

    @property
    def pending(self) -> int:
        """Changes of installed routes that are not confirmed."""
        in_flight = (part for batch in self._in_flight.values() for part in batch.changes.values())
        return sum(map(len, (*self._waiting.values(), *in_flight)))

    @property
    def has_room(self) -> bool:
        """Whether the writer has less than a batch to install: what waits here waits for all of it."""
        return sum(map(len, self._waiting.values())) < self._batch_size.routes

    def change(
        self,
        table: RouteTable,
        changes: Mapping[bytes, NextHopSet | None],
        *,
        urgent: bool = False,
    ) -> None:
        """Hand changes of installed routes to the writer, as it has room; None removes a route.

        ``urgent``: at once, and before what it has not begun, where none of that has these prefixes.
        """
        waiting = self._waiting.setdefault(table, {})
        held = self._held.setdefault(table, {})
        if self._moves.tables:
            self._moves.settle(table, self._held, changes)
        # The newest change is the last one.
        for nlri in waiting.keys() & changes.keys() if waiting else ():
            del waiting[nlri]
        if urgent := urgent and self._may_overtake(table, changes):
            if not waiting:
                del self._waiting[table]
        else:
            self.spans.note()
            waiting.update(changes)
        if None in changes.values():
            for nlri, hops in changes.items():
                if hops is not None:
                    held[nlri] = hops
                elif nlri in held:
                    del held[nlri]
        else:
            held.update(cast("Mapping[bytes, NextHopSet]", changes))
        if urgent:
            self._hand_over(batch_of({table: changes}), {table: changes}, urgent=True)
        else:
            self._send()

    def _may_overtake(self, table: RouteTable, prefixes: Collection[bytes]) -> bool:
        """Return whether prefixes may be written before the batches that are on their way."""
        batches = self._in_flight.values()
        return (
            self.listed
            and sum(batch.urgent for batch in batches) < URGENT_IN_FLIGHT
            # A batch without routes moves any.
            and all(
                batch.changes and batch.changes.get(table, {}).keys().isdisjoint(prefixes)
                for batch in batches
            )
        )

    def move(self, moves: Mapping[NextHopSet, NextHopSet | None]) -> None:
        """Move all installed routes of sets of next hops to others, by one message for each set."""
        if not self.listed:
            return
        in_order = tuple(Move(old, new) for old, new in moves.items())
        # At once: to look for the routes takes longer than the kernel needs for all of them. Batches
        # that are on their way may install routes of the old sets: after them.
        self._hand_over(Batch(0, moves=in_order), {})
        self._moves.add(moves, self._held)
        for waiting in self._waiting.values():
            waiting.update(moved_routes(waiting, moves))

    def settle_moves(self) -> Slices[None]:
        """Have all installed routes follow what `move` has moved."""
        yield from self._moves.settle_all(self._held)

    def take_changed(self) -> dict[RouteTable, set[bytes] | None]:
        """Return what is no longer installed in the kernel, by table; None is a whole table."""
        if not self._compared:
            return {}
        changed, self._changed = self._changed, {}
        return changed

    def read(self, done: Callable[[], None]) -> None:
        """Read the installed routes of the kernel again; ``done`` is called once they are known.

        Until `end_reading` `take_changed` returns nothing.
        """
        self._number += 1
        self._compared = False
        self._reading = Reading(self._number, done)
        self.answers.sent(self._number)
        self._writer.send(Read(self._number))

    def end_reading(self) -> None:
        """End the reading of installed routes that `read` began."""
        self._reading, self._compared = None, True
        self._on_change()

    def _compare(self, reading: Reading) -> None:
        """Take what was read for what the kernel has."""
        in_flight = [batch.changes for batch in self._in_flight.values()]
        if not all(in_flight):
            return  # moves, of any routes
        finish(self._moves.settle_all(self._held))
        busy: dict[RouteTable, set[bytes]] = {}
        for changes in (self._waiting, *in_flight):
            for table, part in changes.items():
                busy.setdefault(table, set()).update(part)
        for table, routes in reading.differences(self._held, busy).items():
            held = self._held.setdefault(table, {})
            for nlri, hops in routes.items():
                if hops is not None:
                    held[nlri] = hops
                else:
                    held.pop(nlri, None)

    def without_failed(
        self, table: RouteTable, changes: Mapping[bytes, NextHopSet | None]
    ) -> Mapping[bytes, NextHopSet | None]:
        """Return changes to install without routes that failed and are not to be sent yet.

        A route that is not wanted any more is removed at once, unless its removal failed.
        """
        postponed = self.failures.postponed(table, changes)
        if not postponed:
            return changes
        held = self._held.get(table, {})
        return {
            nlri: hops
            for nlri, hops in changes.items()
            if nlri not in postponed or (hops is None and held.get(nlri) != UNKNOWN)
        }

    def forget_failures(self, table: RouteTable, unwanted: Iterable[bytes]) -> None:
        """Forget failures of routes that are not to be installed, unless the kernel has them."""
        if self.failures.forget(table, unwanted, self._held.get(table, {})):
            self._on_change()

    # ---------------------------------------------------------------- batches

    def _send(self) -> None:
        in_flight = sum(not batch.urgent for batch in self._in_flight.values())
        for _ in range(IN_FLIGHT - in_flight if self.listed else 0):
            # The newest first: the kernel deletes routes fastest in the opposite order of their
            # installation, too.
            changes = take_some(self._waiting, self._batch_size.routes)
            if not changes:
                return
            self._hand_over(batch_of(changes), changes)

    def _hand_over(
        self,
        batch: Batch,
        changes: Mapping[RouteTable, Mapping[bytes, NextHopSet | None]],
        *,
        urgent: bool = False,
    ) -> None:
        self._number += 1
        self._in_flight[self._number] = _InFlight(changes, urgent)
        self.answers.sent(self._number)
        # Moves have no changes, and precede what waits, too.
        at_once = urgent or not changes
        self.spans.begin(self._number, sum(map(len, changes.values())), at_once=at_once)
        self._writer.send(batch._replace(number=self._number, urgent=urgent))

    # ----------------------------------------------------------- the writer

    def _connected(self) -> None:
        """Begin with a new writer: what was sent to the former one and not confirmed is void."""
        self.listed = False
        self.health = ""
        self._in_flight.clear()
        self.spans.abandon()
        self._waiting.clear()
        self._listing = {}
        if self._reading is not None:
            self._reading.done()
        self.answers.begin()
        self._writer.send(self._settings)
        self._on_connected()

    def _received(self, message: FromWriter) -> None:
        self.answers.received()
        match message:
            case Listing():
                self._list(message)
            case Confirmed():
                self._confirm(message)
            case Changed():
                self._change(message)
            case Freed(routes):
                self._free(routes)
            case Resolved():
                self._on_resolved(message)
            case Health(problem):
                self.health = problem
                self._on_change()
            case _:
                pass

    def _list(self, message: Listing) -> None:
        reading = self._reading
        if message.last:
            self.answers.answered(message.number)
        if message.number:
            if reading is not None and reading.number == message.number:
                for hops, routes in message.routes:
                    for table, octets in routes:
                        reading.add(table, split(octets), hops)
                if message.last:
                    self._compare(reading)
                    reading.done()
            return
        for hops, routes in message.routes:
            for table, octets in routes:
                part = dict.fromkeys(split(octets), hops)
                self._listing.setdefault(table, {}).update(part)
        if not message.last:
            return
        self._changed = dict.fromkeys((*self._changed, *self._held, *self._listing))
        self._held, self._listing = self._listing, {}
        self._moves.clear()
        # Changes that came during the listing: all tables are compared with it.
        self._waiting.clear()
        self.failures.clear()
        self.listed = True
        self._on_change()

    def _confirm(self, message: Confirmed) -> None:
        self.answers.answered(message.number)
        batch = self._in_flight.pop(message.number, None)
        if batch is None:
            return
        counts = self.counts
        counts.batches += 1
        counts.written += message.written
        counts.seconds += message.seconds
        routes = sum(map(len, batch.changes.values()))
        counts.routes += routes
        self._batch_size.confirmed(routes, message.seconds)
        for table, part in batch.changes.items():
            self.failures.confirmed(table, part)
        for failure in message.failures:
            self._fail(failure, batch)
        self.failures.end_pauses(batch.changes)
        failed_routes = sum(len(split(r.prefixes)) for f in message.failures for r in f.routes)
        self.spans.end(message.number, failed_routes, message.seconds)
        self._send()
        if message.failures or (self.has_room and not batch.urgent):
            self._on_change()

    def _fail(self, failure: Failure, batch: _InFlight) -> None:
        reason, counts = failure.reason, self.counts.failures
        for table, octets in failure.routes:
            prefixes = split(octets)
            counts[reason] = counts.get(reason, 0) + len(prefixes)
            self._lose(table, prefixes, RouteFailure(reason, failure.text))
            part = batch.changes.get(table, {})
            self._keep(table, [nlri for nlri in prefixes if nlri in part and part[nlri] is None])
            if reason is not Reason.OCCUPIED:
                self.failures.postpone(table)

    def _change(self, message: Changed) -> None:
        changed = self.counts.changed
        for reason, routes in message.changes:
            for table, octets in routes:
                prefixes = split(octets)
                changed[message.cause] = changed.get(message.cause, 0) + len(prefixes)
                self._lose(table, prefixes, RouteFailure(reason, "changed by another program"))
                if reason is Reason.UNEXPECTED:
                    self._keep(table, prefixes)
                elif reason is Reason.MISSING:
                    # The change may have come before the routes that are on their way, or after them.
                    self._keep(table, [nlri for nlri in prefixes if self._is_coming(table, nlri)])
        self._on_change()

    def _lose(self, table: RouteTable, prefixes: Collection[bytes], failure: RouteFailure) -> None:
        """Note that the kernel does not have some routes as they were sent."""
        self._moves.settle(table, self._held, prefixes)
        held, waiting = self._held.get(table, {}), self._waiting.get(table, {})
        for nlri in prefixes:
            # What is on its way, or follows, is newer.
            if nlri not in waiting and not self._is_coming(table, nlri):
                held.pop(nlri, None)
        self.failures.add(table, prefixes, failure)
        known = self._changed.setdefault(table, set())
        if known is not None:
            known.update(prefixes)

    def _is_coming(self, table: RouteTable, nlri: bytes) -> bool:
        """Return whether a batch that is on its way installs a route."""
        batches = self._in_flight.values()
        return any(batch.changes.get(table, {}).get(nlri) is not None for batch in batches)

    def _keep(self, table: RouteTable, prefixes: Sequence[bytes]) -> None:
        """Note that the kernel has some routes that are to be removed."""
        self._moves.settle(table, self._held, prefixes)
        held, waiting = self._held.setdefault(table, {}), self._waiting.get(table, {})
        held.update((nlri, UNKNOWN) for nlri in prefixes if nlri not in waiting)

    def _free(self, routes: Iterable[Routes]) -> None:
        for table, octets in routes:
            prefixes = split(octets)
            self.failures.freed(table, prefixes)
            known = self._changed.setdefault(table, set())
            if known is not None:
                known.update(prefixes)
        self._on_change()
