"""The acceptance cases: objects, a node, flags, and what is expected."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

CASES: Final[list[dict[str, Any]]] = [
    case
    for name in ("cases.json", "more_cases.json")
    for case in json.loads((Path(__file__).parent / name).read_text())["cases"]
]
