"""The dialects whose peers' routes are installed in the kernel: an input of the compilation."""

from __future__ import annotations

import msgspec

from cells.hive import Group


class InstalledRoutes(msgspec.Struct, frozen=True):
    """Contributed by the cell that knows whether received routes are installed; without it none are."""

    dialects: frozenset[str]
    """The names of the dialects whose routes are."""


def installing(installed: Group[InstalledRoutes]) -> frozenset[str]:
    """Return the names of the dialects whose peers' routes are installed."""
    return frozenset[str]().union(*(routes.dialects for routes in installed))
