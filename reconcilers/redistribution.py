"""Routes that another program installs in the kernel, and that an instance originates. Pure.

Default deny: a route is originated if a redistribution names its table and protocol, and permits its
prefix. Received routes are never redistributed: their AS paths would be lost, and peers would get their
own routes back.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

from reconcilers.model import PrefixRule
from reconcilers.prefixes import covers
from resources.host import BGP_PROTOCOL, KernelRoute, KernelTable
from speaker.nlri import IPV4_UNICAST, Family, prefix_to_wire

KERNEL_ROUTE: Final = "KernelRoute"
"""The type of such a prefix, in origins and explanations."""


class Redistribution(NamedTuple):
    """The permitted routes of a table of the kernel."""

    table: KernelTable
    permitted: tuple[PrefixRule, ...]

    def __str__(self) -> str:
        """Return it for people, in the words of FRR's command."""
        rules = ", ".join(map(str, self.permitted))
        return f"redistribute table-direct {str(self.table).removeprefix('table ')}: {rules}"

    def permits(self, family: Family, nlri: bytes) -> bool:
        """Return whether this redistribution permits a prefix, if the kernel has such a route."""
        return is_permitted(self.permitted, family, nlri)

    def prefixes(self, routes: Iterable[KernelRoute]) -> Iterator[tuple[Family, bytes]]:
        """Yield the prefixes of the kernel's routes that are redistributed."""
        for route in routes:
            if not self.table.has(route) or route.protocol == BGP_PROTOCOL:
                continue
            family, nlri = prefix_to_wire(route.prefix)
            if self.permits(family, nlri) and _is_routed(route.prefix):
                yield family, nlri


def _is_routed(prefix: str) -> bool:
    """Return whether addresses of a prefix are routed beyond a host or link, and unicast."""
    network = ipaddress.ip_network(prefix)
    return not (network.is_loopback or network.is_link_local or network.is_multicast)


def is_permitted(rules: Iterable[PrefixRule], family: Family, nlri: bytes) -> bool:
    """Return whether a rule of a redistribution permits a prefix."""
    for rule in rules:
        of, prefix = prefix_to_wire(rule.prefix)
        if of != family or not covers(prefix, nlri):
            continue
        shortest = prefix[0] if rule.ge is None else rule.ge
        longest = rule.le
        if longest is None:
            bits = 32 if family == IPV4_UNICAST else 128
            longest = prefix[0] if rule.ge is None else bits
        if shortest <= nlri[0] <= longest:
            return True
    return False
