"""The listening sockets of one instance: opened, protected by TCP MD5 keys, retried while in use.

A peer whose key the kernel rejected is in `unprotected`, and its connections must be refused. Never
ends a session.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import socket
from collections.abc import Callable, Mapping
from typing import Final

from speaker.api import ListenChanged, Secret
from speaker.server import sockets, ttl_filter
from speaker.server.bound_devices import BoundDevices
from speaker.server.connection import Connection

FIRST_RETRY_SECONDS: Final = 1.0
SOON_RETRY_SECONDS: Final = 2.0
"""The longest pause while another process has the address, whose end sessions may wait for, and while
the interface or VRF does not exist."""
MAX_RETRY_SECONDS: Final = 30.0


class Listener:
    """One address and port of an instance; `start` once, `close` once."""

    def __init__(
        self,
        *,
        instance: str,
        address: str,
        port: int,
        device: str | None,
        accept: Callable[[], Connection],
        changed: Callable[[ListenChanged], None],
        devices: BoundDevices,
    ) -> None:
        self.instance = instance
        self.address = address
        self.port = port
        self.error: str | None = None
        self.waits_for_address = True
        """Whether the address is another process's, or that is not known yet."""
        self.unprotected: set[str] = set()
        """Peers (addresses, prefixes) whose key could not be set on the socket."""
        self.unfiltered: set[str] = set()
        """Peers with TTL security for which the socket could get no filter."""
        self.protection = 0
        """The number of keys and filters that were set so far: a connection from before the last of
        them may have been made without its own."""
        self._device = device
        self._accept = accept
        self._changed = changed
        self._devices = devices
        self._server: asyncio.Server | None = None
        self._socket: socket.socket | None = None
        self._passwords: dict[str, Secret] = {}
        self._least_ttl: dict[str, int] = {}
        self._task: asyncio.Task[None] | None = None

    @property
    def bound(self) -> tuple[str, int] | None:
        """The address and port that the kernel assigned; None while not listening."""
        if self._socket is None or self._server is None:
            return None
        host, port, *_ = self._socket.getsockname()
        return (str(host), int(port))

    def start(self, passwords: dict[str, Secret], least_ttl: dict[str, int]) -> None:
        """Open the socket, and retry while the address cannot be bound.

        Keys, and the least TTL of received packets, are by address or prefix.
        """
        self._passwords = dict(passwords)
        self._least_ttl = dict(least_ttl)
        self._task = asyncio.get_running_loop().create_task(self._open())

    async def _open(self) -> None:
        pause = FIRST_RETRY_SECONDS
        while True:
            try:
                await self._listen()
            except OSError as error:
                fix = sockets.listen_fix(error)
                text = f"{error}: {fix}" if fix else str(error)
                self.waits_for_address = error.errno == errno.EADDRINUSE
                soon = error.errno in (errno.EADDRINUSE, errno.ENODEV)
                if text != self.error:
                    self.error = text
                    self._report()
            else:
                self.error = None
                self.waits_for_address = False
                self._report()
                if self._socket is not None:
                    self._devices.watch(self, self._socket, self._device_lost)
                return
            await asyncio.sleep(pause)
            pause = min(pause * 2, SOON_RETRY_SECONDS if soon else MAX_RETRY_SECONDS)

    async def _listen(self) -> None:
        sock = sockets.listening(self.address, self.port, self._device)
        try:
            self._socket = sock
            self.unprotected.clear()
            # Before it listens: no connection may be accepted without its key.
            for peer, password in self._passwords.items():
                self._protect(peer, password)
            self._filter()
            # At once, and before the first connection is opened: of two processes that have bound the
            # address, one listens.
            sock.listen(sockets.BACKLOG)
            self._server = await asyncio.get_running_loop().create_server(
                self._accept, sock=sock, backlog=sockets.BACKLOG
            )
        except OSError as error:
            self._socket = None
            sock.close()
            if isinstance(error, sockets.SocketError):
                raise
            raise sockets.SocketError(
                f"listen on {self.address} port {self.port}", error
            ) from error
        except BaseException:
            self._socket = None
            sock.close()
            raise

    def _device_lost(self, reason: str) -> None:
        """Listen again on the device that has the name now, or will have it."""
        self._stop_server()
        self.error = f"listen on {self.address} port {self.port}: {reason}"
        self._report()
        self._task = asyncio.get_running_loop().create_task(self._open())

    def _report(self) -> None:
        address, port = self.bound or (self.address, self.port)
        self._changed(
            ListenChanged(instance=self.instance, address=address, port=port, error=self.error)
        )

    def set_password(self, peer: str, password: Secret | None) -> None:
        """Set, change or remove the key for an address or a prefix, without a restart."""
        if password is None:
            known = self._passwords.pop(peer, None)
            self.unprotected.discard(peer)
            if known is None:
                return
        elif self._passwords.get(peer) == password and peer not in self.unprotected:
            return
        else:
            self._passwords[peer] = password
        if self._socket is not None:
            self._protect(peer, password)
            if password is not None:
                self._refuse_waiting()

    def set_least_ttl(self, least: dict[str, int]) -> None:
        """Set the least TTL of received packets by address or prefix, for new connections."""
        if least != self._least_ttl:
            self._least_ttl = dict(least)
            if self._socket is not None:
                self._filter()
                self._refuse_waiting()

    def _refuse_waiting(self) -> None:
        """Close connections that were made before a key or the filter.

        They may have octets that are not signed, or come from too far away. A peer comes again.
        """
        self.protection += 1
        assert self._socket is not None  # noqa: S101  checked by the caller
        with contextlib.suppress(OSError):
            while True:
                waiting, _ = self._socket.accept()
                waiting.close()

    def _filter(self) -> None:
        assert self._socket is not None  # noqa: S101  checked by the callers
        version = 4 if self._socket.family is socket.AF_INET else 6
        least = {
            peer: ttl for peer, ttl in self._least_ttl.items() if (":" in peer) == (version == 6)
        }
        self.unfiltered = {peer for peer, ttl in least.items() if ttl}
        # The kernel has room for some thousand peers (net.core.optmem_max); in place of more, for the
        # peers whose least TTL differs from most.
        shorter = ttl_filter.with_default
        if self._attach(version, least) or self._attach(version, shorter(version, least)):
            self.unfiltered = set()
        # Connections of peers in `unfiltered` are refused, and the status has it.

    def _attach(self, version: int, least: Mapping[str, int]) -> bool:
        assert self._socket is not None  # noqa: S101  checked by the callers
        try:
            ttl_filter.attach(self._socket, ttl_filter.program(version, least))
        except (OSError, ValueError):
            return False
        return True

    def _protect(self, peer: str, password: Secret | None) -> None:
        assert self._socket is not None  # noqa: S101  checked by the callers
        host, *_ = peer.partition("/")
        if sockets.family_of(host) != self._socket.family:
            return
        try:
            sockets.set_password(self._socket, peer, password)
        except OSError:
            if password is None:
                return
            self.unprotected.add(peer)
        else:
            self.unprotected.discard(peer)

    async def close(self) -> None:
        """Stop listening; accepted connections continue."""
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task
        self.close_now()

    def close_now(self) -> None:
        """Stop listening, without waiting for the task."""
        if self._task is not None:
            self._task.cancel()
        self._stop_server()

    def _stop_server(self) -> None:
        self._devices.forget(self)
        if self._server is not None:
            # Python 3.12 and later would wait in wait_closed() for connections too: not called.
            self._server.close()
            self._server = None
        self._socket = None
