"""Encodes and decodes the last valid objects of each manifest file, for the next start. No I/O.

A header line, a line for each file, and a checksum; used as a whole or not at all. It has no
Secrets: nothing secret is written to disk.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Final, NamedTuple

import msgspec

from resources.core.kinds import SECRET
from resources.errors import INVALID_JSON
from resources.kind import Kinds
from resources.meta import Resource
from resources.secret_value import encode_withheld
from resources.snapshot_codec import decode_rows
from resources.state_file import StateFileError

FORMAT: Final = "waggle-manifests/1"

Files = Mapping[str, Sequence[tuple[str, Resource]]]
"""The objects of each file, with the names of their kinds."""


class _Head(msgspec.Struct, frozen=True):
    format: str
    files: int


class _File(msgspec.Struct, frozen=True):
    path: str
    objects: list[tuple[str, msgspec.Raw]]
    """Each with the name of its kind."""


class _Tail(msgspec.Struct, frozen=True):
    crc32: int


def encode(files: Files) -> Iterator[bytes]:
    """Encode the last valid objects of each manifest file, and yield them in pieces."""
    encoder = msgspec.json.Encoder(enc_hook=encode_withheld)
    piece = encoder.encode(_Head(FORMAT, len(files))) + b"\n"
    checksum = zlib.crc32(piece)
    yield piece
    for path, objects in files.items():
        rows = [(k, msgspec.Raw(encoder.encode(row))) for k, row in objects if k != SECRET.name]
        piece = encoder.encode(_File(path, rows)) + b"\n"
        checksum = zlib.crc32(piece, checksum)
        yield piece
    yield encoder.encode(_Tail(checksum)) + b"\n"


class Decoded(NamedTuple):
    """The content of a file, which another release may have written."""

    files: dict[str, list[tuple[str, Resource]]]
    """The objects of each file, with the names of their kinds."""
    unread: tuple[str, ...]
    """Objects that this release cannot read: a clause for each kind of a file, with the reason."""


def decode(octets: bytes, kinds: Kinds) -> Decoded:
    """Decode the last valid objects of each manifest file. Raises `StateFileError`."""
    end = octets.rfind(b"\n", 0, -1) + 1
    lines = octets[:end].split(b"\n")[:-1]
    try:
        if msgspec.json.decode(octets[end:], type=_Tail).crc32 != zlib.crc32(octets[:end]):
            raise StateFileError("its checksum differs")
        head = msgspec.json.decode(lines[0], type=_Head)
        if head.format != FORMAT:
            raise StateFileError(f"it is of another format: {head.format[:64]!r}")
        stored = [msgspec.json.decode(line, type=_File) for line in lines[1:]]
    except (*INVALID_JSON, IndexError) as error:
        raise StateFileError(f"it is not understood: {error}") from None
    files: dict[str, list[tuple[str, Resource]]] = {}
    unread: list[str] = []
    for file in stored:
        objects = files[file.path] = []
        for name, raw in file.objects:
            rows, reason = decode_rows(name, [raw], kinds)
            objects += ((name, row) for row in rows)
            if reason:
                unread.append(f"{file.path}: {reason}")
    return Decoded(files, tuple(unread))
