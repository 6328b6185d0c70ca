"""The intent of one node, read from its tables."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import msgspec
from msgspec.structs import replace

from reconcilers.apply.to_speaker import instance_config, peer_config
from reconcilers.intent.render import route_items
from reconcilers.intent_tables import IntentTables, Json
from reconcilers.model import PasswordRef
from resources.tables import Tables
from speaker.api import InstanceConfig, InvalidConfig, PeerConfig
from statedb import Snapshot


class PeerState(msgspec.Struct, frozen=True):
    """A session as it is configured."""

    config: PeerConfig
    object: str | None
    """The first of the objects that configure it; of a generated one its owner."""


class ProblemState(msgspec.Struct, frozen=True):
    """A problem of objects."""

    objects: tuple[str, ...]
    field: str
    message: str
    where: str = ""
    """The file and line, of a problem of one object in manifests."""


class NodeState(msgspec.Struct, frozen=True):
    """Instances, sessions, route sets and problems of a node."""

    instances: Mapping[str, InstanceConfig] = {}
    peers: Mapping[tuple[str, str], PeerState] = {}
    """By instance and name."""
    route_sets: Mapping[str, Mapping[str, Json]] = {}
    """By name and prefix; the routes as ``waggle render`` has them."""
    problems: tuple[ProblemState, ...] = ()
    kernel: tuple[Json, ...] = ()
    """The received routes that stand in the kernel, as ``waggle render`` has them."""

    def routes_of(self, peer: PeerState) -> Mapping[str, Json]:
        """Return the routes of a peer's route set in this state, by prefix."""
        return self.route_sets.get(peer.config.route_set or "", {})

    def sent_routes(self, peer: PeerState | None) -> Mapping[str, Json]:
        """Return the routes that a peer is sent in this state, with the peer's own next hops."""
        if peer is None:
            return {}
        routes, config = self.routes_of(peer), peer.config
        hops = {False: config.next_hop_ipv4, True: config.next_hop_ipv6}
        if not any(hops.values()):
            return routes
        return {
            prefix: {**route, "nextHop": route["nextHop"] or hops[":" in prefix]}
            for prefix, route in routes.items()
        }


def node_state(
    snapshot: Snapshot,
    resources: Tables,
    intent: IntentTables,
    password_of: Callable[[PasswordRef], bytes | None],
    *,
    bfd: bool,
    routes: bool = True,
) -> NodeState:
    """Return the state of the node for a plan, of the tables that are compiled for it.

    Without ``bfd`` its peers have no BFD sessions; without ``routes`` its route sets are empty.
    """
    problems = [
        ProblemState((str(row.object or ""),), row.field, row.message, row.where)
        for row in resources.source_problems.all(snapshot)
    ]
    problems += [
        ProblemState((*map(str, row.objects),), row.field, row.message)
        for row in intent.problems.all(snapshot)
    ]
    instances = {row.name: row for row in intent.instances.all(snapshot)}
    owners = {row.object: row.owner for row in intent.generated.all(snapshot)}
    peers: dict[tuple[str, str], PeerState] = {}
    for row in intent.peers.all(snapshot):
        if row.instance not in instances:
            continue
        origin = next((str(owners.get(ref, ref)) for ref in row.origins), None)
        try:
            config = peer_config(row, instances[row.instance].local_asn, password_of)
        except InvalidConfig as error:
            problems.append(ProblemState((*map(str, row.origins),), error.field, str(error)))
            continue
        if not bfd and config.bfd is not None:
            config = replace(config, bfd=None)
        peers[row.instance, row.name] = PeerState(config, origin)
    names = {peer.config.route_set for peer in peers.values()} - {None}
    return NodeState(
        {name: instance_config(row) for name, row in instances.items()},
        peers,
        {
            name: {route["prefix"]: route for route in route_items(snapshot, intent, name)}
            if routes
            else {}
            for name in names
            if name is not None
        },
        tuple(problems),
    )
