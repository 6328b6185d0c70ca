"""What a dialect remembers over restarts of the agent."""

from __future__ import annotations

from typing import Protocol


class Memory(Protocol):
    """An immutable value, which is written to a file in another thread."""

    def encode(self) -> bytes:
        """Return the octets that `Dialect.remember` takes. They have no password."""
        ...
