"""MetalLB's BGP kinds as a dialect that feeds FRR-k8s."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, ClassVar, Final

from reconcilers.dialect import (
    Dialect,
    Fed,
    NodeContext,
    NodeIntent,
    Rival,
    RouteSource,
    Target,
)
from reconcilers.frrk8s.options import Frrk8sClusterOptions
from reconcilers.frrk8s.route_sets import RouteSet
from reconcilers.frrk8s.selection import selected
from reconcilers.metallb.explain import Candidate, candidates, explain
from reconcilers.metallb.generated import (
    configuration,
    configuration_name,
    peer_routes,
    service_statuses,
)
from reconcilers.metallb.node import checked, compiled_rules, fed, peer_rules, read_objects
from reconcilers.metallb.objects import Objects
from reconcilers.metallb.options import MetalLBOperatorOptions, MetalLBOptions
from reconcilers.metallb.preferences import fed_preferences, given, watched, yielding
from reconcilers.metallb.rules import NodeRules
from reconcilers.metallb.services import ServiceState, service_state
from reconcilers.metallb.source import MetalLBServiceSource, rules_of
from reconcilers.model import ObjectRef, Peer, Problem, RouteExplanation, ref_to
from reconcilers.tables import IntentTables
from resources.core.kinds import BY_SERVICE, ENDPOINT_SLICE, NODE, SECRET, SERVICE
from resources.frrk8s.kinds import FRR_CONFIGURATION
from resources.kind import Kind
from resources.metallb import kinds as metallb
from resources.tables import Tables
from statedb import Snapshot, Table

REPLACED: Final = (
    "it does not count: MetalLB's speaker has written it, and the objects that it is made of are "
    "compiled here; stop the speaker, and delete it"
)


class MetalLBDialect(Dialect):
    """MetalLB's BGP kinds."""

    name: ClassVar = "metallb"
    title: ClassVar = "MetalLB"
    feeds: ClassVar = "frrk8s"
    secrets_option: ClassVar = "namespace"
    kinds: ClassVar[tuple[Kind[Any], ...]] = (
        NODE,
        SERVICE,
        ENDPOINT_SLICE,
        SECRET,
        *metallb.CONFIGURATION,
        metallb.L2_ADVERTISEMENT,
    )
    cluster_kinds: ClassVar[tuple[Kind[Any], ...]] = (NODE, SECRET, *metallb.CONFIGURATION)
    options_type: ClassVar = MetalLBOptions
    operator_options_type: ClassVar = MetalLBOperatorOptions
    rivals: ClassVar = (
        Rival(
            "MetalLB's speaker",
            "app.kubernetes.io/name=metallb,app.kubernetes.io/component=speaker",
        ),
        Rival("MetalLB's speaker", "app=metallb,component=speaker"),
    )
    selecting_kinds: ClassVar = frozenset({metallb.BGP_PEER.name})

    options: MetalLBOptions | MetalLBOperatorOptions

    def __init__(self, tables: Tables, options: MetalLBOptions | MetalLBOperatorOptions) -> None:
        super().__init__(tables, options)
        of_node = options if isinstance(options, MetalLBOptions) else MetalLBOptions()
        self._class = of_node.load_balancer_class
        self._ignore_label = of_node.ignore_exclude_lb
        self._objects = Objects()
        """The objects that are in force: with ``keep`` the last good ones."""
        self._last_good: tuple[Fed, ...] = ()
        self._watching = False
        self._frr_namespace = Frrk8sClusterOptions().namespace
        self.sources: tuple[RouteSource, ...] = (MetalLBServiceSource(tables, self._class),)

    @property
    def compiled_tables(self) -> tuple[Table[Any], ...]:
        """The tables of MetalLB's kinds, FRRConfigurations, and Secrets.

        Services are among them only while an FRRConfiguration gives a prefix of a BGPPeer's neighbour
        a local preference, which a Service may contradict.
        """
        t = self.tables
        found = [
            *(t.of(kind) for kind in metallb.CONFIGURATION),
            t.of(FRR_CONFIGURATION),
            t.secrets,
        ]
        return (*found, t.services, t.endpoint_slices) if self._watching else tuple(found)

    def compile(self, snapshot: Snapshot, context: NodeContext) -> NodeIntent:
        """Translate the BGPPeers of the node; routes come of Services, by the rules of each peer."""
        node = self.tables.nodes.get(snapshot, ("", context.node))
        labels = node.metadata.labels if node is not None else {}
        namespace = self.options.namespace
        objects = read_objects(self.tables, snapshot, namespace, labels)
        mode = _fed_options(context).on_conflict
        self._frr_namespace = _fed_options(context).namespace
        found = checked(
            objects,
            lambda key: self.tables.secrets.get(snapshot, key),
            namespace,
            isolate=mode == "isolate",
        )
        problems = tuple(one.problem for one in found.findings)
        if found.usable:
            rules = compiled_rules(found.objects, node, self._ignore_label)
            self._objects = found.objects
            self._last_good = self._fed(snapshot, context, labels, found.objects, rules)
        elif mode == "clear":
            self._objects, self._last_good = Objects(), ()
        replaced = self._replaced(snapshot, context.node)
        problems += tuple(Problem((ref,), "", REPLACED, category="unsupported") for ref in replaced)
        return NodeIntent(fed=self._last_good, replaced=replaced, problems=problems)

    def _replaced(self, snapshot: Snapshot, node: str) -> frozenset[ObjectRef]:
        """Return the FRRConfiguration that MetalLB's own speaker has written for the node."""
        peers = self.tables.of(metallb.BGP_PEER).all(snapshot)
        if not any(row.metadata.namespace == self.options.namespace for row in peers):
            return frozenset()
        key = (self._frr_namespace, configuration_name(node))
        row = self.tables.of(FRR_CONFIGURATION).get(snapshot, key)
        return frozenset() if row is None else frozenset({ref_to(FRR_CONFIGURATION, row)})

    def _fed(
        self,
        snapshot: Snapshot,
        context: NodeContext,
        labels: Mapping[str, str],
        objects: Objects,
        rules: NodeRules,
    ) -> tuple[Fed, ...]:
        options = _fed_options(context)
        of_peers = peer_rules(objects, rules)
        rows = selected(
            self.tables.of(FRR_CONFIGURATION).all(snapshot), labels, options.namespace
        ).rows
        watch = watched(rows, objects.peers)
        self._watching = bool(watch)
        if not watch:
            return fed(objects, of_peers)
        advertisements = {one.ref: one for one in rules.advertisements}
        contradicting = given(self._states(snapshot, context.node), of_peers, watch)
        preferences = fed_preferences(contradicting, objects, advertisements)
        if options.on_conflict == "isolate":
            out = yielding(contradicting, watch, advertisements)
            of_peers = peer_rules(objects, rules.without(out))
        return (*fed(objects, of_peers), *preferences)

    def _states(self, snapshot: Snapshot, node: str) -> Iterator[ServiceState]:
        t = self.tables
        for service in t.services.all(snapshot):
            if service.spec.type == "LoadBalancer":
                slices = t.endpoint_slices.find(snapshot, BY_SERVICE, service.key)
                yield service_state(service, slices, node, self._class)

    def rendered(self, snapshot: Snapshot, node: str, intent: IntentTables) -> Iterator[Any]:
        """Yield the FRRConfiguration and the ServiceBGPStatuses that MetalLB's speaker would write."""
        if not self._objects.peers:
            return
        routes = peer_routes(snapshot, intent)
        yield configuration(node, self._frr_namespace, self._objects, routes)
        yield from service_statuses(node, self.options.namespace, routes)

    def candidates(
        self,
        snapshot: Snapshot,
        context: NodeContext,
        rules: Mapping[str, Any],  # noqa: ARG002
        target: Target | None,
    ) -> Iterator[Candidate]:
        """Yield the addresses of Services of type LoadBalancer, and of the target."""
        t = self.tables
        for service in t.services.all(snapshot):
            named = target is not None and target.names(ObjectRef(SERVICE.name, *service.key))
            if named or (
                service.spec.type == "LoadBalancer"
                and (target is None or target.prefix is not None)
            ):
                slices = t.endpoint_slices.find(snapshot, BY_SERVICE, service.key)
                yield from candidates(service_state(service, slices, context.node, self._class))

    def explain(self, candidate: Candidate, peer: Peer, rules: RouteSet | None) -> RouteExplanation:
        """Explain what becomes of a Service's address at a peer."""
        return explain(candidate, peer, rules_of(rules))


def _fed_options(context: NodeContext) -> Frrk8sClusterOptions:
    options = context.fed_options
    return options if isinstance(options, Frrk8sClusterOptions) else Frrk8sClusterOptions()
