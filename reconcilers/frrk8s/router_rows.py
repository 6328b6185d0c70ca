"""Merged routers to the rows of the neutral intent. Pure."""

from __future__ import annotations

import bisect
import contextlib
import functools
import ipaddress
import zlib
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import islice, zip_longest
from typing import Final, NamedTuple

from reconcilers.frrk8s.field_values import Prefix, address, shown_vrf, vrf_name
from reconcilers.frrk8s.merge import MergedNeighbor, MergedRouter
from reconcilers.frrk8s.one_object import PORT
from reconcilers.frrk8s.route_sets import RouteSets
from reconcilers.frrk8s.unit_parts import NeighborKey, Unit
from reconcilers.model import (
    GracefulRestart,
    Instance,
    InstanceImport,
    NextHop,
    Peer,
    PrefixRule,
    Problem,
    ProblemCategory,
)
from reconcilers.node_addresses import next_hops_of
from reconcilers.sliced_work import BATCH_PIECES, MERGED_PER_PIECE, Pieces, Slices, merged, quick
from resources.addresses import comparable_address
from resources.core import Node
from resources.frrk8s.neighbor import Neighbor
from resources.host.network import Host, source_address
from resources.secret_value import SecretValue
from speaker.nlri import IPV4_UNICAST, IPV6_UNICAST, Family, parsed_prefix, prefix_to_text

RESTART_TIME: Final = 120
"""Seconds for which a neighbour keeps our routes (RFC 4724)."""
MULTIHOP_TTL: Final = 255
ALWAYS_BLOCK: Final = "AlwaysBlock"
STAYS_DOWN: Final = "the session stays down"
MANY: Final = 100
"""Changed prefixes of a router above which all are sorted again."""
PIECES_OF_PEER: Final = 3
"""Pieces of a slice for the row of one peer."""


class SortedPrefixes:
    """The prefixes of routers as sorted texts; a change costs the objects whose prefixes changed."""

    def __init__(self) -> None:
        self._known: dict[str, _OfRouter] = {}

    def texts(
        self, vrf: str, given: Iterable[frozenset[Prefix]], pieces: Pieces
    ) -> Slices[tuple[str, ...]]:
        """Return the prefixes for the row of a VRF's router as texts, IPv4 first."""
        return self._known.setdefault(vrf, _OfRouter()).texts(given, pieces)

    def forget(self, vrfs: Collection[str]) -> None:
        """Forget the prefixes of routers that have no row any more: of other VRFs."""
        for vrf in self._known.keys() - vrfs:
            del self._known[vrf]


class _OfRouter:
    """The prefixes of one router, which several objects may give it."""

    def __init__(self) -> None:
        self._given: list[frozenset[Prefix]] = []
        self._objects: dict[Prefix, int] = {}
        """The number of objects with each prefix."""
        self._families: dict[Family, _Sorted] = {IPV4_UNICAST: _Sorted(), IPV6_UNICAST: _Sorted()}
        self._texts: tuple[str, ...] = ()

    def texts(self, given: Iterable[frozenset[Prefix]], pieces: Pieces) -> Slices[tuple[str, ...]]:
        # An object that has not changed gives the very same set.
        before, self._given = self._given, list(given)
        had = Counter(map(id, before))
        has = Counter(map(id, self._given))
        if had == has:
            return self._texts
        parts = {id(part): part for part in (*before, *self._given)}
        gone = [parts[key] for key in (had - has).elements()]
        new = [parts[key] for key in (has - had).elements()]
        # A changed object mostly gives what it gave before: only differences are counted.
        for old, present in zip_longest(gone, new, fillvalue=frozenset[Prefix]()):
            for changed, objects in ((old - present, -1), (present - old, 1)):
                if changed:
                    yield from self._count(changed, objects, pieces)
        texts: list[str] = []
        for family in self._families.values():
            texts += yield from family.texts(pieces)
        self._texts = tuple(texts)
        return self._texts

    def _count(self, prefixes: frozenset[Prefix], objects: int, pieces: Pieces) -> Slices[None]:
        known = self._objects
        for some in quick(prefixes, pieces):
            if some is None:
                yield
                continue
            for destination in some:
                before = known.pop(destination, 0)
                after = before + objects
                if after:
                    known[destination] = after
                if not before or not after:
                    self._families[destination[0]].change(destination, present=bool(after))


