"""The entry of ``waggle``: answers of an agent without the rest of the program, which loads slowly.

``waggle api --include PATH`` is what ``--all-nodes`` runs in the container of each agent of a cluster,
where it has a part of one processor beside the agent. In that form it is a request over the socket
here, with few imports. Any other command line, and any error, is that of `waggle.__main__`.
"""

from __future__ import annotations

import socket
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import BinaryIO

from cells.api.agent_socket import LongPathError, OtherUserError, connected, default_socket

TIMEOUT_SECONDS = 10.0
"""Without an octet."""
PIECE_OCTETS = 65536
HEAD_OCTETS = 65536
EXIT_OK, EXIT_ERROR = 0, 1


def main() -> int:
    """Run the program; returns its exit status."""
    status = relay(sys.argv[1:], getattr(sys.stdout, "buffer", None))
    if status is None:
        from waggle.__main__ import main as run

        return run()
    return status


def relay(words: Sequence[str], output: BinaryIO | None) -> int | None:
    """Print the answer; None for another command, or where it fails before any output."""
    path = _path(words)
    if path is None or output is None:
        return None
    try:
        sock = connected(_socket(words), TIMEOUT_SECONDS)
    except (OSError, OtherUserError, LongPathError):
        return None
    with sock:
        try:
            sock.sendall(f"GET {path} HTTP/1.0\r\nHost: localhost\r\n\r\n".encode())
            head, rest = _head(sock)
            _, status, reason = head.split("\r\n", 1)[0].split(" ", 2)
            code = int(status)
        except (OSError, ValueError):
            return None
        return _print(sock, f"HTTP/1.1 {code} {reason}\r\n{_type(head)}\r\n", rest, code, output)


def _path(words: Sequence[str]) -> str | None:
    """Return the path of ``api --include PATH [--socket SOCKET]``; None of another command line."""
    if len(words) not in (3, 5) or (*words[:2], *words[3:4]) not in (
        ("api", "--include"),
        ("api", "--include", "--socket"),
    ):
        return None
    path = words[2]
    is_path = path.startswith("/") and path.isascii() and path.isprintable() and " " not in path
    return path if is_path else None


def _socket(words: Sequence[str]) -> Path:
    return Path(words[4]) if len(words) == 5 else default_socket()


def _head(sock: socket.socket) -> tuple[str, bytes]:
    """Return the status line with the headers, and what has come of the body. Raises `ValueError`."""
    received = b""
    while b"\r\n\r\n" not in received:
        piece = sock.recv(PIECE_OCTETS)
        if not piece or len(received) > HEAD_OCTETS:
            raise ValueError("no answer")
        received += piece
    head, _, rest = received.partition(b"\r\n\r\n")
    return head.decode("latin-1"), rest


def _type(head: str) -> str:
    """Return the header of the content's type."""
    for line in head.split("\r\n")[1:]:
        if line.lower().startswith("content-type:"):
            return f"{line}\r\n"
    return "Content-Type: \r\n"


def _print(sock: socket.socket, head: str, rest: bytes, code: int, output: BinaryIO) -> int:
    piece = head.encode("latin-1") + rest
    try:
        while piece:
            output.write(piece)
            output.flush()
            try:
                piece = sock.recv(PIECE_OCTETS)
            except OSError as error:
                print(f"waggle api: the answer breaks off: {error}", file=sys.stderr)
                return EXIT_ERROR
    except OSError as error:
        from waggle.__main__ import output_failed

        return output_failed(error)
    return EXIT_OK if code < 400 else EXIT_ERROR
