"""MetalLB's BGP kinds as a dialect that feeds FRR-k8s."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping
from typing import Any, ClassVar, Final, NamedTuple

from msgspec.structs import replace

from reconcilers.dialect import (
    ClusterAddresses,
    ClusterContext,
    ClusterIntent,
    Companion,
    Dialect,
    Fed,
    Memory,
    NodeContext,
    NodeIntent,
    NodeObject,
    NodeObjectContext,
    NodeObjectKind,
    Rival,
    RouteSource,
    Target,
)
from reconcilers.frrk8s.conditions import NodesMerge
from reconcilers.frrk8s.options import Frrk8sClusterOptions
from reconcilers.frrk8s.route_sets import RouteSet
from reconcilers.metallb import cluster
from reconcilers.metallb.explain import Candidate, candidates, explain
from reconcilers.metallb.generated import configuration, peer_routes, service_statuses
from reconcilers.metallb.memory import RememberedObjects, remembered_objects
from reconcilers.metallb.node import NodeObjects, fed
from reconcilers.metallb.node_objects import (
    CONFIGURATION_STATE,
    SERVICE_STATUS,
    configuration_state,
    service_status,
)
from reconcilers.metallb.node_view import NodeView, fed_options
from reconcilers.metallb.objects import Objects
from reconcilers.metallb.options import MetalLBOperatorOptions, MetalLBOptions
from reconcilers.metallb.services import service_state
from reconcilers.metallb.source import MetalLBServiceSource, rules_of
from reconcilers.metallb.without_effect import other_namespace, without_effect
from reconcilers.model import ObjectRef, Peer, Problem, RouteExplanation, ref_to
from reconcilers.slices import Slices, finish
from reconcilers.tables import IntentTables
from resources.core.kinds import BY_SERVICE, ENDPOINT_SLICE, NODE, SECRET, SERVICE
from resources.frrk8s import condition_types
from resources.frrk8s.kinds import FRR_CONFIGURATION
from resources.kind import Kind
from resources.meta import ObjectKey
from resources.metallb import kinds as metallb
from resources.metallb.bgppeer import BGPPeer
from resources.metallb.objects import MetalLBObject
from resources.tables import Tables
from statedb import Snapshot, Table

REPLACED: Final = (
    "it does not count: MetalLB's speaker has written it, and the objects that it is made of are "
    "compiled here; stop the speaker, and delete it"
)
OF_CONFIGURATION: Final = frozenset(
    {"NoPool", "NoMatchingAdvertisement", "NoRule", "NotOwner", "PeerNotSelected"}
)
"""Reasons for which objects that are not in effect may be the cause."""


class _State(NamedTuple):
    """What the objects of a node come to."""

    objects: Objects = Objects()
    fed: tuple[Fed, ...] = ()
    frr_namespace: str = ""
    watches: bool = False
    """True if Services may contradict an FRRConfiguration."""


class MetalLBDialect(Dialect):
    """MetalLB's BGP kinds."""

    name: ClassVar = "metallb"
    title: ClassVar = "MetalLB"
    feeds: ClassVar = "frrk8s"
    kinds: ClassVar[tuple[Kind[Any], ...]] = (
        NODE,
        SERVICE,
        ENDPOINT_SLICE,
        SECRET,
        *metallb.CONFIGURATION,
        metallb.L2_ADVERTISEMENT,
    )
    cluster_kinds: ClassVar[tuple[Kind[Any], ...]] = (NODE, *metallb.CONFIGURATION)
    options_type: ClassVar = MetalLBOptions
    operator_options_type: ClassVar = MetalLBOperatorOptions
    rivals: ClassVar = (
        Rival(
            "MetalLB's speaker",
            "app.kubernetes.io/name=metallb,app.kubernetes.io/component=speaker",
        ),
        Rival("MetalLB's speaker", "app=metallb,component=speaker"),
    )
    companions: ClassVar = (
        Companion(
            "MetalLB's controller",
            (
                "app.kubernetes.io/name=metallb,app.kubernetes.io/component=controller",
                "app=metallb,component=controller",
            ),
            "controller",
            tested=((0, 14), (0, 16)),
            kinds=metallb.CONFIGURATION,
        ),
    )
    secrets_namespace_option: ClassVar = "namespace"
    selecting_kinds: ClassVar = frozenset({metallb.BGP_PEER.name})
    managed_conditions: ClassVar = condition_types.TYPES
    condition_kinds: ClassVar = metallb.CONFIGURATION
    reviewed_kinds: ClassVar = metallb.CONFIGURATION
    node_object_kinds: ClassVar[tuple[NodeObjectKind, ...]] = (CONFIGURATION_STATE, SERVICE_STATUS)
    node_object_origins: ClassVar = frozenset({SERVICE.name})
    defined_kinds: ClassVar = (metallb.SERVICE_BGP_STATUS, metallb.CONFIGURATION_STATE)

    options: MetalLBOptions | MetalLBOperatorOptions

    def __init__(self, tables: Tables, options: MetalLBOptions | MetalLBOperatorOptions) -> None:
        super().__init__(tables, options)
        is_agent = isinstance(options, MetalLBOptions)
        of_node = options if isinstance(options, MetalLBOptions) else MetalLBOptions()
        self._class = of_node.load_balancer_class
        self._view = NodeView(tables, options.namespace, of_node, reads_secrets=is_agent)
        self._service_statuses = of_node.service_statuses
        self._state = _State()
        """What is fed to FRR-k8s."""
        self._keeps = False
        self._good: _State | None = None
        """The last state that was in effect."""
        self._memory: RememberedObjects | None = None
        """The objects of that state."""
        self._checked_objects: NodeObjects | None = None
        """Of the last compilation."""
        self._in_effect = False
        """True if what was fed last is in effect."""
        self._remembered: Objects | None = None
        """Of the last good state of an earlier process."""
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
        return (*found, t.services, t.endpoint_slices) if self._state.watches else tuple(found)

    def referenced_secrets(self, snapshot: Snapshot, secrets_namespace: str) -> Iterator[ObjectKey]:  # noqa: ARG002
        """Yield the Secrets that BGPPeers name, of MetalLB's namespace."""
        for row in self.tables.of(metallb.BGP_PEER).all(snapshot):
            if row.metadata.namespace == self.options.namespace:
                yield row.metadata.namespace, row.spec.password_secret.name

    def cluster_addresses(self, snapshot: Snapshot, node: str | None = None) -> ClusterAddresses:  # noqa: ARG002
        """Return both ends of all BGPPeers in effect: those of the namespace."""
        rows = self.tables.of(metallb.BGP_PEER).all(snapshot)
        own = [row.spec for row in rows if row.metadata.namespace == self.options.namespace]
        return ClusterAddresses(
            nodes=frozenset(spec.source_address for spec in own if spec.source_address),
            peers=frozenset(spec.peer_address for spec in own if spec.peer_address),
        )

    def compile(self, snapshot: Snapshot, context: NodeContext) -> NodeIntent:
        """Translate the BGPPeers of the node; routes come of Services, by the rules of each peer."""
        return finish(self.compile_slices(snapshot, context))

    def compile_slices(self, snapshot: Snapshot, context: NodeContext) -> Slices[NodeIntent]:
        """As `compile`: a thousand objects may be in conflict."""
        found = yield from self._view.checked(snapshot, context)
        return self._compiled(snapshot, context, found)

    def _compiled(self, snapshot: Snapshot, context: NodeContext, found: NodeObjects) -> NodeIntent:
        mode = fed_options(context).on_conflict
        state = _State()
        if found.usable:
            state = self._state_of(snapshot, context, found.objects)
        elif mode == "keep" and not context.for_operator:
            state = self._last_good(snapshot, context)
        if not context.for_operator:
            self._state, self._keeps = state, mode == "keep"
            self._checked_objects, self._in_effect = found, False
        fed_last_good = None
        if self._keeps and self._good is None and self._remembered is not None:
            fed_last_good = self._state_of(snapshot, context, self._remembered).fed
        replaced = self._view.replaced(snapshot, context)
        problems = [one.problem for one in found.findings]
        problems += [Problem((ref,), "", REPLACED, category="unsupported") for ref in replaced]
        return NodeIntent(
            fed=(*state.fed, *found.disagreeing),
            fed_last_good=fed_last_good,
            replaced=replaced,
            taken=found.taken,
            problems=tuple(problems),
        )

    def _last_good(self, snapshot: Snapshot, context: NodeContext) -> _State:
        if self._good is not None:
            return self._good
        if self._remembered is None:
            return _State()
        return self._state_of(snapshot, context, self._remembered)

    def fed_in_effect(self) -> None:
        """Keep the present state as the last good one."""
        self._in_effect = True
        if self._keeps or (self._checked_objects is not None and self._checked_objects.usable):
            self._good = self._state
            if self._memory is None or not self._memory.is_of(self._state.objects):
                self._memory = RememberedObjects(self._state.objects)

    # Restarts

    remembers: ClassVar = True

    @property
    def memory(self) -> Memory | None:
        """The objects of the last good state; in every mode, as the next process may have ``keep``."""
        return self._memory

    def remember(self, octets: bytes) -> None:
        """Take the last good objects of an earlier process. Raises ValueError."""
        self._remembered = remembered_objects(octets)

    def _state_of(self, snapshot: Snapshot, context: NodeContext, objects: Objects) -> _State:
        """Return the translation of objects without problems."""
        found = self._view.rules(snapshot, context, objects)
        return _State(
            objects,
            (*fed(objects, found.of_peers), *found.preferences),
            fed_options(context).namespace,
            watches=found.watches,
        )

    # The operator

    def operated_tables(self) -> tuple[Table[Any], ...]:
        """The tables of its kinds, and FRRConfigurations, which may contradict them."""
        return (*super().operated_tables(), self.tables.of(FRR_CONFIGURATION))

    def operate(self, snapshot: Snapshot, context: ClusterContext) -> ClusterIntent:
        """Report conditions: nodes with the same objects are checked and merged once."""
        options = context.fed_options
        rows = [
            (ref_to(kind, row), row)
            for kind in metallb.CONFIGURATION
            for row in self.tables.of(kind).all(snapshot)
        ]
        if not rows or not context.reports_conditions:
            return ClusterIntent()
        if not isinstance(options, Frrk8sClusterOptions):
            return ClusterIntent()
        frrk8s = self._view.merging(options)
        groups: dict[Hashable, list[str]] = {}
        for node in self.tables.nodes.all(snapshot):
            name = node.metadata.name
            group = (self.node_group(snapshot, name), frrk8s.node_group(snapshot, name))
            groups.setdefault(group, []).append(name)
        isolate = options.on_conflict == "isolate"
        merges: list[NodesMerge] = []
        for names in groups.values():
            of_node = context.of_node(names[0])
            found = finish(self._view.checked(snapshot, of_node))
            compiled = self._compiled(snapshot, of_node, found)
            merge = None
            if found.usable:
                merge = frrk8s.merged_for(snapshot, names[0], compiled)
            merges.append(cluster.nodes_merge(names, found, compiled.fed, merge))
        frrk8s.forget_unused()
        reported = tuple(cluster.conditions_of(rows, self.options.namespace, merges, isolate))
        refs = tuple({one.object: None for one in reported})
        return ClusterIntent(conditions=reported, reported=refs)

    def node_group(self, snapshot: Snapshot, node: str) -> Hashable:
        """Return the objects that concern a node, and whether it advertises Services."""
        return self._view.group(snapshot, node)

    # Admission

    def review_warnings(self, row: MetalLBObject, former: MetalLBObject | None) -> Iterator[str]:  # noqa: ARG002
        """Yield warnings about what has no effect."""
        if row.metadata.namespace != self.options.namespace:
            yield other_namespace(self.options.namespace)
        if isinstance(row, BGPPeer) and row.spec.disable_mp:
            yield "spec.disableMP: has no effect"

    def without_effect(self, snapshot: Snapshot) -> Iterator[Problem]:
        """Yield the objects of other namespaces, and what advertisements name in vain."""
        return without_effect(self.tables, snapshot, self.options.namespace)

    def rendered(self, snapshot: Snapshot, node: str, intent: IntentTables) -> Iterator[Any]:
        """Yield the FRRConfiguration and the ServiceBGPStatuses that MetalLB's speaker would write."""
        state = self._state
        if not any(state.objects):
            return
        routes = peer_routes(snapshot, intent)
        yield configuration(node, state.frr_namespace, state.objects, routes)
        yield from service_statuses(node, self.options.namespace, routes)

    def node_objects(self, snapshot: Snapshot, context: NodeObjectContext) -> Iterator[NodeObject]:
        """Yield the ConfigurationState of the node."""
        yield configuration_state(snapshot, context, self.feeds)

    def node_objects_of(
        self, snapshot: Snapshot, context: NodeObjectContext, origin: ObjectRef
    ) -> Iterator[NodeObject]:
        """Return the ServiceBGPStatus of a Service."""
        return service_status(snapshot, context, origin) if self._service_statuses else iter(())

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
        found = explain(candidate, peer, rules_of(rules))
        note = self._not_in_effect() if found.reason in OF_CONFIGURATION else None
        return found if note is None else replace(found, message=f"{found.message}; {note}")

    def _not_in_effect(self) -> str | None:
        """Return why objects of the cluster may not be in effect; None where all are."""
        found = self._checked_objects
        if found is None:
            return None
        first = next((one.problem.message for one in found.findings), None)
        if first is not None:
            head = "earlier objects are in effect" if self._keeps else "objects are left out"
            return f"{head}: {first}"
        return None if self._in_effect else "earlier objects are in effect, as some are in conflict"
