"""Bind a Unix socket that its user alone can open, and replace the socket of a dead process.

A path belongs to the process that has locked ``PATH.lock`` beside it, which the kernel releases when
that process ends in any way. The socket of a live process is never replaced, and nothing but a socket
is removed: no symbolic link and no file of that name.
"""

from __future__ import annotations

import argparse
import os
import socket
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final, NamedTuple

from cells.api.agent_socket import MAX_PATH
from cells.arguments import file_descriptor
from cells.lock_file import lock, unlock

SHARED_MODE: Final = 0o660
"""Owner and group may connect: an agent of another user, in a container of the same group."""
BACKLOG: Final = 8


class UnixSocketError(Exception):
    """A socket that this process cannot have; the text names its path and the reason."""


class Bound(NamedTuple):
    """A bound socket with the identity of its file."""

    sock: socket.socket
    path: Path
    identity: tuple[int, int, int]
    lock: int
    """The descriptor of the locked file."""

    def unlink(self) -> None:
        """Remove the socket's file, unless another process has replaced it, and unlock its path."""
        try:
            if _identity(self.path) == self.identity:
                self.path.unlink()
        except OSError:
            pass  # gone already, or not ours to remove any more
        unlock(_lock_path(self.path), self.lock)


def bind(path: Path, program: str, mode: int = 0o600) -> Bound:
    """Return a bound, non-blocking socket with this mode. Raises `UnixSocketError`.

    ``program`` is the name of what listens there, such as ``agent``.
    """
    if len(os.fsencode(path)) > MAX_PATH:
        raise UnixSocketError(f"{path} is longer than {MAX_PATH} bytes")
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        if path.parent.parent == Path("/tmp"):  # noqa: S108
            _check_owner(path.parent)
        descriptor = _lock(path, program)
        try:
            _clear(path, program)
            sock = _bound(path, mode)
            return Bound(sock, path, _identity(path), descriptor)
        except BaseException:
            unlock(_lock_path(path), descriptor)
            raise
    except OSError as error:
        why = (error.strerror or str(error)).lower()
        raise UnixSocketError(f"cannot listen on {path}: {why}") from error


def add_listener_flags(parser: argparse.ArgumentParser, of_listener: str) -> None:
    """Add the flags by which an agent reaches a program: a path, or a socket that it listens on."""
    where = parser.add_mutually_exclusive_group(required=True)
    where.add_argument(
        "--socket", metavar="PATH", type=Path, help="the Unix socket to which the agent connects"
    )
    where.add_argument("--listener", metavar="FD", type=file_descriptor, help=of_listener)


@contextmanager
def listening(args: argparse.Namespace, program: str) -> Iterator[socket.socket]:
    """Yield the socket of the flags of `add_listener_flags`, listening; raises `UnixSocketError`."""
    if args.listener is not None:
        yield _inherited(args.listener)
        return
    bound = bind(args.socket, program, SHARED_MODE)
    try:
        bound.sock.listen(BACKLOG)
        yield bound.sock
    finally:
        bound.unlink()


def _inherited(number: int) -> socket.socket:
    try:
        return socket.socket(fileno=number)
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise UnixSocketError(f"--listener {number}: {reason}") from None


def _check_owner(directory: Path) -> None:
    """Raise `UnixSocketError` for a directory in /tmp that another user may write to, or has."""
    status = directory.lstat()
    if status.st_uid != os.geteuid() or not stat.S_ISDIR(status.st_mode) or status.st_mode & 0o022:
        raise UnixSocketError(f"{directory} is not a directory of this user alone")


def _lock(path: Path, program: str) -> int:
    """Lock the path for this process, and return the descriptor. Raises `UnixSocketError`, OSError.

    Without it, two processes that start at once would each take the other's socket, which does not
    listen yet, for that of a dead one.
    """
    try:
        return lock(_lock_path(path))
    except BlockingIOError:
        raise _in_use(path, program) from None


def _lock_path(path: Path) -> Path:
    return path.with_name(f"{path.name}.lock")


def _in_use(path: Path, program: str) -> UnixSocketError:
    return UnixSocketError(f"another {program} listens on {path}; stop it, or choose another path")


def _clear(path: Path, program: str) -> None:
    try:
        mode = path.lstat().st_mode
    except FileNotFoundError:
        return
    if not stat.S_ISSOCK(mode):
        raise UnixSocketError(f"{path} exists and is not a socket")
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.settimeout(1)
        try:
            probe.connect(str(path))
        except ConnectionRefusedError:
            path.unlink()  # no process listens: left by a process that was killed
            return
        except FileNotFoundError:
            return
    raise _in_use(path, program)


def _bound(path: Path, mode: int) -> socket.socket:
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    # The mode has to be right from the first moment; a chmod afterwards leaves a gap.
    before = os.umask(0o777 & ~mode)
    try:
        sock.bind(str(path))
    except OSError:
        sock.close()
        raise
    finally:
        os.umask(before)
    sock.setblocking(False)
    return sock


def _identity(path: Path) -> tuple[int, int, int]:
    status = path.lstat()
    # With the time, because file systems use the number of a removed file again at once.
    return status.st_dev, status.st_ino, status.st_mtime_ns
