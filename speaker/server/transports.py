"""Performs the core's actions on sockets, and feeds it the transport events.

One `asyncio` task per connection attempt and no other: everything after that is a callback. Decides
nothing about BGP.
"""

from __future__ import annotations

import asyncio
import errno
import time
from collections.abc import Callable
from typing import Final

from speaker.engine.inputs import (
    BytesReceived,
    Input,
    QueueChanged,
    TransportAccepted,
    TransportClosed,
    TransportConnected,
    TransportFailed,
)
from speaker.peer.actions import Close, Connect, SetTtl, Write
from speaker.peer.session_end import NO_ANSWER
from speaker.server import interface_addresses, sockets
from speaker.server.bound_devices import BoundDevices
from speaker.server.connection import READ, Connection
from speaker.server.read_queue import LONG_PIECE, PIECE, ReadQueue

CONNECT_TIMEOUT_SECONDS: Final = 30.0
"""The kernel's own timeout is over two minutes."""
STATION_WAIT_SECONDS: Final = 0.5
"""Poll interval of whether this process may connect to its monitoring stations."""
LINGER_SECONDS: Final = 2.0
"""How long a closed connection may deliver its last NOTIFICATION, and the peer may take to close."""
SLICE_SECONDS: Final = 0.005
"""The part of a loop turn for queued reads ..."""
SHARED_SLICE_SECONDS: Final = 0.0001
"""... and while other peers send short messages that cause UPDATEs, ..."""
MAX_SLICE_SECONDS: Final = 0.05
MIN_SHARE: Final = 1 / 8
"""... but never less than this part of the time that everything else takes."""
SHARED_FOR_SECONDS: Final = 0.25
"""How long a short message that caused UPDATEs keeps the slices short."""


