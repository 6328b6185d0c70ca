"""An NLRI field that is decoded on first access.

The received-prefix log keeps the fields of a full table. Most of them are never read again, and the
field takes a fraction of the memory of its prefixes. The prefix table in C takes fields as they are.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import final, overload

from speaker.nlri.fast_path import decode_prefixes


@final
class LazyNlriField(Sequence[bytes]):
    """The prefixes of an NLRI field, in wire form."""

    __slots__ = ("_prefixes", "afi", "data")

    def __init__(self, data: bytes, afi: int) -> None:
        self.data = data
        self.afi = afi
        self._prefixes: list[bytes] | None = None

    def decoded(self) -> list[bytes]:
        """Return the prefixes. Raises `Truncated` if the field is malformed."""
        prefixes = self._prefixes
        if prefixes is None:
            prefixes = self._prefixes = decode_prefixes(self.data, self.afi)
        return prefixes

    def __len__(self) -> int:
        return len(self.decoded())

    def __iter__(self) -> Iterator[bytes]:
        return iter(self.decoded())

    @overload
    def __getitem__(self, index: int) -> bytes: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[bytes]: ...
    def __getitem__(self, index: int | slice) -> bytes | Sequence[bytes]:
        return self.decoded()[index]
