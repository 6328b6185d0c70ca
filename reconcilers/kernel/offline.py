"""The kernel's routes of a node, offline: ``kernel`` and ``notInstalled`` of ``waggle render``.

`reconcilers.kernel.offline_speaker` makes the speaker's decisions, everything after them is what an
agent does, too.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from reconcilers.apply.received_verdict import translated
from reconcilers.intent_tables import Json
from reconcilers.kernel.default_route import default_route_names
from reconcilers.kernel.forwarding import ForwardingRules
from reconcilers.kernel.instance_routes import InstanceRoutes
from reconcilers.kernel.next_hops import is_of_host
from reconcilers.kernel.offline_speaker import OfflineSpeaker, ReceivedPath
from reconcilers.kernel.options import FibOptions
from reconcilers.kernel.own_prefixes import OwnPrefixes
from reconcilers.kernel.reasons import NotInstalled, Reason, shared_table
from reconcilers.kernel.received_file import ReceivedRoutes
from reconcilers.kernel.routing import DEFAULT_VRF, Hop, HostRouting
from reconcilers.model import Instance, Peer, Route
from resources.host import Host
from speaker.api import NOT_ACCEPTED, Multipath
from speaker.api.best_paths import BestPath
from speaker.attribute import address_text
from speaker.nlri import Family, prefix_to_text
from speaker.rib.decision import Reason as DecisionReason
from speaker.rib.inbound import LOOPS

_NEXT_HOP_TEXT: Final = "the next hop"
"""The beginning of the speaker's reasons why a next hop is not usable."""


def kernel_document(
    received: ReceivedRoutes,
    instances: Sequence[Instance],
    peers: Sequence[Peer],
    host: Host | None,
    options: FibOptions,
    installing: Collection[str],
    routes: Iterable[Route],
    unknown: set[str] | None = None,
) -> Json:
    """Return ``kernel`` and ``notInstalled`` of ``waggle render``: the kernel's routes offline.

    The node advertises ``routes``. With ``unknown`` names of no peer are added to it, and no error.

    Raises `reconcilers.kernel.received_file.InvalidReceivedFile`.
    """
    speaker = OfflineSpeaker(instances, peers)
    speaker.receive(received, unknown)
    routing = HostRouting(host, options.table)
    names = default_route_names(peers, everywhere=options.default_route)
    vrfs = {row.name: row.vrf or DEFAULT_VRF for row in instances}
    own = OwnPrefixes()
    own.configure(instances, peers)
    own.change((route, True) for route in routes)
    tables = {
        row.name: _Table(
            InstanceRoutes(
                vrfs[row.name],
                routing,
                ForwardingRules(
                    routing, vrfs, maximum=options.multipath, blackhole=options.blackhole
                ),
                names,
                own,
            ),
            routing.table_of(vrfs[row.name]),
            routing.table_holder(vrfs[row.name]),
            row.dialect in installing,
        )
        for row in sorted(instances, key=lambda row: row.name)
    }
    multipath = Multipath(options.multipath, options.multipath_relax)
    for name, table in tables.items():
        for change in speaker.best_paths(name, multipath):
            table.routes.apply(change)
    return {
        "kernel": list(_kernel(tables, options)),
        "notInstalled": [
            _not_installed_item(path, why)
            for path in speaker.received()
            if (why := _why_not(path, tables[path.instance.name])) is not None
        ],
    }


class _Table(NamedTuple):
    """The routes of one instance, and where they stand."""

    routes: InstanceRoutes
    number: int | None
    """None: the node does not have the VRF, or not for it alone."""
    holder: str | None
    """The VRF whose routes stand in its table."""
    on: bool


