"""An NLRI field that is decoded on first access.

The received-prefix log keeps the fields of a full table. Most of them are never read again, and the
field takes a fraction of the memory of its prefixes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import final, overload

from speaker.nlri.fast_path import decode_prefixes


@final
class LazyNlriField(Sequence[bytes]):
    """The prefixes of a well-formed NLRI field, in wire form."""

    __slots__ = ("_afi", "_data", "_prefixes")

    def __init__(self, data: bytes, afi: int) -> None:
        self._data = data
        self._afi = afi
        self._prefixes: list[bytes] | None = None

    def _decoded(self) -> list[bytes]:
        prefixes = self._prefixes
        if prefixes is None:
            prefixes = self._prefixes = decode_prefixes(self._data, self._afi)
        return prefixes

    def __len__(self) -> int:
        return len(self._decoded())

    def __iter__(self) -> Iterator[bytes]:
        return iter(self._decoded())

    @overload
    def __getitem__(self, index: int) -> bytes: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[bytes]: ...
    def __getitem__(self, index: int | slice) -> bytes | Sequence[bytes]:
        return self._decoded()[index]
