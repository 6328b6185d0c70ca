"""The state of the core as values: sessions, instances, routes. Reads and never changes it.

Routes come in slices, between which the core may go on: the keys of a table are copied when its turn
comes, and looked up slice by slice.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Final

from speaker.api import (
    NOT_ACCEPTED,
    FamilyStatus,
    InstanceStatus,
    Obstacle,
    PeerCounts,
    PeerStatus,
    PolicyDecision,
    RouteView,
)
from speaker.attribute import PathAttributes, address_text, as_path_text, community_text
from speaker.engine.established_peer import EstablishedPeer
from speaker.engine.instance import Instance
from speaker.nlri import Family, prefix_to_text
from speaker.peer.message_counts import message_counts
from speaker.peer.peer import Peer
from speaker.peer.peer_status import retry_in
from speaker.rib.decision import Reason, explain
from speaker.rib.export import export_attributes, export_next_hop
from speaker.rib.loc_rib import LocRib
from speaker.rib.path import Path
from speaker.rib.update_group import UpdateGroup

NO_NEXT_HOP: Final = (
    "there is no IPv4 next hop, neither of the session's interface nor configured, and the peer "
    "accepts no IPv6 next hop (RFC 8950)"
)
IN_PLACE: Final = "advertised in place of the best path to some peers"
"""The reason of a route of a set beside a route that the instance itself originates."""
ORIGINS = ("IGP", "EGP", "incomplete")
SLICE_PREFIXES: Final = 100
"""Prefixes that one slice of a view looks up: about a millisecond's work."""


def peer_status(instance: Instance, peer: Peer) -> PeerStatus:
    """Return the status of one peer; ``since`` is on the core's clock, in seconds."""
    config = peer.config
    session, messages = peer.connections.primary, peer.messages
    established = instance.established.get(peer)
    up = established is not None
    opened = session.peer_open
    return PeerStatus(
        instance=instance.name,
        name=config.name,
        address=peer.address,
        interface=config.interface,
        port=config.port,
        local_address=session.local[0] or config.local_address,
        local_asn=peer.local_asn,
        peer_asn=peer.remote_asn,
        peer_type=config.peer_asn if isinstance(config.peer_asn, str) else None,
        state=str(session.state),
        reason=peer.reason,
        likely_cause=peer.likely_cause,
        failures=peer.session_end.failures,
        since=peer.since,
        families=tuple(
            _family_status(family, established)
            if established is not None
            else _without_session(family, instance.kept_routes.peers.get(peer))
            for family in config.families
        ),
        peer_router_id=None
        if opened is None
        else address_text(opened.router_id.to_bytes(4, "big")),
        hold_time=session.timers.hold_time if up else None,
        keepalive_time=session.timers.keepalive_time if up else None,
        retry_in=retry_in(session),
        capabilities=() if opened is None else tuple(map(str, opened.capabilities)),
        last_error=peer.session_end.last_error,
        flaps=peer.flaps,
        messages_received=session.messages_received,
        messages_sent=session.messages_sent,
        updates_received=session.updates.received,
        updates_sent=session.updates_sent,
        received_by_type=message_counts(messages.received, messages.updates_received),
        sent_by_type=message_counts(messages.sent, messages.updates_sent),
        queued_octets=session.queued,
        authentication=None if config.password is None else "TCP MD5",
        graceful_restart_time=(
            None if config.graceful_restart is None else config.graceful_restart.restart_time
        ),
        dynamic=peer.dynamic is not None,
        route_set=config.route_set,
        malformed_updates=0 if established is None else established.inbound.faults,
        malformed="" if established is None else established.inbound.malformed,
        next_hops=() if established is None else established.inbound.next_hops.texts,
        initial_table_sent=established is not None and not _is_pending(established),
    )


def peer_counts(instance: Instance) -> list[PeerCounts]:
    """Return the counts of all peers by name, equal to the sums of `peer_status`.

    In one loop, with few calls for each peer: they are read every few seconds while routes change.
    """
    of_peers = []
    for name, peer in sorted(instance.peers.items()):
        established, session = instance.established.get(peer), peer.connections.primary
        received = advertised = None
        if established is not None:
            families, group = peer.config.families, established.group
            received = sum(map(established.adj_in.received, families))
            advertised = 0
            if group is not None:
                for family in families:
                    advertised += group.advertised_count(family, established)
        counts = PeerCounts(
            instance=instance.name,
            name=name,
            received=received,
            advertised=advertised,
            updates_received=session.updates.received,
            updates_sent=session.updates_sent,
        )
        of_peers.append(counts)
    return of_peers


def _is_pending(established: EstablishedPeer) -> bool:
    return established.group is not None and established.group.is_pending(established)


def _without_session(family: Family, restarting: EstablishedPeer | None) -> FamilyStatus:
    stale, note = (0, "") if restarting is None else _stale(family, restarting)
    return FamilyStatus(
        family=family,
        negotiated=False,
        received=0,
        accepted=0,
        advertised=0,
        stale=stale,
        note=note,
    )


