"""Prefixes as wire bytes: a length octet and the significant octets (RFC 4271 section 4.3). Pure."""

from __future__ import annotations

import socket
from collections.abc import Iterable, Iterator, Mapping

import msgspec

from speaker.nlri import (
    IPV4_UNICAST,
    IPV6_UNICAST,
    Family,
    aggregate,
    prefix_to_text,
    prefix_to_wire,
)

__all__ = ["PrefixSet", "aggregate", "covered", "covers", "host_route"]


def host_route(text: str) -> tuple[Family, bytes]:
    """Return the host route of an address that was validated."""
    if ":" in text:
        return IPV6_UNICAST, b"\x80" + socket.inet_pton(socket.AF_INET6, text)
    return IPV4_UNICAST, b"\x20" + socket.inet_pton(socket.AF_INET, text)


def covers(prefix: bytes, nlri: bytes) -> bool:
    """True if ``nlri`` is ``prefix`` or more specific; both are of one family."""
    return nlri[0] >= prefix[0] and aggregate(nlri, prefix[0]) == prefix


def covered(nlri: bytes, prefixes: Iterable[bytes]) -> bool:
    """True if a prefix is within one of several."""
    return any(covers(prefix, nlri) for prefix in prefixes)


class PrefixSet(msgspec.Struct, frozen=True):
    """Prefixes of both families; a lookup costs as many steps as there are lengths."""

    prefixes: Mapping[Family, frozenset[bytes]] = {}
    lengths: Mapping[Family, tuple[int, ...]] = {}
    """The lengths of the prefixes of each family, the longest first."""

    @classmethod
    def of(cls, texts: Iterable[str]) -> PrefixSet:
        """Return the set of prefixes and addresses given as text; what is neither is left out."""
        return cls.of_wire(_readable(texts))

    @classmethod
    def of_wire(cls, prefixes: Iterable[tuple[Family, bytes]]) -> PrefixSet:
        """Return the set of prefixes given by family and wire bytes."""
        found: dict[Family, set[bytes]] = {}
        for family, nlri in prefixes:
            found.setdefault(family, set()).add(nlri)
        lengths = {
            family: tuple(sorted({nlri[0] for nlri in of_family}, reverse=True))
            for family, of_family in found.items()
        }
        return cls({family: frozenset(one) for family, one in found.items()}, lengths)

    def __bool__(self) -> bool:
        """True if there is a prefix."""
        return bool(self.prefixes)

    def __iter__(self) -> Iterator[tuple[Family, bytes]]:
        """Iterate over the prefixes with their families, in no order."""
        return ((family, nlri) for family, found in self.prefixes.items() for nlri in found)

    def match(self, family: Family, nlri: bytes) -> bytes | None:
        """Return the longest prefix that covers ``nlri``, or None."""
        found = self.prefixes.get(family)
        for length in self.lengths[family] if found else ():
            if found and length <= nlri[0] and (prefix := aggregate(nlri, length)) in found:
                return prefix
        return None

    def covers(self, family: Family, nlri: bytes) -> bool:
        """True if a prefix of the set is ``nlri``, or contains it."""
        return self.match(family, nlri) is not None

    def difference(self, other: PrefixSet) -> PrefixSet:
        """Return the prefixes that one of the two sets has, and the other one has not."""
        if self == other:
            return PrefixSet()
        return PrefixSet.of_wire(set(self) ^ set(other))

    def texts(self) -> list[str]:
        """Return the prefixes as text, IPv4 first, in order of their addresses."""
        ordered = sorted(self, key=lambda one: (one[0], one[1][1:], one[1][0]))
        return [prefix_to_text(family, nlri) for family, nlri in ordered]


def _readable(texts: Iterable[str]) -> Iterator[tuple[Family, bytes]]:
    for text in texts:
        try:
            yield prefix_to_wire(text) if "/" in text else host_route(text)
        except (OSError, ValueError):
            continue
