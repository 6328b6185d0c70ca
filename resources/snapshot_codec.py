"""Encodes and decodes snapshots of the tables: a header line, a line for each row, a checksum. No I/O.

For a start without an API server. Rows are as they are in the tables, of every kind but Secrets:
nothing secret is ever in a snapshot, which is used as a whole or not at all. Decoding does not
validate rows again: they were valid when they were read from the API server.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

import msgspec

from resources.core.kinds import SECRET
from resources.enumeration import counted
from resources.errors import INVALID_JSON
from resources.kind import Kinds
from resources.meta import Resource
from resources.secret_value import decode_withheld, encode_withheld
from resources.state_file import StateFileError

FORMAT: Final = "waggle-snapshot/1"
CHUNK: Final = 200
"""Rows encoded per piece: some hundred microseconds."""


class Head(msgspec.Struct, frozen=True):
    """The first line."""

    format: str
    node: str
    confirmed: float
    """Unix time at which the API server last confirmed all rows."""
    kinds: dict[str, int]
    """How many rows of each kind follow, in this order."""


class Tail(msgspec.Struct, frozen=True):
    """The last line: the checksum of everything before it."""

    crc32: int


class Snapshot(msgspec.Struct, frozen=True):
    """The rows of the tables."""

    node: str
    confirmed: float
    rows: Mapping[str, tuple[Resource, ...]]
    """By the name of the kind."""
    unread: tuple[str, ...] = ()
    """Objects of another release that this one cannot read: a clause for each kind, with the reason."""


def encode(node: str, confirmed: float, rows: Mapping[str, Iterable[Resource]]) -> Iterator[bytes]:
    """Encode a snapshot of the tables, and yield it in pieces.

    ``rows`` are by the name of the kind. Raises `ValueError` for Secrets.
    """
    if SECRET.name in rows:
        raise ValueError("Secrets are not written to disk")
    encoder = msgspec.json.Encoder(enc_hook=encode_withheld)
    lists = {name: list(of_kind) for name, of_kind in rows.items()}
    head = Head(FORMAT, node, confirmed, {name: len(of_kind) for name, of_kind in lists.items()})
    checksum = 0
    piece = encoder.encode(head) + b"\n"
    for of_kind in lists.values():
        for start in range(0, len(of_kind), CHUNK):
            checksum = zlib.crc32(piece, checksum)
            yield piece
            piece = encoder.encode_lines(of_kind[start : start + CHUNK])
    checksum = zlib.crc32(piece, checksum)
    yield piece
    yield encoder.encode(Tail(checksum)) + b"\n"


def decode(octets: bytes, kinds: Kinds) -> Snapshot:
    """Decode a snapshot, also of another release. Raises `StateFileError` for any other file."""
    end = octets.rfind(b"\n", 0, -1) + 1
    try:
        tail = msgspec.json.decode(octets[end:], type=Tail)
    except INVALID_JSON:
        raise StateFileError("it does not end as it should") from None
    if tail.crc32 != zlib.crc32(octets[:end]):
        raise StateFileError("its checksum differs")
    lines = octets[:end].split(b"\n")
    try:
        head = msgspec.json.decode(lines[0], type=Head)
        if head.format != FORMAT:
            raise StateFileError(f"it is of another format: {head.format[:64]!r}")
    except INVALID_JSON as error:
        raise StateFileError(f"it is not understood: {error}") from None
    if sum(head.kinds.values()) != len(lines) - 2:
        raise StateFileError("its number of rows differs from its header")
    rows: dict[str, tuple[Resource, ...]] = {}
    unread: list[str] = []
    start = 1
    for name, count in head.kinds.items():
        decoded, reason = decode_rows(name, lines[start : start + count], kinds)
        start += count
        if reason:
            unread.append(reason)
        if decoded or not reason:
            rows[name] = decoded
    return Snapshot(head.node, head.confirmed, rows, tuple(unread))


def decode_rows(
    name: str, octets: Sequence[bytes | msgspec.Raw], kinds: Kinds
) -> tuple[tuple[Resource, ...], str]:
    """Decode a kind's rows of a snapshot, also of another release; unreadable ones make a clause.

    The clause is empty where all are read.
    """
    kind = kinds.named(name)
    if kind is None:
        reason = f"{name[:64]}: a kind that is not read" if octets else ""
        return (), reason
    decoder = msgspec.json.Decoder(kind.row, dec_hook=decode_withheld)
    rows: list[Resource] = []
    reason = ""
    for line in octets:
        try:
            rows.append(decoder.decode(line))
        except INVALID_JSON as error:
            reason = reason or str(error)
    if reason:
        count = counted(len(octets), "object")
        reason = f"{len(octets) - len(rows)} of {count} of kind {name}: {reason}"
    return tuple(rows), reason