def _stale(family: Family, established: EstablishedPeer) -> tuple[int, str]:
    """Return how many stale routes are kept, and for how long, as text."""
    for kept, phase, seconds in established.stale.remaining():
        if kept == family:
            count = established.adj_in.stale(family)
            return count, f"{count} stale routes are kept for {seconds:.0f}s: {phase.value}"
    return 0, ""


def _family_status(family: Family, established: EstablishedPeer) -> FamilyStatus:
    group = established.group
    negotiated = family in established.negotiated.families
    left_out = 0 if group is None else group.left_out_count(family, established)
    obstacle: Obstacle = ""
    note = ""
    if not negotiated:
        obstacle, note = "FamilyNotNegotiated", "the peer does not support the family"
    elif group is not None and group.rules.export != "none":
        if family not in group.rules.sendable:
            obstacle, note = "NoNextHop", NO_NEXT_HOP
        elif left_out:
            obstacle, note = "NotEncodable", "they do not fit a message to the peer"
    stale, kept = _stale(family, established)
    return FamilyStatus(
        family=family,
        negotiated=negotiated,
        received=established.adj_in.received(family),
        accepted=established.adj_in.accepted(family),
        advertised=0 if group is None else group.advertised_count(family, established),
        left_out=left_out,
        obstacle=obstacle,
        not_kept=established.adj_in.counted(family),
        stale=stale,
        note=note or kept,
    )


def instance_status(instance: Instance) -> InstanceStatus:
    """Return the status of one instance; the shell adds its listening sockets."""
    return InstanceStatus(
        name=instance.name,
        local_asn=instance.local_asn,
        router_id=instance.config.router_id,
        vrf=instance.vrf,
        listening=(),
        listen_error=None,
        peers=len(instance.peers),
        refused=instance.rejected_connections.count,
    )


def _route(
    family: Family,
    nlri: bytes,
    attributes: PathAttributes,
    *,
    peer: str | None,
    best: bool,
    reason: str,
    next_hop: bytes | None = None,
    path_id: int | None = None,
    decision: PolicyDecision | None = None,
    used: bool = False,
    imported_from: str | None = None,
    kept: bool = False,
) -> RouteView:
    hop = attributes.next_hop if next_hop is None else next_hop
    return RouteView(
        family=family,
        prefix=prefix_to_text(family, nlri),
        next_hop=address_text(hop[:16]) if hop else None,
        as_path=as_path_text(attributes.as_path),
        origin=ORIGINS[attributes.origin],
        med=attributes.med,
        local_preference=attributes.local_preference,
        communities=tuple(map(community_text, attributes.communities)),
        large_communities=tuple(
            ":".join(map(str, community)) for community in attributes.large_communities
        ),
        extended_communities=tuple(
            community.hex() for community in attributes.extended_communities
        ),
        peer=peer,
        best=best,
        reason=reason,
        path_id=path_id,
        decision=decision,
        used=used,
        imported_from=imported_from,
        kept=kept,
    )


def available(
    instance: Instance,
    family: Family,
    prefixes: Iterable[bytes] | None = None,
    peer: str | None = None,
) -> Iterator[Sequence[RouteView]]:
    """Iterate over the Loc-RIB, then over the routes that only route sets have, in slices.

    One path of a prefix is the best one: the path that this router originates, where there is one.

    With ``prefixes``: over the routes of each of them in turn, found by key. With ``peer`` only over
    the paths from this peer.
    """
    loc = instance.outbound.loc.tables.get(family)
    sets = [
        ribs.tables[family]
        for ribs in instance.outbound.route_sets.tables.values()
        if family in ribs
    ]
    view = _AvailableView(family, peer, loc, sets)
    # The paths of a peer are in the Loc-RIB only.
    tables = ([] if loc is None else [loc]) + (sets if peer is None else [])
    if prefixes is not None:
        for nlris in _slices_of(prefixes):
            yield [
                route for nlri in nlris for table in tables
                for route in view.routes(table, (nlri,), local=table is not loc)
            ]  # fmt: skip
        return
    for table in tables:
        for keys in table.walk(SLICE_PREFIXES):
            yield list(view.routes(table, keys, local=table is not loc))


