"""What is known of one kind in one place: lists and watch events in, rows and problems kept; no I/O.

An object that is invalid keeps its last good version. A list that would take everything away has to
be confirmed by a second one, as has one that is older than what is known: API servers restart, are
restored from backups, and sit behind proxies.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Generic, TypeVar

import msgspec

from resources.errors import FieldError, InvalidObject, ObjectName
from resources.kind import Kind
from resources.kubernetes import wire
from resources.kubernetes.errors import Expired, NotUnderstood, Unconfirmed
from resources.meta import ObjectKey, Resource
from resources.source import Delete, Event, SourceProblem, Upsert

T = TypeVar("T", bound=Resource)

SOURCE = "kubernetes"
LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
"""A copy of the whole object within itself; nobody here reads it."""


def older(one: str, other: str) -> bool:
    """Whether a resource version is before another.

    Numbers can be compared (KEP-5504); others, as an aggregated API may have them, never are.
    """
    if one.isdecimal() and other.isdecimal():
        return int(one) < int(other)
    return False


class Listing(Generic[T]):
    """A list that is being read, page by page."""

    def __init__(self, feed: Feed[T]) -> None:
        self._feed = feed
        self.rows: dict[ObjectKey, T] = {}
        self.problems: dict[ObjectKey, tuple[SourceProblem, ...]] = {}
        self.version = ""

    def begin(self, version: str) -> None:
        """Note the version of a page. Raises `NotUnderstood` when pages are of different ones."""
        if not version:
            raise NotUnderstood("sends a list without a resourceVersion")
        if self.version and version != self.version:
            raise NotUnderstood("sends pages of different versions")
        self.version = version

    def add(self, items: Iterable[msgspec.Raw]) -> None:
        """Take in objects of a page."""
        for raw in items:
            self._feed.read(raw, self.rows, self.problems)


class Feed(Generic[T]):
    """The rows of one kind, in one namespace or in all."""

    def __init__(self, kind: Kind[T], namespace: str = "") -> None:
        self.kind = kind
        self.namespace = namespace
        self.rows: dict[ObjectKey, T] = {}
        self.problems: dict[ObjectKey, tuple[SourceProblem, ...]] = {}
        self.version = ""
        """From where to watch; empty: a list is due."""
        self.settled = False
        """Whether `rows` is all that there is: after a complete list, or when nothing can be listed."""
        self.recalled = False
        """Whether `rows` are from before the start: no list has said anything yet."""
        self._seen = ""
        self._doubted = False

    def recall(self, rows: Iterable[T]) -> None:
        """Begin with what was known before the start; the first list is compared with it."""
        wanted = (row for row in rows if self.namespace in ("", row.metadata.namespace))
        self.rows = {row.key: row for row in wanted}
        self.recalled = bool(self.rows)

    def forget(self) -> None:
        """Give up what was known before the start."""
        self.rows = {}
        self.recalled = False

    def finish(self, listing: Listing[T]) -> None:
        """Take a complete list for the truth. Raises `Unconfirmed` when that wants a second one."""
        doubt = ""
        if self.rows and not listing.rows:
            doubt = f"the list is empty, of {len(self.rows)} objects before"
        elif older(listing.version, self._seen):
            doubt = f"resource versions went back from {self._seen} to {listing.version}"
        if doubt and not self._doubted:
            self._doubted = True
            raise Unconfirmed(f"{doubt}; waiting for a second list that says the same")
        self._doubted = False
        self.rows, self.problems = listing.rows, listing.problems
        self.version = self._seen = listing.version
        self.settled = True
        self.recalled = False

    def take(self, line: bytes) -> Event | None:
        """Take one line of a watch; the event that follows from it, if any.

        Raises `Expired` when only a new list can tell the truth, `Refused` for an error that the
        server tells, `NotUnderstood` for what is not an event.
        """
        event = wire.decode(line, wire.WatchEvent, "a watch event")
        if event.type == "ERROR":
            raise wire.error_of_event(event.object)
        head = wire.decode(event.object, wire.Head, "an object").metadata
        version = head.resource_version
        bookmark = event.type == "BOOKMARK"
        if not version:
            raise NotUnderstood(f"sends an event {event.type} without a resourceVersion")
        if older(version, self.version) or (version == self.version and not bookmark):
            raise Expired(f"events are out of order: {version} after {self.version}")
        told: Event | None = None
        if event.type in ("ADDED", "MODIFIED"):
            told = self._put(event.object)
        elif event.type == "DELETED":
            told = self._remove((head.namespace, head.name))
        elif not bookmark:
            raise NotUnderstood(f"sends an event of unknown type {event.type[:32]!r}")
        self.version = self._seen = version
        return told

    def doubt(self, version: str) -> None:
        """Compare with what a server says to be its version now. Raises `Expired` when it is older."""
        if older(version, self.version):
            self.version = ""
            raise Expired(f"resource versions went back from {self._seen} to {version}")

    def relist(self) -> None:
        """Forget from where to watch; what is known stays."""
        self.version = ""

    def settle(self) -> None:
        """Note that there is nothing to wait for: the kind is missing, or may not be listed."""
        self.settled = True

    def read(
        self,
        raw: msgspec.Raw,
        rows: dict[ObjectKey, T],
        problems: dict[ObjectKey, tuple[SourceProblem, ...]],
    ) -> ObjectKey:
        """Decode an object into these rows and problems; an invalid one is as it last was good."""
        try:
            row = self.kind.decode_json(raw)
        except InvalidObject as error:
            key = (error.object.namespace, error.object.name)
            uid = _uid(raw)
            problems[key] = tuple(_problem(error.object, field, uid) for field in error.errors)
            if key in self.rows:
                rows[key] = self.rows[key]
            return key
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise NotUnderstood(f"sends an object that is not understood: {error}") from None
        row.metadata.annotations.pop(LAST_APPLIED, None)
        key = row.key
        rows[key] = row
        problems.pop(key, None)
        if self.kind.strict:
            name = ObjectName(self.kind.name, *key)
            unknown = self.kind.unknown_fields(msgspec.json.decode(raw))
            if unknown:
                uid = row.metadata.uid
                problems[key] = tuple(_problem(name, field, uid) for field in unknown)
        return key

    def _put(self, raw: msgspec.Raw) -> Event | None:
        found: dict[ObjectKey, T] = {}
        key = self.read(raw, found, self.problems)
        row: Any = found.get(key)
        if row is None or row == self.rows.get(key):
            return None
        self.rows[key] = row
        return Upsert(row)

    def _remove(self, key: ObjectKey) -> Event | None:
        self.problems.pop(key, None)
        return Delete(key) if self.rows.pop(key, None) is not None else None


def _problem(name: ObjectName, field: FieldError, uid: str) -> SourceProblem:
    return SourceProblem(SOURCE, 0, 0, name, field.path, field.message, uid)


def _uid(raw: msgspec.Raw) -> str:
    try:
        return wire.decode(raw, wire.Head, "an object").metadata.uid
    except NotUnderstood:
        return ""
