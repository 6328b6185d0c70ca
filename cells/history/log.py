"""The log of changes: bounded in all, and for each object, so that none pushes out the others.

In a full log the kind that has most entries loses its oldest one: what changes all the time in a large
cluster does not push out why a session went down.

Equal changes of one object in a row are one entry with their number, as of a session that fails again
and again.
"""

from __future__ import annotations

import contextlib
import ipaddress
from collections import OrderedDict, deque
from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Final, TypeAlias

from msgspec.structs import replace
from reactivex import Observable
from reactivex.subject import Subject

from cells.api.history import HistoryItem
from resources.streams import isolated

MOST_OF_AN_OBJECT: Final = 64
"""Entries of one object; a new one takes the place of the oldest."""

MOST_OF_A_MESSAGE: Final = 500
"""Characters: a condition may have 1,024."""

Identity: TypeAlias = tuple[str, str, str | None]


class HistoryLog:
    """The entries of one agent, by sequence."""

    def __init__(self, node: str, limit: int) -> None:
        self.node = node
        self._limit = limit
        self._items: dict[int, HistoryItem] = {}
        self._of_object: dict[Identity, deque[int]] = {}
        self._of_kind: dict[str, OrderedDict[int, None]] = {}
        self._sequence = 0
        self._added: Subject[HistoryItem] = Subject()

    @property
    def added(self) -> Observable[HistoryItem]:
        """Each entry as it is added, or counts one more change."""
        return isolated(self._added)

    def __len__(self) -> int:
        """Return the number of entries."""
        return len(self._items)

    @property
    def sequence(self) -> int:
        """The number of the newest entry; 0 without any so far."""
        return self._sequence

    def newest_first(self) -> Iterator[HistoryItem]:
        """Iterate over the entries of this moment."""
        return reversed(list(self._items.values()))

    def add(self, item: HistoryItem) -> None:
        """Add a change; node and sequence are the log's, and so is the length of its message."""
        message = item.message
        if message is not None and len(message) > MOST_OF_A_MESSAGE:
            item = replace(item, message=f"{message[: MOST_OF_A_MESSAGE - 3]}...")
        item = self._add(item, self.node)
        if self._added.observers:
            self._added.on_next(item)

    def restore(self, items: Iterable[HistoryItem]) -> None:
        """Add the entries of an earlier process, the oldest first, before its own."""
        present = list(self._items.values())
        self._items.clear()
        self._of_object.clear()
        self._of_kind.clear()
        for item in (*items, *present):
            self._add(item, item.node)

    def _add(self, item: HistoryItem, node: str) -> HistoryItem:
        identity = (item.kind, item.name, item.route_set)
        numbers = self._of_object.setdefault(identity, deque())
        if numbers:
            last = self._items[numbers[-1]]
            if _is_repeated(last, item):
                self._remove(numbers.pop())
                item = replace(
                    item,
                    count=last.count + item.count,
                    first_time=last.first_time or last.event_time,
                )
        self._sequence += 1
        item = replace(item, node=node, sequence=self._sequence)
        numbers.append(self._sequence)
        self._items[self._sequence] = item
        self._of_kind.setdefault(item.kind, OrderedDict())[self._sequence] = None
        if len(numbers) > MOST_OF_AN_OBJECT:
            self._remove(numbers.popleft())
        if len(self._items) > self._limit:
            self._make_room()
        return item

    def _remove(self, number: int) -> HistoryItem:
        item = self._items.pop(number)
        del self._of_kind[item.kind][number]
        return item

    def _make_room(self) -> None:
        """Remove the oldest entry of the kind that has most."""
        _, kind = max((len(numbers), kind) for kind, numbers in self._of_kind.items())
        item = self._remove(next(iter(self._of_kind[kind])))
        identity = (item.kind, item.name, item.route_set)
        numbers = self._of_object[identity]
        numbers.popleft()  # the oldest entry of a kind is the oldest one of its object
        if not numbers:
            del self._of_object[identity]


def _is_repeated(last: HistoryItem, item: HistoryItem) -> bool:
    """Whether a change repeats the last one; changes that are only counted always are."""
    return (last.type, last.changes, last.message, last.causes) == (
        item.type,
        item.changes,
        item.message,
        item.causes,
    )


class Target:
    """Selects entries by an object, a prefix and more specific ones, an address, or a peer."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._network: ipaddress.IPv4Network | ipaddress.IPv6Network | None = None
        with contextlib.suppress(ValueError):
            self._network = ipaddress.ip_network(text, strict=False)
        self._is_address = self._network is not None and "/" not in text

    def matches(self, item: HistoryItem) -> bool:
        """Whether an entry is about it, or names it as a cause."""
        if self._text in names(item) or self._text in item.causes:
            return True
        if any(_is_named(cause, self._text) for cause in item.causes):
            return True
        return self._network is not None and item.kind == "Route" and self._covers(item.name)

    def _covers(self, prefix: str) -> bool:
        try:
            of_route = ipaddress.ip_network(prefix)
        except ValueError:
            return False
        if self._network is None or of_route.version != self._network.version:
            return False
        wide, narrow = self._network, of_route
        if self._is_address:
            wide, narrow = narrow, wide
        return wide.prefixlen <= narrow.prefixlen and narrow.network_address in wide


def names(item: HistoryItem) -> tuple[str, ...]:
    """Return the texts by which an entry is found, beside its causes."""
    return tuple(
        filter(
            None,
            (item.name, f"{item.kind}/{item.name}", item.name.rpartition("/")[2], item.address),
        )
    )


def _is_named(cause: str, text: str) -> bool:
    """Whether ``KIND/NAMESPACE/NAME`` is an object that is given without its kind."""
    return cause.partition("/")[2] == text


def known_names(items: Iterable[HistoryItem]) -> list[str]:
    """Return names and causes of entries, for a suggestion."""
    return list(dict.fromkeys(name for item in items for name in (*names(item), *item.causes)))


def since(items: Iterable[HistoryItem], time: datetime) -> Iterator[HistoryItem]:
    """Yield the entries from a time on, of entries in order from the newest."""
    for item in items:
        if item.event_time >= time:
            yield item
