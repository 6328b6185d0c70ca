"""Long lists in short sentences: the first ones, how many more there are, and numbers of things."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain, islice
from typing import Final

MAX_MESSAGE_CHARACTERS: Final = 1024
"""Of one message for people: it may list any number of objects, or quote a long value."""

MAX_NAMED_OBJECTS: Final = 8
"""Objects of one problem that a line for people names."""
MAX_NAMES_CHARACTERS: Final = 512
"""Of these names: field and message follow them in the same line."""


def bounded(message: str, end: str = "") -> str:
    """Return a message with an enumeration, or the beginning of a long one with its end."""
    room = MAX_MESSAGE_CHARACTERS - len(end)
    if len(message) <= room:
        return message + end
    return f"{message[: room - 1]}…{end}"


def joined(texts: Iterable[str], separator: str = "; ", start: str = "") -> str:
    """Enumerate texts in one `bounded` message; texts beyond its length are not made."""
    message = start
    for number, text in enumerate(texts):
        message = f"{message}{separator}{text}" if number else message + text
        if len(message) > MAX_MESSAGE_CHARACTERS:
            break
    return bounded(message)


def counted(number: int, noun: str, plural: str = "") -> str:
    """Return a number with its noun: ``1 route``, ``2 routes``."""
    return f"{number} {noun if number == 1 else plural or noun + 's'}"


def counted_are(number: int, noun: str, plural: str = "") -> str:
    """Return a number with its noun and the verb: ``1 route is``, ``2 routes are``."""
    return f"{counted(number, noun, plural)} {'is' if number == 1 else 'are'}"


def enumerate_some(values: Iterable[object], shown: int) -> str:
    """Return ``a, b, c and 4 more``: the first ones in their order, each as its text."""
    remaining = iter(values)
    text = ", ".join(map(str, islice(remaining, shown)))
    more = sum(1 for _ in remaining)
    return f"{text} and {more} more" if more else text


def enumerate_objects(objects: Iterable[object], total: int | None = None) -> str:
    """Enumerate the objects of a problem, for the beginning of a line: a thousand fit, too.

    At most `MAX_NAMED_OBJECTS`, and of long names as many as `MAX_NAMES_CHARACTERS` hold, but one.
    ``total`` is their number, if ``objects`` are the first ones only.
    """
    remaining = iter(objects)
    text, named = "", 0
    for value in islice(remaining, MAX_NAMED_OBJECTS):
        longer = f"{text}, {value}" if named else bounded(str(value))
        if named and len(longer) > MAX_NAMES_CHARACTERS:
            remaining = chain((value,), remaining)
            break
        text, named = longer, named + 1
    more = sum(1 for _ in remaining) if total is None else total - named
    return f"{text} and {more} more" if more else text


def problem_line(objects: Iterable[object], field: str, message: str) -> str:
    """Return a problem as one `bounded` line: its objects enumerated, the field and the message."""
    return bounded(": ".join(filter(None, (enumerate_objects(objects), field, message))))


def enumerate_nodes(names: Sequence[str], shown: int) -> str:
    """Return ``node a``, or ``nodes a, b and 4 more``."""
    return f"node{'s' * (len(names) != 1)} {enumerate_some(names, shown)}"


def first_of(text: str, count: int) -> str:
    """Enumerate ``count`` texts that are alike: ``text (and 4 more)``, the text of the first one."""
    return bounded(text, f" (and {count - 1} more)") if count > 1 else text
