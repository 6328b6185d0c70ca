"""Adds to the conditions of objects what the node does not configure of them. Pure.

A dialect reports conditions before the dialects meet: that an object is in effect is misleading
where its only peer belongs to another dialect, or cannot be configured.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from msgspec.structs import replace

from reconcilers.model import Condition, ObjectRef, Problem

MAX_NAMED = 3
"""Problems in the message of one condition."""


def with_unconfigured(
    conditions: Iterable[Condition], problems: Iterable[Problem]
) -> Iterator[Condition]:
    """Yield the conditions, with the messages of what is unconfigured of their objects.

    ``problems`` have the instances and peers that are not configured, for reasons that the dialects
    do not know.
    """
    messages: dict[tuple[str, ObjectRef], list[str]] = {}
    for problem in problems:
        if problem.unconfigured and problem.objects:
            key = (problem.dialect, problem.objects[0])
            messages.setdefault(key, []).append(problem.message)
    for condition in conditions:
        texts = messages.get((condition.dialect, condition.object), ())
        if not texts or not condition.status:
            yield condition
            continue
        more = [f"and {len(texts) - MAX_NAMED} more"] if len(texts) > MAX_NAMED else []
        parts = [condition.message, *texts[:MAX_NAMED], *more]
        yield replace(condition, message="; ".join(filter(None, parts)))
