"""Every reason word: what it means, and what to do about it.

The one source of `waggle errors`, of docs/reasons.md and of the tables in docs/cli.md. A word may
have a meaning in several places: an entry for each.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

TOPICS: Final = {
    "advertised": "Why a route is not advertised: `waggle explain`",
    "received": "Whether a received route is accepted: `waggle explain --received`",
    "kernel": "Why a route is not installed: `waggle routes kernel`, `waggle render --received`",
    "condition": "Conditions and results of objects",
    "event": "Events",
    "error": "Errors of commands and of the API: `errors[].code`",
}
"""The places of reason words, each with its heading."""


class Reason(NamedTuple):
    """One word in one place."""

    topic: str
    word: str
    meaning: str
    """A sentence without its end."""
    remedy: str
    """A sentence without its end; empty where nothing is wrong."""


def all_reasons() -> tuple[Reason, ...]:
    """Return all entries, by topic, in the order in which pages have them."""
    from waggle.reasons import advertised, errors, kernel, objects, received

    of_topics = {
        "advertised": advertised.REASONS,
        "received": received.REASONS,
        "kernel": kernel.REASONS,
        "condition": objects.CONDITIONS,
        "event": objects.EVENTS,
        "error": errors.REASONS,
    }
    return tuple(Reason(topic, *entry) for topic in TOPICS for entry in of_topics[topic])


def named(word: str) -> tuple[Reason, ...]:
    """Return the entries of a word, in any case."""
    return tuple(reason for reason in all_reasons() if reason.word.lower() == word.lower())


def table(topic: str) -> Iterator[str]:
    """Yield the lines of the table of a topic, as Markdown."""
    yield from ("| reason | meaning | remedy |", "| --- | --- | --- |")
    for reason in all_reasons():
        if reason.topic == topic:
            yield f"| `{reason.word}` | {reason.meaning} | {reason.remedy or '-'} |"
