"""An NLRI field as it came, for those who may never look at its prefixes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import final, overload

from speaker.nlri.decode import decode_prefixes


@final
class LazyNlriField(Sequence[bytes]):
    """The prefixes of a field that can be cut, which is done when they are first asked for."""

    __slots__ = ("_afi", "_data", "_prefixes")

    def __init__(self, data: bytes, afi: int) -> None:
        self._data = data
        self._afi = afi
        self._prefixes: list[bytes] | None = None

    def _cut(self) -> list[bytes]:
        prefixes = self._prefixes
        if prefixes is None:
            prefixes = self._prefixes = decode_prefixes(self._data, self._afi)
        return prefixes

    def __len__(self) -> int:
        return len(self._cut())

    def __iter__(self) -> Iterator[bytes]:
        return iter(self._cut())

    @overload
    def __getitem__(self, index: int) -> bytes: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[bytes]: ...
    def __getitem__(self, index: int | slice) -> bytes | Sequence[bytes]:
        return self._cut()[index]
