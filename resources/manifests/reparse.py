"""Parses a file again: the documents or list items whose octets have not changed are not decoded.

One changed object of a file with thousands costs little more than reading the file. What cannot be
taken apart safely (YAML directives, explicit ends of documents, errors) is parsed as a whole. Pure.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from resources.errors import INVALID_JSON
from resources.kind import Kinds
from resources.manifests.parse import Item, Parsed, parse_file, parse_list_item
from resources.source import SourceProblem

_START: Final = b"\n---"
"""Before the start of a document, if one of `_AFTER` follows; YAML allows it nowhere else there."""
_AFTER: Final = frozenset((b" ", b"\t", b"\r", b"\n", b""))


class _List(msgspec.Struct):
    """A list of objects in JSON, with its items as they are."""

    items: list[msgspec.Raw]
    kind: str
    api_version: str = msgspec.field(default="", name="apiVersion")


class _Piece:
    """One decoded document or item, with lines and documents counted from its own start."""

    __slots__ = ("documents", "lines", "parsed", "place", "placed")

    def __init__(self, parsed: Parsed, lines: int, documents: int) -> None:
        self.parsed = parsed
        self.lines = lines
        self.documents = documents
        self.place = (0, 0)
        self.placed = parsed.items
        """The items as they are with these lines and documents before the piece."""

    def items_at(self, place: tuple[int, int]) -> tuple[Item, ...]:
        """Return the items, with lines and documents counted from the start of the file."""
        if place != self.place:
            line, document = place
            self.placed = tuple(
                item._replace(
                    line=item.line + line if item.line else 0, document=item.document + document
                )
                for item in self.parsed.items
            )
            self.place = place
        return self.placed


class Reparser:
    """Parses files, and remembers the pieces of each."""

    def __init__(self, kinds: Kinds) -> None:
        self._kinds = kinds
        self._pieces: dict[str, dict[int, _Piece]] = {}
        """Pieces without problems by the hash of their octets, by file.

        The octets would be as much memory as the file, a cryptographic digest a third of the time. The
        hash has 64 bits and a secret key of the process: a changed piece has that of one of ten
        thousand others once in 10^15 changes.
        """
        self._heads: dict[str, tuple[str, str]] = {}
        """Kind and version of each file that is a list: items may be without their own."""
        self.decoded = 0
        """Pieces that had to be decoded, of all files."""

    def parse(self, path: str, data: bytes) -> Parsed:
        """Parse a manifest file again, only what has changed; the same result as `parse_file`."""
        split = self._items if path.endswith(".json") else self._documents
        before = self._pieces.pop(path, {})
        kept: dict[int, _Piece] = {}
        parts = split(path, data, before, kept)
        if parts is None:
            self.decoded += 1
            return parse_file(path, data, self._kinds)
        if kept:
            self._pieces[path] = kept
        return parts

    def forget(self, path: str) -> None:
        """Forget the parsed documents of a file."""
        self._pieces.pop(path, None)
        self._heads.pop(path, None)

    def _documents(
        self, path: str, data: bytes, before: dict[int, _Piece], kept: dict[int, _Piece]
    ) -> Parsed | None:
        """Parse YAML document by document; None if it has to be parsed as a whole."""
        if data.startswith((b"%", b"...")):
            return None
        # Most files have no percent sign at all: a faster check.
        if (b"%" in data and b"\n%" in data) or b"\n..." in data:
            return None
        pieces = []
        for chunk in _chunks(data):
            octets_hash = hash(chunk)
            piece = before.get(octets_hash)
            if piece is None:
                parsed = parse_file(path, chunk, self._kinds)
                if not parsed.whole:
                    return None
                self.decoded += 1
                documents = 1 if chunk.startswith(b"---") or parsed != Parsed((), (), True) else 0
                piece = _Piece(parsed, chunk.count(b"\n"), documents)
            if not piece.parsed.problems:
                kept[octets_hash] = piece
            pieces.append(piece)
        return _joined(pieces)

    def _items(
        self, path: str, data: bytes, before: dict[int, _Piece], kept: dict[int, _Piece]
    ) -> Parsed | None:
        """Parse the items of a list in JSON one by one; None if it is no list."""
        try:
            items = msgspec.json.decode(data, type=_List)
        except INVALID_JSON:
            return None
        if not items.kind.endswith("List"):
            return None
        head = (items.kind, items.api_version)
        if self._heads.get(path) != head:
            before.clear()
        self._heads[path] = head
        pieces = []
        for index, raw in enumerate(map(bytes, items.items)):
            octets_hash = hash(raw)
            piece = before.get(octets_hash)
            if piece is None:
                self.decoded += 1
                value = msgspec.json.decode(raw)
                parsed = parse_list_item(path, value, (*head, index), self._kinds)
                piece = _Piece(parsed, 0, 0)
            if not piece.parsed.problems:
                kept[octets_hash] = piece
            pieces.append(piece)
        return _joined(pieces)


def _chunks(data: bytes) -> Iterator[bytes]:
    start, end = 0, data.find(_START)
    while end >= 0:
        following = end + len(_START)
        if data[following : following + 1] in _AFTER:
            yield data[start : end + 1]
            start = end + 1
        end = data.find(_START, following)
    yield data[start:]


def _joined(pieces: list[_Piece]) -> Parsed:
    """Join pieces, with lines and documents counted from the start of the file."""
    items: list[Item] = []
    problems: list[SourceProblem] = []
    unread: Counter[tuple[str, str]] = Counter()
    line = document = 0
    for piece in pieces:
        items += piece.items_at((line, document))
        parsed = piece.parsed
        if parsed.problems:
            problems += [_moved(problem, line, document) for problem in parsed.problems]
        if parsed.unread:
            unread.update(parsed.unread)
        line += piece.lines
        document += piece.documents
    return Parsed(tuple(items), tuple(problems), True, unread)


def _moved(problem: SourceProblem, line: int, document: int) -> SourceProblem:
    moved: dict[str, Any] = {"document": problem.document + document}
    if problem.line:
        moved["line"] = problem.line + line
    return replace(problem, **moved)
