"""Antrea's BGPPolicy as a dialect."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar

from reconcilers.antrea import compile_node
from reconcilers.antrea.cluster_addresses import RESERVED_ADDRESSES
from reconcilers.antrea.convert import TO_BGP_POLICY, TO_CILIUM
from reconcilers.antrea.explain import EXPLANATION
from reconcilers.antrea.operate import OPERATION
from reconcilers.antrea.options import AntreaOperatorOptions, AntreaOptions
from reconcilers.antrea.passwords import SECRET, secret_key
from reconcilers.antrea.route_sources import AntreaServiceSource, EgressSource, PodCidrSource
from reconcilers.antrea.views import PATHS
from reconcilers.dialect import (
    Dialect,
    DialectSecrets,
    NodeContext,
    NodeIntent,
    RbacRule,
    Rival,
    RouteSource,
)
from resources.antrea.kinds import BGP_POLICY, EGRESS
from resources.core.kinds import ENDPOINT_SLICE, NODE, SERVICE
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
        yield secret_key(dialect.of_node.namespace)


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
        RESERVED_ADDRESSES,
        Rival(
            "Antrea's own BGP",
            "app=antrea,component=antrea-agent",
            config_map="kube-system/antrea-config",
            config_entry=("antrea-agent.conf", "true"),
            config_paths=("featureGates.BGPPolicy", "featureGates.AllAlpha"),
        ),
        OPERATION,
        EXPLANATION,
        *PATHS,
        TO_BGP_POLICY,
        TO_CILIUM,
    )

    options: AntreaOperatorOptions

    def __init__(self, tables: Tables, options: AntreaOperatorOptions) -> None:
        super().__init__(tables, options)
        self.of_node = options if isinstance(options, AntreaOptions) else AntreaOptions()
        sources: list[RouteSource] = [
            AntreaServiceSource(tables, ready_only=self.of_node.ready_endpoints),
            PodCidrSource(tables),
        ]
        if self.of_node.egress:
            sources.append(EgressSource(tables))
        self.sources = tuple(sources)

    @property
    def compiled_tables(self) -> tuple[Table[Any], ...]:
        """The tables that Antrea's dialect compiles: BGPPolicies, and Secrets, read or not."""
        t = self.tables
        return (t.of(BGP_POLICY), t.secrets, t.unread_objects)

    def compile(self, snapshot: Snapshot, context: NodeContext) -> NodeIntent:
        """Compile the effective BGPPolicy of the node, as Antrea's dialect does."""
        return compile_node.compile_node(compile_node.inputs(self, snapshot, context))
