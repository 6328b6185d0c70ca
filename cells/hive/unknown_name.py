"""The sentence about a name that nothing has, with the nearest known one."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


def unknown_name(
    kind: str, name: str, known: Iterable[str | None], instance: str | None = None
) -> str:
    """Return the sentence about a name of a kind (a peer), with the nearest of the known names.

    ``instance``: the instance of these names; None if they are of all instances.
    """
    where = "" if instance is None else f" in the instance {instance}"
    return f"no {kind} is called {name}{where}{suggestion(name, filter(None, known))}"


def suggestion(word: str, known: Iterable[str]) -> str:
    """Return " (did you mean X?)" if another known word is close, else an empty text."""
    names = list(known)
    close = [] if word in names else difflib.get_close_matches(word, names, n=1)
    return f" (did you mean {close[0]}?)" if close else ""
