"""The dashboards as JSON."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any, NamedTuple

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


class Choice(NamedTuple):
    """The values of a variable: the values of a label in the series that a selector selects."""

    where: str
    """Dashboard and variable."""
    selector: str
    label: str


def choices() -> Iterator[Choice]:
    """Yield each variable whose values Grafana asks of Prometheus. Raises ValueError."""
    for name, text in dashboards().items():
        board: dict[str, Any] = json.loads(text)
        for variable in board["templating"]["list"]:
            if variable["type"] != "query":
                continue
            matched = re.fullmatch(r"label_values\((.+), (\w+)\)", variable["query"])
            if matched is None:
                raise ValueError(f"{name}: {variable['name']}: {variable['query']}")
            yield Choice(f"{name}: ${variable['name']}", *matched.groups())
