"""The IGP metrics of next hops (RFC 4271 section 9.1.2.2 e), as they are given from outside.

The speaker has no routes of an IGP. Where metrics are given for an instance, a next hop without one is
as near as a connected network: 0. Without any all next hops are equal, and nothing is looked up.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping
from typing import final

from speaker.rib.decision import Metric
from speaker.rib.path import Path


@final
class NextHopMetrics:
    """The metrics of all instances."""

    __slots__ = ("_tables",)

    def __init__(self) -> None:
        self._tables: dict[str, Mapping[bytes, int]] = {}
        """Instance -> next hop, 4 or 16 octets -> metric; none where there is no metric."""

    def set(self, instance: str, metrics: Mapping[str, int]) -> bool:
        """Replace the metrics of an instance, by address as text; returns whether they differ."""
        table = {ipaddress.ip_address(text).packed: metric for text, metric in metrics.items()}
        if table == self._tables.get(instance, {}):
            return False
        if table:
            self._tables[instance] = table
        else:
            del self._tables[instance]
        return True

    def of(self, instance: str) -> Metric | None:
        """Return the metric of the paths in an instance's Loc-RIB; None where all are equal.

        The next hop of an imported path is in the VRF of the other instance, whose metrics apply.
        """
        tables = self._tables
        if not tables:
            return None

        def metric(path: Path) -> int:
            table = tables.get(path.source.imported_from or instance)
            return 0 if table is None else table.get(path.attributes.next_hop[:16], 0)

        return metric
