"""The prefix table in C: `native.c`, if it was built; the interface is that of `dictionary`."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from pathlib import Path

import speaker.rib.prefix_table.native as native
from speaker.nlri import LazyNlriField
from speaker.rib.prefix_table.dictionary import V

_SOURCE = Path(__file__).with_name("native.c")
# An editable installation has the new files at once, and the new module after `build`.
if _SOURCE.exists() and getattr(native, "SOURCE", None) != zlib.crc32(_SOURCE.read_bytes()):
    raise ImportError("the table in C is of another version; install again")


class NativePrefixTable(native.PrefixTable[V]):
    """Keys to values, in the order of insertion."""

    __slots__ = ()

    def insert_fields(  # type: ignore[override]  # C counts the prefixes, and decodes none
        self, fields: Sequence[bytes], values: Sequence[V], afi: int
    ) -> tuple[int, Sequence[Sequence[bytes]]]:
        """Set the value of each field's prefixes if all are new; see `dictionary.PrefixTable`."""
        count = super().insert_fields(fields, values, afi)
        return count, [LazyNlriField(field, afi) for field in fields] if count else ()
