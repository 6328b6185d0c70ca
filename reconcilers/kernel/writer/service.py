"""The writer's loop: batches of one agent, notifications of the kernel, and a listing each minute.

Everything happens in one thread, one message after the other. Before a batch is written notifications
are read, so that a route which another program has put in place of ours is not replaced.
"""

from __future__ import annotations

import selectors
import socket
import time
from collections import deque
from collections.abc import Callable
from typing import Final

from reconcilers.kernel.writer.changes import Changes, changes_of, note, packed
from reconcilers.kernel.writer.foreign_routes import ForeignRoutes
from reconcilers.kernel.writer.kernel_features import has_objects, refusal
from reconcilers.kernel.writer.monitor import Events, LinkLost, Monitor
from reconcilers.kernel.writer.netlink import Kernel
from reconcilers.kernel.writer.protocol import CODEC, Message
from reconcilers.kernel.writer.protocol_lock import ProtocolLock
from reconcilers.kernel.writer.protocol_messages import (
    Batch,
    Cause,
    Changed,
    Freed,
    Goodbye,
    Health,
    Hello,
    Listing,
    NextHopSet,
    Read,
    Reason,
    Resolved,
    RouteTable,
    Settings,
    Track,
)
from reconcilers.kernel.writer.route_messages import RouteMessage
from reconcilers.kernel.writer.route_writer import RouteWriter
from reconcilers.process.codec import ProtocolError, VersionError
from reconcilers.process.connection import AgentTooSlowError, Connection, is_trusted
from reconcilers.process.log import log

VERIFY_SECONDS: Final = 60.0
"""From the reading of one table to that of the next one."""
_AFTER_LINK: Final = 0.1
"""Before tables are read again whose routes may have gone with a link."""
END_SECONDS: Final = 20.0
"""Time for the agent's `Goodbye`, if it does not keep its routes."""
LOCK_SECONDS: Final = 1.0
"""Between two attempts to take the lock that another writer has."""
_LAST_WORDS: Final = 0.5
"""Seconds for what the agent sent before its end."""


