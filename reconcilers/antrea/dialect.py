"""Antrea's BGPPolicy as a dialect."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

from reconcilers.antrea import candidates, compile_node
from reconcilers.antrea.candidates import Candidate
from reconcilers.antrea.command import COMMAND
from reconcilers.antrea.convert import TO_BGP_POLICY, TO_CILIUM
from reconcilers.antrea.effective import choose
from reconcilers.antrea.explain import explain
from reconcilers.antrea.node_facts import NodeFacts, node_facts, router_id
from reconcilers.antrea.options import AntreaOperatorOptions, AntreaOptions
from reconcilers.antrea.passwords import SECRET
from reconcilers.antrea.route_sets import RouteSet
from reconcilers.antrea.route_sources import EgressSource, PodCidrSource, ServiceSource
from reconcilers.antrea.views import PATHS
from reconcilers.dialect import (
    ClusterAddresses,
    ClusterContext,
    ClusterIntent,
    Dialect,
    DialectSecrets,
    NodeContext,
    NodeIntent,
    RbacRule,
    ReservedAddresses,
    Rival,
    RouteSource,
    Target,
)
from reconcilers.model import ObjectAnnotations, ObjectRef, Peer, RouteExplanation
from resources.antrea.kinds import BGP_POLICY, EGRESS
from resources.core import Node
from resources.core.kinds import BY_SERVICE, ENDPOINT_SLICE, NODE, SERVICE
from resources.core.kinds import SECRET as SECRET_KIND
from resources.kind import Kind
from resources.meta import ObjectKey
from resources.tables import Tables
from statedb import Snapshot, Table


def _secrets(
    dialect: AntreaDialect, snapshot: Snapshot, _secrets_namespace: str
) -> Iterator[ObjectKey]:
    """Yield the one Secret with passwords, while there is a policy."""
    if dialect.tables.of(BGP_POLICY).count(snapshot):
        yield compile_node.secret_key(dialect.of_node.namespace)


def _peers(dialect: Dialect, snapshot: Snapshot, _node: str | None) -> ClusterAddresses:
    """Return the peers of all BGPPolicies."""
    rows = dialect.tables.of(BGP_POLICY).all(snapshot)
    peers = frozenset(peer.address for row in rows for peer in row.spec.bgp_peers)
    return ClusterAddresses(peers=peers)


class AntreaDialect(Dialect):
    """One BGP process per node, by the oldest BGPPolicy that selects it."""

    name: ClassVar = "antrea"
    title: ClassVar = "Antrea BGP"
    kinds: ClassVar[tuple[Kind[Any], ...]] = (
        NODE,
        SERVICE,
        ENDPOINT_SLICE,
        SECRET_KIND,
        BGP_POLICY,
        EGRESS,
    )
    cluster_kinds: ClassVar[tuple[Kind[Any], ...]] = (NODE, BGP_POLICY)
    options_type: ClassVar = AntreaOptions
    operator_options_type: ClassVar = AntreaOperatorOptions
    extensions: ClassVar = (
        RbacRule((NODE,), ("get", "patch"), operator=True),
        DialectSecrets(_secrets, option="namespace", names=(SECRET,)),
        ReservedAddresses(_peers),
        Rival(
            "Antrea's own BGP",
            "app=antrea,component=antrea-agent",
            config_map="kube-system/antrea-config",
            config_entry=("antrea-agent.conf", "true"),
            config_paths=("featureGates.BGPPolicy", "featureGates.AllAlpha"),
        ),
        COMMAND,
        *PATHS,
        TO_BGP_POLICY,
        TO_CILIUM,
    )
    explained_kinds: ClassVar[Mapping[str, str]] = {"egress": EGRESS.name, "egresses": EGRESS.name}
    selecting_kinds: ClassVar = frozenset({BGP_POLICY.name})

    options: AntreaOperatorOptions

    def __init__(self, tables: Tables, options: AntreaOperatorOptions) -> None:
        super().__init__(tables, options)
        self.of_node = options if isinstance(options, AntreaOptions) else AntreaOptions()
        sources: list[RouteSource] = [
            ServiceSource(tables, ready_only=self.of_node.ready_endpoints),
            PodCidrSource(tables),
        ]
        if self.of_node.egress:
            sources.append(EgressSource(tables))
        self.sources = tuple(sources)

    @property
    def compiled_tables(self) -> tuple[Table[Any], ...]:
        """Policies, and Secrets, read or not; the node is followed for every dialect."""
        t = self.tables
        return (t.of(BGP_POLICY), t.secrets, t.unread_objects)

    def compile(self, snapshot: Snapshot, context: NodeContext) -> NodeIntent:
        """Compile the effective policy of the node."""
        tables = self.tables
        secret_key = compile_node.secret_key(self.of_node.namespace)
        unread = tables.unread_objects.get(snapshot, (SECRET_KIND.name, *secret_key))
        return compile_node.compile_node(
            compile_node.Inputs(
                context.node,
                tables.nodes.get(snapshot, ("", context.node)),
                tuple(tables.of(BGP_POLICY).all(snapshot)),
                tables.secrets.get(snapshot, secret_key),
                secret_key,
                unread is not None,
                self.options.next_fields,
            )
        )

    def candidates(
        self,
        snapshot: Snapshot,
        context: NodeContext,
        rules: Mapping[str, RouteSet],  # noqa: ARG002
        target: Target | None,
    ) -> Iterator[Candidate]:
        """Yield the addresses of Services, of Egresses and of the node."""
        node = self.tables.nodes.get(snapshot, ("", context.node))
        facts = NodeFacts({}, {}) if node is None else node_facts(node)
        for one in self._candidates(snapshot, context.node, facts, target):
            if one.family is None or one.family in facts.transport:
                yield one
            else:
                yield one._replace(withheld=candidates.family_not_enabled(one.family))

    def _candidates(
        self, snapshot: Snapshot, node: str, facts: NodeFacts, target: Target | None
    ) -> Iterator[Candidate]:
        t, ready = self.tables, self.of_node.ready_endpoints
        yield from candidates.of_node(ObjectRef(NODE.name, "", node), facts)
        for egress in t.of(EGRESS).all(snapshot):
            yield from candidates.of_egress(egress, node, enabled=self.of_node.egress)
        for service in t.services.all(snapshot):
            ref = ObjectRef(SERVICE.name, *service.key)
            if target is None or target.prefix is not None or target.names(ref):
                slices = t.endpoint_slices.find(snapshot, BY_SERVICE, service.key)
                yield from candidates.of_service(service, slices, node, ready_only=ready)

    def explain(self, candidate: Candidate, peer: Peer, rules: RouteSet | None) -> RouteExplanation:
        """Explain what becomes of a candidate at a peer."""
        return explain(candidate, peer, rules)

    def operate(self, snapshot: Snapshot, context: ClusterContext) -> ClusterIntent:
        """Annotate the nodes that have an effective policy and no router ID.

        Nothing is written where nothing is stored: `compile` shows the annotation of the one node.
        """
        if not context.stored:
            return ClusterIntent()
        policies = tuple(self.tables.of(BGP_POLICY).all(snapshot))
        return ClusterIntent(
            annotations=tuple(
                found
                for node in self.tables.nodes.all(snapshot)
                if (found := self._annotation(node, policies)) is not None
            )
        )

    def _annotation(self, node: Node, policies: tuple[Any, ...]) -> ObjectAnnotations | None:
        identifier = router_id(node, node_facts(node))
        if identifier.annotated:
            return None
        next_fields = self.options.next_fields
        choice = choose(policies, node.metadata.labels, next_fields=next_fields)
        return None if choice.policy is None else compile_node.annotated(node, identifier.text)
