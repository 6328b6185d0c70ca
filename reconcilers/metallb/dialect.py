"""MetalLB's BGP kinds as a dialect that feeds FRR-k8s."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

from reconcilers.dialect import (
    Companion,
    Dialect,
    DialectSecrets,
    NodeContext,
    NodeIntent,
    Rival,
    RouteSource,
)
from reconcilers.metallb.admission import ADMISSION
from reconcilers.metallb.cluster_addresses import RESERVED_ADDRESSES
from reconcilers.metallb.compat_metrics import COMPAT_METRICS
from reconcilers.metallb.compile_node import compile_node
from reconcilers.metallb.explain import EXPLANATION
from reconcilers.metallb.generated import RENDERING
from reconcilers.metallb.node_objects import WRITTEN_OBJECTS
from reconcilers.metallb.objects import Objects
from reconcilers.metallb.operate import OPERATION
from reconcilers.metallb.options import MetalLBOperatorOptions, MetalLBOptions
from reconcilers.metallb.reported_sessions import REPORTED_ADVERTISEMENTS
from reconcilers.metallb.route_sources import MetalLBServiceSource
from reconcilers.metallb.selection import ObjectSelections
from reconcilers.metallb.service_statuses import SERVICE_STATUSES
from reconcilers.metallb.stored_state import STORED_STATE
from reconcilers.selected_objects import Selected
from reconcilers.sliced_work import Slices
from resources.core.kinds import ENDPOINT_SLICE, NODE, SECRET, SERVICE
from resources.kind import Kind
from resources.meta import ObjectKey
from resources.metallb import kinds as metallb
from resources.tables import Tables
from statedb import Snapshot, Table


def _secrets(
    dialect: MetalLBDialect, snapshot: Snapshot, _secrets_namespace: str
) -> Iterator[ObjectKey]:
    """Yield the Secrets that BGPPeers name, of MetalLB's namespace."""
    namespace = dialect.options.namespace
    for row in dialect.tables.in_namespace(snapshot, metallb.BGP_PEER, namespace):
        yield namespace, row.spec.password_secret.name


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
    extensions: ClassVar = (
        COMPAT_METRICS,
        DialectSecrets(_secrets, option="namespace"),
        RESERVED_ADDRESSES,
        STORED_STATE,
        ADMISSION,
        WRITTEN_OBJECTS,
        SERVICE_STATUSES,
        REPORTED_ADVERTISEMENTS,
        OPERATION,
        EXPLANATION,
        RENDERING,
        Rival(
            "MetalLB's speaker",
            "app.kubernetes.io/name=metallb,app.kubernetes.io/component=speaker",
        ),
        Rival("MetalLB's speaker", "app=metallb,component=speaker"),
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

    options: MetalLBOptions | MetalLBOperatorOptions

    def __init__(self, tables: Tables, options: MetalLBOptions | MetalLBOperatorOptions) -> None:
        super().__init__(tables, options)
        self.reads_secrets = isinstance(options, MetalLBOptions)
        """If false, the Secrets of peers are taken as usable."""
        self.of_node = options if isinstance(options, MetalLBOptions) else MetalLBOptions()
        self._class = self.of_node.load_balancer_class
        self._selections = ObjectSelections(tables)
        self.sources: tuple[RouteSource, ...] = (MetalLBServiceSource(tables, self._class),)

    @property
    def compiled_tables(self) -> tuple[Table[Any], ...]:
        """The tables of MetalLB's kinds, and Secrets."""
        return (*(self.tables.of(kind) for kind in metallb.CONFIGURATION), self.tables.secrets)

    def compile(self, snapshot: Snapshot, context: NodeContext) -> Slices[NodeIntent]:
        """Translate the BGPPeers of the node; routes come of Services, by the rules of each peer."""
        return compile_node(self, snapshot, context)

    def selected(self, snapshot: Snapshot, node: str) -> Selected[Objects]:
        """Return the MetalLB objects that concern a node."""
        labels = self.labels(snapshot, node)
        return self._selections.of(snapshot, self.options.namespace).of(labels)

    def labels(self, snapshot: Snapshot, node: str) -> Mapping[str, str]:
        """Return the labels of a node, by which MetalLB's objects select it."""
        row = self.tables.nodes.get(snapshot, ("", node))
        return row.metadata.labels if row is not None else {}
