"""An NLRI field as it came, for those who may never look at its prefixes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import final, overload

from speaker.nlri.split import split


@final
class NlriField(Sequence[bytes]):
    """The prefixes of a field without mistakes, cut anew each time.

    Who needs them more than once makes a list.
    """

    __slots__ = ("_afi", "_data")

    def __init__(self, data: bytes, afi: int) -> None:
        self._data = data
        self._afi = afi

    def __len__(self) -> int:
        return len(split(self._data, self._afi))

    def __iter__(self) -> Iterator[bytes]:
        return iter(split(self._data, self._afi))

    @overload
    def __getitem__(self, index: int) -> bytes: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[bytes]: ...
    def __getitem__(self, index: int | slice) -> bytes | Sequence[bytes]:
        return split(self._data, self._afi)[index]
