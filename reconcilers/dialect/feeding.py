"""The order in which dialects are compiled: one that feeds another comes before it."""

from __future__ import annotations

import graphlib
from collections.abc import Iterable

from reconcilers.dialect.protocol import Dialect


def feeders_first(dialects: Iterable[Dialect]) -> dict[str, Dialect]:
    """Order dialects so that one comes before the one that it feeds; otherwise by name.

    Raises `ValueError` where dialects feed each other in a circle.
    """
    by_name = {dialect.name: dialect for dialect in dialects}
    order: graphlib.TopologicalSorter[str] = graphlib.TopologicalSorter()
    for name in sorted(by_name):
        order.add(name)
        feeds = by_name[name].feeds
        if feeds is not None and feeds in by_name:
            order.add(feeds, name)
    try:
        return {name: by_name[name] for name in order.static_order()}
    except graphlib.CycleError as error:
        circle = " -> ".join(error.args[1])
        raise ValueError(f"dialects feed each other: {circle}") from None
