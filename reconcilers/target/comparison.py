"""Compares the desired state of an object with the actual one, and makes it equal."""

from __future__ import annotations

from collections.abc import Collection
from itertools import islice
from typing import Any, Final

from reconcilers.sliced_work import Pieces, Slices, settled
from reconcilers.target.reconciler import ObjectKey, Part, ReconcileError, Reconciler, State
from statedb import Snapshot

SLICE_PARTS: Final = 2500
"""Parts that one call of the target changes: most changes are one call, so that prefixes with equal
attributes share an UPDATE. More are several calls, in turns of the loop of their own."""


def difference(desired: State, actual: State) -> dict[Part, Any]:
    """Compare two states: return the changes from the actual to the desired; None removes a part."""
    if not actual:
        return dict(desired)
    changes = {part: value for part, value in desired.items() if actual.get(part) != value}
    changes.update((part, None) for part in actual if part not in desired)
    return changes


def make_equal(
    reconciler: Reconciler,
    snapshot: Snapshot,
    key: ObjectKey,
    parts: Collection[Part] | None,
    pieces: Pieces,
) -> Slices[bool]:
    """Compare parts of an object with the target and update them; True if anything differed.

    One call of the target makes up to `SLICE_PARTS` changes. An error that names its parts does not
    keep the others from being written.
    """
    compared = parts
    if compared is None:
        compared = yield from _all_parts(reconciler, snapshot, key, pieces)
    rest = iter(compared)
    some = list(islice(rest, SLICE_PARTS))
    written = False
    failed: list[Part] = []
    while True:
        actual = yield from settled(reconciler.actual(key, some))
        if actual is None and parts is not None:
            return (yield from make_equal(reconciler, snapshot, key, None, pieces))
        changes = difference(reconciler.desired(snapshot, key, some), actual or {})
        if changes or actual is None:
            written = True
            try:
                yield from settled(reconciler.update(key, changes))
            except ReconcileError as error:
                if error.parts is None:
                    raise
                failed += error.parts
                error.parts = failed
                last_error = error
        full = pieces.fill_slice(len(some))
        some = list(islice(rest, SLICE_PARTS))
        if not some and failed:
            raise last_error
        if not some:
            return written
        if full:
            yield


def _all_parts(
    reconciler: Reconciler, snapshot: Snapshot, key: ObjectKey, pieces: Pieces
) -> Slices[Collection[Part]]:
    """Return the parts of an object, desired and actual."""
    all_parts: dict[Part, None] = {}
    for piece in reconciler.pieces(snapshot, key, SLICE_PARTS):
        all_parts.update(dict.fromkeys(piece))
        if pieces.fill_slice(len(piece)):
            yield
    return all_parts
