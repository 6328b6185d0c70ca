"""The prefixes that a question about routes selects: one, or the longest match of an address."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from speaker.api.status import RouteView
from speaker.nlri import Family, covering_prefixes, prefix_to_wire


class PrefixFilter(NamedTuple):
    """The prefixes of one family to look up, in their order; the first with a route matches."""

    family: Family
    prefixes: Sequence[bytes]
    """In wire form."""

    def first_match(self, slices: Iterable[Sequence[RouteView]]) -> Iterator[Sequence[RouteView]]:
        """Yield the routes of the first prefix that has any; ``slices`` are ordered by prefix."""
        first: str | None = None
        for routes in slices:
            if first is None and routes:
                first = routes[0].prefix
            matching = [route for route in routes if route.prefix == first]
            yield matching
            if len(matching) < len(routes):
                return


def parse_prefix(text: str) -> PrefixFilter:
    """Parse a prefix (``10.0.0.0/24``, host bits are cleared) or an address (``10.0.0.1``).

    An address matches the longest prefix that contains it, as in forwarding (RFC 4632 section 5.1).
    Raises ValueError naming the text.
    """
    try:
        network = ipaddress.ip_network(text, strict=False)
    except ValueError:
        raise ValueError(f"{text!r} is neither a prefix nor an address") from None
    family, nlri = prefix_to_wire(str(network))
    return PrefixFilter(family, [nlri] if "/" in text else covering_prefixes(nlri))
