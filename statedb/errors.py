"""The errors of the database, as a tree.

::

    StateDBError
    ├── DuplicateTable        a table of that name exists
    ├── UnknownIndex          the table has no index of that name
    ├── KeyShape              a key has another number of components than the index's other keys
    ├── UniqueViolation       two rows would have one key in a unique index
    ├── TableNotLocked        a write to a table that the transaction did not name
    └── TransactionClosed     use of a transaction after its commit or abort

Each names the table, and the index and the key if there is one.
"""

from __future__ import annotations


class StateDBError(Exception):
    """Base class of the package's errors."""


class DuplicateTable(StateDBError):  # noqa: N818  named after the event
    """A table of that name exists."""

    def __init__(self, table: str) -> None:
        super().__init__(f"table {table!r} exists already")
        self.table = table


class UnknownIndex(StateDBError):  # noqa: N818
    """The table has no index of that name."""

    def __init__(self, table: str, index: str) -> None:
        super().__init__(f"table {table!r} has no index {index!r}")
        self.table = table
        self.index = index


class KeyShape(StateDBError):  # noqa: N818
    """A key has another number of components than the other keys of its index."""

    def __init__(self, table: str, index: str, key: object, arity: int) -> None:
        super().__init__(
            f"table {table!r}: key {key!r} of index {index!r} should have {arity} component(s)"
        )
        self.table = table
        self.index = index
        self.key = key


class UniqueViolation(StateDBError):  # noqa: N818
    """Another row has that key in a unique index."""

    def __init__(self, table: str, index: str, key: object) -> None:
        super().__init__(f"table {table!r}: index {index!r} has {key!r} for another row")
        self.table = table
        self.index = index
        self.key = key


class TableNotLocked(StateDBError):  # noqa: N818
    """The transaction did not name this table when it began."""

    def __init__(self, table: str) -> None:
        super().__init__(f"table {table!r} is not locked by this transaction: name it in write()")
        self.table = table


class TransactionClosed(StateDBError):  # noqa: N818
    """The transaction was committed or aborted."""

    def __init__(self) -> None:
        super().__init__("the transaction is closed")
