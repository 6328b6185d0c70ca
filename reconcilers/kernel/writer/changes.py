"""Differences between what the kernel had confirmed and what it has."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TypeAlias

from reconcilers.kernel.writer.protocol_messages import Change, Reason, Routes, RouteTable

Changes: TypeAlias = dict[Reason, dict[RouteTable, list[bytes]]]


def note(changes: Changes, reason: Reason, table: RouteTable, prefixes: Collection[bytes]) -> None:
    """Add prefixes to the changes between what the kernel had confirmed and what it has."""
    if prefixes:
        changes.setdefault(reason, {}).setdefault(table, []).extend(prefixes)


def changes_of(changes: Mapping[Reason, dict[RouteTable, list[bytes]]]) -> tuple[Change, ...]:
    """Return the changes of confirmed routes as the writer sends them."""
    return tuple(Change(reason, packed(tables)) for reason, tables in changes.items())


def packed(tables: Mapping[RouteTable, Collection[bytes]]) -> tuple[Routes, ...]:
    """Return the changed prefixes by table as the writer sends them."""
    return tuple(
        Routes(table, b"".join(prefixes)) for table, prefixes in tables.items() if prefixes
    )
