"""The connection to the agent: a Unix socket that never blocks."""

from __future__ import annotations

import os
import select
import socket
import struct
from collections.abc import Iterator
from typing import Final, Generic, TypeVar

from reconcilers.process.codec import Codec

_RECEIVE: Final = 1 << 16
_MAX_WAITING: Final = 1 << 26
"""Octets that wait for an agent which does not read, before its connection is closed."""
_CREDENTIALS: Final = struct.Struct("=iII")

M = TypeVar("M")


class AgentTooSlowError(Exception):
    """The agent does not read its messages."""


class Connection(Generic[M]):
    """One agent's connection."""

    def __init__(self, agent: socket.socket, codec: Codec[M]) -> None:
        agent.setblocking(False)
        self._socket = agent
        self._encode = codec.encode
        self._decoder = codec.decoder()
        self._waiting = bytearray()
        self._has_sent = False

    def fileno(self) -> int:
        """Return the descriptor to wait for on the process's side of the connection."""
        return self._socket.fileno()

    def close(self) -> None:
        """Close a process's connection to the agent."""
        self._socket.close()

    @property
    def has_waiting(self) -> bool:
        """True if octets wait on this connection until the agent reads."""
        return bool(self._waiting)

    @property
    def is_in_use(self) -> bool:
        """Whether an agent has sent something on this connection, and has not ended it."""
        poll = select.poll()
        poll.register(self._socket, select.POLLRDHUP)
        return self._has_sent and not poll.poll(0)

    def receive(self) -> Iterator[M] | None:
        """Return the agent's messages; None at the end. Raises `OSError`, `ProtocolError`."""
        try:
            octets = self._socket.recv(_RECEIVE)
        except BlockingIOError:
            return iter(())
        self._has_sent = True
        return self._decoder.feed(octets) if octets else None

    def send(self, message: M) -> None:
        """Send the agent a message, as soon as it reads. Raises `OSError`, `AgentTooSlowError`."""
        self._waiting += self._encode(message)
        self.flush()
        if len(self._waiting) > _MAX_WAITING:
            raise AgentTooSlowError(f"{len(self._waiting)} octets wait for the agent")

    def flush(self) -> None:
        """Send the agent the waiting octets of the connection. Raises `OSError`."""
        while self._waiting:
            try:
                sent = self._socket.send(self._waiting)
            except BlockingIOError:
                return
            del self._waiting[:sent]


def is_trusted(agent: socket.socket) -> bool:
    """True if the agent that connects is root's or of our user, or the socket's mode admits it.

    A socket in no folder has no mode, and many processes of a node have the group of root.
    """
    octets = agent.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
    _, user, group = _CREDENTIALS.unpack(octets)
    has_mode = isinstance(agent.getsockname(), str) and agent.getsockname() != ""
    return user in (0, os.geteuid()) or (has_mode and group == os.getegid())
