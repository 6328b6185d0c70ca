"""The operator's part: the RouteAdvertisements controller and that of managed BGP.

Level-triggered. The objects of a node are generated again when the Node, its egress IPs or networks, or
what the RouteAdvertisements select have changed; for 1,000 nodes a change of one is one node's work.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from reconcilers.dialect import ClusterContext, ClusterIntent
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
from reconcilers.ovnk import managed_bgp, written
from reconcilers.ovnk.attachments import Advertisers, advertiser_annotations, default_attachment
from reconcilers.ovnk.conditions import accepted, transport_accepted
from reconcilers.ovnk.egress_ips import active_networks, egress_ips, network_of_namespaces
from reconcilers.ovnk.errors import ConfigurationPending, InternalError, NotAccepted
from reconcilers.ovnk.generate import OfSource, of_node
from reconcilers.ovnk.networks import (
    DEFAULT,
    Network,
    Networks,
    networks,
    of_manifests,
)
from reconcilers.ovnk.node_prefixes import OfNode
from reconcilers.ovnk.options import OvnkOptions
from reconcilers.ovnk.other_writer import OtherWriter
from reconcilers.ovnk.selection import (
    Advertised,
    Cluster,
    Selected,
    advertised,
    is_generated,
    select_networks,
)
from reconcilers.sliced_work import finish
from resources.core import Node
from resources.core.kinds import NAMESPACE
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


class _OfNode(NamedTuple):
    """The objects of one node, and what they were generated of."""

    node: Node
    given: OfNode
    objects: tuple[OfSource, ...]


class _Known(NamedTuple):
    """What is remembered of one RouteAdvertisements."""

    advertised: Advertised
    nodes: dict[str, _OfNode]


class _Compared(NamedTuple):
    """A generated object that has been compared with the one of the cluster."""

    one: OfSource
    row: FRRConfiguration | None
    is_equal: bool


class Result(NamedTuple):
    """The outcome of one RouteAdvertisements."""

    row: RouteAdvertisements
    selected: Selected
    objects: tuple[OfSource, ...]
    error: NotAccepted | None


class RouteAdvertisementsController:
    """Generates FRRConfigurations; remembers what rows it has generated them of, by identity."""

    def __init__(self, tables: Tables, options: OvnkOptions) -> None:
        self._tables = tables
        self._options = options
        self._known: dict[str, _Known] = {}
        self._compared: dict[written.StoredKey, _Compared] = {}
        self._other_writer = OtherWriter()

    def operate(self, snapshot: Snapshot, context: ClusterContext) -> ClusterIntent:
        """Return what has to exist, what is to be deleted, annotations and conditions."""
        t, options = self._tables, self._options
        rows = list(t.of(ROUTE_ADVERTISEMENTS).all(snapshot))
        problems = self._broken(rows)
        if context.stored:
            other = self._other_writer.seen(rows, context.state)
            if other.problem is not None:
                return ClusterIntent(problems=(*problems, other.problem), state=other.state)
        configurations = list(t.of(FRR_CONFIGURATION).all(snapshot))
        clusters = list(t.of(CLUSTER_NETWORK).all(snapshot))
        nodes = sorted(t.nodes.all(snapshot), key=lambda row: row.metadata.name)
        managed = self._managed(nodes, clusters, context)
        if managed is not None:
            replaced = {row.metadata.name for row in managed.advertisements}
            rows = [one for one in rows if one.metadata.name not in replaced]
            by_name = {one.metadata.name: one for one in t.of(ROUTE_ADVERTISEMENTS).all(snapshot)}
            rows += [
                _with_metadata(one, by_name.get(one.metadata.name))
                for one in managed.advertisements
            ]
        found = self._networks(snapshot, clusters, stored=context.stored)
        sources = [one for one in configurations if not is_generated(one)]
        if managed is not None:
            key = managed.source.key
            sources = [*(one for one in sources if one.key != key), managed.source]
        cluster = Cluster(
            found.attachments,
            nodes,
            sorted(sources, key=lambda row: row.key),
            {row.metadata.name: row for row in t.of(VTEP).all(snapshot)},
            options,
        )
        of_nodes = self._of_nodes(snapshot, found)
        results = [
            self._result(row, cluster, of_nodes)
            for row in sorted(rows, key=lambda row: row.metadata.name)
        ]
        for name in self._known.keys() - {one.row.metadata.name for one in results}:
            del self._known[name]
        writing = _Writing(
            written.stored(configurations), self._compared, all_objects=not context.stored
        )
        self._compared = writing.write(results)
        generated = [*writing.generated]
        if managed is not None:
            generated = [*_outdated_managed(managed, t, snapshot, context), *generated]
        advertisers = _advertisers(results)
        generated = [*self._default_attachment(found, advertisers), *generated]
        conditions = self._conditions(results, clusters, cluster)
        return ClusterIntent(
            generated=tuple(generated),
            outdated=frozenset(one.object for one in generated) if context.stored else frozenset(),
            deletions=(*writing.deletions, *self._leftover(managed, snapshot)),
            annotations=tuple(self._annotations(found, advertisers, context)),
            conditions=conditions,
            reported=tuple(dict.fromkeys(one.object for one in conditions)),
            problems=(*problems, *found.problems),
            state=other.state if context.stored else None,
        )

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
        found = networks(
            list(t.of(NETWORK_ATTACHMENT).all(snapshot)),
            default,
            options.namespace,
            {row.metadata.name: row.spec.uplinks[0] for row in clusters if row.spec.uplinks},
            () if stored else of_manifests(clusters, namespaces),
        )
        managed = {row.metadata.name for row in clusters if managed_bgp.is_managed(row)}
        if options.managed_bgp == "off" or not managed:
            return found
        labelled = tuple(managed_bgp.labelled(one, managed) for one in found.attachments)
        return found._replace(attachments=labelled)

    def _of_nodes(self, snapshot: Snapshot, found: Networks) -> Mapping[str, OfNode]:
        t, dynamic = self._tables, self._options.dynamic_udn
        rows = list(t.of(EGRESS_IP).all(snapshot)) if self._options.egress_ip else []
        result: dict[str, OfNode] = {}
        if rows or dynamic:
            namespaces = network_of_namespaces(t.of(NAMESPACE).all(snapshot), found.of_namespaces())
            egress = egress_ips(rows, namespaces)
            active: Mapping[str, frozenset[str]] = {}
            if dynamic:
                active = active_networks(t.of(POD).all(snapshot), namespaces, egress)
            for name in {*egress, *active}:
                of_pods = active.get(name, frozenset()) if dynamic else None
                result[name] = OfNode(egress.get(name, {}), of_pods)
        for row in t.of(UPLINK_STATE).all(snapshot):
            name = row.spec.node_name
            before = result.get(name, self._nothing)
            uplinks = {**before.uplinks, row.spec.uplink_name: row}
            result[name] = before._replace(uplinks=uplinks)
        return result

    @property
    def _nothing(self) -> OfNode:
        """A node without Pods and egress IPs."""
        return OfNode(active=frozenset()) if self._options.dynamic_udn else OfNode()

    def _result(
        self, row: RouteAdvertisements, cluster: Cluster, of_nodes: Mapping[str, OfNode]
    ) -> Result:
        selected = Selected(())
        try:
            if not row.invalid:
                selected = select_networks(row, cluster.attachments)
            what, nodes = advertised(row, selected, cluster)
            return Result(row, selected, self._objects(what, nodes, of_nodes), None)
        except NotAccepted as error:
            return Result(row, selected, (), error)
        except Exception as error:  # noqa: BLE001  the others go on
            text = f"{type(error).__name__}: {error}"
            return Result(row, selected, (), InternalError(text))

    def _objects(
        self, what: Advertised, nodes: Sequence[Node], of_nodes: Mapping[str, OfNode]
    ) -> tuple[OfSource, ...]:
        """Return the objects of all nodes, generated again where something has changed."""
        known = self._known.get(what.name)
        before = known.nodes if known is not None and known.advertised == what else {}
        after: dict[str, _OfNode] = {}
        nothing = self._nothing
        self._known[what.name] = _Known(what, after)
        objects: list[OfSource] = []
        for node in nodes:
            name = node.metadata.name
            given = of_nodes.get(name, nothing)
            last = before.get(name)
            if last is None or last.node is not node or last.given != given:
                last = _OfNode(node, given, of_node(what, node, given, self._options))
            after[name] = last
            objects += last.objects
        return tuple(objects)

    def _default_attachment(self, found: Networks, advertisers: Advertisers) -> Iterable[Generated]:
        """Yield the attachment of the default network, if it is advertised and there is none."""
        names = advertisers.accepted.get(DEFAULT)
        for one in found.attachments:
            is_default = one.network is not None and one.network.cluster_network is None
            if names and is_default and not one.stored:
                yield default_attachment(one, min(names))

    def _annotations(
        self, found: Networks, advertisers: Advertisers, context: ClusterContext
    ) -> Iterable[ObjectAnnotations]:
        attachments = found.attachments
        if context.stored:
            attachments = tuple(one for one in attachments if one.stored)
        return advertiser_annotations(attachments, advertisers, unchanged=not context.stored)

    def _conditions(
        self,
        results: Sequence[Result],
        clusters: Sequence[ClusterUserDefinedNetwork],
        cluster: Cluster,
    ) -> tuple[Condition, ...]:
        advertisers: dict[str, dict[str, bool]] = {}
        for one in results:
            if "PodNetwork" in one.row.spec.advertisements:
                for network in one.selected.networks:
                    if network.cluster_network is not None:
                        of_network = advertisers.setdefault(network.cluster_network, {})
                        of_network[one.row.metadata.name] = one.error is None
        of_networks = transport_accepted(
            sorted(clusters, key=lambda row: row.metadata.name),
            advertisers,
            cluster.vteps,
            evpn=self._options.evpn,
        )
        return (*(accepted(one.row, one.error) for one in results), *of_networks)

    def _leftover(
        self, managed: managed_bgp.ManagedBgp | None, snapshot: Snapshot
    ) -> Iterable[Delete]:
        """Yield the deletions of objects of managed BGP that are no longer wanted."""
        wanted = set() if managed is None else {one.object for one in managed.generated()}
        t = self._tables
        for row in t.of(FRR_CONFIGURATION).all(snapshot):
            if row.metadata.name == managed_bgp.SOURCE and managed_bgp.LABEL in row.metadata.labels:
                ref = ref_to(FRR_CONFIGURATION, row)
                if ref not in wanted:
                    yield Delete(ref, row.metadata.uid)
        for name in (managed_bgp.OF_DEFAULT, managed_bgp.OF_CLUSTER_NETWORKS):
            found = t.of(ROUTE_ADVERTISEMENTS).get(snapshot, ("", name))
            ref = ObjectRef(ROUTE_ADVERTISEMENTS.name, "", name)
            if found is not None and ref not in wanted:
                yield Delete(ref, found.metadata.uid)


class _Writing:
    """Compares generated objects with those of the cluster."""

    def __init__(
        self,
        stored: written.Stored,
        compared: Mapping[written.StoredKey, _Compared],
        *,
        all_objects: bool,
    ) -> None:
        """``all_objects``: also those that are as they have to be are in `generated`."""
        self._stored = stored
        self._before = compared
        self._all = all_objects
        self.generated: list[Generated] = []
        self.deletions: list[Delete] = [written.deletion(row) for row in stored.duplicates]

    def write(self, results: Iterable[Result]) -> dict[written.StoredKey, _Compared]:
        """Take the results; returns what has been compared."""
        compared: dict[written.StoredKey, _Compared] = {}
        names: set[str] = set()
        for result in results:
            name = result.row.metadata.name
            if result.error is not None and not isinstance(result.error, ConfigurationPending):
                # The last good state stays.
                names.add(name)
                continue
            names.add(name)
            wanted = {written.key_of(name, one): one for one in result.objects}
            for key, one in wanted.items():
                compared[key] = self._compare(name, key, one)
            self._delete(name, wanted)
        for name in sorted(self._stored.by_advertisements.keys() - names):
            self._delete(name, {})
        return compared

    def _compare(self, name: str, key: written.StoredKey, one: OfSource) -> _Compared:
        row, before = self._stored.objects.get(key), self._before.get(key)
        if before is not None and before.one is one and before.row is row:
            result = before
        else:
            equal = row is not None and row.spec == one.spec and not row.invalid
            result = _Compared(one, row, equal)
        if self._all or not result.is_equal:
            self.generated.append(written.generated(name, key, one.spec, row))
        return result

    def _delete(self, name: str, wanted: Mapping[written.StoredKey, OfSource]) -> None:
        for key in self._stored.by_advertisements.get(name, ()):
            if key not in wanted:
                self.deletions.append(written.deletion(self._stored.objects[key]))


def _advertisers(results: Iterable[Result]) -> Advertisers:
    found: dict[str, set[str]] = {}
    held: set[str] = set()
    for one in results:
        name = one.row.metadata.name
        if one.error is None:
            for network in one.selected.networks:
                found.setdefault(network.name, set()).add(name)
        elif not isinstance(one.error, ConfigurationPending):
            held.add(name)
    return Advertisers({name: frozenset(names) for name, names in found.items()}, frozenset(held))


def _with_metadata(
    row: RouteAdvertisements, present: RouteAdvertisements | None
) -> RouteAdvertisements:
    if present is None:
        return row
    return RouteAdvertisements(metadata=present.metadata, spec=row.spec)


def _outdated_managed(
    managed: managed_bgp.ManagedBgp, tables: Tables, snapshot: Snapshot, context: ClusterContext
) -> Iterable[Generated]:
    """Yield the objects of managed BGP, in a cluster those that it lacks, or has differently."""
    specs = {
        ref_to(FRR_CONFIGURATION, managed.source): managed.source.spec,
        **{ref_to(ROUTE_ADVERTISEMENTS, row): row.spec for row in managed.advertisements},
    }
    kinds: dict[str, Kind[Any]] = {
        FRR_CONFIGURATION.name: FRR_CONFIGURATION,
        ROUTE_ADVERTISEMENTS.name: ROUTE_ADVERTISEMENTS,
    }
    for one in managed.generated():
        ref = one.object
        present = tables.of(kinds[ref.kind]).get(snapshot, (ref.namespace, ref.name))
        labels = one.content["metadata"].get("labels", {})
        equal = (
            present is not None
            and present.spec == specs[ref]
            and labels.items() <= present.metadata.labels.items()
        )
        if not (context.stored and equal):
            yield one


def _namespace(context: ClusterContext) -> str:
    """Return the namespace of FRR-k8s."""
    options = finish(context.of_node("")).fed_options
    return options.namespace if isinstance(options, Frrk8sClusterOptions) else ""
