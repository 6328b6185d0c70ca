"""A filter of the kernel for a receiving socket: packets of strangers never reach the process.

Classic BPF (the kernel's Documentation/networking/filter.rst), attached with SO_ATTACH_FILTER. A packet
has to have a least TTL, which no router on the way leaves to a packet from afar, and the address of a
neighbor. Of packets with a lower TTL a sample is received, as it may be the neighbor's own. Addresses
are compared as words of 32 bits, IPv6 ones folded to one: the engine compares them in full. Where there
are more than the kernel takes (`MAX_INSTRUCTIONS`, or its net.core.optmem_max) the TTL alone is looked
at.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import ipaddress
import socket
import struct
from collections.abc import Iterable, Sequence
from typing import Final, TypeAlias

Instruction: TypeAlias = tuple[int, int, int, int]
"""Code, jumps if true and if false, operand."""

SO_ATTACH_FILTER: Final = 26
SO_DETACH_FILTER: Final = 27
MAX_INSTRUCTIONS: Final = 4096
"""BPF_MAXINSNS."""
_INSTRUCTION: Final = struct.Struct("=HBBI")
_PROGRAM: Final = struct.Struct("@HP")
_LOAD_WORD: Final = 0x20  # BPF_LD | BPF_W | BPF_ABS
_LOAD_OCTET: Final = 0x30  # BPF_LD | BPF_B | BPF_ABS
_TO_X: Final = 0x07  # BPF_MISC | BPF_TAX
_XOR_X: Final = 0xAC  # BPF_ALU | BPF_XOR | BPF_X
_AND: Final = 0x54  # BPF_ALU | BPF_AND | BPF_K
_JUMP: Final = 0x05  # BPF_JMP | BPF_JA
_JUMP_EQUAL: Final = 0x15  # BPF_JMP | BPF_JEQ | BPF_K
_JUMP_NOT_LESS: Final = 0x35  # BPF_JMP | BPF_JGE | BPF_K
_RETURN: Final = 0x06  # BPF_RET | BPF_K
_NETWORK_HEADER: Final = 0x1_0000_0000 - 0x100000
"""SKF_NET_OFF: offsets of the IP header, whatever the socket's own position is."""
_RANDOM: Final = 0x1_0000_0000 - 0x1000 + 56
"""SKF_AD_OFF + SKF_AD_RANDOM: a random word."""
SAMPLE: Final = 64
"""Of so many packets of neighbors with a low TTL one is received, for the engine to count."""
_WORD: Final = 4
_SOURCE: Final[dict[int, tuple[int, int]]] = {socket.AF_INET: (12, 1), socket.AF_INET6: (8, 4)}
"""Of the source address in the header: offset and words."""
_TTL: Final[dict[int, int]] = {socket.AF_INET: 8, socket.AF_INET6: 7}
_LEAF: Final = 64
"""Words that are compared one by one; more are halved."""
_DROP: Final[Instruction] = (_RETURN, 0, 0, 0)
_TAKE: Final[Instruction] = (_RETURN, 0, 0, 0xFFFF)


def program(family: int, addresses: Iterable[str], least_ttl: int = 0) -> bytes | None:
    """Return instructions that accept packets from these addresses, with at least this TTL.

    None: they are too many. A zone of a link-local address is not compared.
    """
    words = sorted({_folded(text) for text in addresses})
    instructions = (
        [_DROP] if not words else [*_ttl(family, least_ttl), *_load(family), *_any(words)]
    )
    return None if len(instructions) > MAX_INSTRUCTIONS else assembled(instructions)


def _folded(address: str) -> int:
    """Return an address as one word, as `_load` leaves it."""
    packed = ipaddress.ip_address(address.partition("%")[0]).packed
    folded = 0
    for index in range(0, len(packed), _WORD):
        folded ^= int.from_bytes(packed[index : index + _WORD])
    return folded


def _ttl(family: int, least: int) -> list[Instruction]:
    """Return instructions that drop packets with a lower TTL or hop limit, but for a sample."""
    return [
        (_LOAD_OCTET, 0, 0, _NETWORK_HEADER + _TTL[family]),
        (_JUMP_NOT_LESS, 4, 0, least),
        (_LOAD_WORD, 0, 0, _RANDOM),
        (_AND, 0, 0, SAMPLE - 1),
        (_JUMP_EQUAL, 1, 0, 0),
        _DROP,
    ]


def _load(family: int) -> list[Instruction]:
    """Return instructions that load the source address as one word."""
    offset, words = _SOURCE[family]
    loads = [(_LOAD_WORD, 0, 0, _NETWORK_HEADER + offset + _WORD * i) for i in range(words)]
    instructions: list[Instruction] = loads[:1]
    for load in loads[1:]:
        instructions += [(_TO_X, 0, 0, 0), load, (_XOR_X, 0, 0, 0)]
    return instructions


def _any(words: Sequence[int]) -> list[Instruction]:
    """Return instructions that accept these words, which are in order, and nothing else."""
    if len(words) > _LEAF:
        middle = len(words) // 2
        lower, upper = _any(words[:middle]), _any(words[middle:])
        choice = [(_JUMP_NOT_LESS, 0, 1, words[middle]), (_JUMP, 0, 0, len(lower))]
        return [*choice, *lower, *upper]
    compared = [(_JUMP_EQUAL, len(words) - i, 0, word) for i, word in enumerate(words)]
    return [*compared, _DROP, _TAKE]


def attach(sock: socket.socket, addresses: Iterable[str], least_ttl: int = 0) -> None:
    """Let a socket receive packets from these addresses, with at least this TTL.

    The filter before is replaced. Raises OSError.
    """
    octets = program(sock.family, addresses, least_ttl)
    ttl_alone = assembled([*_ttl(sock.family, least_ttl), _TAKE])
    for attempt in (octets, ttl_alone):
        if attempt is not None:
            try:
                attach_program(sock, attempt)
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


def assembled(instructions: Iterable[Instruction]) -> bytes:
    """Return a program of instructions."""
    return b"".join(_INSTRUCTION.pack(*instruction) for instruction in instructions)
