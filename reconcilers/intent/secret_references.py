"""The Secrets that the objects of the dialects refer to, as the sources read no others. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from reconcilers import dialect as api
from resources.kind import Kind, Kinds
from resources.meta import ObjectKey
from resources.tables import Tables
from statedb import Snapshot, Table


class SecretReferences:
    """Finds the references; `followed` are the tables that they depend on."""

    def __init__(
        self,
        tables: Tables,
        dialects: Iterable[api.Dialect],
        kinds: Iterable[Kind[Any]],
        secrets_namespace: str,
        on_error: Callable[[str, Exception], None],
    ) -> None:
        """The references of ``dialects``; ``kinds`` are those that this program reads.

        ``on_error`` takes the name of a dialect whose references cannot be found, and the error.
        """
        every = list(dialects)
        self._references = api.extended(every, api.DialectSecrets)
        self._namespace = secrets_namespace
        self._on_error = on_error
        self._last: dict[str, frozenset[ObjectKey]] = {}
        """By dialect, as of the last time that it did not fail."""
        of_operators = (dialect.read(dialect.options, operator=True) for dialect in every)
        own = Kinds(*(dialect.kinds for dialect in every), *of_operators)
        self.followed: Sequence[Table[Any]] = [
            tables.of(kind) for kind in kinds if kind.custom and kind in own
        ]

    def find(self, snapshot: Snapshot) -> frozenset[ObjectKey] | None:
        """Return the references, or None until the kinds of all these dialects have been read.

        Of a dialect that fails the last ones are kept, as its last intent is: its sessions go on.
        """
        if any(table.pending_initializers(snapshot) for table in self.followed):
            return None
        for dialect, of_dialect in self._references:
            try:
                references = frozenset(of_dialect.referenced(dialect, snapshot, self._namespace))
            except Exception as error:  # noqa: BLE001  one dialect's error is that dialect's
                self._on_error(dialect.name, error)
            else:
                self._last[dialect.name] = references
        return frozenset().union(*self._last.values())
