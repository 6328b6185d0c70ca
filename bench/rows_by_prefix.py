"""What a prefix table would give `statedb`: rows by prefix in its map and in a table; longest matches.

``python -m bench.rows_by_prefix [--rows N]``
"""

from __future__ import annotations

import argparse
import gc
import time
import tracemalloc
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import immutables

from speaker.rib.prefix_table import FORM, PrefixTable
from statedb import Database, Index, Table

LOOKUPS = 20_000


class Row(NamedTuple):
    """A row whose only component of the key is a prefix in wire form."""

    prefix: bytes


def in_statedb(rows: list[Row]) -> Database:
    """Insert rows one by one in one transaction."""
    database = Database()
    table: Table[Row] = database.table("rows", Index("key", lambda row: (row.prefix,)))
    with database.write(table) as txn:
        for row in rows:
            table.upsert(txn, row)
    return database


def in_map(rows: list[Row]) -> Any:  # noqa: ANN401
    """Insert rows into a map, as statedb has them."""
    with immutables.Map[bytes, Row]().mutate() as changing:
        for row in rows:
            changing[row.prefix] = row
        return changing.finish()


def in_table(rows: list[Row]) -> Any:  # noqa: ANN401
    """Insert rows into a prefix table."""
    table: Any = PrefixTable()
    for row in rows:
        table[row.prefix] = row
    return table


def longest_match(table: Any, address: bytes) -> Row | None:  # noqa: ANN401
    """Look one IPv4 address up by each length, the longest first."""
    value = int.from_bytes(address, "big")
    for length in range(32, -1, -1):
        octets = (value >> 32 - length << 32 - length).to_bytes(4, "big")
        row: Row | None = table.get(bytes((length,)) + octets[: (length + 7) // 8])
        if row is not None:
            return row
    return None


def look_up(table: Any) -> None:  # noqa: ANN401
    """Look an address up that no row has: all lengths are tried."""
    for _ in range(LOOKUPS):
        longest_match(table, bytes((11, 0, 0, 1)))


def milliseconds(work: Callable[[], object]) -> float:
    """Return the CPU time of something."""
    began = time.process_time()
    work()
    return (time.process_time() - began) * 1e3


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=50_000, metavar="N")
    count = parser.parse_args().rows
    rows = [Row(bytes((32, 10)) + number.to_bytes(3, "big")) for number in range(count)]
    gc.disable()  # as during a start
    print(f"{count} rows, prefix tables in {FORM}")
    for fill in (in_statedb, in_map, in_table):
        tracemalloc.start()
        kept: Any = fill(rows)
        size = tracemalloc.get_traced_memory()[0] / 1e6
        tracemalloc.stop()
        took = milliseconds(partial(fill, rows))
        line = f"{fill.__name__:12} {took:8.1f} ms {size:8.2f} MB"
        if fill is not in_statedb:
            missed = milliseconds(partial(look_up, kept))
            line += f"   longest match {missed / LOOKUPS * 1e3:5.1f} µs"
            line += f"   a copy {milliseconds(partial(dict, kept.items())):5.1f} ms"
        print(line, flush=True)


if __name__ == "__main__":
    main()
