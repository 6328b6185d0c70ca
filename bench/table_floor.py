"""The floor of P4: its messages are framed, and their prefixes put into a prefix table; nothing else.

No validation, no decision, no socket: an attribute set is a value as it comes, and a table takes the
NLRI fields of some messages at once. Printed are CPU milliseconds, medians, of both forms of the table.

``python -m bench.table_floor [--prefixes N] [--rounds N]``
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, Final

from bench.speed import streams
from speaker.nlri import IPV4_UNICAST, NlriFields
from speaker.rib.prefix_table import PrefixTable, dictionary

FORMS: Final[dict[str, Any]] = {
    "Python": dictionary.PrefixTable,
    "C, where it was built": PrefixTable,
}
HEADER: Final = 19
AT_ONCE: Final = 64
"""Messages whose fields a table takes in one call."""


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--prefixes", type=int, default=streams.TABLE_PREFIXES, metavar="N")
    parser.add_argument("--rounds", type=int, default=5, metavar="N")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "table"
        table = streams.table(path, 65001, "10.0.1.1", args.prefixes).read_bytes()
    for form, kind in FORMS.items():
        spent = [_spent(kind, table) for _ in range(args.rounds)]
        print(f"in {form}: {statistics.median(spent):.0f} ms for {args.prefixes} prefixes")
    return 0


def _spent(kind: Any, stream: bytes) -> float:  # noqa: ANN401  either form
    """Return the CPU milliseconds of one table."""
    began = time.thread_time()
    table = kind()
    sets: dict[bytes, object] = {}
    fields: list[bytes] = []
    values: list[object] = []
    at, end = 0, len(stream)
    while at < end:
        length = int.from_bytes(stream[at + 16 : at + 18], "big")
        body = at + HEADER
        withdrawn = int.from_bytes(stream[body : body + 2], "big")
        first = body + 4 + withdrawn
        attributes = int.from_bytes(stream[first - 2 : first], "big")
        nlri = stream[first + attributes : at + length]
        at += length
        if nlri:
            value = stream[first : first + attributes]
            values.append(sets.setdefault(value, value))
            fields.append(nlri)
        if len(fields) == AT_ONCE or (at >= end and fields):
            table.insert_fields(NlriFields(fields, IPV4_UNICAST.afi), values)
            fields, values = [], []
    return (time.thread_time() - began) * 1e3


if __name__ == "__main__":
    sys.exit(main())
