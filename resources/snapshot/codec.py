"""A snapshot as octets: a head, a line for each row, and a checksum; no I/O.

It is taken whole or not at all. Rows are read back without the rules of their kinds: they held when
the rows were first read, and an API server that is away cannot be asked for better ones.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

import msgspec

from resources.core.kinds import SECRET
from resources.errors import ResourceError
from resources.kind import Kinds
from resources.meta import Resource
from resources.secret_value import decode_withheld, encode_withheld

FORMAT: Final = "waggle-snapshot/1"
CHUNK: Final = 200
"""Rows that are encoded at a time: some hundred microseconds."""


class SnapshotError(ResourceError):
    """A snapshot that is not used; says why."""


class Head(msgspec.Struct, frozen=True):
    """The first line."""

    format: str
    node: str
    confirmed: float
    """When the API server last said that all of it is so, as Unix time."""
    kinds: dict[str, int]
    """How many rows of each kind follow, in this order."""


class Tail(msgspec.Struct, frozen=True):
    """The last line: the checksum of everything before it."""

    crc32: int


class Snapshot(msgspec.Struct, frozen=True):
    """What was known."""

    node: str
    confirmed: float
    rows: Mapping[str, tuple[Resource, ...]]
    """By the name of the kind."""


def encode(node: str, confirmed: float, rows: Mapping[str, Iterable[Resource]]) -> Iterator[bytes]:
    """Give a snapshot in pieces; others may have their turn between them.

    ``rows`` are by the name of the kind. Raises `ValueError` for Secrets.
    """
    if SECRET.name in rows:
        raise ValueError("Secrets are not written to disk")
    encoder = msgspec.json.Encoder(enc_hook=encode_withheld)
    lists = {name: list(found) for name, found in rows.items()}
    head = Head(FORMAT, node, confirmed, {name: len(found) for name, found in lists.items()})
    checksum = 0
    piece = encoder.encode(head) + b"\n"
    for found in lists.values():
        for start in range(0, len(found), CHUNK):
            checksum = zlib.crc32(piece, checksum)
            yield piece
            piece = encoder.encode_lines(found[start : start + CHUNK])
    checksum = zlib.crc32(piece, checksum)
    yield piece
    yield encoder.encode(Tail(checksum)) + b"\n"


def decode(octets: bytes, kinds: Kinds) -> Snapshot:
    """Read a snapshot. Raises `SnapshotError` for everything that `encode` did not write."""
    end = octets.rfind(b"\n", 0, -1) + 1
    try:
        tail = msgspec.json.decode(octets[end:], type=Tail)
    except (msgspec.DecodeError, UnicodeDecodeError):
        raise SnapshotError("it does not end as it should") from None
    if tail.crc32 != zlib.crc32(octets[:end]):
        raise SnapshotError("its checksum is another one")
    lines = octets[:end].split(b"\n")
    try:
        head = msgspec.json.decode(lines[0], type=Head)
        if head.format != FORMAT:
            raise SnapshotError(f"it is of another format: {head.format[:64]!r}")
        return Snapshot(head.node, head.confirmed, _rows(head, lines, kinds))
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        # Of another release of the program, whose rows are others.
        raise SnapshotError(f"it is not understood: {error}") from None


def _rows(head: Head, lines: list[bytes], kinds: Kinds) -> dict[str, tuple[Resource, ...]]:
    if sum(head.kinds.values()) != len(lines) - 2:
        raise SnapshotError("it has more or fewer rows than it says")
    rows: dict[str, tuple[Resource, ...]] = {}
    start = 1
    for name, count in head.kinds.items():
        kind = kinds.named(name)
        if kind is None:
            raise SnapshotError(f"it has rows of an unknown kind {name[:64]!r}")
        decoder = msgspec.json.Decoder(kind.row, dec_hook=decode_withheld)
        rows[name] = tuple(decoder.decode(line) for line in lines[start : start + count])
        start += count
    return rows
