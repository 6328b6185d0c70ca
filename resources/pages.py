"""How messages refer to the pages of the documentation; `waggle docs` prints them."""

from __future__ import annotations

from typing import Final

BASE_URL: Final = ""
"""The address of the published pages, with a slash at the end; empty while they are not published."""


def reference(name: str) -> str:
    """Return how a message refers to a page of the documentation: its URL, or the command."""
    return f"{BASE_URL}{name}.md" if BASE_URL else f"waggle docs {name}"
