"""The prefixes of a table by their best path, in steps: how a large table is read to be encoded.

Prefixes with one path are encoded together. What a prefix has may have changed when its piece is
encoded, and is looked up then.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import islice
from typing import Final

from speaker.rib.key_slices import in_turns
from speaker.rib.loc_rib import LocRib
from speaker.rib.path import Path

STEP_PREFIXES: Final = 5_000
"""Prefixes that are grouped in a step, and the most that are encoded at once."""
STEP_UNITS: Final = 500
"""The work of a step (`speaker.engine.sliced_work`). A unit takes two microseconds."""
PIECE_UNITS: Final = 2_000
"""The work for a piece: prefixes with one path fill their UPDATEs."""
COPY_UNITS: Final = 2_000
"""The work of a step in which prefixes are copied."""
PATH_UNITS: Final = 10
"""The work for the attributes of a path."""

PrefixGroups = dict[Path, list[bytes]]


def group_in_steps(
    table: LocRib,
    groups: PrefixGroups,
    before: Callable[[list[bytes]], list[bytes]] = lambda prefixes: prefixes,
) -> Iterator[int]:
    """Group the prefixes of a table by their best path; yields units of work.

    If the table changes meanwhile, the prefixes are copied first; ``before`` is called with a step's
    prefixes, and returns the prefixes to group.
    """
    for is_unchanged in table.best_by_path_in_steps(STEP_PREFIXES, groups):
        if not is_unchanged:
            break
        yield STEP_UNITS
    else:
        return
    groups.clear()
    for keys in in_turns(table.prefixes_in_steps()):
        if not keys:
            yield COPY_UNITS
        rest = iter(keys)
        while some := list(islice(rest, STEP_PREFIXES)):
            table.add_best(before(some), groups)
            yield STEP_UNITS


def pieces(groups: PrefixGroups, prefix_units: float) -> Iterator[tuple[int, list[bytes]]]:
    """Yield the prefixes path by path, in pieces with their units of work; the groups are released.

    ``prefix_units`` is the work for a prefix.
    """
    some: list[bytes] = []
    units = 0.0
    for _, part in parts(groups, min(STEP_PREFIXES, int(PIECE_UNITS / prefix_units))):
        some += part
        units += PATH_UNITS + prefix_units * len(part)
        if units >= PIECE_UNITS:
            yield int(units), some
            some, units = [], 0.0
    if some:
        yield int(units), some


def parts(groups: PrefixGroups, size: int) -> Iterator[tuple[Path, list[bytes]]]:
    """Yield each path with ``size`` of its prefixes at the most; the groups are released."""
    for path in tuple(groups):
        # Released as they are read: a million prefixes at once take long.
        nlri = groups.pop(path)
        if len(nlri) <= size:
            yield path, nlri
            continue
        for start in range(0, len(nlri), size):
            yield path, nlri[start : start + size]
