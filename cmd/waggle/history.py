"""Entries of the history in tables and lines."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

from waggle import output
from waggle.output import member
from waggle.tables import Column

Item: TypeAlias = Mapping[str, Any]


def subject(item: Item) -> str:
    """Return what has changed: ``Service/shop/web``, ``Session/main/tor-1``."""
    return "/".join(filter(None, (item["kind"], item.get("name"))))


def change(item: Item) -> str:
    """Return what is different, on one line."""
    parts = [_field(field) for field in item.get("changes", ())]
    if item["type"] == "DELETED":
        parts = []  # all of it is gone
    if message := item.get("message"):
        parts.append(message)
    count = item.get("count", 1)
    times = f" ({count} times)" if count > 1 and item.get("name") else ""
    counted = f"{count} " if count > 1 and not item.get("name") else ""
    return f"{counted}{'; '.join(parts)}{times}"


def _field(field: Item) -> str:
    old, new = field.get("old"), field.get("new")
    if old is None and new is None:
        return str(field["field"])
    if old is None:
        return f"{field['field']}: {new}"
    return f"{field['field']}: {old} -> {new or 'none'}"


def time_of(item: Item) -> str:
    """Return the local time of the last change."""
    return output.read_time(item["eventTime"]).astimezone().isoformat(" ", "milliseconds")[:-6]


def causes(item: Item) -> str:
    """Return the objects that caused it."""
    return ", ".join(item.get("causes", ()))


def line(item: Item) -> str:
    """Return an entry as one line."""
    because = f"  <- {causes(item)}" if item.get("causes") else ""
    text = change(item)
    return f"{time_of(item)}  {item['type']:<8}  {subject(item)}{text and '  '}{text}{because}"


def type_style(kind: str) -> str:
    """Return the style of the type of a change."""
    return {"ADDED": "green", "DELETED": "red"}.get(kind, "")


COLUMNS = (
    Column("TIME", time_of, whole=True),
    Column("NODE", member("node"), wide=True),
    Column("TYPE", member("type"), style=type_style),
    Column("OBJECT", subject),
    Column("CHANGE", change, minor=2, beneath=True),
    Column("CAUSE", causes, minor=1, beneath=True),
    Column("ROUTE-SET", member("routeSet"), wide=True),
)
