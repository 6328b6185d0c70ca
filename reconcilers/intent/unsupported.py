"""Rejects intent that cannot be applied, and reports what is not done yet. Pure."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Iterator

from reconcilers.model import Instance, Peer, Problem


def supported(
    instances: Iterable[Instance], peers: Iterable[Peer], problems: list[Problem]
) -> tuple[list[Instance], list[Peer]]:
    """Return the instances and peers that can be configured; ``problems`` takes the others' reasons.

    The peers of an instance that is left out are left out with it.
    """
    kept: list[Instance] = []
    missing: set[tuple[str, str]] = set()
    for row in instances:
        reason = next(_of_instance(row), None)
        if reason is None:
            kept.append(row)
            continue
        missing.add((row.dialect, row.name))
        objects = () if row.origin is None else (row.origin,)
        text = f"instance {row.name!r} is left out: {reason} is not supported"
        problems.append(Problem(objects, "", text, (row.name,), "unsupported", row.dialect))
    sessions: list[Peer] = []
    for peer in peers:
        if (peer.dialect, peer.instance) in missing:
            continue
        names = (peer.instance, peer.name)
        invalid = _invalid_end(peer)
        if invalid is not None:
            text = f"peer {peer.name!r} is left out: {invalid}"
            problems.append(Problem(peer.origins, "", text, names, "invalid", peer.dialect))
            continue
        sessions.append(peer)
        if peer.bfd is not None:
            text = f"peer {peer.name!r} has a session without BFD, which is not supported"
            problems.append(Problem(peer.origins, "", text, (), "unsupported", peer.dialect))
    return kept, sessions


def _of_instance(row: Instance) -> Iterator[str]:
    if row.originates:
        yield f"originating prefixes of the instance's own ({', '.join(row.originates)})"
    if row.imports:
        yield f"importing routes of instance {row.imports[0].instance!r}"


def _invalid_end(row: Peer) -> str | None:
    """Return why a peer has no usable address, or None: the middle does not rely on dialects."""
    if row.address is None:
        return "it has neither an address nor an interface" if row.interface is None else None
    try:
        ipaddress.ip_address(row.address)
    except ValueError:
        return f"{row.address!r} is not an IP address"
    return None
