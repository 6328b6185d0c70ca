"""Objects as JSON without their empty parts, for manifests that people read. Pure."""

from __future__ import annotations

from collections.abc import Container
from typing import Any


def without_empty(value: Any, names: Container[str] | None = None) -> Any:  # noqa: ANN401  JSON
    """Remove the empty parts of an object in JSON: members that are empty objects, at any depth.

    Encoding omits only other defaults. ``names`` are the members whose empty object means the same as
    their absence; None is all of them. A member whose own members are all removed is empty, too. Items
    of lists are kept.
    """
    if isinstance(value, list | tuple):
        return [without_empty(item, names) for item in value]
    if not isinstance(value, dict):
        return value
    kept = {name: without_empty(item, names) for name, item in value.items()}
    return {
        name: item
        for name, item in kept.items()
        if item != {} or (names is not None and name not in names)
    }
