"""The sentence about a name that nothing has, with the nearest known one."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


def unknown_name(kind: str, name: str, known: Iterable[str | None]) -> str:
    """Return the sentence about a name of a kind (a peer), with the nearest of the known names."""
    return f"no {kind} is called {name}{suggestion(name, filter(None, known))}"


def suggestion(word: str, known: Iterable[str]) -> str:
    """Return " (did you mean X?)" if a known word is close, else an empty text."""
    close = difflib.get_close_matches(word, list(known), n=1)
    return f" (did you mean {close[0]}?)" if close else ""
