"""The state of one list-and-watch feed: lists and watch events in, rows and problems out. No I/O.

An invalid object keeps its last valid version. A list that lacks many of the known objects is no proof
that these were deleted: they are kept until further lists have confirmed it for a while
(`resources.disappearance`). A list that is older than the known resource version has to be confirmed
by a second list. API servers restart, are restored from backups, and may be behind proxies.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any, Final, TypeVar

import msgspec
from msgspec.structs import replace

from resources.disappearance import FEW, Disappearance, is_mass
from resources.errors import INVALID_JSON, FieldError, InvalidObject, ObjectName
from resources.kind import Kind
from resources.kubernetes import responses
from resources.kubernetes.errors import Expired, InvalidResponse, UnconfirmedList
from resources.kubernetes.listing import Contents, Listing
from resources.meta import ObjectKey, Resource
from resources.source import Delete, Event, SourceProblem, Upsert

T = TypeVar("T", bound=Resource)

SOURCE = "kubernetes"

LAST_SECONDS: Final = 5.0
"""After which a second list confirms that no object is left but the API server's own."""


def older(one: str, other: str) -> bool:
    """True if a resource version precedes another version, in a list or a watch event of the feed.

    Decimal numbers are comparable (KEP-5504); other versions, as of aggregated APIs, are not.
    """
    if one.isdecimal() and other.isdecimal():
        first, second = one.lstrip("0"), other.lstrip("0")
        return (len(first), first) < (len(second), second)
    return False