class _Sorted:
    """The prefixes of one family, as wire bytes and as texts."""

    def __init__(self) -> None:
        self._nlris: list[bytes] = []
        self._texts: list[str] = []
        self._changes: dict[Prefix, bool] = {}

    def change(self, destination: Prefix, *, present: bool) -> None:
        """Note that a prefix came or went; both is no change."""
        if self._changes.get(destination, present) != present:
            del self._changes[destination]
        else:
            self._changes[destination] = present

    def texts(self, pieces: Pieces) -> Slices[list[str]]:
        """Return the texts in the order of the wire bytes."""
        nlris, texts = self._nlris, self._texts
        if len(self._changes) > MANY:
            known = dict(zip(nlris, texts, strict=True))
            runs: list[list[bytes]] = []
            rest = iter(self._changes.items())
            while some := list(islice(rest, BATCH_PIECES)):
                for (family, nlri), present in some:
                    if present:
                        known[nlri] = text = prefix_to_text(family, nlri)
                        parsed_prefix(text)
                    else:
                        del known[nlri]
                runs.append(sorted(nlri for (_, nlri), present in some if present))
                if pieces.fill_slice(len(some)):
                    yield
            runs.append([nlri for nlri in nlris if nlri in known])
            if pieces.fill_slice(1 + len(nlris) // MERGED_PER_PIECE):
                yield
            self._nlris = yield from merged(runs, pieces)
            self._texts = [known[nlri] for nlri in self._nlris]
            if pieces.fill_slice(1 + len(known) // MERGED_PER_PIECE):
                yield
        else:
            for destination, present in self._changes.items():
                at = bisect.bisect_left(nlris, destination[1])
                if present:
                    nlris.insert(at, destination[1])
                    texts.insert(at, prefix_to_text(*destination))
                else:
                    del nlris[at], texts[at]
        self._changes = {}
        return self._texts


class NodeValues(NamedTuple):
    """The inputs of a node's routers beside the objects."""

    name: str
    node: Node | None
    host: Host
    blocked: tuple[str, ...]
    """Prefixes within which nothing is accepted."""
    held: Mapping[NeighborKey, SecretValue] = {}
    """While an earlier state is in force: its passwords."""


class NeighborProblem(NamedTuple):
    """A problem of a neighbour on this node."""

    key: NeighborKey
    field: str
    """Of the neighbour."""
    message: str
    category: ProblemCategory


class Rows(NamedTuple):
    """The intent of a node."""

    instances: tuple[Instance, ...]
    peers: tuple[Peer, ...]
    route_sets: RouteSets
    problems: tuple[NeighborProblem, ...]


def rows(
    routers: Iterable[MergedRouter],
    values: NodeValues,
    before: RouteSets,
    originated: SortedPrefixes,
    pieces: Pieces,
) -> Slices[Rows]:
    """Return the intent rows of FRR-k8s's merged routers; ``before`` are the last route sets."""
    given = list(routers)
    instances = []
    for router in given:
        prefixes = (part for _, part in (*router.given, *router.kernel_routes))
        originates = yield from originated.texts(router.vrf, prefixes, pieces)
        instances.append(_instance(router, values, originates))
    originated.forget({router.vrf for router in given})
    sets = before.after(given)
    problems: list[NeighborProblem] = []
    peers: list[Peer] = []
    for router in given:
        for neighbor in router.neighbors:
            peers.append(_peer(router, neighbor, sets.of(neighbor.key), values, problems))
            if pieces.fill_slice(PIECES_OF_PEER):
                yield
    return Rows(tuple(instances), tuple(peers), sets, tuple(problems))


def _instance(router: MergedRouter, values: NodeValues, originates: tuple[str, ...]) -> Instance:
    return Instance(
        shown_vrf(router.vrf),
        router.vrf or None,
        router.asn,
        router.router_id or router_id_of(values.name, values.node),
        origin=router.origins[0],
        originates=originates,
        redistributes=tuple(dict.fromkeys(str(given) for _, given in router.redistributions)),
        vrf_field=router.vrf_field,
        imports=tuple(InstanceImport(shown_vrf(vrf), None) for vrf in sorted(router.imports)),
    )


def router_id_of(name: str, node: Node | None) -> str:
    """Return the router ID in a router's row: a node's IPv4 address, or a number made of its name.

    The number is FRR-k8s's: the CRC-32 of the name, its lowest octet first.
    """
    addresses = node.status.addresses if node is not None else ()
    for kind in ("InternalIP", "ExternalIP"):
        for entry in addresses:
            if entry.type == kind and "." in entry.address and _is_ipv4(entry.address):
                return entry.address
    return str(ipaddress.IPv4Address(zlib.crc32(name.encode()).to_bytes(4, "little")))


def _is_ipv4(text: str) -> bool:
    try:
        return not ipaddress.IPv4Address(text).is_unspecified
    except ValueError:
        return False


def _peer(
    router: MergedRouter,
    neighbor: MergedNeighbor,
    route_set: str | None,
    values: NodeValues,
    problems: list[NeighborProblem],
) -> Peer:
    session = neighbor.session
    families = families_of(neighbor.key, session.dual_stack, neighbor.families)
    local, down = _local_address(neighbor, values.host, problems)
    if _is_own(neighbor, values.node):
        down = f"it is an address of node {values.name}"
        problem = NeighborProblem(neighbor.key, "address", f"{down}; {STAYS_DOWN}", "invalid")
        problems.append(problem)
    return Peer(
        shown_vrf(router.vrf),
        neighbor.key.end,
        None if neighbor.key.is_interface else neighbor.key.end,
        neighbor.key.end if neighbor.key.is_interface else None,
        session.asn,
        peer_port=session.port,
        local_address=local,
        local_asn=session.local_asn,
        hold_time=session.hold_time,
        keepalive_time=session.keepalive_time,
        connect_retry_time=session.connect_time,
        ebgp_multihop=MULTIHOP_TTL if session.ebgp_multi_hop else 1,
        password=session.password,
        held_password=values.held.get(neighbor.key),
        graceful_restart=GracefulRestart(RESTART_TIME) if neighbor.graceful_restart else None,
        bfd=neighbor.bfd,
        bfd_field=neighbor.bfd_field,
        families=families,
        route_set=route_set,
        accept=None if neighbor.accept is None else tuple(sorted(neighbor.accept, key=_rule_order)),
        accept_origins=neighbor.accept_origins,
        allowas_in_origin=neighbor.allowas_in_origin,
        allowas_in=neighbor.allowas_in,
        reject=_never(values.blocked, families),
        next_hops=tuple(_next_hops(neighbor, families, values.node)),
        origins=neighbor.origins,
        down_reason=down if families else "EVPN alone is not supported",
    )


def _next_hops(
    neighbor: MergedNeighbor, families: Collection[Family], node: Node | None
) -> Iterator[NextHop]:
    """Yield the next hop of each family that is not the address of the session.

    The addresses of the node are of the default VRF.
    """
    session, key = neighbor.session, neighbor.key
    configured = {IPV4_UNICAST: session.next_hop_ipv4, IPV6_UNICAST: session.next_hop_ipv6}
    for family, hop in configured.items():
        if hop is not None and family in families:
            yield NextHop(family, hop, configured=True)
    if key.vrf:
        return
    for default in next_hops_of(node, None if key.is_interface else key.end):
        if default.family in families and configured[default.family] is None:
            yield default


def families_of(key: NeighborKey, both: bool, families: frozenset[str]) -> tuple[Family, ...]:
    """Return the unicast families in the row of an FRR-k8s neighbour: of its address, or both."""
    if "unicast" not in families:
        return ()
    if both or key.is_interface:
        return (IPV4_UNICAST, IPV6_UNICAST)
    return (IPV6_UNICAST,) if ":" in key.end else (IPV4_UNICAST,)


def _rule_order(rule: PrefixRule) -> tuple[object, ...]:
    return (rule.sort_key, rule.origin)


@functools.lru_cache(maxsize=16)
def _never(blocked: tuple[str, ...], families: tuple[Family, ...]) -> tuple[PrefixRule, ...]:
    """Return the rules of the prefixes that are always blocked, of the families of a session."""
    never = []
    for text in blocked:
        family, longest = (IPV6_UNICAST, 128) if ":" in text else (IPV4_UNICAST, 32)
        if family in families:
            never.append(PrefixRule(text, None, longest, label=ALWAYS_BLOCK))
    return tuple(never)


def _local_address(
    neighbor: MergedNeighbor, host: Host, problems: list[NeighborProblem]
) -> tuple[str | None, str | None]:
    """Return the source address, and the reason why the session has to stay down, or None.

    The name of an interface is its address of the session's family. Where the network of the node is
    not known (``waggle render`` without a NodeNetwork), it is left as it is.
    """
    source = neighbor.session.sourceaddress
    if source is None:
        return None, None
    try:
        ipaddress.ip_address(source)
    except ValueError:
        if not host.devices:
            return source, None
    else:
        return source, None
    try:
        return source_address(host, source, 6 if ":" in neighbor.key.end else 4), None
    except ValueError as error:
        text = f"{error}; {STAYS_DOWN}"
        problems.append(NeighborProblem(neighbor.key, "sourceaddress", text, "unresolved"))
        return None, str(error)


def _is_own(neighbor: MergedNeighbor, node: Node | None) -> bool:
    """True if a neighbour would be this agent: an address of the node, in the default VRF.

    With another port it is another program of the node.
    """
    if node is None or neighbor.key.vrf or neighbor.session.port != PORT:
        return False
    return neighbor.key.end in (comparable_address(of.address) for of in node.status.addresses)


def neighbor_problems(
    problems: Sequence[NeighborProblem], units: Iterable[Unit]
) -> Iterator[Problem]:
    """Yield the problems of neighbours in rows of routers: of the oldest unit that sets the field."""
    if not problems:
        return
    places: dict[tuple[NeighborKey, str], tuple[Unit, str]] = {}
    for unit in sorted(units, key=lambda unit: unit.age):
        for key, neighbor, path in _neighbors(unit):
            for field in ("address", "sourceaddress"):
                if getattr(neighbor, field):
                    places.setdefault((key, field), (unit, f"{path}.{field}"))
    for problem in problems:
        place = places.get((problem.key, problem.field))
        if place is not None:
            unit, path = place
            text = f"{problem.key}: {problem.message}"
            yield Problem((unit.ref,), unit.path(path), text, category=problem.category)


def _neighbors(unit: Unit) -> Iterator[tuple[NeighborKey, Neighbor, str]]:
    """Yield the neighbours of a unit, which are valid, with their paths."""
    for i, router in enumerate(unit.row.spec.bgp.routers):
        for j, neighbor in enumerate(router.neighbors):
            with contextlib.suppress(ValueError):
                end = neighbor.interface or address(neighbor.address)
                key = NeighborKey(vrf_name(router.vrf), end, bool(neighbor.interface))
                yield key, neighbor, f"spec.bgp.routers[{i}].neighbors[{j}]"
