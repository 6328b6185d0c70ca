"""Removes peers that cannot be configured. Pure."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable

from reconcilers.model import Peer, Problem


def configurable(peers: Iterable[Peer], problems: list[Problem]) -> list[Peer]:
    """Return the configurable peers; ``problems`` takes why others cannot be configured."""
    sessions: list[Peer] = []
    for peer in peers:
        invalid = _invalid_end(peer)
        if invalid is not None:
            names = (peer.instance, peer.name)
            text = f"peer {peer.name!r} is not configured: {invalid}"
            problems.append(Problem(peer.origins, "", text, names, "invalid", peer.dialect))
            continue
        sessions.append(peer)
    return sessions


def _invalid_end(row: Peer) -> str | None:
    """Return why a peer has no usable address, or None: the middle does not rely on dialects."""
    if row.address is None:
        return "it has neither an address nor an interface" if row.interface is None else None
    try:
        ipaddress.ip_address(row.address)
    except ValueError:
        return f"{row.address!r} is not an IP address"
    return None
