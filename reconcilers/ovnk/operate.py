"""The operator's part: the RouteAdvertisements controller and that of managed BGP.

Level-triggered. The objects of a node are generated again when the Node, its egress IPs or networks, or
what the RouteAdvertisements select have changed; for 1,000 nodes a change of one is one node's work.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from reconcilers.dialect import ClusterContext, ClusterIntent, Operation
from reconcilers.frrk8s.options import Frrk8sClusterOptions
from reconcilers.model import (
    Condition,
    Delete,
    Generated,
    ObjectAnnotations,
    ObjectRef,
    Problem,
    ref_to,
)
from reconcilers.ovnk import conditions, managed_bgp, stored_objects
from reconcilers.ovnk.advertiser_annotations import Advertisers, advertiser_annotations
from reconcilers.ovnk.attached_networks import (
    DEFAULT,
    Network,
    Networks,
    default_attachment,
    networks,
    of_manifests,
)
from reconcilers.ovnk.changed_objects import Compared, changed_objects
from reconcilers.ovnk.conditions import accepted, transport_accepted
from reconcilers.ovnk.egress_ips import active_networks, egress_ips, network_of_namespaces
from reconcilers.ovnk.errors import ConfigurationPending
from reconcilers.ovnk.node_prefixes import OfNode
from reconcilers.ovnk.options import OvnkOptions
from reconcilers.ovnk.other_writer import Seen, other_writer
from reconcilers.ovnk.results import Result, Results
from reconcilers.ovnk.selection import (
    Cluster,
    selects_cluster_network,
)
from reconcilers.ovnk.vteps import accepted_vteps
from reconcilers.sliced_work import finish
from resources.core import Node
from resources.core.kinds import DEFINITION, NAMESPACE
from resources.frrk8s.frrconfiguration import FRRConfiguration
from resources.frrk8s.kinds import FRR_CONFIGURATION
from resources.kind import Kind
from resources.ovnk.kinds import (
    CLUSTER_NETWORK,
    EGRESS_IP,
    NETWORK_ATTACHMENT,
    POD,
    ROUTE_ADVERTISEMENTS,
    UPLINK_STATE,
    VTEP,
)
from resources.ovnk.networks import ClusterUserDefinedNetwork
from resources.ovnk.routeadvertisements import RouteAdvertisements
from resources.tables import Tables
from statedb import Snapshot

if TYPE_CHECKING:
    from reconcilers.ovnk.dialect import OvnkDialect

DEFINITION_NAME: Final = f"{FRR_CONFIGURATION.plural}.{FRR_CONFIGURATION.group}"
_EVPN_FIELD: Final = ("spec", "bgp", "routers", "evpn")


class Configurations(NamedTuple):
    """The FRRConfigurations of the cluster."""

    sources: list[FRRConfiguration]
    """The objects that are not generated, in the order of namespace and name."""
    stored: stored_objects.Stored


class State(NamedTuple):
    """The state from one call to the next. A review of a change has none, and leaves this as it is."""

    writers: Seen | None = None
    compared: Compared | None = None
    nodes_of_networks: Mapping[str, int] = {}
    """With dynamic allocation: by primary network, the nodes that it is on."""


class RouteAdvertisementsController:
    """Generates FRRConfigurations; caches what it has generated, with its input rows."""

    def __init__(self, tables: Tables, options: OvnkOptions) -> None:
        self._tables = tables
        self._options = options
        self._results = Results(options, "text")
        self._configurations: tuple[object, Configurations] | None = None
        """Configurations of the last state of the table, which is compared by identity."""

    def operate(self, snapshot: Snapshot, context: ClusterContext) -> ClusterIntent:
        """Return generated FRRConfigurations, deletions, annotations, conditions."""
        t, options = self._tables, self._options
        rows = list(t.of(ROUTE_ADVERTISEMENTS).all(snapshot))
        problems = self._broken(rows)
        before: State = context.state or State()
        writers = None
        if context.stored:
            writers, of_other_writer = other_writer(rows, before.writers)
            if of_other_writer is not None:
                problems.append(of_other_writer)
                return ClusterIntent(problems=tuple(problems), state=State(writers))
        configurations = self._read(snapshot)
        clusters = list(t.of(CLUSTER_NETWORK).all(snapshot))
        nodes = sorted(t.nodes.all(snapshot), key=lambda row: row.metadata.name)
        managed = self._managed(nodes, clusters, context)
        if managed is not None:
            replaced = {row.metadata.name for row in managed.advertisements}
            rows = [row for row in rows if row.metadata.name not in replaced]
            by_name = {
                advertisement.metadata.name: advertisement
                for advertisement in t.of(ROUTE_ADVERTISEMENTS).all(snapshot)
            }
            rows += [
                _with_metadata(advertisement, by_name.get(advertisement.metadata.name))
                for advertisement in managed.advertisements
            ]
        networks_of_cluster = self._networks(snapshot, clusters, stored=context.stored)
        sources = configurations.sources
        if managed is not None:
            key = managed.source.key
            sources = [*(source for source in sources if source.key != key), managed.source]
        cluster = Cluster(
            networks_of_cluster.attachments,
            nodes,
            sorted(sources, key=lambda row: row.key),
            {row.metadata.name: row for row in t.of(VTEP).all(snapshot)},
            options,
        )
        self._follow_definition(snapshot)
        of_nodes, nodes_of_networks = self._of_nodes(snapshot, networks_of_cluster)
        rows.sort(key=lambda row: row.metadata.name)
        results = self._results.of(rows, cluster, of_nodes, self._nothing)
        changed = changed_objects(
            results, configurations.stored, before.compared, all_objects=not context.stored
        )
        generated = changed.writes
        if managed is not None:
            generated = [*_outdated_managed(managed, t, snapshot, context), *generated]
        advertisers = _advertisers(results)
        generated = [*self._default_attachment(networks_of_cluster, advertisers), *generated]
        conditions = self._conditions(results, clusters, cluster)
        return ClusterIntent(
            generated=tuple(generated),
            outdated=frozenset(generated_object.object for generated_object in generated)
            if context.stored
            else frozenset(),
            deletions=(*changed.deletions, *self._leftover(managed, configurations, snapshot)),
            annotations=tuple(self._annotations(networks_of_cluster, advertisers, context)),
            conditions=conditions,
            problems=(*problems, *networks_of_cluster.problems),
            state=State(writers, changed.compared, nodes_of_networks),
        )

    def _follow_definition(self, snapshot: Snapshot) -> None:
        """Generate all objects again where the definition has EVPN in fields now, or no longer."""
        form = self._options.evpn_form
        if form == "auto":
            row = self._tables.of(DEFINITION).get(snapshot, ("", DEFINITION_NAME))
            version = FRR_CONFIGURATION.versions[0]
            typed = row is not None and row.has_field(version, *_EVPN_FIELD)
            form = "fields" if typed else "text"
        if form != self._results.evpn_form:
            self._results = Results(self._options, form)

    def _read(self, snapshot: Snapshot) -> Configurations:
        """Return the FRRConfigurations; there are thousands of generated ones."""
        table = self._tables.of(FRR_CONFIGURATION)
        state, last = snapshot.state(table), self._configurations
        if last is None or last[0] is not state:
            rows = list(table.all(snapshot))
            configurations = Configurations(
                sorted(
                    (row for row in rows if not stored_objects.is_generated(row)),
                    key=lambda row: row.key,
                ),
                stored_objects.stored(rows),
            )
            self._configurations = last = (state, configurations)
        return last[1]

    def _broken(self, rows: Iterable[RouteAdvertisements]) -> list[Problem]:
        """Return the rules that RouteAdvertisements break."""
        return [
            Problem((ref_to(ROUTE_ADVERTISEMENTS, row),), error.path, error.message)
            for row in rows
            for error in row.invalid
        ]

    def _managed(
        self,
        nodes: Sequence[Node],
        clusters: Sequence[ClusterUserDefinedNetwork],
        context: ClusterContext,
    ) -> managed_bgp.ManagedBgp | None:
        options = self._options
        if options.managed_bgp == "off":
            return None
        default = options.transport == "no-overlay"
        namespace = _namespace(context)
        asn = options.managed_bgp_asn
        return managed_bgp.managed_bgp(nodes, clusters, asn, namespace, default=default)

    def _networks(
        self,
        snapshot: Snapshot,
        clusters: Sequence[ClusterUserDefinedNetwork],
        *,
        stored: bool,
    ) -> Networks:
        t, options = self._tables, self._options
        namespaces = [] if stored else list(t.of(NAMESPACE).all(snapshot))
        transport = "no-overlay" if options.transport == "no-overlay" else ""
        subnets = options.default_subnets
        default = Network(DEFAULT, DEFAULT, "layer3", DEFAULT, subnets, transport)
        networks_of_cluster = networks(
            list(t.of(NETWORK_ATTACHMENT).all(snapshot)),
            default,
            options.default_attachment,
            {row.metadata.name: row.spec.uplinks[0] for row in clusters if row.spec.uplinks},
            () if stored else of_manifests(clusters, namespaces),
        )
        managed = {row.metadata.name for row in clusters if managed_bgp.is_managed(row)}
        if options.managed_bgp == "off" or not managed:
            return networks_of_cluster
        labelled = tuple(
            managed_bgp.labelled(attachment, managed)
            for attachment in networks_of_cluster.attachments
        )
        return networks_of_cluster._replace(attachments=labelled)

    def _of_nodes(
        self, snapshot: Snapshot, networks_of_cluster: Networks
    ) -> tuple[Mapping[str, OfNode], Mapping[str, int]]:
        """Return what nodes have beside their annotations, and the number of nodes of each network."""
        t, dynamic = self._tables, self._options.dynamic_udn
        rows = list(t.of(EGRESS_IP).all(snapshot)) if self._options.egress_ip else []
        result: dict[str, OfNode] = {}
        nodes_of_networks: Mapping[str, int] = {}
        if rows or dynamic:
            namespaces = network_of_namespaces(
                t.of(NAMESPACE).all(snapshot), networks_of_cluster.of_namespaces()
            )
            egress = egress_ips(rows, namespaces)
            active: Mapping[str, frozenset[str]] = {}
            if dynamic:
                active = active_networks(t.of(POD).all(snapshot), namespaces, egress)
                on_nodes = Counter(name for of_node in active.values() for name in of_node)
                primary = set(networks_of_cluster.of_namespaces().values())
                nodes_of_networks = {name: on_nodes[name] for name in primary}
            for name in {*egress, *active}:
                of_pods = active.get(name, frozenset()) if dynamic else None
                result[name] = OfNode(egress.get(name, {}), of_pods)
        for row in t.of(UPLINK_STATE).all(snapshot):
            name = row.spec.node_name
            before = result.get(name, self._nothing)
            uplinks = {**before.uplinks, row.spec.uplink_name: row}
            result[name] = before._replace(uplinks=uplinks)
        return result, nodes_of_networks

    @property
    def _nothing(self) -> OfNode:
        """A node without Pods and egress IPs."""
        return OfNode(active=frozenset()) if self._options.dynamic_udn else OfNode()

    def _default_attachment(
        self, networks_of_cluster: Networks, advertisers: Advertisers
    ) -> Iterable[Generated]:
        """Yield the attachment of the default network, if it is advertised and there is none."""
        names = advertisers.accepted.get(DEFAULT)
        for attachment in networks_of_cluster.attachments:
            is_default = (
                attachment.network is not None and attachment.network.cluster_network is None
            )
            if names and is_default and not attachment.stored:
                yield default_attachment(attachment, min(names))

    def _annotations(
        self, networks_of_cluster: Networks, advertisers: Advertisers, context: ClusterContext
    ) -> Iterable[ObjectAnnotations]:
        attachments = networks_of_cluster.attachments
        if context.stored:
            attachments = tuple(attachment for attachment in attachments if attachment.stored)
        return advertiser_annotations(attachments, advertisers, unchanged=not context.stored)

    def _conditions(
        self,
        results: Sequence[Result],
        clusters: Sequence[ClusterUserDefinedNetwork],
        cluster: Cluster,
    ) -> tuple[Condition, ...]:
        options = self._options
        vteps = (
            tuple(accepted_vteps(list(cluster.vteps.values()), clusters, cluster.nodes))
            if options.evpn
            else ()
        )
        of_networks = transport_accepted(
            sorted(clusters, key=lambda row: row.metadata.name),
            self._advertisers_of(results, clusters),
            {condition.object.name: condition.status for condition in vteps}
            if options.evpn
            else None,
        )
        return (*(accepted(result.row, result.error) for result in results), *of_networks, *vteps)

    def _advertisers_of(
        self, results: Sequence[Result], clusters: Iterable[ClusterUserDefinedNetwork]
    ) -> Mapping[str, Mapping[str, bool]]:
        """Return whether the RouteAdvertisements of each network with a transport are accepted."""
        advertisers: dict[str, dict[str, bool]] = {}
        of_pods = [result for result in results if "PodNetwork" in result.row.spec.advertisements]
        for row in clusters:
            if row.spec.network.transport is None:
                continue
            labels: Mapping[str, str] = row.metadata.labels
            if self._options.managed_bgp != "off" and managed_bgp.is_managed(row):
                labels = managed_bgp.with_label(labels)
            advertisers[row.metadata.name] = {
                result.name: result.error is None
                for result in of_pods
                if selects_cluster_network(result.row, labels)
            }
        return advertisers

    def _leftover(
        self,
        managed: managed_bgp.ManagedBgp | None,
        configurations: Configurations,
        snapshot: Snapshot,
    ) -> Iterable[Delete]:
        """Yield the deletions of objects of managed BGP that are no longer wanted."""
        wanted = (
            set()
            if managed is None
            else {generated_object.object for generated_object in managed.generated()}
        )
        t = self._tables
        for row in configurations.sources:
            if row.metadata.name == managed_bgp.SOURCE and managed_bgp.LABEL in row.metadata.labels:
                ref = ref_to(FRR_CONFIGURATION, row)
                if ref not in wanted:
                    yield Delete(ref, row.metadata.uid)
        for name in (managed_bgp.OF_DEFAULT, managed_bgp.OF_CLUSTER_NETWORKS):
            stored = t.of(ROUTE_ADVERTISEMENTS).get(snapshot, ("", name))
            ref = ObjectRef(ROUTE_ADVERTISEMENTS.name, "", name)
            if stored is not None and ref not in wanted:
                yield Delete(ref, stored.metadata.uid)


def _advertisers(results: Iterable[Result]) -> Advertisers:
    advertisers: dict[str, set[str]] = {}
    held: set[str] = set()
    for result in results:
        name = result.row.metadata.name
        if result.error is None:
            for network in result.selected.networks:
                advertisers.setdefault(network.name, set()).add(name)
        elif not isinstance(result.error, ConfigurationPending):
            held.add(name)
    return Advertisers(
        {name: frozenset(names) for name, names in advertisers.items()}, frozenset(held)
    )


def _with_metadata(
    row: RouteAdvertisements, present: RouteAdvertisements | None
) -> RouteAdvertisements:
    if present is None:
        return row
    return RouteAdvertisements(metadata=present.metadata, spec=row.spec)


def _outdated_managed(
    managed: managed_bgp.ManagedBgp, tables: Tables, snapshot: Snapshot, context: ClusterContext
) -> Iterable[Generated]:
    """Yield the objects of managed BGP, in a cluster only missing or different ones."""
    specs = {
        ref_to(FRR_CONFIGURATION, managed.source): managed.source.spec,
        **{ref_to(ROUTE_ADVERTISEMENTS, row): row.spec for row in managed.advertisements},
    }
    kinds: dict[str, Kind[Any]] = {
        FRR_CONFIGURATION.name: FRR_CONFIGURATION,
        ROUTE_ADVERTISEMENTS.name: ROUTE_ADVERTISEMENTS,
    }
    for generated_object in managed.generated():
        ref = generated_object.object
        present = tables.of(kinds[ref.kind]).get(snapshot, (ref.namespace, ref.name))
        labels = generated_object.content["metadata"].get("labels", {})
        equal = (
            present is not None
            and present.spec == specs[ref]
            and labels.items() <= present.metadata.labels.items()
        )
        if not (context.stored and equal):
            yield generated_object


def _namespace(context: ClusterContext) -> str:
    """Return the namespace of FRR-k8s."""
    options = finish(context.of_node("")).merging_options
    return options.namespace if isinstance(options, Frrk8sClusterOptions) else ""


def operate(dialect: OvnkDialect, snapshot: Snapshot, context: ClusterContext) -> ClusterIntent:
    """Operate RouteAdvertisements: generate FRRConfigurations, with ``generate``."""
    if not dialect.options.generates:
        return ClusterIntent()
    return dialect.controller.operate(snapshot, context)


OPERATION: Final = Operation(
    operate,
    condition_kinds=(ROUTE_ADVERTISEMENTS, CLUSTER_NETWORK, VTEP),
    condition_types=frozenset({conditions.ACCEPTED, conditions.TRANSPORT_ACCEPTED}),
    generated_kinds=(FRR_CONFIGURATION, ROUTE_ADVERTISEMENTS),
    option="mode",
    value="generate",
)
