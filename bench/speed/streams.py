"""UPDATEs as files, made before anything is measured.

Prefixes are numbers where they are /32: the tester counts them in ranges. Everything is the same in
every run: chance is seeded.
"""

from __future__ import annotations

import ipaddress
import random
import struct
from collections.abc import Iterator, Sequence
from pathlib import Path

MARKER = b"\xff" * 16
LIMIT = 4096
FIRST_PREFIX = int(ipaddress.IPv4Address("100.64.0.0"))
"""Where the /32 prefixes of all scenarios begin."""
PING_PREFIX = int(ipaddress.IPv4Address("203.0.113.7"))
FLOOD_PREFIX = int(ipaddress.IPv4Address("198.18.0.0"))

TABLE_PREFIXES = 1_000_000
TABLE_SETS = 60_000
# Shares of prefix lengths, about as in the Internet's table.
_LENGTHS = {24: 60, 23: 10, 22: 12, 21: 5, 20: 5, 19: 3, 18: 2, 17: 1, 16: 2}


def update(withdrawn: bytes, attributes: bytes, nlri: bytes) -> bytes:
    """Return one message."""
    body = b"".join(
        (
            struct.pack("!H", len(withdrawn)), withdrawn,
            struct.pack("!H", len(attributes)), attributes, nlri,
        )
    )  # fmt: skip
    return MARKER + struct.pack("!HB", 19 + len(body), 2) + body


def attributes(
    path: Sequence[int],
    next_hop: str,
    *,
    med: int | None = None,
    communities: Sequence[int] = (),
    origin: int = 0,
) -> bytes:
    """Return path attributes for a session with four-octet AS numbers."""
    parts = [
        bytes((0x40, 1, 1, origin)),
        bytes((0x40, 2, 2 + 4 * len(path), 2, len(path))) + struct.pack(f"!{len(path)}I", *path),
        bytes((0x40, 3, 4)) + ipaddress.IPv4Address(next_hop).packed,
    ]
    if med is not None:
        parts.append(bytes((0x80, 4, 4)) + struct.pack("!I", med))
    if communities:
        packed = struct.pack(f"!{len(communities)}I", *communities)
        parts.append(bytes((0xC0, 8, len(packed))) + packed)
    return b"".join(parts)


def host_nlri(first: int, count: int) -> list[bytes]:
    """Return consecutive /32 prefixes."""
    return [b"\x20" + struct.pack("!I", first + index) for index in range(count)]


def messages(attribute_field: bytes, nlri: Sequence[bytes], *, withdraw: bool = False) -> bytes:
    """Pack prefixes into as few messages as possible."""
    messages = []
    room = LIMIT - 23 - len(attribute_field)
    field: list[bytes] = []
    size = 0
    for prefix in (*nlri, None):
        if prefix is None or size + len(prefix) > room:
            octets = b"".join(field)
            messages.append(update(octets, b"", b"") if withdraw else
                            update(b"", attribute_field, octets))  # fmt: skip
            field, size = [], 0
        if prefix is not None:
            field.append(prefix)
            size += len(prefix)
    return b"".join(messages)


def hosts(path: Path, asn: int, next_hop: str, first: int, count: int) -> Path:
    """Write an announcement of consecutive /32 prefixes with one attribute set."""
    path.write_bytes(messages(attributes([asn], next_hop), host_nlri(first, count)))
    return path


def flood(path: Path, asn: int, next_hop: str, count: int) -> Path:
    """Write four changes of the same prefixes: two attribute sets, and a withdrawal."""
    nlri = host_nlri(FLOOD_PREFIX, count)
    path.write_bytes(
        messages(attributes([asn], next_hop), nlri)
        + messages(attributes([asn, asn], next_hop, med=10), nlri)
        + messages(attributes([asn], next_hop, med=5), nlri)
        + messages(b"", nlri, withdraw=True)
    )
    return path


def _table_nlri(rng: random.Random, count: int) -> list[bytes]:
    lengths = rng.choices(list(_LENGTHS), list(_LENGTHS.values()), k=count)
    prefixes: set[bytes] = set()
    for length in lengths:
        while True:
            # 1.0.0.0 to 223.255.255.255, without 10 and 127.
            first = rng.randrange(1, 224)
            if first in (10, 127):
                continue
            address = (first << 24 | rng.getrandbits(24)) >> (32 - length) << (32 - length)
            wire = bytes((length,)) + struct.pack("!I", address)[: (length + 7) // 8]
            if wire not in prefixes:
                prefixes.add(wire)
                break
    ordered = sorted(prefixes)
    rng.shuffle(ordered)
    return ordered


def _table_sets(rng: random.Random, asn: int, next_hop: str, count: int) -> Iterator[bytes]:
    seen: set[bytes] = set()
    while len(seen) < count:
        path = [asn, *(rng.randrange(1000, 400_000) for _ in range(rng.randint(1, 6)))]
        wire = attributes(
            path,
            next_hop,
            med=rng.randrange(1000) if rng.random() < 0.2 else None,
            communities=[rng.getrandbits(32) & 0xFFFEFFFF for _ in range(rng.choice((0, 0, 2, 4)))],
            origin=0 if rng.random() < 0.9 else 2,
        )
        if wire not in seen:
            seen.add(wire)
            yield wire


def table(
    path: Path, asn: int, next_hop: str, prefixes: int = TABLE_PREFIXES, sets: int = TABLE_SETS
) -> Path:
    """Write a table like the Internet's: mixed lengths, few prefixes for most attribute sets."""
    rng = random.Random(7)  # noqa: S311  the same table each time
    nlri = _table_nlri(rng, prefixes)
    # Each set has one prefix; the others are dealt out unevenly.
    sizes = [1] * sets
    for index in rng.choices(
        range(sets), [1 / (1 + i % 97) for i in range(sets)], k=prefixes - sets
    ):
        sizes[index] += 1
    parts = []
    start = 0
    for size, wire in zip(sizes, _table_sets(rng, asn, next_hop, sets), strict=True):
        parts.append(messages(wire, nlri[start : start + size]))
        start += size
    path.write_bytes(b"".join(parts))
    return path
