"""Splits a stream of octets into lines. Pure; its time is linear in the number of octets."""

from __future__ import annotations

from resources.kubernetes.errors import InvalidResponse

LIMIT = 32 << 20
"""Octets of one line: etcd's limit for an object is 1.5 MiB by default, and managers raise it."""


class Lines:
    """Collects octets until a line is complete."""

    def __init__(self, limit: int = LIMIT) -> None:
        self._limit = limit
        self._rest = bytearray()
        """The line that is not complete yet: one block, whose memory returns to the system at once."""

    def feed(self, octets: bytes) -> list[bytes]:
        """Return the complete lines that are not empty. Raises `InvalidResponse` beyond the limit."""
        head, found, rest = octets.rpartition(b"\n")
        if not found:
            self._keep(rest)
            return []
        lines = head.split(b"\n")
        if self._rest:
            self._rest += lines[0]
            lines[0] = bytes(self._rest)
            self._rest = bytearray()
        self._keep(rest)
        return [line for line in lines if line.strip()]

    def _keep(self, rest: bytes) -> None:
        if rest:
            self._rest += rest
            if len(self._rest) > self._limit:
                raise InvalidResponse(f"sends a line of more than {self._limit >> 20} MiB")
