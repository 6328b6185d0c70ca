"""Removes peers that cannot be configured, and reports fields that are not implemented yet. Pure."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable

from reconcilers.model import Peer, Problem


def supported(peers: Iterable[Peer], problems: list[Problem]) -> list[Peer]:
    """Return the peers that can be configured; ``problems`` takes why others are not configured."""
    sessions: list[Peer] = []
    for peer in peers:
        invalid = _invalid_end(peer)
        if invalid is not None:
            names = (peer.instance, peer.name)
            text = f"peer {peer.name!r} is not configured: {invalid}"
            problems.append(Problem(peer.origins, "", text, names, "invalid", peer.dialect))
            continue
        sessions.append(peer)
        if peer.bfd is not None:
            text = f"peer {peer.name!r} has a session without BFD, which is not supported"
            field = peer.bfd_field
            problems.append(Problem(peer.origins, field, text, (), "unsupported", peer.dialect))
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