class Feed(Contents[T]):
    """The rows of one kind, in one namespace or in all, or of one object.

    With a node, objects that concern other nodes alone are dropped as they are read: of them only the
    keys of labels are kept, so that a change of such a label of the node requires a new list.
    """

    def __init__(
        self,
        kind: Kind[T],
        namespace: str = "",
        object_name: str = "",
        *,
        hold: float = 0.0,
        node: str | None = None,
        other_nodes: bool = False,
        metadata_only: bool = False,
    ) -> None:
        """``hold``: seconds for which lists have to confirm that many objects are missing.

        ``node``: the node whose objects are stored; None stores all. ``other_nodes``: objects of
        other nodes are stored as well, reduced. ``metadata_only``: objects come as their metadata.
        """
        super().__init__()
        self.kind = kind
        self._metadata_only = metadata_only
        self.namespace = namespace
        self.object_name = object_name
        self._node = node
        self._reduced = None
        if other_nodes and kind.of_node is not None:
            self._reduced = kind.of_node.reduced
        self.labels: Mapping[str, str] = {}
        """Of the node."""
        self.version = ""
        """The resource version to watch from; empty if a list is necessary."""
        self.synced = False
        """True if `rows` is complete: after a list, or if the kind is missing or forbidden."""
        self.restored = False
        """True if `rows` are from before the start, and no list has replaced them yet."""
        self._last_version = ""
        self._is_confirming = False
        """True if the last list has to be confirmed by a second one."""
        self.held: set[ObjectKey] = set()
        """Objects of `rows` that the last list did not have, kept until this is confirmed."""
        self.disappearance = Disappearance(hold)

    @property
    def by_labels(self) -> bool:
        """True if the labels of the node decide which objects the list-and-watch feed stores."""
        return (
            self._node is not None
            and self.kind.of_node is not None
            and not self.kind.of_node.fields
        )

    def set_labels(self, labels: Mapping[str, str]) -> bool:
        """Take the node's labels into the list-and-watch feed.

        Returns whether objects were dropped that concerned the node before. Requires a list if objects
        that were dropped earlier may concern it now.
        """
        before, self.labels = self.labels, labels
        changed = {
            key for key in before.keys() | labels.keys() if before.get(key) != labels.get(key)
        }
        if not changed.isdisjoint(self.dropped_by):
            self.request_list()
        dropped = [key for key, row in self.rows.items() if not self._concerns(row, self)]
        for key in dropped:
            self._remove(key)
        return bool(dropped)

    def restore(self, rows: Iterable[T]) -> None:
        """Start the list-and-watch feed with rows from before the start, until the first list."""
        wanted = (
            row
            for row in rows
            if self.namespace in ("", row.metadata.namespace)
            and (self.by_labels or self._concerns(row, self) or self._reduced is not None)
        )
        self.rows = {row.key: row for row in wanted}
        self.restored = bool(self.rows)

    def confirm_missing(self, now: float) -> bool:
        """Count an answer that the API server lacks the feed's kind; only restored rows depend on it.

        Returns whether rows were dropped: the definition was deleted before the start.
        """
        if not self.restored or not self.disappearance.confirm(self.rows.keys(), now):
            return False
        self.disappearance.reset()
        self.rows = {}
        self.restored = False
        return True

    def replace(self, listing: Listing[T], now: float) -> int:
        """Replace all rows of the list-and-watch feed by a complete list that was read at ``now``.

        If too many rows are missing, these are `held`. Returns the number of held rows that are
        deleted now. Raises `UnconfirmedList` if a second list is needed.
        """
        if older(listing.version, self._last_version) and not self._is_confirming:
            self._is_confirming = True
            raise UnconfirmedList(
                f"resource versions went back from {self._last_version} to {listing.version}; "
                "waiting for a second list that confirms it"
            )
        self._is_confirming = False
        believed = self._hold_missing(listing, now)
        self.rows, self.problems = listing.rows, listing.problems
        self.dropped_by = listing.dropped_by
        self.version = self._last_version = listing.version
        self.synced = True
        self.restored = False
        return believed

    def _hold_missing(self, listing: Listing[T], now: float) -> int:
        """Add missing rows that are not believed to be deleted; returns how many held ones are."""
        # An API server with an empty database lists its own objects: they prove nothing.
        built_in = self.kind.built_in
        known = self.rows.keys() - built_in
        listed = listing.rows.keys() - built_in
        missing = known - listed - listing.dropped
        if not is_mass(len(known), len(missing), len(listed)):
            self.disappearance.reset()
            self.held = set()
            return 0
        is_last = len(missing) <= FEW and bool(listing.rows)
        if self.disappearance.confirm(missing, now, LAST_SECONDS if is_last else math.inf):
            self.disappearance.reset()
            believed, self.held = len(self.held), set()
            return believed
        self.held = set(missing)
        # In the former order, which the rows of a source keep.
        listing.rows = {
            **{
                key: listing.rows.get(key, row)
                for key, row in self.rows.items()
                if key not in listing.dropped
            },
            **listing.rows,
        }
        return 0

    def process_line(self, line: bytes) -> Event | None:
        """Process one line of the feed's watch; returns the resulting event, if any.

        Raises `Expired` if a new list is necessary, `StatusError` for an ERROR event,
        `InvalidResponse` for a line that is no event.
        """
        event = responses.decode(line, responses.WatchEvent, "a watch event")
        if event.type == "ERROR":
            raise responses.error_of_event(event.object)
        head = responses.decode(event.object, responses.Head, "an object").metadata
        version = head.resource_version
        bookmark = event.type == "BOOKMARK"
        if not version:
            raise InvalidResponse(f"sends an event {event.type} without a resourceVersion")
        if older(version, self.version) or (version == self.version and not bookmark):
            raise Expired(f"events are out of order: {version} after {self.version}")
        result: Event | None = None
        if event.type in ("ADDED", "MODIFIED"):
            result = self._put(event.object)
        elif event.type == "DELETED":
            result = self._remove((head.namespace, head.name))
        elif not bookmark:
            raise InvalidResponse(f"sends an event of unknown type {event.type[:32]!r}")
        self.version = self._last_version = version
        return result

    def check_version(self, version: str) -> None:
        """Check the feed's resource version from the API server. Raises `Expired` if it went back."""
        if older(version, self.version):
            self.version = ""
            raise Expired(f"resource versions went back from {self._last_version} to {version}")

    def request_list(self) -> None:
        """Require a new list for the list-and-watch feed; the rows are kept."""
        self.version = ""

    def read(self, raw: msgspec.Raw, into: Contents[T]) -> ObjectKey:
        """Decode an object of a list or watch event into the feed; an invalid one keeps its last row.

        An object that concerns other nodes alone has neither.
        """
        rows, problems = into.rows, into.problems
        try:
            row = self.kind.decode_json(raw)
        except InvalidObject as error:
            key = (error.object.namespace, error.object.name)
            uid = _uid(raw)
            lost = key not in self.rows
            problems[key] = tuple(
                _problem(error.object, field, uid, lost=lost) for field in error.errors
            )
            if not lost:
                rows[key] = self.rows[key]
            return key
        except INVALID_JSON as error:
            raise InvalidResponse(f"sends an object that is not understood: {error}") from None
        if self._metadata_only:
            # kubectl apply keeps a copy of the whole object in an annotation.
            row = replace(row, metadata=replace(row.metadata, annotations={}))
        key = row.key
        problems.pop(key, None)
        if not self._concerns(row, into):
            if self._reduced is None:
                return key
            row = self._reduced(row)
        rows[key] = row
        if self.kind.strict:
            name = ObjectName(self.kind.name, *key)
            unknown = self.kind.unknown_fields(msgspec.json.decode(raw))
            if unknown:
                uid = row.metadata.uid
                problems[key] = tuple(_problem(name, field, uid) for field in unknown)
        return key

    def _concerns(self, row: T, into: Contents[T]) -> bool:
        """True if a row concerns the node; notes the labels that a row of another node depends on."""
        of_node = self.kind.of_node
        if of_node is None or self._node is None or of_node.accepts(row, self._node, self.labels):
            return True
        into.dropped_by.update(of_node.label_keys(row))
        return False

    def _put(self, raw: msgspec.Raw) -> Event | None:
        contents = Contents[T]()
        contents.problems, contents.dropped_by = self.problems, self.dropped_by
        key = self.read(raw, contents)
        self.held.discard(key)
        row: Any = contents.rows.get(key)
        if row is None:
            return self._remove(key) if key in self.rows else None
        if row == self.rows.get(key):
            return None
        self.rows[key] = row
        return Upsert(row)

    def _remove(self, key: ObjectKey) -> Event | None:
        self.problems.pop(key, None)
        self.held.discard(key)
        return Delete(key) if self.rows.pop(key, None) is not None else None


def _problem(name: ObjectName, field: FieldError, uid: str, *, lost: bool = False) -> SourceProblem:
    return SourceProblem(SOURCE, 0, 0, name, field.path, field.message, uid, lost=lost)


def _uid(raw: msgspec.Raw) -> str:
    try:
        return responses.decode(raw, responses.Head, "an object").metadata.uid
    except InvalidResponse:
        return ""
