"""Waits for the kernel's notifications on a netlink socket, and has `FollowedRoutes` take them.

Notifications that the socket has no room for are lost (ENOBUFS): then everything is read again.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import socket
from collections.abc import Iterator
from typing import Final, final

from resources.host.followed_routes import FollowedRoutes

_DATAGRAM: Final = 1 << 16
"""Octets of a notification, at most."""


@final
class RouteMonitor:
    """A bound socket that is read whenever the loop has something of it."""

    def __init__(self, sock: socket.socket, routes: FollowedRoutes) -> None:
        self._socket = sock
        self._routes = routes
        self._loop = asyncio.get_running_loop()
        self.changed = asyncio.Event()
        """Set by notifications, and by an error."""
        self.error: OSError | None = None
        """The end of the monitor."""

    @contextlib.contextmanager
    def reading(self) -> Iterator[None]:
        """Read until the block ends."""
        self._loop.add_reader(self._socket, self._on_readable)
        try:
            yield
        finally:
            self._loop.remove_reader(self._socket)

    def _on_readable(self) -> None:
        try:
            if self._overflowed():
                self._routes.stale = True
                # libuv stops to wait for a socket with an error.
                self._loop.remove_reader(self._socket)
                self._loop.add_reader(self._socket, self._on_readable)
        except OSError as error:
            self.error = error
        self.changed.set()

    def _overflowed(self) -> bool:
        """Read all notifications; returns whether some were lost. Raises `OSError`."""
        overflowed = False
        while True:
            try:
                self._routes.notified(self._socket.recv(_DATAGRAM))
            except BlockingIOError:
                return overflowed
            except OSError as error:
                if error.errno != errno.ENOBUFS:
                    raise
                overflowed = True
