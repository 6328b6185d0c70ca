"""The prefix table in C: `native.c`, if it was built; the interface is that of `dictionary`."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import speaker.rib.prefix_table.native as native
from speaker.nlri import NlriFields
from speaker.rib.prefix_table.dictionary import V

_SOURCE = Path(__file__).with_name("native.c")
# An editable installation has the new files at once, and the new module after `build`.
if _SOURCE.exists() and getattr(native, "SOURCE", None) != zlib.crc32(_SOURCE.read_bytes()):
    raise ImportError("the table in C is of another version; install again")


class NativePrefixTable(native.PrefixTable[V]):
    """Keys to values, in the order of insertion. C reads the octets of fields, and decodes none."""

    __slots__ = ()

    def insert_fields(  # type: ignore[override]  # see above
        self, fields: NlriFields, values: Sequence[V]
    ) -> int:
        """Set the value of each field's prefixes if all are new; see `dictionary.PrefixTable`."""
        return super().insert_fields(fields.data, values, fields.afi)

    def discard_fields(  # type: ignore[override]  # see above
        self, fields: NlriFields
    ) -> int:
        """Remove the prefixes of fields; see `dictionary.PrefixTable`."""
        try:
            return super().discard_fields(fields.data, fields.afi)
        except ValueError:
            fields.decoded()
            raise

    def walk(  # type: ignore[override]  # the table follows its own changes
        self,
        size: int,
        revision: Callable[[], int],  # noqa: ARG002
    ) -> Iterator[Sequence[bytes]]:
        """Iterate over lists of keys, while the table changes; see `dictionary.PrefixTable`."""
        return super().walk(size)
