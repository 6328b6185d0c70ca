"""Parses BGP communities in the notation of Cilium's API.

Standard ones (RFC 1997) are a 32-bit number or ``16:16``, large ones (RFC 8092) three 32-bit numbers,
well-known ones have names.
"""

from __future__ import annotations

from resources.decimal_numbers import decimal_number
from resources.errors import as_written, shortened

WELL_KNOWN = {
    "internet": 0x00000000,
    "planned-shut": 0xFFFF0000,
    "accept-own": 0xFFFF0001,
    "route-filter-translated-v4": 0xFFFF0002,
    "route-filter-v4": 0xFFFF0003,
    "route-filter-translated-v6": 0xFFFF0004,
    "route-filter-v6": 0xFFFF0005,
    "llgr-stale": 0xFFFF0006,
    "no-llgr": 0xFFFF0007,
    "blackhole": 0xFFFF029A,
    "no-export": 0xFFFFFF01,
    "no-advertise": 0xFFFFFF02,
    "no-export-subconfed": 0xFFFFFF03,
    "no-peer": 0xFFFFFF04,
}


def _number(text: str, bits: int) -> int:
    if not (text.isascii() and text.isdigit()) or (len(text) > 1 and text[0] == "0"):
        raise ValueError(f"{shortened(text)} is not a number")
    value = decimal_number(text, (1 << bits) - 1)
    if value is None:
        raise ValueError(f"{as_written(text)} does not fit {bits} bits")
    return value


def standard(text: str) -> int:
    """Return a standard community in Cilium's notation as a number. Raises `ValueError`."""
    if ":" not in text:
        return _number(text, 32)
    high, _, low = text.partition(":")
    return _number(high, 16) << 16 | _number(low, 16)


def large(text: str) -> tuple[int, int, int]:
    """Return a large community in Cilium's notation as three numbers. Raises `ValueError`."""
    parts = text.split(":")
    if len(parts) != 3:
        raise ValueError(f"{shortened(text)} is not three numbers with colons between them")
    first, second, third = (_number(part, 32) for part in parts)
    return (first, second, third)
