"""A filter of the kernel for a receiving socket: packets of strangers never reach the process.

Classic BPF (the kernel's Documentation/networking/filter.rst), attached with SO_ATTACH_FILTER. Source
addresses are compared one by one; with more than `MAX_INSTRUCTIONS` of them nothing is filtered, and
the engine discards what belongs to no session.
"""

from __future__ import annotations

import ctypes
import ipaddress
import socket
import struct
from collections.abc import Iterable
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
_SOURCE_OFFSETS: Final = {4: 12, 6: 8}
_WHOLE: Final = 0xFFFF


def program(addresses: Iterable[str]) -> bytes | None:
    """Return instructions that accept packets from these addresses only, or None if they are too many.

    All addresses are of one family; a zone of a link-local one is not compared.
    """
    instructions: list[tuple[int, int, int, int]] = []
    for text in sorted(set(addresses)):
        address = ipaddress.ip_address(text.partition("%")[0])
        packed, offset = address.packed, _SOURCE_OFFSETS[address.version]
        words = [int.from_bytes(packed[i : i + 4]) for i in range(0, len(packed), 4)]
        for index, word in enumerate(words):
            # Of the instructions of this address, two for each word that follows and the return.
            behind = 2 * (len(words) - index - 1) + 1
            instructions.append((_LOAD_WORD, 0, 0, _NETWORK_HEADER + offset + 4 * index))
            instructions.append((_JUMP_EQUAL, 0, behind, word))
        instructions.append((_RETURN, 0, 0, _WHOLE))
    instructions.append((_RETURN, 0, 0, 0))
    if len(instructions) > MAX_INSTRUCTIONS:
        return None
    return assembled(instructions)


def attach(sock: socket.socket, addresses: Iterable[str]) -> None:
    """Let a socket receive packets from these addresses only; the filter before is replaced."""
    octets = program(addresses)
    if octets is None:
        sock.setsockopt(socket.SOL_SOCKET, SO_DETACH_FILTER, 0)
        return
    attach_program(sock, octets)


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
