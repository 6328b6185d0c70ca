"""An in-memory, multi-version database of immutable rows.

Typed tables with several indexes, snapshots that cost one pointer, write transactions over several
tables, a revision per row, change iterators that see deletions, initializers and
an Observable per table. The guide is docs/statedb.md.

Knows nothing of Kubernetes or BGP, and does no I/O.
"""

from statedb.changes import ChangeIterator
from statedb.database import Database, ReadTxn, Revisions, Snapshot, WriteTxn
from statedb.errors import (
    DuplicateTable,
    KeyShape,
    StateDBError,
    TableNotLocked,
    TransactionClosed,
    UniqueViolation,
    UnknownIndex,
)
from statedb.index_declaration import Index, Key
from statedb.state import Change
from statedb.table import Initializer, Table

__all__ = [
    "Change",
    "ChangeIterator",
    "Database",
    "DuplicateTable",
    "Index",
    "Initializer",
    "Key",
    "KeyShape",
    "ReadTxn",
    "Revisions",
    "Snapshot",
    "StateDBError",
    "Table",
    "TableNotLocked",
    "TransactionClosed",
    "UniqueViolation",
    "UnknownIndex",
    "WriteTxn",
]
