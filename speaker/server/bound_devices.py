"""Sockets that are bound to an interface or a VRF, while that is deleted, made again or renamed.

The kernel binds a socket to the device, not to its name: nothing reaches a socket of a device that is
gone, whatever has its name, and of a renamed one it serves the new name. So its device is compared once
a second.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable, Hashable
from typing import Final, NamedTuple

from speaker.engine.inputs import DeviceFound, Input
from speaker.server.sockets import HasOptions, bound_device

POLL_SECONDS: Final = 1.0


class _Bound(NamedTuple):
    sock: HasOptions
    device: str
    lost: Callable[[str], None]


class BoundDevices:
    """The devices of listening sockets and connections, and the devices that connections wait for."""

    def __init__(self, feed: Callable[[Input], None]) -> None:
        """``feed`` hands `DeviceFound` to the core."""
        self._feed = feed
        self._bound: dict[Hashable, _Bound] = {}
        self._missing: dict[str, bool] = {}
        """Device -> whether it was there a second ago: a VRF has no interface when it is made."""
        self._timer: asyncio.Handle | None = None

    def watch(self, key: Hashable, sock: HasOptions, lost: Callable[[str], None]) -> None:
        """Call ``lost`` with the reason when the device of a socket is gone or has another name."""
        device = bound_device(sock)
        if device is not None:
            self._bound[key] = _Bound(sock, device, lost)
            self._plan()

    def forget(self, key: Hashable) -> None:
        """Watch a socket no longer."""
        self._bound.pop(key, None)

    def missing(self, device: str) -> None:
        """Feed `DeviceFound` when a device is there that a connection was to be bound to."""
        self._missing.setdefault(device, False)
        self._plan()

    def close(self) -> None:
        """Watch nothing any more."""
        self._bound.clear()
        self._missing.clear()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _plan(self) -> None:
        if self._timer is None and (self._bound or self._missing):
            self._timer = asyncio.get_running_loop().call_later(POLL_SECONDS, self._look)

    def _look(self) -> None:
        self._timer = None
        for key, bound in list(self._bound.items()):
            if key in self._bound and bound_device(bound.sock) != bound.device:
                self.forget(key)
                bound.lost(f"interface {bound.device} is gone")
        for device, was_there in list(self._missing.items()):
            is_there = _exists(device)
            self._missing[device] = is_there
            if is_there and was_there:
                del self._missing[device]
                self._feed(DeviceFound(device))
        self._plan()


def _exists(device: str) -> bool:
    try:
        socket.if_nametoindex(device)
    except OSError:
        return False
    return True
