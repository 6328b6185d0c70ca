"""Rejects intent that cannot be applied, and reports what is not done yet. Pure."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable

from reconcilers.model import Instance, Peer, Problem


def supported(
    instances: Iterable[Instance], peers: Iterable[Peer], problems: list[Problem]
) -> list[Peer]:
    """Return the peers that can be configured; ``problems`` takes what is left out, with the reason."""
    for row in instances:
        if row.imports:
            objects = () if row.origin is None else (row.origin,)
            text = (
                f"instance {row.name!r} takes no received routes of {row.imports[0].instance!r}: "
            )
            text += "imports between instances are not supported"
            problems.append(Problem(objects, "", text, (), "unsupported", row.dialect))
    kept: list[Peer] = []
    for peer in peers:
        invalid = _invalid_end(peer)
        if invalid is not None:
            names = (peer.instance, peer.name)
            text = f"peer {peer.name!r} is left out: {invalid}"
            problems.append(Problem(peer.origins, "", text, names, "invalid", peer.dialect))
            continue
        kept.append(peer)
        if peer.bfd is not None:
            text = f"peer {peer.name!r} has a session without BFD, which is not supported"
            problems.append(Problem(peer.origins, "", text, (), "unsupported", peer.dialect))
    return kept


def _invalid_end(row: Peer) -> str | None:
    """Return why a peer has no usable address, or None: the middle does not rely on dialects."""
    if row.address is None:
        return "it has neither an address nor an interface" if row.interface is None else None
    try:
        ipaddress.ip_address(row.address)
    except ValueError:
        return f"{row.address!r} is not an IP address"
    return None