class Service:
    """The writer, from its start until `end`."""

    def __init__(
        self,
        listener: socket.socket,
        program: str,
        *,
        objects: bool = True,
        lifeline: int | None = None,
        verify_seconds: float = VERIFY_SECONDS,
    ) -> None:
        """``objects``: whether nexthop objects are used, if the kernel has them.

        ``lifeline``: a descriptor that ends when the agent does, and the writer with it. Raises
        `OSError`.
        """
        self._listener = listener
        self._program = program
        self._verify_seconds = verify_seconds
        self._kernel = Kernel()
        self._monitor = Monitor(self._kernel)
        self._objects = objects and has_objects(self._kernel)
        self._writer: RouteWriter | None = None
        self._settings = Settings()
        self._lock = ProtocolLock()
        self._waiting: Settings | None = None
        """Of an agent that waits while another writer has the lock."""
        self._next_attempt: float | None = None
        self._foreign = ForeignRoutes(self._kernel, self._is_ours)
        self._agent: Connection[Message] | None = None
        self._messages: deque[Message] = deque()
        """Of the agent, which are not handled yet."""
        self._next_verification = time.monotonic() + verify_seconds
        self._next_reading: float | None = None
        """When tables are read again that a link's routes may have gone from."""
        self._verified: tuple[int, int] = (0, 0)
        self._ended = False
        self._ending: float | None = None
        """Until when the agent is waited for; None before `end`."""
        self._wake = socket.socketpair()
        self._selector = selectors.DefaultSelector()
        listener.setblocking(False)
        self._selector.register(listener, selectors.EVENT_READ, self._accept)
        self._selector.register(self._monitor, selectors.EVENT_READ, self._notice)
        self._selector.register(
            self._wake[0], selectors.EVENT_READ, lambda: self._wake[0].recv(64) and None
        )
        if lifeline is not None:
            self._selector.register(lifeline, selectors.EVENT_READ, self._orphaned)

    def run(self) -> None:
        """Serve agents as the writer of the kernel's routes, until `end`."""
        while not self._ended:
            if self._ending is not None and self._may_end(self._ending):
                return
            self.turn()

    def _may_end(self, until: float) -> bool:
        """Return whether nothing is to be done; an agent that ends, too, may have routes removed."""
        keeps = self._settings.keep or self._writer is None
        return keeps or self._agent is None or time.monotonic() >= until

    def end(self) -> None:
        """Let `run` of the kernel's writer return, from a handler of signals as well; routes stay.

        An agent that does not keep its routes is waited for: a Pod ends all of its containers at once.
        """
        self._ending = time.monotonic() + END_SECONDS
        self._wake[1].send(b"\0")

    def turn(self) -> None:
        """Wait for a batch of the agent or a notification of the kernel, and do what is due."""
        due = self._next_verification
        for other in (self._next_reading, self._ending, self._next_attempt):
            due = due if other is None else min(due, other)
        due = time.monotonic() if self._messages else due
        for key, _ in self._selector.select(max(0.0, due - time.monotonic())):
            key.data()
        if self._messages:
            # One in a turn: a change of few routes does not wait for the batches before it.
            self._take_next()
        self._lock.answer()
        now = time.monotonic()
        if self._next_attempt is not None and now >= self._next_attempt:
            self._guarded(self._attempt)
        if now >= self._next_verification:
            self._next_verification = now + self._verify_seconds
            self._guarded(self._verify)
        if self._next_reading is not None and now >= self._next_reading:
            self._next_reading = None
            self._guarded(lambda: self._read_all(Cause.EVENT))

    def _orphaned(self) -> None:
        """Do what the agent sent last, and end."""
        until = time.monotonic() + _LAST_WORDS
        while self._agent is not None and time.monotonic() < until:
            self._readable()
        self._ended = True

    def _notice(self) -> None:
        self._guarded(self._notified)

    # The agent

    def _accept(self) -> None:
        try:
            agent, _ = self._listener.accept()
        except OSError:
            return  # it is gone already
        if not is_trusted(agent):
            log("error", "a process of another user connected; its connection is closed")
            agent.close()
            return
        # The newest connection is the running agent's: the end of the former may not be noticed yet.
        self._disconnect("another agent connected")
        self._agent = Connection(agent, CODEC)
        self._selector.register(self._agent, selectors.EVENT_READ, self._readable)
        self._send(Hello(self._program))

    def _disconnect(self, reason: str) -> None:
        if self._agent is not None:
            self._selector.unregister(self._agent)
            self._agent.close()
            self._agent = None
            self._messages.clear()
            self._waiting = self._next_attempt = None
            self._foreign = ForeignRoutes(self._kernel, self._is_ours)
            log("info", f"the connection to the agent is closed: {reason}; routes stay")

    def _send(self, message: Message) -> None:
        if self._agent is None:
            return
        try:
            self._agent.send(message)
        except (OSError, AgentTooSlowError) as error:
            self._disconnect(str(error))
            return
        self._wait_for_agent()

    def _wait_for_agent(self) -> None:
        """Wait until the agent reads where octets wait for it, and until it sends otherwise."""
        if self._agent is not None:
            waiting = selectors.EVENT_WRITE if self._agent.has_waiting else 0
            self._selector.modify(self._agent, selectors.EVENT_READ | waiting, self._readable)

    def _readable(self) -> None:
        """Read from the agent, and go on writing to it."""
        agent = self._agent
        if agent is None:
            return
        try:
            agent.flush()
            received = agent.receive()
            for message in received or ():
                if isinstance(message, Batch) and message.urgent:
                    self._messages.appendleft(message)
                else:
                    self._messages.append(message)
            reason = "the agent has ended it" if received is None else ""
        except (OSError, ProtocolError) as error:
            reason = str(error)
        if reason:
            while self._messages and self._agent is agent:
                self._take_next()
            if self._agent is agent:
                self._disconnect(reason)
        else:
            self._wait_for_agent()

    def _take_next(self) -> None:
        """Handle the next message of the agent."""
        message = self._messages.popleft()
        try:
            self._guarded(lambda: self._take(message))
        except ProtocolError as error:
            self._disconnect(str(error))

    def _take(self, message: Message) -> None:
        """Handle a message. Raises `OSError`."""
        match message:
            case Hello():
                self._greet(message)
            case Settings():
                self._begin(message)
            case Batch():
                self._apply(message)
            case Track():
                self._foreign.track(message.addresses)
                self._report_foreign()
            case Read():
                self._read(message)
            case Goodbye():
                self._leave()
            case _:
                raise ProtocolError(f"a writer takes no {type(message).__name__}")

    def _greet(self, hello: Hello) -> None:
        try:
            CODEC.common_version(hello)
        except VersionError as error:
            self._disconnect(str(error))

    def _begin(self, settings: Settings) -> None:
        """Adopt what a former writer installed, unless that is done, and list it.

        While another writer has the protocol number nothing is read and written.
        """
        if not self._lock.take(settings.protocol):
            self._writer = None
            if self._waiting is None:
                self._send(Health(_locked(settings.protocol)))
            self._waiting = settings
            self._next_attempt = time.monotonic() + LOCK_SECONDS
            return
        self._waiting = self._next_attempt = None
        if self._writer is None or settings.protocol != self._settings.protocol:
            writer = RouteWriter(self._kernel, settings, objects=self._objects)
            writer.adopt()
            self._writer = writer
        self._settings = settings
        self._notified()
        self._send(Health(refusal()))
        self._list(0, None)

    def _attempt(self) -> None:
        if self._waiting is not None:
            self._begin(self._waiting)

    def _apply(self, batch: Batch) -> None:
        writer = self._opened()
        self._notified()
        confirmed = writer.apply(batch)
        self._send(confirmed)
        noticed, writer.noticed = writer.noticed, {}
        self._report(Cause.EVENT, noticed)

    def _read(self, message: Read) -> None:
        writer = self._opened()
        self._notified()
        wanted = message.table
        tables = writer.known.families() if wanted is None else [(wanted.table, wanted.family)]
        for table, family in tables:
            self._reread(table, family, Cause.VERIFICATION)
        self._list(message.number, message.table)

    def _list(self, number: int, table: RouteTable | None) -> None:
        for piece in self._opened().known.pieces(table):
            self._send(Listing(number, piece, last=False))
        self._send(Listing(number, (), last=True))

    def _leave(self) -> None:
        if not self._settings.keep and self._writer is not None:
            self._writer.remove_all()
            self._writer = None
            self._lock.release()
        self._disconnect("the agent has ended")

    def _opened(self) -> RouteWriter:
        if self._writer is None:
            raise ProtocolError("Settings have to come before anything else")
        return self._writer

    # The kernel

    def _is_ours(self, route: RouteMessage, next_hops: NextHopSet) -> bool:
        return self._writer is not None and self._writer.owner(route, next_hops) is not None

    def _notified(self) -> None:
        """Read the kernel's notifications, and report what they mean."""
        events = self._monitor.read()
        writer = self._writer
        if writer is None:
            return
        if events.overflow:
            self._foreign.read_again()
            self._read_all(Cause.OVERFLOW)
            self._report_foreign()
            return
        self._take_routes(writer, events)
        if events.objects:
            self._report(Cause.EVENT, writer.reread_objects())
        if events.lost_address:
            self._foreign.read_again()
        if (events.lost_link or events.lost_address) and any(
            not group.id and group.routes for group in writer.groups
        ):
            self._next_reading = self._next_reading or time.monotonic() + _AFTER_LINK
        self._report_foreign()

    def _take_routes(self, writer: RouteWriter, events: Events) -> None:
        changes: Changes = {}
        freed: dict[RouteTable, list[bytes]] = {}
        for event in events.in_order:
            if isinstance(event, LinkLost):
                if event.has_routes:
                    self._foreign.read_again()
                else:
                    self._foreign.link_lost(event.link)
                continue
            route = event.route
            self._foreign.event(event)
            if event.added:
                reason = writer.added_by_others(route, event.flags)
                if reason is not None:
                    note(changes, reason, route.table, (route.prefix,))
            elif (reason := writer.removed_by_others(route)) is Reason.MISSING:
                note(changes, reason, route.table, (route.prefix,))
            elif reason is Reason.OCCUPIED:
                freed.setdefault(route.table, []).append(route.prefix)
        self._report(Cause.EVENT, changes)
        if freed:
            self._send(Freed(packed(freed)))

    def _report_foreign(self) -> None:
        self._foreign.refresh()
        resolutions = self._foreign.resolutions()
        if resolutions:
            self._send(Resolved(resolutions))

    def _read_all(self, cause: Cause) -> None:
        """Read everything again, and report what differs."""
        writer = self._writer
        if writer is None:
            return
        self._report(cause, writer.reread_objects())
        for table, family in writer.known.families():
            self._reread(table, family, cause)

    def _reread(self, table: int, family: int, cause: Cause) -> None:
        writer = self._opened()
        self._report(cause, writer.reread(table, family))
        freed = writer.freed(table, family)
        if freed:
            self._send(Freed(freed))

    def _verify(self) -> None:
        """Read the next table whole."""
        writer = self._writer
        if writer is None:
            return
        self._notified()
        self._report(Cause.VERIFICATION, writer.reread_objects())
        tables = writer.known.families()
        if tables:
            later = [each for each in tables if each > self._verified]
            self._verified = later[0] if later else tables[0]
            self._reread(*self._verified, Cause.VERIFICATION)
        writer.remove_unused_groups()

    def _report(self, cause: Cause, changes: Changes) -> None:
        if changes:
            self._send(Changed(cause, changes_of(changes)))

    def _guarded(self, work: Callable[[], None]) -> None:
        """Do something; after an error the agent connects again, and everything is read again."""
        try:
            work()
        except OSError as error:
            log("error", f"the kernel: {error}")
            self._writer = None
            self._send(Health(f"the kernel: {error}"))
            self._disconnect("everything is read again after an error")


def _locked(protocol: int) -> str:
    return (
        f"another waggle-kernel writes routes with the protocol number {protocol} in this network "
        "namespace; nothing is written until it has ended: end it, or use another --fib-protocol"
    )
