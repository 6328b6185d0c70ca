"""The kernel's tables and next hops as the agent sees them, and how routes are installed.

They are rows of StateDB, which statuses read. Routes are no rows: there may be as many as the Internet
has (`reconcilers.kernel.instance_routes`).
"""

from __future__ import annotations

import msgspec


class KernelTable(msgspec.Struct, frozen=True, order=True, kw_only=True):
    """The routes of one family and metric in a table of the kernel."""

    table: int
    family: str
    metric: int
    instances: tuple[str, ...] = ()
    """The instances of the routes there; empty for routes of an earlier run."""
    installed: int = 0
    """Routes of ours, as the writer has confirmed them."""
    failed: tuple[tuple[str, int], ...] = ()
    """Reason, and number of routes that the kernel does not have for it."""


class KernelNextHops(msgspec.Struct, frozen=True, order=True, kw_only=True):
    """The next hops of an instance's best paths."""

    instance: str
    next_hops: tuple[str, ...] = ()
    """``GATEWAY%INTERFACE``; several share each route. Empty: packets are discarded, or `problem`."""
    problem: str = ""
    """Why there is no route."""


class KernelSettings(msgspec.Struct, frozen=True, order=True, kw_only=True):
    """How received routes are installed, and what keeps all of them from it."""

    protocol: int
    """Of our routes; its number in the kernel."""
    multipath: int
    """Next hops of a route at the most."""
    multipath_relax: bool = False
    """Whether AS paths of equal length are equal."""
    problems: tuple[str, ...] = ()
    """Of the process that writes the routes, and of VRFs without a table of their own."""
