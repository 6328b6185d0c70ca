"""The report of an internal error while messages of a peer were handled. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from speaker.api import Fault


def message_fault(
    where: tuple[str, str], kind: int, bodies: Sequence[bytes], error: Exception
) -> Fault:
    """Return the report for messages of one type; ``where`` are the names of instance and peer.

    It has their number and size, and no octet: they are the peer's.
    """
    instance, peer = where
    octets = sum(map(len, bodies))
    return Fault(
        instance=instance,
        peer=peer,
        where=f"handling messages of type {kind}: {len(bodies)}, of {octets} octets",
        error=f"{type(error).__name__}: {error}",
    )
