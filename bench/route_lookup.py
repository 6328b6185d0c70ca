"""The kernel's route to an address of another network namespace, looked up within microseconds."""

from __future__ import annotations

import ctypes
import ipaddress
import os
import socket
import struct
import threading
from pathlib import Path
from typing import Final, final

from tests.support.netns import Namespace

_NEW_NETWORK: Final = 0x40000000
"""CLONE_NEWNET of linux/sched.h."""
_GET_ROUTE, _NEW_ROUTE, _REQUEST, _FIB_MATCH, _DST = 26, 24, 1, 0x2000, 1
_HEADER: Final = struct.Struct("=IHHII")
_ROUTE: Final = struct.Struct("=BBBBBBBBI")
_ATTRIBUTE: Final = struct.Struct("=HH")


@final
class RouteLookup:
    """A netlink socket in a namespace."""

    def __init__(self, namespace: Namespace) -> None:
        """Open the socket: as root, in a namespace of ``ip netns``."""
        self._opened: list[socket.socket] = []
        thread = threading.Thread(target=self._open, args=(namespace.name,))
        thread.start()
        thread.join()
        (self._socket,) = self._opened

    def _open(self, name: str) -> None:
        """Open it in a thread that ends, which alone is in the namespace."""
        descriptor = os.open(Path("/run/netns") / name, os.O_RDONLY)
        try:
            libc = ctypes.CDLL(None, use_errno=True)
            if libc.setns(descriptor, _NEW_NETWORK):
                raise OSError(ctypes.get_errno(), "setns")
            self._opened.append(socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0))
        finally:
            os.close(descriptor)

    def route(self, address: str) -> bytes | None:
        """Return the attributes of the route to an address; None without one."""
        octets = ipaddress.ip_address(address).packed
        family = socket.AF_INET if len(octets) == 4 else socket.AF_INET6
        body = _ROUTE.pack(family, 8 * len(octets), 0, 0, 0, 0, 0, 0, _FIB_MATCH)
        body += _ATTRIBUTE.pack(4 + len(octets), _DST) + octets
        self._socket.send(_HEADER.pack(16 + len(body), _GET_ROUTE, _REQUEST, 0, 0) + body)
        answer = self._socket.recv(1 << 16)
        (_, kind, _, _, _) = _HEADER.unpack_from(answer)
        return answer[_HEADER.size + _ROUTE.size :] if kind == _NEW_ROUTE else None

    def close(self) -> None:
        """Close the socket."""
        self._socket.close()
