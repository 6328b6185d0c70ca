"""A filter of the kernel for a receiving socket: packets of strangers never reach the process.

Classic BPF (the kernel's Documentation/networking/filter.rst), attached with SO_ATTACH_FILTER. Source
addresses are compared one by one; where there are more than the kernel takes (`MAX_INSTRUCTIONS`, or
its net.core.optmem_max), nothing is filtered, and the engine discards what belongs to no session.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import ipaddress
import socket
import struct
from collections.abc import Iterable, Iterator
from typing import Final

SO_ATTACH_FILTER: Final = 26
SO_DETACH_FILTER: Final = 27
MAX_INSTRUCTIONS: Final = 4096
"""BPF_MAXINSNS."""
_INSTRUCTION: Final = struct.Struct("=HBBI")
_PROGRAM: Final = struct.Struct("@HP")
_LOAD_WORD: Final = 0x20  # BPF_LD | BPF_W | BPF_ABS
_JUMP_EQUAL: Final = 0x15  # BPF_JMP | BPF_JEQ | BPF_K
_RETURN: Final = 0x06  # BPF_RET | BPF_K
_NETWORK_HEADER: Final = 0x1_0000_0000 - 0x100000
"""SKF_NET_OFF: offsets of the IP header, whatever the socket's own position is."""
_WORD: Final = 4
_SOURCE_OFFSETS: Final = {4: 12, 16: 8}
"""By the octets of an address."""
_FARTHEST_JUMP: Final = 255
_WHOLE: Final = 0xFFFF


def program(addresses: Iterable[str]) -> bytes | None:
    """Return instructions that accept packets from these addresses only, or None if they are too many.

    All addresses are of one family; a zone of a link-local one is not compared.
    """
    parsed = sorted({ipaddress.ip_address(text.partition("%")[0]).packed for text in addresses})
    instructions: list[tuple[int, int, int, int]] = []
    if parsed and len(parsed[0]) == _WORD:
        instructions += _single_words([int.from_bytes(packed) for packed in parsed])
    else:
        for packed in parsed:
            instructions += _words(packed)
    instructions.append((_RETURN, 0, 0, 0))
    if len(instructions) > MAX_INSTRUCTIONS:
        return None
    return assembled(instructions)


def _single_words(words: list[int]) -> Iterator[tuple[int, int, int, int]]:
    """Yield instructions for IPv4: one for each address."""
    yield _LOAD_WORD, 0, 0, _NETWORK_HEADER + _SOURCE_OFFSETS[_WORD]
    for first in range(0, len(words), _FARTHEST_JUMP):
        some = words[first : first + _FARTHEST_JUMP]
        for index, word in enumerate(some, 1):
            behind = len(some) - index
            yield _JUMP_EQUAL, behind, 0 if behind else 1, word
        yield _RETURN, 0, 0, _WHOLE


def _words(packed: bytes) -> Iterator[tuple[int, int, int, int]]:
    """Yield instructions for one IPv6 address."""
    words = [int.from_bytes(packed[i : i + _WORD]) for i in range(0, len(packed), _WORD)]
    for index, word in enumerate(words):
        # Of the instructions of this address, two for each word that follows and the return.
        behind = 2 * (len(words) - index - 1) + 1
        yield _LOAD_WORD, 0, 0, _NETWORK_HEADER + _SOURCE_OFFSETS[len(packed)] + _WORD * index
        yield _JUMP_EQUAL, 0, behind, word
    yield _RETURN, 0, 0, _WHOLE


def attach(sock: socket.socket, addresses: Iterable[str]) -> None:
    """Let a socket receive packets from these addresses only; the filter before is replaced."""
    octets = program(addresses)
    if octets is not None:
        try:
            attach_program(sock, octets)
        except OSError as error:
            # More than the kernel's limit for one socket: 20 kB before Linux 6.7.
            if error.errno != errno.ENOMEM:
                raise
        else:
            return
    with contextlib.suppress(FileNotFoundError):  # there was none
        sock.setsockopt(socket.SOL_SOCKET, SO_DETACH_FILTER, 0)


def attach_program(sock: socket.socket, octets: bytes) -> None:
    """Let a socket receive what a program of BPF accepts."""
    buffer = ctypes.create_string_buffer(octets)
    count = len(octets) // _INSTRUCTION.size
    sock.setsockopt(
        socket.SOL_SOCKET, SO_ATTACH_FILTER, _PROGRAM.pack(count, ctypes.addressof(buffer))
    )


def assembled(instructions: Iterable[tuple[int, int, int, int]]) -> bytes:
    """Return a program of instructions: code, jumps if true and if false, operand."""
    return b"".join(_INSTRUCTION.pack(*instruction) for instruction in instructions)
