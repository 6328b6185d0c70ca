"""Bounds-checked decoding of big-endian fields."""

from __future__ import annotations

from typing import final

from speaker.errors import Truncated


@final
class Reader:
    """Decodes fields from octets. Each method raises `speaker.errors.Truncated` at the end."""

    __slots__ = ("_data", "_end", "_position")

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._position = 0
        self._end = len(data)

    @property
    def remaining(self) -> int:
        """The number of octets that are left."""
        return self._end - self._position

    @property
    def next(self) -> int | None:
        """The next octet, without consuming it, or None at the end."""
        return self._data[self._position] if self.remaining else None

    def take(self, count: int) -> bytes:
        """Return the next ``count`` octets."""
        start = self._position
        if count < 0 or start + count > self._end:
            raise Truncated(f"{count} octets needed, {self.remaining} left")
        self._position = start + count
        return self._data[start : start + count]

    def rest(self) -> bytes:
        """Return all octets that are left."""
        return self.take(self.remaining)

    def u8(self) -> int:
        """Return an integer of one octet."""
        return self.take(1)[0]

    def u16(self) -> int:
        """Return an integer of two octets."""
        return int.from_bytes(self.take(2), "big")

    def u32(self) -> int:
        """Return an integer of four octets."""
        return int.from_bytes(self.take(4), "big")
