"""An NLRI field as it came, for those who may never look at its prefixes.

Must only be made of fields that are without mistakes and name no prefix twice.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import final, overload

from speaker.nlri.split import split


@final
class NlriField(Sequence[bytes]):
    """The prefixes of a field, cut anew each time: who needs them more than once makes a list."""

    __slots__ = ("_afi", "_count", "_data")

    def __init__(self, data: bytes, afi: int, count: int) -> None:
        self._data = data
        self._afi = afi
        self._count = count

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[bytes]:
        return iter(split(self._data, self._afi))

    @overload
    def __getitem__(self, index: int) -> bytes: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[bytes]: ...
    def __getitem__(self, index: int | slice) -> bytes | Sequence[bytes]:
        return split(self._data, self._afi)[index]


def listed(nlri: Sequence[bytes]) -> Sequence[bytes]:
    """Return prefixes in a form that may be gone through again and again."""
    return list(nlri) if isinstance(nlri, NlriField) else nlri