class Transports:
    """All connections of a speaker, by the core's numbers."""

    def __init__(
        self,
        feed: Callable[[Input], None],
        feed_at_once: Callable[[Input], bool],
        devices: BoundDevices,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """``feed`` and ``feed_at_once`` hand inputs to the core.

        ``feed_at_once`` sends the UPDATEs that an input causes without waiting for the turn of the
        loop to end, and returns whether it causes any. ``clock`` measures slices, in seconds: the
        clock of uvloop's loop has whole milliseconds only.
        """
        self._feed = feed
        self._feed_at_once = feed_at_once
        self._devices = devices
        self._clock = clock
        self._buffer = memoryview(bytearray(READ))
        self._read_queue = ReadQueue()
        self._working = False
        self._short_at = -SHARED_FOR_SECONDS
        """When a short message last caused UPDATEs (by the clock)."""
        self._worked_at = 0.0
        """When the last slice of queued reads, and the UPDATEs that it caused, ended."""
        self._connections: dict[int, Connection] = {}
        self._attempts: dict[int, asyncio.Task[None]] = {}
        self._lingering: set[Connection] = set()
        self._accepted = 0

    def connect(
        self, action: Connect, device: str | None, refuse: Callable[[str | None], str]
    ) -> None:
        """Start a connection attempt; its result is an input.

        ``refuse`` returns why an instance opens no connections at present, empty if it does. It is
        called in a later turn than the commands of this turn.
        """
        task = asyncio.get_running_loop().create_task(self._connect(action, device, refuse))
        self._attempts[action.connection] = task
        task.add_done_callback(lambda _: self._attempts.pop(action.connection, None))

    async def _connect(
        self, action: Connect, device: str | None, refuse: Callable[[str | None], str]
    ) -> None:
        number = action.connection
        while action.instance is None and refuse(None):  # noqa: ASYNC110  listeners have no event
            await asyncio.sleep(STATION_WAIT_SECONDS)
        if reason := refuse(action.instance):
            self._feed(TransportFailed(number, reason))
            return
        loop = asyncio.get_running_loop()
        device = action.interface or device
        try:
            sock = sockets.outgoing(
                address=action.address,
                ttl=action.ttl,
                min_ttl=action.min_ttl,
                local_address=action.local_address,
                local_port=action.local_port,
                device=device,
                password=action.password,
            )
        except OSError as error:
            if error.errno == errno.ENODEV and device is not None:
                self._devices.missing(device)
            self._feed(TransportFailed(number, str(error)))
            return
        connection = self._connection(number, self._connected)
        try:
            async with asyncio.timeout(CONNECT_TIMEOUT_SECONDS):
                await loop.sock_connect(sock, sockets.sockaddr(action.address, action.port))
            await loop.create_connection(lambda: connection, sock=sock)
        except TimeoutError:
            sock.close()
            self._feed(TransportFailed(number, NO_ANSWER))
            return
        except OSError as error:
            sock.close()
            self._feed(TransportFailed(number, sockets.describe(error)))
            return
        except asyncio.CancelledError:
            sock.close()
            raise

    def _connection(self, number: int, made: Callable[[Connection], None]) -> Connection:
        return Connection(number, self._buffer, made, self._received, self._closed, self._queued)

    def _connected(self, connection: Connection) -> None:
        self._add(connection)
        local, remote = connection.addresses()
        other = interface_addresses.other_version(local[0])
        self._feed(TransportConnected(connection.number, local, remote, other))

    def accept(self, instance: str, refuse: Callable[[str], bool]) -> Connection:
        """Create the protocol of a connection that a listening socket accepted.

        ``refuse`` returns whether connections from an address have to be aborted.
        """
        self._accepted -= 1

        def made(connection: Connection) -> None:
            local, remote = connection.addresses()
            if not remote[0] or refuse(remote[0]):
                connection.close(abort=True)
                return
            self._add(connection)
            other = interface_addresses.other_version(local[0])
            self._feed(TransportAccepted(connection.number, instance, local, remote, other))

        return self._connection(self._accepted, made)

    def _add(self, connection: Connection) -> None:
        number = connection.number
        self._connections[number] = connection
        self._devices.watch(number, connection.socket, lambda reason: self._drop(number, reason))

    def _pop(self, number: int) -> Connection | None:
        self._devices.forget(number)
        return self._connections.pop(number, None)

    def set_ttl(self, action: SetTtl) -> None:
        """Set the TTL of an accepted connection."""
        connection = self._connections.get(action.connection)
        if connection is None:
            return
        try:
            connection.set_ttl(action.ttl, action.min_ttl)
        except OSError as error:
            self._drop(action.connection, str(error))

    def write(self, action: Write) -> None:
        """Send octets."""
        connection = self._connections.get(action.connection)
        if connection is not None:
            connection.write(action.parts)

    def peer_address(self, number: int) -> str:
        """Return the address of the peer of a connection; empty without the connection."""
        connection = self._connections.get(number)
        return "" if connection is None else connection.addresses()[1][0]

    def close(self, action: Close) -> None:
        """Close a connection or cancel an attempt."""
        attempt = self._attempts.get(action.connection)
        if attempt is not None:
            attempt.cancel()
        connection = self._pop(action.connection)
        if connection is None:
            return
        self._read_queue.take(action.connection)
        connection.close(abort=action.abort)
        if not action.abort and not connection.lost.done():
            self._lingering.add(connection)
            asyncio.get_running_loop().call_later(LINGER_SECONDS, self._abort, connection)

    def _abort(self, connection: Connection) -> None:
        self._lingering.discard(connection)
        connection.close(abort=True)

    def _drop(self, number: int, reason: str) -> None:
        connection = self._pop(number)
        if connection is not None:
            self._read_queue.take(number)
            connection.close(abort=True)
            self._feed(TransportClosed(number, reason))

    def _received(self, number: int, data: bytes) -> None:
        if len(data) <= PIECE and number not in self._read_queue:
            if self._feed_at_once(BytesReceived(number, data)):
                self._short_at = self._clock()
            return
        self._read_queue.put(number, data)
        connection = self._connections.get(number)
        if connection is not None:
            connection.pause_reading()
        if not self._working:
            self._working = True
            self._worked_at = self._clock()
            asyncio.get_running_loop().call_soon(self._work)

    def _work(self) -> None:
        """Process queued reads for one slice of time."""
        now = self._clock()
        shared = now - self._short_at < SHARED_FOR_SECONDS
        slice_, size = (SHARED_SLICE_SECONDS, PIECE) if shared else (SLICE_SECONDS, LONG_PIECE)
        # A minimum share of a busy loop, or queued reads would never be finished.
        until = now + max(slice_, min((now - self._worked_at) * MIN_SHARE, MAX_SLICE_SECONDS))
        while (piece := self._read_queue.next(size)) is not None:
            number, data = piece
            self._feed(BytesReceived(number, data))
            if number not in self._read_queue and (connection := self._connections.get(number)):
                connection.resume_reading()
            if self._clock() >= until:
                break
        self._working = bool(self._read_queue)
        if self._working:
            asyncio.get_running_loop().call_soon(self._pause)

    def _pause(self) -> None:
        # After the UPDATEs that the slice caused, and not in the same turn: a short message waits
        # for one of the two only.
        loop = asyncio.get_running_loop()
        self._worked_at = self._clock()
        loop.call_soon(self._work)

    def _closed(self, number: int, reason: str) -> None:
        if number in self._read_queue:
            # The queued octets are kept: the last message may be a NOTIFICATION.
            self._feed(BytesReceived(number, self._read_queue.take(number)))
        self._pop(number)
        self._feed(TransportClosed(number, reason))

    def _queued(self, number: int, octets: int) -> None:
        self._feed(QueueChanged(number, octets))

    async def drain(self, deadline: float) -> None:
        """Wait until the last NOTIFICATIONs are sent; at the deadline (loop time) abort the rest."""
        loop = asyncio.get_running_loop()
        attempts = list(self._attempts.values())
        for attempt in attempts:
            attempt.cancel()
        waiting: list[asyncio.Future[None]] = [connection.lost for connection in self._lingering]
        waiting += attempts
        if waiting:
            await asyncio.wait(waiting, timeout=max(0.0, deadline - loop.time()))
        for connection in (*self._connections.values(), *self._lingering):
            connection.close(abort=True)
        self._connections.clear()
        self._lingering.clear()
