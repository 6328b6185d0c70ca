"""Splits a stream of octets into lines. Pure; its time is linear in the number of octets."""

from __future__ import annotations

from resources.kubernetes.errors import InvalidResponse

LIMIT = 32 << 20
"""Octets of one line: etcd's limit for an object is 1.5 MiB by default, and managers raise it."""


class Lines:
    """Collects octets until a line is complete."""

    def __init__(self, limit: int = LIMIT) -> None:
        self._limit = limit
        self._pieces: list[bytes] = []
        self._size = 0

    def feed(self, octets: bytes) -> list[bytes]:
        """Return the complete lines that are not empty. Raises `InvalidResponse` beyond the limit."""
        head, found, rest = octets.rpartition(b"\n")
        if not found:
            self._keep(rest)
            return []
        self._pieces.append(head)
        lines = [line for line in b"".join(self._pieces).split(b"\n") if line.strip()]
        self._pieces.clear()
        self._size = 0
        self._keep(rest)
        return lines

    def _keep(self, rest: bytes) -> None:
        if rest:
            self._pieces.append(rest)
            self._size += len(rest)
            if self._size > self._limit:
                raise InvalidResponse(f"sends a line of more than {self._limit >> 20} MiB")
