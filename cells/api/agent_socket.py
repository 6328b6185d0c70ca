"""The Unix socket of an agent: where it is, and a connection to it.

Imports little: ``waggle api`` starts in each container of a cluster for one question.
"""

from __future__ import annotations

import errno
import os
import socket
import struct
from pathlib import Path

SOCKET_ENV = "WAGGLE_API_SOCKET"
MAX_PATH = 107
"""Octets of the path of a Unix socket (unix(7))."""


class OtherUserError(Exception):
    """The process that listens is another user's."""


class LongPathError(Exception):
    """The path is longer than that of any socket."""


def default_path() -> Path:
    """Return the default path of the socket of this user's agent."""
    user = os.geteuid()
    if user == 0:
        return Path("/run/waggle/agent.sock")
    runtime = Path(os.environ.get("XDG_RUNTIME_DIR") or f"/run/user/{user}")
    if os.access(runtime, os.W_OK | os.X_OK):
        return runtime / "waggle" / "agent.sock"
    # A user without a session (su, cron, a container). `cells.unix_socket` and `cells.api.client`
    # refuse a directory of that name that is another user's.
    return Path(f"/tmp/waggle-{user}/agent.sock")  # noqa: S108


def default_socket() -> Path:
    """Return the path of the socket where an agent of this user listens by default."""
    return Path(os.environ[SOCKET_ENV]) if os.environ.get(SOCKET_ENV) else default_path()


def connected(path: Path, timeout: float) -> socket.socket:
    """Return a connection to the process of this user, or of root, that listens on a path.

    Raises `OSError`, `OtherUserError` and `LongPathError`.
    """
    if len(os.fsencode(path)) > MAX_PATH:
        raise LongPathError
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        # A connect with Python's time-out fails at once while many clients wait to be accepted.
        limit = struct.pack("@ll", int(timeout), int(timeout % 1 * 1_000_000))
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, limit)
        try:
            sock.connect(str(path))
        except BlockingIOError:
            raise TimeoutError(errno.ETIMEDOUT, "timed out") from None
        sock.settimeout(timeout)
        _check_user(sock)
    except BaseException:
        sock.close()
        raise
    return sock


def _check_user(sock: socket.socket) -> None:
    credentials = sock.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12)
    _, user, _ = struct.unpack("3i", credentials)
    if os.geteuid() not in (0, user) and user != 0:
        raise OtherUserError