def _kernel(tables: Mapping[str, _Table], options: FibOptions) -> Iterator[Json]:
    rows: dict[tuple[int, Family, bytes], Json] = {}
    for routes, number, _, on in tables.values():
        if number is None or not on:
            continue
        for family in routes.families:
            for nlri in routes.prefixes(family):
                route = routes.route(family, nlri)
                if route is None or (forwarding := route.forwarding).next_hops is None:
                    continue
                rows.setdefault(
                    (number, family, nlri),
                    {
                        "table": number,
                        "prefix": prefix_to_text(family, nlri),
                        "type": "blackhole" if forwarding.blackhole else "unicast",
                        "protocol": options.protocol,
                        "metric": options.metric,
                        "nexthops": [_hop_item(hop) for hop in forwarding.hops],
                    },
                )
    for _, item in sorted(rows.items(), key=lambda row: _address_order(*row[0])):
        yield item


def _address_order(table: int, family: Family, nlri: bytes) -> tuple[int, int, bytes, int]:
    return (table, family.afi, nlri[1:].ljust(16, b"\0"), nlri[0])


def _hop_item(hop: Hop) -> Json:
    return {"via": address_text(hop.gateway), "dev": hop.device or None, "weight": 1}


def _not_installed_item(path: ReceivedPath, why: NotInstalled) -> Json:
    end = path.peer.address or path.peer.interface
    return {
        "prefix": path.route.prefix,
        "peer": end if path.instance.vrf is None else f"{path.instance.vrf}/{end}",
        "reason": str(why.reason),
        "message": why.message,
    }


def _why_not(path: ReceivedPath, table: _Table) -> NotInstalled | None:
    """Return why a received route is not installed; None if it is."""
    view = path.view
    if view is None:
        if not path.family_carried:
            text = f"the session does not carry {path.route.family}"
            return NotInstalled(Reason.FAMILY, text)
        message = path.error or "the UPDATE was malformed (RFC 7606)"
        hop = path.next_hop
        return NotInstalled(Reason.MALFORMED if is_of_host(hop) else Reason.NEXT_HOP, message)
    decision = view.decision
    if not view.used:
        if decision is not None and not decision.accepted and view.reason == NOT_ACCEPTED:
            verdict = translated(path.peer, decision)
            blocked = verdict.reason == Reason.ALWAYS_BLOCK
            reason = Reason.ALWAYS_BLOCK if blocked else Reason.IMPORT_POLICY
            return NotInstalled(reason, f"not accepted by the import policy: {verdict.filter}")
        return NotInstalled(_ineligible(view.reason), view.reason)
    best = table.routes.route(path.route.family, path.route.nlri)
    ours = None if best is None else _path_of(path, best.paths.paths)
    if best is None or ours is None:
        reason = Reason.LOCAL if view.reason == DecisionReason.LOCAL.value else Reason.NOT_BEST
        return NotInstalled(reason, view.reason)
    why = best.forwarding.why_not
    if why is not None:
        return why
    for unresolved, reason_text in best.forwarding.unresolved:
        if (unresolved.instance, unresolved.peer) == (ours.instance, ours.peer):
            return NotInstalled(Reason.NEXT_HOP, reason_text.message)
    if table.holder is not None:
        text = shared_table(table.routes.vrf, table.holder)
        return NotInstalled(Reason.TABLE_SHARED, text)
    if table.number is None:
        return NotInstalled(Reason.NO_VRF, f"the node has no VRF {table.routes.vrf}")
    if not table.on:
        return NotInstalled(Reason.OFF, "received routes are not installed: --fib")
    return None


def _path_of(path: ReceivedPath, paths: Iterable[BestPath]) -> BestPath | None:
    ends = (path.instance.name, path.peer.name)
    return next((path for path in paths if (path.instance, path.peer) == ends), None)


def _ineligible(text: str) -> Reason:
    """Return the word for a reason of the speaker why a path is ineligible."""
    if text in LOOPS:
        return Reason.AS_LOOP
    return Reason.NEXT_HOP if text.startswith(_NEXT_HOP_TEXT) else Reason.INELIGIBLE
