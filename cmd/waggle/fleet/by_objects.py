"""The routes that nodes are to advertise by the objects of their cluster, where no agent answers.

The objects are compiled as for ``waggle plan --from-cluster``, and joined with the sessions and other
evidence of status objects. Whether a route has been sent is known to the agent alone: no item claims
it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final, NamedTuple, TypeAlias

import msgspec

from cells.api.pod_transport import ClusterLoop
from cells.api.resource import NotFoundError
from cells.api.transport import AgentError
from cells.serve.items import explain_item
from reconcilers.compile_manifests import CompiledManifests, kinds_of, unknown_node
from reconcilers.dialect import Dialect, explained_kinds
from reconcilers.intent.explain import NothingFoundError, parse_target
from reconcilers.intent.peer_names import chosen_peer, named_by_objects
from reconcilers.intent_tables import Json
from reconcilers.model import Peer
from reconcilers.plan import NodeState, PeerState
from reconcilers.plan_manifests import node_names
from resources.core.kinds import NODE
from resources.enumeration import counted
from resources.manifests.load import Loaded
from speaker.api import parse_prefix
from speaker.nlri import prefix_to_wire
from waggle.fleet.agent_options import AgentOptions, read_agent_options
from waggle.fleet.ask import in_cluster
from waggle.fleet.objects import objects_of, secrets_of
from waggle.fleet.statuses import BASIS, StatusSessions, sessions_of_peer
from waggle.output import age, read_time
from waggle.sessions import ESTABLISHED

Item: TypeAlias = dict[str, Any]
READY: Final = "Ready"


class ClusterIntent(NamedTuple):
    """The objects of a cluster, and how its agents compile them."""

    server: str
    loaded: Loaded
    dialects: list[type[Dialect]]
    options: AgentOptions
    notes: list[str]
    nodes: Mapping[str, Mapping[str, Any]]
    """The Node objects as they are, by name."""


def read_intent(
    loop: ClusterLoop, namespace: str, dialects: Sequence[type[Dialect]]
) -> ClusterIntent:
    """Read all that nodes are configured by. Raises `AgentError`."""
    options = in_cluster(loop, read_agent_options(loop.connection, namespace, dialects))
    own = options.of_agents(dialects)
    kinds = kinds_of(own)
    cluster = objects_of(loop, own, options.settings)
    secrets, _ = secrets_of(loop, [cluster.loaded(kinds)], own, options.settings, kinds)
    nodes = {v["metadata"]["name"]: v for v in cluster.objects if v.get("kind") == NODE.name}
    loaded = cluster.loaded(kinds, secrets)
    return ClusterIntent(cluster.server, loaded, own, options, cluster.notes, nodes)


class ByObjects:
    """The routes of nodes by the objects, with the sessions that status objects have."""

    def __init__(self, cluster: ClusterIntent, statuses: StatusSessions) -> None:
        self._cluster = cluster
        self._statuses = statuses
        self._now = datetime.now(UTC)

    @property
    def all_nodes(self) -> set[str]:
        """The names of all Nodes."""
        return node_names(self._cluster.loaded)

    def nodes(self, wanted: Sequence[str]) -> list[str]:
        """Return these nodes, or all. Raises `AgentError` for an unknown one."""
        known = self.all_nodes
        for node in wanted:
            if node not in known:
                raise AgentError("NotFound", unknown_node(node, known))
        return sorted(wanted or known)

    def notes(self, nodes: Sequence[str]) -> Iterator[str]:
        """Yield what the items of these nodes are computed from, and statuses that may be stale."""
        yield (
            f"computed from the objects of {self._cluster.server} with "
            f"{self._cluster.options.source}, and from status objects: whether a route was sent is "
            "known to the agents alone"
        )
        yield from self._cluster.notes
        for node in nodes:
            if text := self._stale(node):
                yield f"{node}: {text}"

    def _stale(self, node: str) -> str:
        """Return why the status objects of a node may be older than what it does; else empty."""
        value = self._cluster.nodes.get(node)
        if value is None:
            return "there is no Node of this name: its status objects are what it left"
        for condition in value.get("status", {}).get("conditions", ()):
            if condition.get("type") == READY and condition.get("status") != "True":
                since = condition.get("lastTransitionTime")
                ago = f" for {age(read_time(since), self._now)}" if since else ""
                return f"the Node has not been Ready{ago}: its status objects may be stale"
        return ""

    # Routes

    def routes(self, node: str, query: Mapping[str, str | None]) -> Json:
        """Return a RouteList of what a node is to advertise, with the query of ``/v1/routes``.

        Raises ValueError for an invalid prefix.
        """
        prefix, family = query.get("prefix"), query.get("family")
        wanted = None if prefix is None else parse_prefix(prefix)
        compiled = self._compiled(node)
        rows = _rows(compiled)
        chosen = chosen_peer(rows.values(), query.get("peer"), query.get("instance"))
        state = compiled.state()
        items: list[Item] = []
        is_known = False
        for key, peer in sorted(state.peers.items()):
            if not chosen(*key, peer.config.address):
                continue
            is_known = True
            routes = _of_families(state.sent_routes(peer), peer)
            of_peer = _Session(self, node, rows[key], state, peer, routes)
            if family is not None:
                routes = {p: r for p, r in routes.items() if str(prefix_to_wire(p)[0]) == family}
            if wanted is not None:
                by_wire = {prefix_to_wire(text): text for text in routes}
                texts = (by_wire.get((wanted.family, nlri)) for nlri in wanted.prefixes)
                first = next(filter(None, texts), None)
                routes = {} if first is None else {first: routes[first]}
            items += [of_peer.route(prefix, route) for prefix, route in routes.items()]
        names = query.get("peer"), query.get("instance")
        errors = [] if is_known else _unknown(state.instances, rows.values(), *names)
        return {"items": items, "errors": errors}

    def peers(self, node: str) -> list[Item]:
        """Return the names of the peers that a node is to have."""
        rows = _rows(self._compiled(node)).values()
        return [{"name": r.name, "instance": r.instance, "address": r.address} for r in rows]

    # Explanations

    def explanations(
        self, node: str, target: str | None, peer: str | None, instance: str | None
    ) -> Json:
        """Return an ExplainList of a node. Raises ValueError for an invalid target."""
        parsed = (
            None
            if target is None
            else parse_target(target, explained_kinds(self._cluster.dialects))
        )
        compiled = self._compiled(node)
        rows = _rows(compiled)
        chosen = chosen_peer(rows.values(), peer, instance)
        state = compiled.state()
        items: list[Item] = []
        try:
            for group in compiled.explainer().explain(parsed, chosen):
                for explanation in group:
                    item: Item = msgspec.to_builtins(explain_item(node, explanation))
                    key = explanation.instance or "", explanation.peer or ""
                    if key in rows and key in state.peers:
                        of_peer = state.peers[key]
                        routes = _of_families(state.sent_routes(of_peer), of_peer)
                        session = _Session(self, node, rows[key], state, of_peer, routes)
                        item = session.explained(item)
                    items.append(item | {"basis": BASIS})
        except NothingFoundError as error:
            return {"items": [], "errors": [_missing(NotFoundError(str(error)))]}
        is_known = any(chosen(row.instance, row.name, row.address) for row in rows.values())
        return {
            "items": items,
            "errors": [] if is_known else _unknown(state.instances, rows.values(), peer, instance),
        }

    # Parts

    def _compiled(self, node: str) -> CompiledManifests:
        settings = msgspec.structs.replace(self._cluster.options.settings, node=node)
        return CompiledManifests(self._cluster.loaded, self._cluster.dialects, settings)

    def session(self, node: str, peer: PeerState, instances: Sequence[str]) -> Mapping[str, Any]:
        """Return the session of a peer in the status objects; empty where none has it."""
        end = peer.config.address or peer.config.interface or ""
        of_peer = sessions_of_peer(self._statuses.by_node.get(node, ()), end, instances)
        return of_peer[0] if len(of_peer) == 1 else {}

    def sentence(self, session: Mapping[str, Any]) -> str:
        """Return a session of a status object in words."""
        if not session:
            return "no status object has the session"
        text = f"session {session['state']} by {session['source']}"
        changed = session.get("statusTime")
        return f"{text} of {age(read_time(changed), self._now)} ago" if changed else text

    def evidence(self, node: str, peer: Peer, origins: Sequence[str]) -> Iterator[str]:
        """Yield what status objects have of the routes of these objects at a peer."""
        for extension, claims in self._statuses.claims:
            names = extension.named(peer)
            own = [claim for claim in claims if claim.peers.node == node]
            if not names:
                continue
            objects = [text for text in origins if text.startswith(f"{extension.of_kind}/")]
            for of_object in objects if extension.of_kind else (None,):
                claim = next((c for c in own if c.peers.object == of_object), None)
                if claim is None:
                    whose = f" of {of_object}" if of_object else ""
                    yield f"no {extension.kind.name}{whose}"
                    continue
                has = "has" if not set(names).isdisjoint(claim.peers.peers) else "does not have"
                yield f"{claim.source} {has} {names[0]}"
                if claim.peers.problem:
                    yield f"{claim.source}: {claim.peers.problem}"


class _Session:
    """One peer of a node: the items of its routes."""

    def __init__(
        self,
        of: ByObjects,
        node: str,
        row: Peer,
        state: NodeState,
        peer: PeerState,
        routes: Mapping[str, Json],
    ) -> None:
        self._of = of
        self._node = node
        self._row = row
        self._down = peer.config.disabled_reason or ""
        instance = state.instances[row.instance]
        # A BGPSessionState has the VRF, and nothing for the default one.
        self._session = of.session(node, peer, (row.instance, instance.vrf or "default"))
        self._numbers = list(_numbers(self._session, routes))
        known = ("source", "statusTime")
        self._members = {name: self._session[name] for name in known if name in self._session}
        if self._session:
            self._members["sessionState"] = self._session["state"]

    @property
    def _state(self) -> str:
        if self._down:
            return f"the session stays down: {self._down}"
        return self._of.sentence(self._session)

    def _status(self, origins: Sequence[str]) -> str:
        evidence = self._of.evidence(self._node, self._row, origins)
        return "; ".join(["by the objects", self._state, *self._numbers, *evidence])

    def route(self, prefix: str, route: Json) -> Item:
        """Return the item of a route."""
        origins = [
            {key: value for key, value in origin.items() if value is not None and key != "type"}
            for origin in route["origins"]
        ]
        names = ["/".join(origin.values()) for origin in origins]
        item = {
            "node": self._node,
            "instance": self._row.instance,
            "peer": self._row.name,
            "family": str(prefix_to_wire(prefix)[0]),
            **{key: value for key, value in route.items() if value is not None},
            "origins": origins,
            "basis": BASIS,
            "status": self._status(names),
        }
        return item | self._members

    def explained(self, item: Item) -> Item:
        """Return an explanation, completed by the session."""
        if not item["advertised"]:
            return item | self._members
        origin = item.get("object")
        names = ["/".join(origin.values())] if origin else []
        if self._down or self._session.get("state", ESTABLISHED) != ESTABLISHED:
            wanted = f"advertised by the objects; {self._state}"
            return item | self._members | _verdict("SessionDown", wanted, advertised=False)
        return item | self._members | _verdict("ByObjects", self._status(names), advertised=True)


def _verdict(reason: str, message: str, *, advertised: bool) -> Item:
    return {"advertised": advertised, "reason": reason, "message": message}


def _missing(error: NotFoundError) -> Item:
    unknown = {} if error.unknown is None else {"unknown": error.unknown}
    return {"code": "NotFound", "message": str(error), **unknown}


def _unknown(
    instances: Collection[str], rows: Iterable[Peer], peer: str | None, instance: str | None
) -> list[Item]:
    """Return the error for a peer or instance that a node does not have; none without its name."""
    known = list(rows)
    if instance is not None and instance not in instances:
        return [_missing(NotFoundError.of_name("instance", instance, instances))]
    if peer is None:
        return []
    own = [row for row in known if instance in (None, row.instance)]
    names = {row.name for row in own} | {row.address or "" for row in own}
    names |= named_by_objects(own).keys()
    return [_missing(NotFoundError.of_name("peer", peer, names, instance))]


def _rows(compiled: CompiledManifests) -> dict[tuple[str, str], Peer]:
    rows = compiled.intent.peers.all(compiled.db.snapshot())
    return {(row.instance, row.name): row for row in rows}


def _of_families(routes: Mapping[str, Json], peer: PeerState) -> dict[str, Json]:
    """Return the routes of the families that a peer is configured for."""
    families = set(peer.config.families)
    return {text: r for text, r in routes.items() if prefix_to_wire(text)[0] in families}


def _numbers(session: Mapping[str, Any], routes: Mapping[str, Json]) -> Iterator[str]:
    """Yield how many routes of each family a status has, beside the number by the objects."""
    for count in session.get("advertised") or ():
        wanted = sum(str(prefix_to_wire(text)[0]) == count["family"] for text in routes)
        other = "" if wanted == count["routes"] else f", {wanted} by the objects"
        routes_sent = counted(count["routes"], f"{count['family']} route")
        yield f"{routes_sent} sent by the status{other}"
