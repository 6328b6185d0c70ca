"""Sets of addresses of both families, as ranges: a look-up is a binary search. Pure.

The addresses of 5,000 nodes are looked up for each address of each Service, and compared when one of
them changes.
"""

from __future__ import annotations

import socket
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple, TypeAlias

import msgspec

from reconcilers.sliced_work import Slices, finish
from resources.addresses import without_leading_zeros
from resources.decimal_numbers import decimal_number
from speaker.nlri import IPV4_UNICAST, Family

SLICE_TEXTS: Final = 2000
"""Texts that are parsed in one slice: some milliseconds."""

Range: TypeAlias = tuple[int, int]
"""The first and the last address."""


class _Ranges(NamedTuple):
    """Ranges of one family, in order; no two of them touch."""

    first: tuple[int, ...] = ()
    last: tuple[int, ...] = ()


_EMPTY: Final = _Ranges()


class AddressSet(msgspec.Struct, frozen=True):
    """Addresses of both families."""

    ipv4: _Ranges = _EMPTY
    ipv6: _Ranges = _EMPTY

    @classmethod
    def of(cls, texts: Iterable[str]) -> AddressSet:
        """Return the set of addresses, prefixes and ranges (``A-B``); other texts are ignored."""
        return finish(cls.gather(texts))

    @classmethod
    def gather(cls, texts: Iterable[str]) -> Slices[AddressSet]:
        """Return the address set of such texts, parsed in slices."""
        ranges: dict[int, list[Range]] = {4: [], 6: []}
        for number, text in enumerate(texts, 1):
            parsed = _parse(text)
            if parsed is not None:
                ranges[6 if ":" in text else 4].append(parsed)
            if not number % SLICE_TEXTS:
                yield
        # Most have addresses of one family.
        return cls(
            _joined(ranges[4]) if ranges[4] else _EMPTY, _joined(ranges[6]) if ranges[6] else _EMPTY
        )

    def __bool__(self) -> bool:
        """True if there is an address."""
        return bool(self.ipv4.first or self.ipv6.first)

    def covers(self, family: Family, nlri: bytes) -> bool:
        """True if the address of a host route is in this address set."""
        ranges = self.ipv4 if family == IPV4_UNICAST else self.ipv6
        if not ranges.first:
            return False
        value = int.from_bytes(nlri[1:], "big")
        at = bisect_right(ranges.first, value) - 1
        return at >= 0 and value <= ranges.last[at]

    def text_of(self, family: Family, nlri: bytes) -> str:
        """Return the range of this set with the address of a host route, which is in it, as text."""
        ranges, bits = (self.ipv4, 32) if family == IPV4_UNICAST else (self.ipv6, 128)
        at = bisect_right(ranges.first, int.from_bytes(nlri[1:], "big")) - 1
        return _text(ranges.first[at], ranges.last[at], bits)

    def texts(self) -> Iterator[str]:
        """Yield the ranges of this address set as text: an address, a prefix, or ``A-B``."""
        for ranges, bits in ((self.ipv4, 32), (self.ipv6, 128)):
            for first, last in zip(*ranges, strict=True):
                yield _text(first, last, bits)

    def host_routes(self, at_most: int) -> set[bytes] | None:
        """Return the addresses of this set as host routes; None if they are more than a number."""
        size = 0
        routes: set[bytes] = set()
        for ranges, bits in ((self.ipv4, 32), (self.ipv6, 128)):
            for first, last in zip(*ranges, strict=True):
                size += last - first + 1
                if size > at_most:
                    return None
                octets = (number.to_bytes(bits // 8, "big") for number in range(first, last + 1))
                routes.update(bytes((bits,)) + address for address in octets)
        return routes

    def union(self, *others: AddressSet) -> AddressSet:
        """Return one address set with the addresses of all sets."""
        given = [addresses for addresses in (self, *others) if addresses]
        if len(given) < 2:
            return given[0] if given else self
        return AddressSet(
            _joined([pair for addresses in given for pair in zip(*addresses.ipv4, strict=True)]),
            _joined([pair for addresses in given for pair in zip(*addresses.ipv6, strict=True)]),
        )

    def difference(self, other: AddressSet) -> AddressSet:
        """Return the ranges by which two address sets differ."""
        if self == other:
            return AddressSet()
        return AddressSet(
            _joined(set(zip(*self.ipv4, strict=True)) ^ set(zip(*other.ipv4, strict=True))),
            _joined(set(zip(*self.ipv6, strict=True)) ^ set(zip(*other.ipv6, strict=True))),
        )


def _joined(ranges: Iterable[Range]) -> _Ranges:
    """Sort ranges, and join ranges that overlap or touch."""
    first: list[int] = []
    last: list[int] = []
    for start, end in sorted(ranges):
        if last and start <= last[-1] + 1:
            last[-1] = max(last[-1], end)
        else:
            first.append(start)
            last.append(end)
    return _Ranges(tuple(first), tuple(last))


def _parse(text: str) -> Range | None:
    """Return the range of an address, a prefix or a range; None for other texts, such as a host name.

    Kubernetes reads addresses with leading zeros as decimal, and ignores the host bits of a prefix.
    """
    family, bits = (socket.AF_INET6, 128) if ":" in text else (socket.AF_INET, 32)
    address, slash, length = text.partition("/")
    start, dash, end = address.partition("-")
    try:
        first = _number(family, start)
        last = _number(family, end) if dash else first
    except (OSError, ValueError):
        return None
    if not slash:
        return (first, last) if first <= last else None
    number = decimal_number(length, bits)
    if dash or number is None:
        return None
    hosts = (1 << (bits - number)) - 1
    return first & ~hosts, first | hosts


def _number(family: int, text: str) -> int:
    try:
        octets = socket.inet_pton(family, text)
    except OSError:
        octets = socket.inet_pton(family, without_leading_zeros(text))
    return int.from_bytes(octets, "big")


def _text(first: int, last: int, bits: int) -> str:
    family = socket.AF_INET if bits == 32 else socket.AF_INET6
    start = socket.inet_ntop(family, first.to_bytes(bits // 8, "big"))
    size = last - first + 1
    if size == 1:
        return start
    if not size & (size - 1) and not first % size:
        return f"{start}/{bits - size.bit_length() + 1}"
    return f"{start}-{socket.inet_ntop(family, last.to_bytes(bits // 8, 'big'))}"
