"""The objects of one node, by tables: which of them count, and the rules that they come to."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from typing import NamedTuple

from reconcilers.dialect import Fed, NodeContext
from reconcilers.frrk8s.dialect import Frrk8sDialect
from reconcilers.frrk8s.isolation import Isolated, Relations
from reconcilers.frrk8s.options import Frrk8sClusterOptions
from reconcilers.frrk8s.selection import Selections
from reconcilers.metallb.generated import HOSTNAME, configuration_name
from reconcilers.metallb.isolation import MetalLBRelations
from reconcilers.metallb.node import (
    NodeObjects,
    checked,
    compiled_rules,
    isolated,
    peer_rules,
    withheld,
)
from reconcilers.metallb.objects import Objects
from reconcilers.metallb.options import MetalLBOptions
from reconcilers.metallb.preferences import Watched, fed_preferences, given, watched
from reconcilers.metallb.rules import PeerRules
from reconcilers.metallb.selection import ObjectSelections, Selected
from reconcilers.metallb.services import ServiceState, service_state
from reconcilers.model import ObjectRef, ref_to
from reconcilers.slices import Pieces, Slices
from resources.core import Node, Secret
from resources.core.kinds import BY_SERVICE
from resources.frrk8s.frrconfiguration import FRRConfiguration
from resources.frrk8s.kinds import FRR_CONFIGURATION
from resources.meta import ObjectKey
from resources.metallb.kinds import CONFIGURATION
from resources.tables import Tables
from statedb import Snapshot


class Rules(NamedTuple):
    """What the peers of a node are advertised."""

    of_peers: Mapping[str, PeerRules]
    preferences: tuple[Fed, ...] = ()
    """Local preferences that FRRConfigurations may contradict."""
    watches: bool = False
    """True if Services may contradict an FRRConfiguration."""


class NodeView:
    """Reads tables for one node after another; ``options`` are the node's."""

    def __init__(
        self, tables: Tables, namespace: str, options: MetalLBOptions, *, reads_secrets: bool
    ) -> None:
        """If ``reads_secrets`` is false, the Secrets of peers are taken as usable."""
        self._reads_secrets = reads_secrets
        self._tables = tables
        self._namespace = namespace
        self._class = options.load_balancer_class
        self._ignore_label = options.ignore_exclude_lb
        self._objects = ObjectSelections(tables)
        self._selections = Selections(tables)
        self._frrk8s: Frrk8sDialect | None = None

    def checked(self, snapshot: Snapshot, context: NodeContext) -> Slices[NodeObjects]:
        """Return the objects of a node that count, and the problems of the others."""
        pieces = Pieces()
        objects = self._of(snapshot, context.node).objects
        namespace = self._namespace

        def secret(key: ObjectKey) -> Secret | None:
            return self._tables.secrets.get(snapshot, key)

        secrets = secret if self._reads_secrets else None
        found = yield from checked(objects, secrets, namespace, pieces)
        options = fed_options(context)
        if options.on_conflict != "isolate":
            return found
        if found.usable and not self._may_disagree(snapshot, context, objects):
            return found
        replaced = self.replaced(snapshot, context)
        frrk8s = self.merging(options)

        def isolate(translated: Sequence[Fed], relations: Relations) -> Isolated:
            return frrk8s.isolated_for(snapshot, context.node, translated, replaced, relations)

        def preferences(taken: Objects) -> tuple[Fed, ...]:
            return self.rules(snapshot, context, taken).preferences

        if pieces.slices:
            yield
        relations = MetalLBRelations(objects, found.findings, secrets, namespace)
        result = yield from isolated(objects, relations, isolate, preferences, pieces)
        if not context.for_operator:  # which forgets after all nodes
            frrk8s.forget_unused()
        if pieces.slices:
            yield
        return result

    def rules(self, snapshot: Snapshot, context: NodeContext, objects: Objects) -> Rules:
        """Return the rules of the peers, and what of them FRRConfigurations may contradict."""
        node = self._node(snapshot, context.node)
        rules = compiled_rules(objects, node, self._ignore_label)
        of_peers = peer_rules(objects, rules)
        watch = self._watched(snapshot, context, objects)
        if not watch:
            return Rules(of_peers)
        advertisements = {one.ref: one for one in rules.advertisements}
        found = given(self._services(snapshot, context.node), of_peers, watch)
        return Rules(of_peers, fed_preferences(found, objects, advertisements), watches=True)

    def replaced(self, snapshot: Snapshot, context: NodeContext) -> frozenset[ObjectRef]:
        """Return what MetalLB's own speaker has written for the node: by its name, or its host name.

        It counts only where MetalLB has no object at all; BGPPeers of other nodes are not known.
        """
        tables = self._tables
        objects = (row for kind in CONFIGURATION for row in tables.of(kind).all(snapshot))
        if not any(row.metadata.namespace == self._namespace for row in objects):
            return frozenset()
        # A node that is assumed for a check has the label alone.
        label = self._labels(snapshot, context.node).get(HOSTNAME)
        namespace = fed_options(context).namespace
        keys = {(namespace, configuration_name(one)) for one in (context.node, label) if one}
        found = (tables.of(FRR_CONFIGURATION).get(snapshot, key) for key in keys)
        return frozenset(ref_to(FRR_CONFIGURATION, row) for row in found if row is not None)

    def group(self, snapshot: Snapshot, node: str) -> Hashable:
        """Return the objects that concern a node, and whether it advertises Services."""
        excluded = withheld(self._node(snapshot, node), self._ignore_label)
        return (self._of(snapshot, node).group, excluded)

    def merging(self, options: Frrk8sClusterOptions) -> Frrk8sDialect:
        """Return the dialect that merges, for isolation and for conditions."""
        if self._frrk8s is None:
            self._frrk8s = Frrk8sDialect(self._tables, options)
        return self._frrk8s

    def _may_disagree(self, snapshot: Snapshot, context: NodeContext, objects: Objects) -> bool:
        """True if objects that go together may not all go with the FRRConfigurations of the node.

        What they feed is isolated again there; here counts what has an effect on other objects.
        """
        names = {row.metadata.name for row in objects.profiles}
        return any(
            profile.name in names
            for row in self._configurations(snapshot, context)
            for profile in row.spec.bgp.bfd_profiles
        ) or bool(self._watched(snapshot, context, objects))

    def _watched(self, snapshot: Snapshot, context: NodeContext, objects: Objects) -> Watched:
        if not objects.peers:
            return {}
        return watched(self._configurations(snapshot, context), objects.peers)

    def _configurations(
        self, snapshot: Snapshot, context: NodeContext
    ) -> Sequence[FRRConfiguration]:
        """Return the FRRConfigurations that select the node."""
        selections = self._selections.of(snapshot, fed_options(context).namespace)
        return selections.of(self._labels(snapshot, context.node)).rows

    def _of(self, snapshot: Snapshot, node: str) -> Selected:
        return self._objects.of(snapshot, self._namespace).of(self._labels(snapshot, node))

    def _node(self, snapshot: Snapshot, node: str) -> Node | None:
        return self._tables.nodes.get(snapshot, ("", node))

    def _labels(self, snapshot: Snapshot, node: str) -> Mapping[str, str]:
        row = self._node(snapshot, node)
        return row.metadata.labels if row is not None else {}

    def _services(self, snapshot: Snapshot, node: str) -> Iterator[ServiceState]:
        t = self._tables
        for service in t.services.all(snapshot):
            if service.spec.type == "LoadBalancer":
                slices = t.endpoint_slices.find(snapshot, BY_SERVICE, service.key)
                yield service_state(service, slices, node, self._class)


def fed_options(context: NodeContext) -> Frrk8sClusterOptions:
    """Return the options of FRR-k8s, which MetalLB's objects are merged with."""
    options = context.fed_options
    return options if isinstance(options, Frrk8sClusterOptions) else Frrk8sClusterOptions()
