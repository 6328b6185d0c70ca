"""Peers that shall have a BFD session and have none, with the reason: problems of their objects. Pure.

The BGP session of such a peer is established without BFD, so the loss of the router is noticed after
the hold time alone.
"""

from __future__ import annotations

from collections.abc import Iterator

from reconcilers.model import Problem
from reconcilers.tables import IntentTables
from statedb import Snapshot, WriteTxn


def missing_bfd(
    intent: IntentTables, snapshot: Snapshot | WriteTxn, off: str = ""
) -> Iterator[Problem]:
    """Yield a problem for each such peer; ``off`` is why none has a session, if that is so."""
    for peer in intent.peers.all(snapshot):
        if peer.bfd is None:
            continue
        session = intent.bfd_sessions.get(snapshot, (peer.instance, peer.name))
        reason = off or ("" if session is None else session.problem)
        if reason:
            text = f"peer {peer.name!r} has no BFD session: {reason}"
            field = peer.bfd_field
            yield Problem(peer.origins, field, text, (), "unsupported", peer.dialect)
