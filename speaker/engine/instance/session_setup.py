"""A session that has come up becomes a member: its source, its Adj-RIB-In, and who reads its UPDATEs.

Routes that were kept for a peer that restarts go on with it (RFC 4724). Who is told of the member,
and when it leaves, is not decided here.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import final

from speaker.engine.instance.established_peer import EstablishedPeer
from speaker.engine.ribs import Ribs
from speaker.engine.stale_routes import StaleRoutes
from speaker.negotiated import Negotiated
from speaker.nlri import Family, has_prefixes
from speaker.peer.addresses import address_key, address_octets
from speaker.peer.engine_context import EngineContext
from speaker.peer.peer import Peer
from speaker.peer.session import Session
from speaker.rib.adj_in import AdjRibIn
from speaker.rib.inbound import InboundUpdates
from speaker.rib.local_routes import LOCAL
from speaker.rib.path import Source
from speaker.rib.policy import compile_import


@final
class SessionSetup:
    """Makes the members of one router."""

    def __init__(
        self,
        context: EngineContext,
        loc: Ribs,
        over: Callable[[Peer], None],
        swept: Callable[[Peer, Family, Sequence[bytes]], None],
    ) -> None:
        """``loc`` is where routes go; for ``over`` and ``swept`` see `StaleRoutes`."""
        self._context = context
        self._loc = loc
        self._over = over
        self._swept = swept
        self._numbers = itertools.count(LOCAL.number + 1)

    def member(
        self, peer: Peer, session: Session, before: EstablishedPeer | None
    ) -> EstablishedPeer:
        """Return the member of an Established session; ``before`` is what was kept of the last."""
        negotiated = session.negotiated
        assert negotiated is not None  # noqa: S101  an OPEN was accepted
        source = self._source(peer, session, negotiated)
        tables = {
            family: self._loc.table(family)
            for family in sorted(negotiated.families)
            if has_prefixes(family)
        }
        if before is not None and not before.source.same_router(source):
            before.stale.clear()
            before = None
        if before is None:
            policy = compile_import(peer.name, peer.config.import_)
            adj_in = AdjRibIn(source, policy, tables, self._numbers, negotiated.add_path_receive)
            stale = StaleRoutes(self._context, peer, adj_in, self._over, self._swept)
        else:
            stale = before.stale
            adj_in = stale.adj_in
            adj_in.attach(tables, negotiated.add_path_receive)
            stale.session_restored(negotiated)
        inbound = InboundUpdates(
            negotiated,
            adj_in,
            _own_asns(peer),
            _own_addresses(session),
            None if before is None else before.inbound,
        )
        return EstablishedPeer(peer, session, negotiated, inbound, stale)

    def _source(self, peer: Peer, session: Session, negotiated: Negotiated) -> Source:
        return Source(
            peer.name,
            address=address_key(session.remote[0]),
            router_id=negotiated.peer_router_id,
            ebgp=negotiated.ebgp and not negotiated.confederation,
            internal=not negotiated.ebgp,
            number=next(self._numbers),
        )


def _own_asns(peer: Peer) -> frozenset[int]:
    own = {peer.instance.local_asn, peer.local_asn}
    if peer.instance.confederation is not None:
        own.add(peer.instance.confederation.identifier)
    return frozenset(own)


def _own_addresses(session: Session) -> frozenset[bytes]:
    # Both ends may have one address, when they are on the same host.
    return frozenset({address_octets(session.local[0])} - {address_octets(session.remote[0])})
