"""The rows of docs/rfcs.md: modules and tests by rule."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[2]
ROWS: Final = {
    row[0].strip(): (re.findall(r"`([^`]+)`", row[1]), re.findall(r"`(\w+)`", row[2]))
    for row in re.findall(
        r"^\| (\d{4}[^|]*) \|[^|]+\| (`speaker[^|]+) \| ([^|]+) \|$",
        (ROOT / "docs" / "rfcs.md").read_text(),
        re.MULTILINE,
    )
}
"""By rule (``4271 section 6``): the modules that decide, the tests that show it."""


def named_tests(rule: str) -> list[str]:
    """Return the tests that the page names for a rule."""
    return ROWS[rule][1]
