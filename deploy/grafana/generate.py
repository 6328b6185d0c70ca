"""The dashboards as JSON."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from grafana_foundation_sdk.cog.encoder import JSONEncoder

from deploy.grafana import fleet, node, peer


def dashboards() -> dict[str, str]:
    """Return the dashboards by name, as Grafana imports them."""
    built = {"fleet": fleet.build(), "node": node.build(), "peer": peer.build()}
    return {
        name: JSONEncoder(indent=2, sort_keys=True).encode(board.build()) + "\n"
        for name, board in built.items()
    }


def queries() -> Iterator[tuple[str, str]]:
    """Yield dashboard and panel, and each query of it."""
    for name, text in dashboards().items():
        board: dict[str, Any] = json.loads(text)
        for panel in board["panels"]:
            for target in panel.get("targets", ()):
                yield f"{name}: {panel['title']}", target["expr"]
