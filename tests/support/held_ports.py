"""TCP ports of programs that get theirs before they listen, or listen again and again.

A port that was free a moment ago may be given to any other socket of the machine: for a connection, or
in a test in another process. A held port is bound all the while, by a socket that does not listen:
connections to it are refused, the kernel gives it to no other socket, and a program that binds it with
SO_REUSEADDR, as servers do, may listen there.
"""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Iterator

LOOPBACK = "127.0.0.1"


def held(address: str = LOOPBACK, port: int = 0) -> socket.socket:
    """Return a socket that holds a port until it is closed: any free one, by default."""
    sock = socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET)
    try:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sock.bind((address, port))
    except OSError:
        sock.close()
        raise
    return sock


def port_of(sock: socket.socket) -> int:
    """Return the port of a socket."""
    return int(sock.getsockname()[1])


@contextlib.contextmanager
def held_port(address: str = LOOPBACK) -> Iterator[int]:
    """Hold a port during a block."""
    with held(address) as sock:
        yield port_of(sock)
