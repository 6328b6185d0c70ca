"""The Secrets that the objects of the dialects refer to, as the sources read no others. Pure."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from typing import Any

from reconcilers import dialect as api
from reconcilers.intent.dialect_readings import DialectReadings
from resources.kind import Kind
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
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """The references of ``dialects``; ``kinds``: all that this program reads.

        ``on_error`` takes the name of a dialect whose references cannot be found, and the error;
        ``clock`` is monotonic, in seconds.
        """
        every = list(dialects)
        self._references = api.extended(every, api.DialectSecrets)
        self._namespace = secrets_namespace
        self._on_error = on_error
        self._last: dict[str, frozenset[ObjectKey]] = {}
        """By dialect, as of the last time that it did not fail."""
        read = [kind for kind in kinds if kind.custom]
        own = {
            dialect.name: frozenset(
                tables.of(kind)
                for kind in (*dialect.kinds, *dialect.read(dialect.options, operator=True))
                if kind in read
            )
            for dialect in every
        }
        self.followed: frozenset[Table[Any]] = frozenset().union(*own.values())
        self._readings = DialectReadings(self.followed, own, api.Feeding(every), clock)
        self.retry: float | None = None
        """The seconds after which more references are found, if no table changes before."""

    def find(self, snapshot: Snapshot) -> frozenset[ObjectKey] | None:
        """Return the Secrets that objects of dialects refer to; None before one is read.

        Of a dialect that fails the last ones are kept, as its last intent is: its sessions go on.
        """
        reading = self._readings.reading(snapshot)
        self.retry = reading.retry
        if not reading.ready and reading.unread:
            return None
        for dialect, of_dialect in self._references:
            if dialect.name not in reading.ready:
                continue
            try:
                references = frozenset(of_dialect.referenced(dialect, snapshot, self._namespace))
            except Exception as error:  # noqa: BLE001  one dialect's error is that dialect's
                self._on_error(dialect.name, error)
            else:
                self._last[dialect.name] = references
        return frozenset().union(*self._last.values())
