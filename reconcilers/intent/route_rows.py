"""The rows of route sets: the contributions to one prefix joined to a route, or to a conflict."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain, islice
from typing import Final

from reconcilers.apply.to_speaker import route_attributes
from reconcilers.dialect import Dialect, JoinConflictError
from reconcilers.intent_tables import BY_OBJECT, IntentTables, object_id
from reconcilers.model import Attributes, Contribution, ObjectRef, Origin, Problem, Route
from reconcilers.sliced_work import Pieces, Slices
from speaker.api import InvalidConfig
from speaker.nlri import (
    Family,
    prefix_to_text,
)
from statedb import Table, WriteTxn

RouteKey = tuple[Family, bytes]
"""A prefix within a route set."""
Contributions = dict[RouteKey, list[Contribution]]
"""Of one object, by prefix."""
From = tuple[ObjectRef, str]
"""An object, and the source by which it contributes."""

ROW_PIECES: Final = 4
"""Pieces of work of a written row."""
BATCH_ROWS: Final = 50
"""Rows that are counted at a time."""


class RouteRows:
    """Writes the routes of one dialect's route sets, and keeps the conflicts between contributions."""

    def __init__(
        self,
        intent: IntentTables,
        dialect: Dialect,
        pieces: Pieces,
        on_change: Callable[[str, Family, bytes], None],
    ) -> None:
        """``pieces`` counts the prefixes of a slice; ``on_change`` takes each changed route."""
        self._on_change = on_change
        self._intent = intent
        self._dialect = dialect
        self._pieces = pieces
        self._conflicts: dict[tuple[str, Family, bytes], Problem] = {}
        self._possible: Attributes | None = None
        """The last attributes that a speaker takes: most routes share one object."""
        self.changed = False
        """True if the conflicts have changed since the problems were last written."""

    @property
    def conflicts(self) -> Sequence[Problem]:
        """The problem of each row whose contributions contradict each other."""
        return tuple(self._conflicts.values())

    def write(
        self,
        txn: WriteTxn,
        route_set: str,
        origin: From,
        contributions: Contributions,
        *,
        new: bool,
    ) -> Slices[int]:
        """Write the rows so that an object contributes exactly this to a set, by one source."""
        written = 0
        same: set[RouteKey] = set()
        for some in self._present(txn, route_set, origin[0]) if not new else ():
            removed = 0
            for row in some:
                key = (row.family, row.nlri)
                parts = contributions.get(key)
                if parts is None:
                    written += self._exchange(txn, route_set, key, origin, [])
                    removed += 1
                elif row.contributions == tuple(parts) and (route_set, *key) not in self._conflicts:
                    same.add(key)  # Most prefixes of an object that changed are as they were.
            if self._pieces.fill_slice(len(some) + ROW_PIECES * removed):
                yield
        changed = [key for key in contributions if key not in same] if same else contributions
        return written + (yield from self.change(txn, route_set, origin, contributions, changed))

    def change(
        self,
        txn: WriteTxn,
        route_set: str,
        origin: From,
        contributions: Contributions,
        prefixes: Iterable[RouteKey],
    ) -> Slices[int]:
        """Write some rows so that an object contributes this to these prefixes, by one source."""
        written = 0
        rest = iter(prefixes)
        while some := list(islice(rest, BATCH_ROWS)):
            for key in some:
                parts = contributions.get(key, [])
                written += self._exchange(txn, route_set, key, origin, parts)
            if self._pieces.fill_slice(ROW_PIECES * len(some)):
                yield
        return written

    def _present(self, txn: WriteTxn, route_set: str, ref: ObjectRef) -> Iterator[list[Route]]:
        """Yield the rows of an object, some at a time, as they are before the first write."""
        i = self._intent
        at = (route_set, object_id(ref))
        rows = i.routes.find(txn, BY_OBJECT, at)
        conflicting = i.conflicting_routes.find(txn, BY_OBJECT, at) if self._conflicts else ()
        every = chain(rows, conflicting)
        while some := list(islice(every, BATCH_ROWS)):
            yield some

    def _exchange(
        self,
        txn: WriteTxn,
        route_set: str,
        prefix: RouteKey,
        origin: From,
        parts: list[Contribution],
    ) -> int:
        """Write one prefix with the contributions of one origin exchanged; 0 if nothing differs."""
        i = self._intent
        key = (route_set, *prefix)
        present = i.routes.get(txn, key)
        conflicting = i.conflicting_routes.get(txn, key) if key in self._conflicts else None
        before = present or conflicting
        contributions = () if before is None else before.contributions
        if conflicting is None and contributions == tuple(parts):
            return 0
        if contributions or len(parts) > 1:
            others = [c for c in contributions if (c.origin.object, c.source) != origin]
            joined = tuple(sorted((*others, *parts), key=_in_order))
        else:
            joined = tuple(parts)
        self.forget(key)
        row = conflict = None
        if joined:
            attributes, conflict = self._joined(joined)
            row = Route(route_set, *prefix, attributes, joined)
        if conflict is not None:
            self._note(key, joined, conflict)
        written = _write(txn, i.routes, key, present, row if conflict is None else None)
        if conflict is not None or conflicting is not None:
            wanted = row if conflict is not None else None
            written += _write(txn, i.conflicting_routes, key, conflicting, wanted)
        if written:
            self._on_change(*key)
        return min(1, written)

    def _joined(
        self, contributions: tuple[Contribution, ...]
    ) -> tuple[Attributes, JoinConflictError | None]:
        """Return the attributes of a route; with a conflict the first contribution's."""
        try:
            attributes = self._dialect.join(contributions)
            if attributes is not self._possible:
                route_attributes(attributes)
                self._possible = attributes
        except InvalidConfig as error:
            # Withheld here: one impossible route is not to fail the round of its route set.
            conflict = JoinConflictError("", f"its attributes are impossible: {error}")
        except JoinConflictError as error:
            conflict = error
        except Exception as error:  # noqa: BLE001  one prefix's error is that prefix's
            text = f"its contributions cannot be joined: {type(error).__name__}: {error}"
            conflict = JoinConflictError("", text)
        else:
            return attributes, None
        return contributions[0].attributes, conflict

    def forget(self, key: tuple[str, Family, bytes]) -> None:
        """Forget the conflict of a row: a prefix of a route set."""
        if self._conflicts.pop(key, None) is not None:
            self.changed = True

    def _note(
        self,
        key: tuple[str, Family, bytes],
        contributions: Sequence[Contribution],
        conflict: JoinConflictError,
    ) -> None:
        refs = {ref for part in contributions for ref in (part.origin.object, part.origin.rule)}
        self.changed = True
        self._conflicts[key] = Problem(
            tuple(sorted(refs)),
            conflict.field,
            f"{prefix_to_text(key[1], key[2])} is not advertised: {conflict}",
            category="conflict",
            dialect=self._dialect.name,
        )


def _in_order(contribution: Contribution) -> tuple[Origin, str]:
    return contribution.origin, contribution.source


def _write(
    txn: WriteTxn,
    table: Table[Route],
    key: tuple[str, Family, bytes],
    present: Route | None,
    wanted: Route | None,
) -> int:
    if wanted == present:
        return 0
    if wanted is None:
        table.delete(txn, key)
    else:
        table.upsert(txn, wanted)
    return 1
