"""The prefix table in C: `native.c`, if it was built; the interface is that of `dictionary`."""

from __future__ import annotations

from collections.abc import Sequence

from speaker.nlri import LazyNlriField
from speaker.rib.prefix_table import native
from speaker.rib.prefix_table.dictionary import V


class NativePrefixTable(native.PrefixTable[V]):
    """Keys to values, in the order of insertion."""

    __slots__ = ()

    def insert_fields(  # type: ignore[override]  # C counts the prefixes, and decodes none
        self, fields: Sequence[bytes], values: Sequence[V], afi: int
    ) -> tuple[int, Sequence[Sequence[bytes]]]:
        """Set the value of each field's prefixes if all are new; see `dictionary.PrefixTable`."""
        count = super().insert_fields(fields, values, afi)
        return count, [LazyNlriField(field, afi) for field in fields] if count else ()
