"""The acceptance cases: objects, a node, flags, and what is expected."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

CASES: Final[list[dict[str, Any]]] = json.loads((Path(__file__).parent / "cases.json").read_text())[
    "cases"
]


def case(name: str) -> dict[str, Any]:
    """Return the case with a name."""
    return next(one for one in CASES if one["name"] == name)
