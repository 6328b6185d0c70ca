"""Encodes and decodes the last valid objects of each manifest file, for the next start. No I/O.

A header line, a line for each file, and a checksum; used as a whole or not at all. Secrets are left
out: nothing secret is written to disk.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

import msgspec

from resources.core.kinds import SECRET
from resources.kind import Kinds
from resources.meta import Resource
from resources.secret_value import decode_withheld, encode_withheld
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
    """Yield the content in pieces, between which the event loop may run other tasks."""
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


def decode(octets: bytes, kinds: Kinds) -> dict[str, list[tuple[str, Resource]]]:
    """Decode the content; objects of other kinds are left out. Raises `StateFileError`."""
    end = octets.rfind(b"\n", 0, -1) + 1
    lines = octets[:end].split(b"\n")[:-1]
    try:
        if msgspec.json.decode(octets[end:], type=_Tail).crc32 != zlib.crc32(octets[:end]):
            raise StateFileError("its checksum is another one")
        head = msgspec.json.decode(lines[0], type=_Head)
        if head.format != FORMAT:
            raise StateFileError(f"it is of another format: {head.format[:64]!r}")
        files = [msgspec.json.decode(line, type=_File) for line in lines[1:]]
        return {
            file.path: [
                (name, msgspec.json.decode(raw, type=kind.row, dec_hook=decode_withheld))
                for name, raw in file.objects
                if (kind := kinds.named(name)) is not None
            ]
            for file in files
        }
    except (msgspec.DecodeError, UnicodeDecodeError, IndexError) as error:
        # Damaged, or written by another release, with other row types.
        raise StateFileError(f"it is not understood: {error}") from None
