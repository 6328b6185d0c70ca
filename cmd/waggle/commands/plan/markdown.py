"""The plan as GitHub-style Markdown, for a comment of a pull request.

Texts of objects are escaped: they start no element, no link, no mention of a person and no reference.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

from cells.safe_text import escape
from resources.enumeration import enumerate_nodes
from waggle.commands.plan.text import SHOWN_NODES, changes, line_of_problem, summary_line

_PUNCTUATION: Final = re.compile(r"[\\`*_\[\]<>|~]")
_ENTITIES: Final = {"&": "&amp;", "@": "&#64;", "#": "&#35;", "://": ":&#47;/"}
SHOWN_CHANGES: Final = 20
"""Changes of one group of nodes that are not folded away."""


def text(raw: str) -> str:
    """Return a text that Markdown shows as it is."""
    shown = escape(raw)
    for plain, entity in _ENTITIES.items():
        shown = shown.replace(plain, entity) if plain != "#" else _hash(shown, entity)
    return _PUNCTUATION.sub(r"\\\g<0>", shown)


def _hash(shown: str, entity: str) -> str:
    """Replace ``#``, but not within an entity that stands there already."""
    return re.sub(r"(?<!&)#", entity, shown)


def markdown(answer: dict[str, Any]) -> str:
    """Return the plan."""
    return "\n".join(_lines(answer)) + "\n"


def _lines(answer: dict[str, Any]) -> Iterator[str]:
    yield f"### {text(summary_line(answer).rstrip('.'))}"
    for error in answer["errors"]:
        yield ""
        yield "> [!CAUTION]"
        yield f"> {text(error['message'])}"
    new = [problem for problem in answer["problems"] if problem["change"] == "new"]
    if new:
        yield ""
        yield "> [!WARNING]"
        for problem in new:
            yield f"> - {text(line_of_problem(problem))}"
    for item in answer["items"]:
        yield ""
        yield f"**{text(enumerate_nodes(item['nodes'], SHOWN_NODES))}**"
        yield ""
        yield from _changes(item)
    solved = [problem for problem in answer["problems"] if problem["change"] == "solved"]
    if solved:
        yield ""
        for problem in solved:
            yield f"- {text(line_of_problem(problem))}"


def _changes(item: dict[str, Any]) -> Iterator[str]:
    rows = [f"| `{symbol}` | {text(change)} |" for symbol, change in changes(item)]
    head = ["| | change |", "| --- | --- |"]
    yield from (*head, *rows[:SHOWN_CHANGES])
    if rest := rows[SHOWN_CHANGES:]:
        yield ""
        yield f"<details><summary>{len(rest)} more</summary>"
        yield ""
        yield from (*head, *rest)
        yield ""
        yield "</details>"
