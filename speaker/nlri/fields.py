"""The NLRI fields of a run of messages: they are decoded once, and by the first that needs prefixes.

The prefix table in C takes fields as they are, the one in Python their prefixes. What follows a table
gets the prefixes of each field, which are decoded then where the table needed none.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import final

from speaker.nlri.fast_path import decode_prefixes
from speaker.nlri.lazy_field import LazyNlriField


@final
class NlriFields:
    """NLRI fields of one address family, none of them empty."""

    __slots__ = ("_decoded", "afi", "data")

    def __init__(
        self, data: Sequence[bytes], afi: int, decoded: list[list[bytes]] | None = None
    ) -> None:
        """``decoded`` are the prefixes of each field, if they are known."""
        self.data = data
        self.afi = afi
        self._decoded = decoded

    def __iter__(self) -> Iterator[Sequence[bytes]]:
        """Iterate over the prefixes of each field."""
        if self._decoded is not None:
            return iter(self._decoded)
        afi = self.afi
        return iter([LazyNlriField(field, afi) for field in self.data])

    def decoded(self) -> list[list[bytes]]:
        """Return the prefixes of each field. Raises `Truncated` if a field is malformed."""
        decoded = self._decoded
        if decoded is None:
            afi = self.afi
            decoded = self._decoded = [decode_prefixes(field, afi) for field in self.data]
        return decoded

    def prefixes(self, number: int) -> list[bytes]:
        """Return the prefixes of one field. Raises `Truncated` if it is malformed."""
        if self._decoded is not None:
            return self._decoded[number]
        return decode_prefixes(self.data[number], self.afi)

    def part(self, start: int, end: int) -> NlriFields:
        """Return the fields from a number to before another number."""
        decoded = self._decoded
        return NlriFields(
            self.data[start:end], self.afi, None if decoded is None else decoded[start:end]
        )
