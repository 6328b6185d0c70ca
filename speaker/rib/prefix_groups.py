"""The prefixes of a table by their best path, in steps: how a large table is read to be encoded.

Prefixes with one path are encoded together. What a prefix has may have changed when its piece is
encoded, and is looked up then.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import Final

from speaker.rib.loc_rib import LocRib
from speaker.rib.path import Path

STEP_PREFIXES: Final = 5_000
"""Prefixes that are grouped in a step, and the most that are encoded at once."""
STEP_UNITS: Final = 500
"""The work of a step (`speaker.engine.sliced_work`). A unit takes two microseconds."""
PIECE_UNITS: Final = 2_000
"""The work for a piece: prefixes with one path fill their UPDATEs."""
COPY_UNITS: Final = 200
"""The work of a step in which as many prefixes are copied."""
PATH_UNITS: Final = 10
"""The work for the attributes of a path."""

PrefixGroups = dict[Path, list[bytes]]


def group_in_steps(
    table: LocRib,
    groups: PrefixGroups,
    before: Callable[[Sequence[bytes]], Sequence[bytes]] = lambda prefixes: prefixes,
    copied: Callable[[], object] = lambda: None,
) -> Iterator[int]:
    """Group the prefixes of a table by their best path; yields units of work.

    If the table changes meanwhile, the prefixes are copied first, and ``copied`` is called then: none
    has been grouped yet. ``before`` is called with some of them, and returns the prefixes to group;
    prefixes that were removed are among them.
    """
    for is_unchanged in table.best_by_path_in_steps(STEP_PREFIXES, groups):
        if not is_unchanged:
            break
        yield STEP_UNITS
    else:
        return
    groups.clear()
    copy: deque[Sequence[bytes]] = deque()
    for keys in table.walk(STEP_PREFIXES):
        copy.append(tuple(keys))  # in which the collector sees no object
        yield COPY_UNITS
    copied()
    while copy:
        table.add_best(before(copy.popleft()), groups)
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
