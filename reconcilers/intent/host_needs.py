"""Whether some dialect needs what only the node's kernel has: interfaces and default routes. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from reconcilers.dialect import Dialect, HostNeeds, extended
from resources.tables import Tables
from statedb import Snapshot, Table


def followed(tables: Tables, dialects: Iterable[Dialect]) -> tuple[Table[Any], ...]:
    """Return the tables on which the answer depends."""
    found = {table.name: table for dialect in dialects for table in dialect.compiled_tables}
    found |= {table.name: table for table in (tables.nodes, tables.node_networks)}
    return tuple(found.values())


def is_host_needed(
    tables: Tables,
    dialects: Iterable[Dialect],
    snapshot: Snapshot,
    node: str,
    on_error: Callable[[str, Exception], None],
) -> bool:
    """True if the kernel has to be read; a NodeNetwork of the node stands in for it.

    ``on_error`` takes the name of a dialect that fails to answer, which is taken as not needing it.
    """
    if tables.node_networks.get(snapshot, ("", node)) is not None:
        return False
    for dialect, needs in extended(dialects, HostNeeds):
        try:
            if needs.needed(dialect, snapshot, node):
                return True
        except Exception as error:  # noqa: BLE001  one dialect's error is that dialect's
            on_error(dialect.name, error)
    return False
