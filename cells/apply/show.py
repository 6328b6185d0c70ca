"""The list of reconcilers for people: text out of the items of the API."""

from __future__ import annotations

from collections.abc import Iterable

from cells.api.model import ReconcilerItem
from resources.enumeration import counted


def lines(items: Iterable[ReconcilerItem]) -> str:
    """Describe reconcilers in their order: what they do and need, and how they are."""
    shown = []
    for item in items:
        shown.append(f"{item.order} {item.name}: {_state(item)}")
        shown.append(f"    {item.summary}")
        shown.append(f"    needs {', '.join(item.tables)} (tables), {item.target} (target)")
    return "\n".join(shown)


def _state(item: ReconcilerItem) -> str:
    if item.last_run_time is None:
        return "has not run"
    text = f"{counted(item.objects or 0, 'object')}, {counted(item.errors or 0, 'error')}"
    if item.waiting:
        text += f", {item.waiting} waiting"
    if item.drifted:
        text += f", {item.drifted} drifted"
    milliseconds = 1000 * (item.duration_seconds or 0.0)
    return f"{text} (last run {item.last_run_time:%Y-%m-%dT%H:%M:%SZ}, {milliseconds:.1f} ms)"
