"""A reference implementation: the stable routes of a network, without any code of the speaker.

Every speaker selects and advertises, round by round, until nothing changes. Written for reading: no
messages, no time. Routes are plain tuples; each rule of BGP is a line with its section of RFC 4271.

Not modelled, because several stable results or none may exist then (RFC 3345): MED in route selection,
and local preferences that differ between speakers of one AS.
"""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Route:
    """One route as a speaker has it."""

    prefix: str
    as_path: tuple[int, ...]
    local_preference: int | None
    med: int | None
    communities: tuple[str, ...]
    origin: int = 0


@dataclass(frozen=True)
class Edge:
    """The configuration of one speaker for a neighbour."""

    imports: bool
    export: str
    """all, local or none."""
    add_community: str | None = None
    """The community that the export policy adds."""
    only: frozenset[str] | None = None
    """The prefixes that the import policy accepts; None accepts all."""


@dataclass
class Node:
    """One speaker."""

    name: str
    asn: int
    router_id: int
    address: int
    local: dict[str, Route] = field(default_factory=dict)
    edges: dict[str, Edge] = field(default_factory=dict)


Key = tuple[str, str, tuple[str, ...]]
"""The advertising neighbour, the prefix, and the neighbours before it (empty without ADD-PATH)."""
Table = dict[Key, Route]
"""The received routes of one speaker."""


@dataclass(frozen=True)
class Candidate:
    """An eligible route; ``neighbour`` None is the speaker itself."""

    neighbour: str | None
    way: tuple[str, ...]
    route: Route
    rank: tuple[object, ...]
    """The lowest is best."""


Choice = dict[str, list[Candidate]]
"""Prefix -> candidates, the best one first."""


@dataclass(frozen=True)
class Results:
    """The received routes of each speaker, and its candidates."""

    received: dict[str, Table]
    choice: dict[str, Choice]


def solve(nodes: dict[str, Node], links: set[frozenset[str]], *, add_path: bool) -> Results:
    """Return the stable routes; with ``add_path`` every speaker advertises all paths."""
    received: dict[str, Table] = {name: {} for name in nodes}
    for _ in range(4 * len(nodes) + 8):
        advertised: dict[str, Table] = {name: {} for name in nodes}
        for node in nodes.values():
            choice = choose(node, received[node.name], nodes)
            for other in nodes.values():
                if frozenset((node.name, other.name)) in links:
                    _advertise_all(
                        node, other, choice, nodes, advertised[other.name], add_path=add_path
                    )
        if advertised == received:
            return Results(
                received, {name: choose(nodes[name], received[name], nodes) for name in nodes}
            )
        received = advertised
    raise AssertionError("the network does not settle: a mistake of how it was made")


def _advertise_all(
    node: Node,
    other: Node,
    choice: Choice,
    nodes: dict[str, Node],
    advertised: Table,
    *,
    add_path: bool,
) -> None:
    for prefix, candidates in choice.items():
        for one in candidates if add_path else candidates[:1]:
            sent = advertise(node, other, one.neighbour, one.route, nodes)
            if sent is not None:
                way = (one.neighbour or "", *one.way) if add_path else ()
                advertised[node.name, prefix, way] = sent


def advertise(
    node: Node, other: Node, source: str | None, route: Route, nodes: dict[str, Node]
) -> Route | None:
    """Return a route as it is advertised to a neighbour, or None."""
    edge = node.edges[other.name]
    external = node.asn != other.asn
    if edge.export == "none" or (edge.export == "local" and source is not None):
        return None
    if source == other.name:
        # A route is not advertised to the neighbour that it came from.
        return None
    if source is not None and not external and nodes[source].asn == node.asn:
        # 9.2: routes from an internal peer are not advertised to internal peers.
        return None
    if source is not None and "no-advertise" in route.communities:
        return None
    if source is not None and external and "no-export" in route.communities:
        return None
    communities = route.communities
    if edge.add_community is not None and edge.add_community not in communities:
        communities = (*communities, edge.add_community)
    if external:
        # 5.1.2, 5.1.4, 5.1.5
        return Route(
            route.prefix,
            (node.asn, *route.as_path),
            None,
            route.med if source is None else None,
            communities,
            route.origin,
        )
    preference = 100 if route.local_preference is None else route.local_preference
    return Route(route.prefix, route.as_path, preference, route.med, communities, route.origin)


def usable(node: Node, neighbour: str, route: Route) -> bool:
    """Return whether a received route is eligible."""
    edge = node.edges[neighbour]
    if not edge.imports or (edge.only is not None and route.prefix not in edge.only):
        return False
    # 9.1.2: loops
    return node.asn not in route.as_path


def choose(node: Node, received: Table, nodes: dict[str, Node]) -> Choice:
    """Return the usable routes of each prefix, the best one first (9.1.2.2)."""
    found: Choice = {}
    for prefix, route in node.local.items():
        found.setdefault(prefix, []).append(Candidate(None, (), route, (0,)))
    for (neighbour, prefix, way), route in received.items():
        if usable(node, neighbour, route):
            rank = _rank(node, nodes[neighbour], route)
            found.setdefault(prefix, []).append(Candidate(neighbour, way, route, rank))
    return {prefix: sorted(each, key=lambda one: one.rank) for prefix, each in found.items()}


def _rank(node: Node, source: Node, route: Route) -> tuple[object, ...]:
    return (
        1,
        -(100 if route.local_preference is None else route.local_preference),
        len(route.as_path),
        route.origin,
        source.asn == node.asn,
        source.router_id,
        source.address,
    )
