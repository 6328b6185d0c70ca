"""A peer's changed settings, applied to the routes that it announced and that it is sent.

The peer has its new configuration already. Which change needs a new session is
`speaker.engine.effect_of_change`'s to decide.
"""

from __future__ import annotations

from collections.abc import Collection

from speaker.api import PeerConfig
from speaker.engine.established_peer import EstablishedPeer
from speaker.engine.instance.outbound_updates import OutboundUpdates
from speaker.engine.instance.route_exchange import enforce_limits
from speaker.engine.instance.session_setup import context_without_session
from speaker.engine.prefix_limits import prefix_limits_of
from speaker.message import RouteRefresh
from speaker.nlri import Family
from speaker.peer.engine_context import EngineContext
from speaker.peer.peer import CONFIGURATION_CHANGE, CONFIGURATION_CHANGED
from speaker.rib.policy import compile_import


def apply_soft_change(
    context: EngineContext,
    outbound: OutboundUpdates,
    established: EstablishedPeer,
    before: PeerConfig,
    *,
    up: bool,
) -> None:
    """Apply a change that needs no new session; only differences are sent.

    Without ``up`` the peer is away, and its routes are kept (RFC 4724).
    """
    peer, adj_in = established.peer, established.adj_in
    keep = peer.config.keep_received
    accepts_more = _apply_import_policy(outbound, established, before)
    keeps_more = before.keep_received is not None and (keep is None or keep > before.keep_received)
    not_kept = [family for family in adj_in.families if adj_in.counted(family)]
    if not_kept and (keeps_more or accepts_more):
        # Routes that were only counted are announced again (RFC 2918). Until then they are counted: the
        # peer may take its time, and another change has to request them again.
        if adj_in.accepts_all:
            adj_in.forget_counted()
        if up and established.negotiated.route_refresh:
            send_refresh_requests(established, not_kept)
        elif up:
            peer.reset(CONFIGURATION_CHANGE, CONFIGURATION_CHANGED)
    if before.maximum_prefixes != peer.config.maximum_prefixes:
        established.limits = prefix_limits_of(peer.config, adj_in.families)
    outbound.change_group(established)
    if up and established.session.connection is not None:
        enforce_limits(context, established)


def apply_to_kept_routes(
    outbound: OutboundUpdates, kept: EstablishedPeer, before: PeerConfig
) -> bool:
    """Apply any change to the routes that outlive the session (RFC 4724).

    Returns False where none of them may be kept: the caller removes them.
    """
    peer = kept.peer
    context = context_without_session(peer, kept)
    if (
        not (peer.may_come_up or peer.waits)
        or peer.config.graceful_restart is None
        # Its paths compare with others in another way: the next session has another source.
        or context.session.ebgp != kept.negotiated.ebgp
    ):
        return False
    _apply_import_policy(outbound, kept, before)
    kept.stale.judge_again(kept.inbound, context)
    return kept.stale.reconfigure(kept.negotiated)


def _apply_import_policy(
    outbound: OutboundUpdates, established: EstablishedPeer, before: PeerConfig
) -> bool:
    """Apply a changed import policy, or number of kept routes, to the received routes.

    Returns whether routes that are only counted may be accepted now.
    """
    adj_in, config = established.adj_in, established.peer.config
    if (before.keep_received, before.import_) == (config.keep_received, config.import_):
        return False
    accepts_more = False
    if before.keep_received != config.keep_received:
        adj_in.set_keep(config.keep_received)
    if before.import_ != config.import_:
        accepts_more = adj_in.set_policy(compile_import(config.name, config.import_))
    established.inbound.resize_cache()
    outbound.policy_changed(established)
    return accepts_more


def send_refresh_requests(established: EstablishedPeer, families: Collection[Family]) -> None:
    """Send a ROUTE-REFRESH for families, or for all (RFC 2918); none without the capability."""
    if established.negotiated.route_refresh:
        for family in families or established.adj_in.families:
            if family in established.adj_in.families:
                established.session.send(RouteRefresh(family).encode())
