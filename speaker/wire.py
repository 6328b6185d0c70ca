"""Bounds-checked reading of octets; only this and the loops over NLRI take octets apart."""

from __future__ import annotations

from typing import final

from speaker.errors import Truncated


@final
class Reader:
    """Reads big-endian fields from octets. Raises `speaker.errors.Truncated` at the end of them."""

    __slots__ = ("_data", "_end", "_position")

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._position = 0
        self._end = len(data)

    @property
    def remaining(self) -> int:
        """How many octets are left."""
        return self._end - self._position

    @property
    def next(self) -> int | None:
        """The octet that is read next, or None at the end."""
        return self._data[self._position] if self.remaining else None

    def take(self, count: int) -> bytes:
        """Read so many octets."""
        start = self._position
        if count < 0 or start + count > self._end:
            raise Truncated(f"{count} octets needed, {self.remaining} left")
        self._position = start + count
        return self._data[start : start + count]

    def rest(self) -> bytes:
        """Read all that is left."""
        return self.take(self.remaining)

    def u8(self) -> int:
        """Read one octet."""
        return self.take(1)[0]

    def u16(self) -> int:
        """Read two octets."""
        return int.from_bytes(self.take(2), "big")

    def u32(self) -> int:
        """Read four octets."""
        return int.from_bytes(self.take(4), "big")
