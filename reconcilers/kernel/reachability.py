"""The addresses that a node depends on, which have to be reached after routes were installed. Pure."""

from __future__ import annotations

import bisect
import ipaddress
import urllib.parse
from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

MAX_NODES: Final = 8
"""Other nodes that are tried: the next ones by address, so that all nodes together try all."""
KUBELET, DNS = 10250, 53
"""TCP ports. A host that refuses the connection is reached, too."""


class Target(NamedTuple):
    """One address."""

    name: str
    """The target's name, for people."""
    address: str
    port: int

    def __str__(self) -> str:
        """Spell it for people."""
        return f"{self.name} {self.address}"


def targets(
    api_server: str, nodes: Iterable[str], own: Iterable[str], resolv_conf: str
) -> tuple[Target, ...]:
    """Return the addresses that a node depends on, whose reachability is checked.

    ``api_server``: its URL, or an empty text; ``nodes``: addresses of all nodes, or prefixes, as text;
    ``own``: addresses of this node; ``resolv_conf``: the text of the file with the DNS servers.
    """
    mine = set(_addresses(own))
    others = sorted(set(_addresses(nodes)) - mine)
    first = bisect.bisect(others, min(mine)) if mine else 0
    chosen = (others[first:] + others[:first])[:MAX_NODES]
    targets = list(_api_server(api_server))
    targets += (
        Target("the node", str(ipaddress.ip_address(octets)), KUBELET) for _, octets in chosen
    )
    targets += (Target("the DNS server", text, DNS) for text in _name_servers(resolv_conf))
    return tuple(dict.fromkeys(targets))


def _api_server(url: str) -> Iterator[Target]:
    try:
        parts = urllib.parse.urlsplit(url)
        port = parts.port or 443
    except ValueError:
        return
    if parts.hostname:
        yield Target("the API server", parts.hostname, port)


def _addresses(texts: Iterable[str]) -> Iterator[tuple[int, bytes]]:
    """Yield version and octets of addresses, and of prefixes with one address, among texts."""
    for text in texts:
        try:
            network = ipaddress.ip_network(text)
        except ValueError:
            continue
        if network.num_addresses == 1:
            yield network.version, network.network_address.packed


def _name_servers(text: str) -> Iterator[str]:
    """Yield the servers that are not on this host."""
    for line in text.splitlines():
        words = line.split()
        if len(words) > 1 and words[0] == "nameserver":
            for _, octets in _addresses([words[1]]):
                address = ipaddress.ip_address(octets)
                if not address.is_loopback and not address.is_link_local:
                    yield str(address)
