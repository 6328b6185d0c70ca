"""The dialects whose peers' routes are installed in the kernel: an input of the compilation."""

from __future__ import annotations

import msgspec

from cells.hive import Group


class InstallingDialects(msgspec.Struct, frozen=True):
    """Contributed by the cell that knows which routes are installed; without it none are."""

    dialects: frozenset[str]
    """The names of the dialects whose routes are."""


def installing(installed: Group[InstallingDialects]) -> frozenset[str]:
    """Return the names of the dialects whose peers' routes are installed."""
    return frozenset[str]().union(*(each.dialects for each in installed))
