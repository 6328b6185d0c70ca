"""Peers that shall have a BFD session, or its echo function, and have none: their problems. Pure.

The BGP session of a peer without BFD is established all the same, so the loss of the router is noticed
after the hold time alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from reconcilers.intent_tables import IntentTables
from reconcilers.model import Problem
from statedb import Snapshot, WriteTxn

WITHOUT_BFD: Final = "this agent runs without BFD (--bfd)"
"""Why no peer of a node has a BFD session."""


def missing_bfd(
    intent: IntentTables, snapshot: Snapshot | WriteTxn, off: str = ""
) -> Iterator[Problem]:
    """Yield a problem for each peer without its BFD session; ``off``: why none has one."""
    for peer in intent.peers.all(snapshot):
        if peer.bfd is None:
            continue
        session = intent.bfd_sessions.get(snapshot, (peer.instance, peer.name))
        reason = off or ("" if session is None else session.problem)
        text = ""
        if reason:
            text = f"peer {peer.name!r} has no BFD session: {reason}"
        elif session is not None and session.echo_problem:
            text = f"peer {peer.name!r}: {session.echo_problem}"
        if text:
            field = peer.bfd_field
            yield Problem(peer.origins, field, text, (), "unsupported", peer.dialect)
