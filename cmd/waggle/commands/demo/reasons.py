"""Why the routes of the demo's manifests are not advertised: what its agent reports. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from cells.api.model import problem_text

REPORTED_OTHERWISE: Final = ("intent", "readiness", "speaker")
"""Parts whose health repeats problems, or the sessions, which the demo shows as such."""


def reasons(
    status: Mapping[str, Any], peers: Mapping[str, Any], manifests: Path, node: str
) -> tuple[str, ...]:
    """Return one sentence a reason, from the answers of ``/v1/status`` and ``/v1/peers``."""
    lines: list[str] = []
    for text in _texts(status["items"][0], peers):
        if not any(text in other or other in text for other in lines):
            lines.append(text)
    if not lines and not peers["items"]:
        lines.append(f"{manifests}: no object configures a peer of the node {node}")
    return tuple(lines)


def _texts(status: Mapping[str, Any], peers: Mapping[str, Any]) -> Iterator[str]:
    for problem in status.get("problems", ()):
        yield problem_text(problem)
    for unused in status.get("unusedObjects", ()):
        yield unused["message"]
    yield from peers.get("problems", ())
    for part in status.get("degraded", ()):
        if not part["path"].startswith(REPORTED_OTHERWISE):
            # The first of several problems, with the number of the others.
            yield part["message"].partition(" (and ")[0]
