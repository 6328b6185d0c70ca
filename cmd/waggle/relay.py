"""The entry of ``waggle``: answers of an agent without the rest of the program, which loads slowly.

``waggle api --include PATH`` is what ``--all-nodes`` runs in the container of each agent of a cluster,
where it has a part of one processor beside the agent. In that form it is a request over the socket
here, with few imports. Any other command line is that of `waggle.__main__`, and so is a request
without an answer: its sentences are there.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from io import BufferedReader
from pathlib import Path
from typing import BinaryIO, NamedTuple

from cells.api.agent_socket import LongPathError, OtherUserError, connected, default_socket

TIMEOUT_SECONDS = 10.0
"""Without an octet."""
PIECE_OCTETS = 65536
MAX_HEADERS = 100
EXIT_OK, EXIT_ERROR, EXIT_INTERRUPTED = 0, 1, 130


class Head(NamedTuple):
    """The head of an answer."""

    text: str
    """As it is printed: the status line, and the type of the content."""
    status: int
    is_chunked: bool
    octets: int | None
    """Of the body; None where the end of the connection is its end."""


def main() -> int:
    """Run the program; returns its exit status."""
    try:
        status = relay(sys.argv[1:], getattr(sys.stdout, "buffer", None))
    except KeyboardInterrupt:
        return EXIT_INTERRUPTED
    if status is None:
        from waggle.__main__ import main as run

        return run()
    return status


def relay(words: Sequence[str], output: BinaryIO | None) -> int | None:
    """Print the answer; None for another command, or where it fails before any output."""
    path = _path(words)
    if path is None or output is None:
        return None
    place = _socket(words)
    try:
        sock = connected(place, TIMEOUT_SECONDS)
    except (OSError, OtherUserError, LongPathError):
        return None
    with sock, sock.makefile("rb") as answer:
        lines = (f"GET {path} HTTP/1.1", "Host: localhost", "Connection: close", "", "")
        try:
            sock.sendall("\r\n".join(lines).encode())
            head = _head(answer)
        except TimeoutError as error:
            # The program would send the request, and wait, once more.
            _complain(f"the agent at {place} cannot be reached: {error}")
            return EXIT_ERROR
        except (OSError, ValueError):
            return None
        return _print(head, answer, output)


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


def _line(answer: BufferedReader) -> str:
    """Return a line of a head, or before a chunk. Raises `ValueError` where there is none."""
    line = answer.readline(PIECE_OCTETS)
    if not line.endswith(b"\r\n"):
        raise ValueError("it has no end")
    return line[:-2].decode("latin-1")


def _head(answer: BufferedReader) -> Head:
    """Return the head, read from an answer. Raises `ValueError`."""
    _, status, reason = _line(answer).split(" ", 2)
    headers: dict[str, str] = {}
    while line := _line(answer):
        if len(headers) == MAX_HEADERS:
            raise ValueError("too many headers")
        name, _, value = line.partition(":")
        headers[name.strip().lower()] = value.strip()
    text = f"HTTP/1.1 {int(status)} {reason}\r\nContent-Type: {headers.get('content-type', '')}\r\n\r\n"
    length = headers.get("content-length")
    is_chunked = headers.get("transfer-encoding", "").lower() == "chunked"
    return Head(text, int(status), is_chunked, None if length is None else int(length))


def _body(head: Head, answer: BufferedReader) -> Iterator[bytes]:
    """Yield the body as it comes (RFC 9112, 6.3). Raises `ValueError` where its end is missing."""
    if head.is_chunked:
        while octets := int(_line(answer).partition(";")[0], 16):
            yield from _octets(answer, octets)
            _line(answer)
    elif head.octets is not None:
        yield from _octets(answer, head.octets)
    else:
        while piece := answer.read1(PIECE_OCTETS):
            yield piece


def _octets(answer: BufferedReader, left: int) -> Iterator[bytes]:
    while left:
        piece = answer.read1(min(left, PIECE_OCTETS))
        if not piece:
            raise ValueError("it has no end")
        left -= len(piece)
        yield piece


def _print(head: Head, answer: BufferedReader, output: BinaryIO) -> int:
    body = _body(head, answer)
    piece: bytes | None = head.text.encode("latin-1")
    try:
        while piece is not None:
            output.write(piece)
            output.flush()
            try:
                piece = next(body, None)
            except (OSError, ValueError) as error:
                _complain(f"the answer breaks off: {error}")
                return EXIT_ERROR
    except OSError as error:
        from waggle.__main__ import output_failed

        return output_failed(error)
    return EXIT_OK if head.status < 400 else EXIT_ERROR


def _complain(text: str) -> None:
    if sys.stderr is not None:
        print(f"waggle api: {text}", file=sys.stderr)
