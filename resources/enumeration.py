"""Long lists in short sentences: the first ones, and how many more there are."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

MAX_MESSAGE_CHARACTERS: Final = 1024
"""Of one message for people: it may list any number of objects, or quote a long value."""


def bounded(message: str) -> str:
    """Return a message, or the beginning of a long one."""
    if len(message) <= MAX_MESSAGE_CHARACTERS:
        return message
    return f"{message[: MAX_MESSAGE_CHARACTERS - 1]}…"


def joined(texts: Iterable[str], separator: str = "; ") -> str:
    """Return texts as one `bounded` message; those beyond its length are not made."""
    message = ""
    for text in texts:
        message = f"{message}{separator}{text}" if message else text
        if len(message) > MAX_MESSAGE_CHARACTERS:
            break
    return bounded(message)


def enumerate_some(values: Iterable[object], shown: int) -> str:
    """Return ``a, b, c and 4 more``: the first ones in their order, each as its text."""
    texts = [str(value) for value in values]
    more = f" and {len(texts) - shown} more" if len(texts) > shown else ""
    return ", ".join(texts[:shown]) + more


def enumerate_nodes(names: Sequence[str], shown: int) -> str:
    """Return ``node a``, or ``nodes a, b and 4 more``."""
    return f"node{'s' * (len(names) != 1)} {enumerate_some(names, shown)}"


def first_of(text: str, count: int) -> str:
    """Return ``text (and 4 more)``: the text of the first one of ``count`` that are alike."""
    return f"{text} (and {count - 1} more)" if count > 1 else text
