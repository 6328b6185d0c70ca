"""Prefixes that change while their table is read in steps, with the path that each was read with.

They are encoded after the table, as they are then.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from speaker.nlri import Family
from speaker.rib.path import Path


class Unread:
    """Stands for the path of a prefix that changed before it was read."""


UNREAD: Final = Unread()
Changed = dict[bytes, "Path | tuple[Path, ...] | Unread | None"]
"""Prefixes that changed, with the path that they were read with; None: they had none.

A tuple is of all paths, of a family with ADD-PATH.
"""


def mark_unread(changed: dict[Family, Changed], family: Family) -> None:
    """Note that the prefixes of a family that have changed so far were not read before."""
    if family in changed:
        changed[family] = dict.fromkeys(changed[family], UNREAD)


def without_changed(changed: Changed | None, prefixes: Sequence[bytes]) -> Sequence[bytes]:
    """Return the prefixes that have not changed; the others are unread from here on."""
    if not changed:
        return prefixes
    for prefix in prefixes:
        if prefix in changed:
            changed[prefix] = UNREAD
    return [prefix for prefix in prefixes if prefix not in changed]