class _AvailableView:
    """The routes of several tables of one family; equal local routes of several tables are one."""

    def __init__(
        self, family: Family, peer: str | None, loc: LocRib | None, sets: Sequence[LocRib]
    ) -> None:
        self._family = family
        self._peer = peer
        self._loc = loc
        self._sets = sets
        self._shown: set[tuple[bytes, PathAttributes]] = set()
        self._best_of_sets: set[bytes] = set()
        """Prefixes whose best path is one of a set that was shown."""

    def routes(self, table: LocRib, nlris: Iterable[bytes], *, local: bool) -> Iterator[RouteView]:
        """Iterate over the routes that prefixes have now; ``local``: the table is a route set's."""
        decoded: dict[Path, Path] = {}
        for nlri in nlris:
            paths = table.paths(nlri)
            for path in paths[:1] if local else paths:
                name = None if path.source.local else path.source.name
                if self._peer is not None and name != self._peer:
                    continue
                if name is None:
                    key = (nlri, path.attributes)
                    if local and key in self._shown:
                        continue
                    self._shown.add(key)
                reason = self._reason(nlri, path, paths, table)
                yield _route(
                    self._family,
                    nlri,
                    _decoded(path, decoded).attributes,
                    peer=name,
                    best=reason == Reason.BEST.value,
                    reason=reason,
                    path_id=path.source.received_path_id,
                    imported_from=path.source.imported_from,
                )

    def _reason(self, nlri: bytes, path: Path, paths: Sequence[Path], table: LocRib) -> str:
        """Return why a path is the best one, or is not."""
        if path is not paths[0]:
            return explain(path, paths, table.metric).value
        if table is self._loc:
            if not path.source.local and any(nlri in of_set for of_set in self._sets):
                return Reason.LOCAL.value
            return Reason.BEST.value
        selected = None if self._loc is None else self._loc.best(nlri)
        if (selected is not None and selected.source.local) or nlri in self._best_of_sets:
            return IN_PLACE
        self._best_of_sets.add(nlri)
        return Reason.BEST.value


def _decoded(path: Path, decoded: dict[Path, Path]) -> Path:
    """Return a path with decoded attributes, once per slice; the table's path is left as it is."""
    known = decoded.get(path)
    if known is None:
        known = decoded[path] = path.decoded()
    return known


def _slices_of(prefixes: Iterable[bytes]) -> Iterator[list[bytes]]:
    remaining = iter(prefixes)
    while part := list(islice(remaining, SLICE_PREFIXES)):
        yield part


def advertised(
    established: EstablishedPeer, family: Family, prefixes: Iterable[bytes] | None = None
) -> Iterator[Sequence[RouteView]]:
    """Iterate over one session's Adj-RIB-Out in slices; ``prefixes`` as in `available`."""
    group = established.group
    if group is None or established not in group.members:
        return
    slices = group.walk(family, SLICE_PREFIXES) if prefixes is None else _slices_of(prefixes)
    for nlris in slices:
        # A changed export policy moves the session to another group between two slices.
        group = established.group
        if group is not None and established in group.members:
            yield list(_advertised(established, group, family, nlris))


def _advertised(
    established: EstablishedPeer,
    group: UpdateGroup[EstablishedPeer],
    family: Family,
    nlris: Iterable[bytes],
) -> Iterator[RouteView]:
    rewritten: dict[Path, tuple[PathAttributes, bytes]] = {}
    skip = 4 if family in group.rules.add_path else 0
    for wire, path in group.routes_of(family, established, nlris):
        known = rewritten.get(path)
        if known is None:
            known = rewritten[path] = (
                export_attributes(path.decoded(), group.rules),
                export_next_hop(path, family, group.rules),
            )
        yield _route(
            family,
            wire[skip:],
            known[0],
            peer=established.peer.name,
            best=True,
            reason="advertised",
            path_id=path.source.sent_path_id if skip else None,
            next_hop=known[1],
        )


def received(
    instance: Instance,
    established: EstablishedPeer,
    family: Family,
    prefixes: Iterable[bytes] | None = None,
) -> Iterator[Sequence[RouteView]]:
    """Iterate over one session's Adj-RIB-In in slices, with the reason why a route is not used.

    It may be the last session of a peer that is away, whose routes are kept.
    ``prefixes`` as in `available`.
    """
    for routes in established.adj_in.routes(family, SLICE_PREFIXES, prefixes):
        table = instance.outbound.loc.tables.get(family)
        decoded: dict[Path, Path] = {}
        yield [
            _received(established, family, table, route, _decoded(route[1], decoded))
            for route in routes
        ]


def _received(
    established: EstablishedPeer,
    family: Family,
    table: LocRib | None,
    route: tuple[bytes, Path, Path | None],
    decoded: Path,
) -> RouteView:
    nlri, path, used = route
    paths = table.paths(nlri) if table is not None and used is not None else ()
    if path.rejected is not None:
        reason, best, used = path.rejected, False, None
    elif used is None or used not in paths:
        reason, best, used = NOT_ACCEPTED, False, None
    else:
        metric = None if table is None else table.metric
        why = Reason.BEST if used is paths[0] else explain(used, paths, metric)
        reason, best = why.value, why is Reason.BEST
    return _route(
        family,
        nlri,
        decoded.attributes,
        peer=established.peer.name,
        best=best,
        reason=reason,
        path_id=path.source.received_path_id,
        decision=established.adj_in.decide(family, path, nlri),
        used=used is not None,
        kept=established.group is None,
    )
