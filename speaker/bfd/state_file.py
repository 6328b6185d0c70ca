"""The sessions of a process in a file that outlives it, so that its successor continues them.

The file is mapped into memory (in a directory of memory, such as /run: nothing is written to a disk),
and has what the process last wrote, however the process ended. Each session has a slot of fixed size;
sequence numbers are written with every authenticated packet, the rest when it changes.

A slot is written in two steps, its checksum last: a slot that was cut short is not read.

All slots of the file have their memory before they are written: to a page that a full file system
cannot give, the kernel answers with SIGBUS. Sessions that have no slot then begin anew in the next
process.
"""

from __future__ import annotations

import mmap
import os
import struct
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import msgspec

from speaker.bfd.session_values import Saved, SessionKey

MAGIC: Final = b"waggle-bfd/1\0\0\0\0"
SLOT_OCTETS: Final = 512
_HEADER: Final = struct.Struct("=III")
"""Length of the encoded state, its checksum, and the next sequence number of authentication."""
_SEQUENCE: Final = struct.Struct("=I")
_SEQUENCE_OFFSET: Final = 8
_GROWTH: Final = 64
"""Slots that are added when all are used."""


class StateFile:
    """Slots by session; the file is made or taken over."""

    def __init__(self, path: Path) -> None:
        """Open or create. Raises OSError: the directory does not exist, or its file system is full."""
        self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        self._slots: dict[SessionKey, int] = {}
        self._free: list[int] = []
        self.error: OSError | None = None
        """Why sessions have no slot, if some have none."""
        self._encode = msgspec.msgpack.Encoder().encode
        self._decode = msgspec.msgpack.Decoder(Saved).decode
        self._count = 0
        try:
            size = os.fstat(self._file).st_size
            if size < len(MAGIC) or os.pread(self._file, len(MAGIC), 0) != MAGIC:
                # Of another version, or of nothing: sessions begin anew.
                os.ftruncate(self._file, 0)
                os.pwrite(self._file, MAGIC, 0)
            count = max(0, os.fstat(self._file).st_size - len(MAGIC)) // SLOT_OCTETS
            self._map = self._mapped(max(count, _GROWTH))
        except OSError:
            os.close(self._file)
            raise

    def _mapped(self, count: int) -> mmap.mmap:
        """Return the file with memory for this many slots. Raises OSError: it is full."""
        size = len(MAGIC) + count * SLOT_OCTETS
        os.posix_fallocate(self._file, 0, size)
        os.ftruncate(self._file, size)
        mapped = mmap.mmap(self._file, size)
        self._count = count
        return mapped

    def read(self) -> tuple[Saved, ...]:
        """Return the sessions of the process before, and take their slots over; called once."""
        saved = dict(self._read())
        self._slots = {state.key: slot for slot, state in saved.items()}
        self._free = [slot for slot in range(self._count) if slot not in saved]
        return tuple(saved.values())

    def _read(self) -> Iterator[tuple[int, Saved]]:
        for slot in range(self._count):
            offset = len(MAGIC) + slot * SLOT_OCTETS
            length, checksum, sequence = _HEADER.unpack_from(self._map, offset)
            start = offset + _HEADER.size
            octets = self._map[start : start + length]
            if not 0 < length <= SLOT_OCTETS - _HEADER.size or zlib.crc32(octets) != checksum:
                continue
            try:
                state = self._decode(octets)
            except msgspec.MsgspecError:
                continue
            yield slot, msgspec.structs.replace(state, transmit_sequence=sequence)

    def write(self, state: Saved) -> None:
        """Write the state of a session; a session that fits no slot begins anew in the next process."""
        octets = self._encode(state)
        if len(octets) > SLOT_OCTETS - _HEADER.size:
            # Of a device name that no kernel has: the session never comes Up.
            self.remove(state.key)
            return
        slot = self._slots.get(state.key)
        if slot is None:
            try:
                slot = self._slots[state.key] = self._free_slot()
            except OSError as error:
                self.error = error
                return
            self.error = None
        offset = len(MAGIC) + slot * SLOT_OCTETS
        _HEADER.pack_into(self._map, offset, 0, 0, state.transmit_sequence)
        start = offset + _HEADER.size
        self._map[start : start + len(octets)] = octets
        _HEADER.pack_into(
            self._map, offset, len(octets), zlib.crc32(octets), state.transmit_sequence
        )

    def write_sequence(self, key: SessionKey, sequence: int) -> None:
        """Write the next sequence number alone; no effect without a state of the session."""
        slot = self._slots.get(key)
        if slot is not None:
            offset = len(MAGIC) + slot * SLOT_OCTETS
            _SEQUENCE.pack_into(self._map, offset + _SEQUENCE_OFFSET, sequence)

    def remove(self, key: SessionKey) -> None:
        """Forget a session."""
        slot = self._slots.pop(key, None)
        if slot is not None:
            _HEADER.pack_into(self._map, len(MAGIC) + slot * SLOT_OCTETS, 0, 0, 0)
            self._free.append(slot)

    def _free_slot(self) -> int:
        if not self._free:
            before, small = self._count, self._map
            self._map = self._mapped(before + _GROWTH)
            small.close()
            self._free = list(range(before, self._count))
        return self._free.pop()

    def close(self) -> None:
        """Close the file, which keeps what it has."""
        self._map.close()
        os.close(self._file)
