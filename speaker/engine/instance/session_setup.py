"""Session setup: the Adj-RIB-In, source and inbound processing of a session that is Established.

Stale routes of a peer that restarted are taken over (RFC 4724). The session's update group, and its
removal, are not decided here.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import final

from speaker.engine.established_peer import EstablishedPeer
from speaker.engine.ribs import Ribs
from speaker.engine.sliced_work import SlicedWork, emptied
from speaker.engine.stale_routes import StaleRoutes
from speaker.negotiated import Negotiated, reconfigured
from speaker.nlri import Family, has_prefixes
from speaker.peer.addresses import address_key, address_octets
from speaker.peer.engine_context import EngineContext
from speaker.peer.peer import Peer
from speaker.peer.session import Session
from speaker.rib.adj_in import AdjRibIn
from speaker.rib.inbound import InboundUpdates
from speaker.rib.inbound_context import (
    ConnectionContext,
    InboundContext,
    SettingsContext,
    inbound_context,
)
from speaker.rib.local_routes import LOCAL
from speaker.rib.path import Source, SourceSession
from speaker.rib.policy import compile_import
from speaker.rib.usable_next_hop import is_loopback


@final
class SessionSetup:
    """Sets up the Established sessions of one instance."""

    def __init__(
        self,
        context: EngineContext,
        work: SlicedWork,
        loc: Ribs,
        on_no_stale: Callable[[Peer], None],
        on_stale_removed: Callable[[Peer, Family, Sequence[bytes]], None],
        on_departed: Callable[[], None],
    ) -> None:
        """``loc`` is the Loc-RIB; for the callbacks see `StaleRoutes`."""
        self._context = context
        self._loc = loc
        self._on_no_stale = on_no_stale
        self._on_stale_removed = on_stale_removed
        self._on_departed = on_departed
        self._work = work
        self._numbers = itertools.count(LOCAL.sent_path_id + 1)

    def next_path_id(self) -> int:
        """Return a path identifier that no other source of the instance has (RFC 7911)."""
        return next(self._numbers)

    def established(
        self,
        peer: Peer,
        session: Session,
        before: EstablishedPeer | None,
        departed: SourceSession | None,
    ) -> EstablishedPeer:
        """Set up a session; ``before`` holds the stale routes of the last one.

        ``departed`` is the last one where its routes are still being removed: they are not sent back.
        """
        negotiated = session.negotiated
        assert negotiated is not None  # noqa: S101  an OPEN was accepted
        source = self._source(peer, session, negotiated)
        tables = {
            family: self._loc.table(family)
            for family in sorted(negotiated.families)
            if has_prefixes(family)
        }
        if before is not None and not (
            before.source.same_router(source)
            # Where any AS is accepted, another AS is another router: its AS paths begin with it.
            and before.negotiated.peer_asn == negotiated.peer_asn
        ):
            before.stale.clear()
            self._work.add(emptied(before.inbound.cached()))
            if before.stale.departed:
                departed = before.source.session
            before = None
        if departed is not None:
            source.session = departed
        if before is None:
            policy = compile_import(peer.name, peer.config.import_)
            adj_in = AdjRibIn(
                source,
                policy,
                tables,
                self._numbers,
                negotiated.add_path_receive,
                peer.config.keep_received,
                refreshable=negotiated.route_refresh,
            )
            stale = StaleRoutes(
                self._context,
                self._work,
                peer,
                adj_in,
                self._on_no_stale,
                self._on_stale_removed,
                self._on_departed,
            )
        else:
            stale = before.stale
            adj_in = stale.adj_in
            stale.remove(
                adj_in.attach(
                    tables, negotiated.add_path_receive, refreshable=negotiated.route_refresh
                )
            )
            stale.session_restored(negotiated)
        context = inbound_context(
            negotiated,
            _settings_context(peer),
            ConnectionContext(
                own_addresses=_local_addresses(session), peer_is_local=is_loopback(source.address)
            ),
        )
        if before is not None:
            stale.judge_again(before.inbound, context)
        inbound = InboundUpdates(context, adj_in, None if before is None else before.inbound)
        return EstablishedPeer(peer, session, negotiated, inbound, stale)

    def _source(self, peer: Peer, session: Session, negotiated: Negotiated) -> Source:
        config = peer.config
        zone = session.remote[0].partition("%")[2]
        return Source(
            peer.name,
            address=address_key(session.remote[0]),
            # A link-local address, or eBGP with a TTL of one hop (RFC 4271 section 5.1.3).
            direct=bool(zone)
            or (negotiated.ebgp and config.ebgp_multihop == 1 and config.ttl_security <= 1),
            interface=zone or config.interface,
            router_id=negotiated.peer_router_id,
            ebgp=negotiated.ebgp and not negotiated.confederation,
            internal=not negotiated.ebgp,
            sent_path_id=next(self._numbers),
        )


def context_without_session(peer: Peer, kept: EstablishedPeer) -> InboundContext:
    """Return the context of routes that are kept without a session, by the present configuration.

    What only the next session can show is that of the last one: the peer's OPEN and the connection.
    """
    before = kept.inbound.context
    return inbound_context(
        reconfigured(before.session, peer.configured_parameters(before.session.peer_asn)),
        _settings_context(peer),
        before.connection,
    )


def _settings_context(peer: Peer) -> SettingsContext:
    return SettingsContext(
        own_asns=_local_asns(peer),
        allowas_in_origin=peer.config.allowas_in_origin,
        allowas_in=peer.config.allowas_in,
    )


def _local_asns(peer: Peer) -> frozenset[int]:
    asns = {peer.instance.local_asn, peer.local_asn}
    if peer.instance.confederation is not None:
        asns.add(peer.instance.confederation.identifier)
    return frozenset(asns)


def _local_addresses(session: Session) -> frozenset[bytes]:
    # Both ends may have the same address, when they are on the same host.
    return frozenset({address_octets(session.local[0])} - {address_octets(session.remote[0])})
