"""The largest value of the last minutes: one late packet is no problem of the next day."""

from __future__ import annotations

from typing import Final

WINDOW: Final = 300_000_000
"""Microseconds: a value is kept for one to two windows."""


class RecentMaximum:
    """The largest of the values that were noted in the present window and in the last one."""

    __slots__ = ("_former", "_present", "_until")

    def __init__(self) -> None:
        self._present = self._former = self._until = 0

    def note(self, value: int, now: int) -> None:
        """Take a value, at a time in microseconds that does not go back."""
        if now >= self._until:
            self._move(now)
        if value > self._present:
            self._present = value

    def at(self, now: int) -> int:
        """Return the largest value; 0 without one."""
        if now >= self._until:
            self._move(now)
        return max(self._present, self._former)

    def clear(self) -> None:
        """Forget all values."""
        self._present = self._former = 0

    def _move(self, now: int) -> None:
        """Begin another window."""
        self._former = self._present if now < self._until + WINDOW else 0
        self._present, self._until = 0, now + WINDOW
