"""MetalLB's BGP kinds as a dialect that feeds FRR-k8s."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, ClassVar, Final

from reconcilers.dialect import (
    ClusterAddresses,
    Companion,
    Dialect,
    DialectSecrets,
    NodeContext,
    NodeIntent,
    ReservedAddresses,
    Rival,
    RouteSource,
)
from reconcilers.metallb.admission import ADMISSION
from reconcilers.metallb.compat_metrics import COMPAT_METRICS
from reconcilers.metallb.explain import EXPLANATION
from reconcilers.metallb.feed import Checked, MetalLBFeed
from reconcilers.metallb.findings import Secrets, finding_slices
from reconcilers.metallb.generated import HOSTNAME, RENDERING, configuration_name, fed_options
from reconcilers.metallb.node_objects import WRITTEN_OBJECTS
from reconcilers.metallb.operate import OPERATION
from reconcilers.metallb.options import MetalLBOperatorOptions, MetalLBOptions
from reconcilers.metallb.route_sources import MetalLBServiceSource
from reconcilers.metallb.selection import ObjectSelections, Selected
from reconcilers.metallb.service_statuses import SERVICE_STATUSES
from reconcilers.metallb.stored_state import STORED_STATE
from reconcilers.model import ObjectRef
from reconcilers.sliced_work import Pieces, Slices
from resources.core.kinds import ENDPOINT_SLICE, NODE, SECRET, SERVICE
from resources.frrk8s.kinds import FRR_CONFIGURATION
from resources.kind import Kind
from resources.meta import ObjectKey
from resources.metallb import kinds as metallb
from resources.tables import Tables
from statedb import Snapshot, Table

REPLACED: Final = (
    "it does not count: MetalLB's speaker has written it, and the objects that it is made of are "
    "compiled here; stop the speaker, and delete it"
)


def _secrets(
    dialect: MetalLBDialect, snapshot: Snapshot, _secrets_namespace: str
) -> Iterator[ObjectKey]:
    """Yield the Secrets that BGPPeers name, of MetalLB's namespace."""
    for row in dialect.tables.of(metallb.BGP_PEER).all(snapshot):
        if row.metadata.namespace == dialect.options.namespace:
            yield row.metadata.namespace, row.spec.password_secret.name


def _session_ends(
    dialect: MetalLBDialect, snapshot: Snapshot, _node: str | None
) -> ClusterAddresses:
    """Return both ends of all BGPPeers in effect, which are in the namespace."""
    rows = dialect.tables.of(metallb.BGP_PEER).all(snapshot)
    own = [row.spec for row in rows if row.metadata.namespace == dialect.options.namespace]
    return ClusterAddresses(
        nodes=frozenset(spec.source_address for spec in own if spec.source_address),
        peers=frozenset(spec.peer_address for spec in own if spec.peer_address),
    )


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
        ReservedAddresses(_session_ends),
        STORED_STATE,
        ADMISSION,
        WRITTEN_OBJECTS,
        SERVICE_STATUSES,
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
        self._reads_secrets = isinstance(options, MetalLBOptions)
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
        objects = self.selected(snapshot, context.node).objects
        secrets: Secrets = None
        if self._reads_secrets:
            of_peers = {(p.metadata.namespace, p.spec.password_secret.name) for p in objects.peers}
            secrets = {key: self.tables.secrets.get(snapshot, key) for key in of_peers}.get
        namespace, pieces = self.options.namespace, Pieces()
        problems = yield from finding_slices(objects, secrets, namespace, pieces)
        if pieces.slices:
            yield
        checked = Checked(objects, tuple(problems), secrets, namespace)
        last = context.state.last_good if context.state is not None else None
        replaced = self._replaced(snapshot, context)
        return NodeIntent(
            feed=MetalLBFeed(self.tables, self.of_node, context.node, checked, replaced, last)
        )

    def _replaced(self, snapshot: Snapshot, context: NodeContext) -> dict[ObjectRef, str]:
        """Return what MetalLB's own speaker writes for the node: by its name, or its host name.

        It has no effect where MetalLB has any object; BGPPeers of other nodes are not known.
        """
        objects = (row for kind in metallb.CONFIGURATION for row in self._rows(snapshot, kind))
        if not any(row.metadata.namespace == self.options.namespace for row in objects):
            return {}
        # A node that is assumed for a check has the label alone.
        label = self._labels(snapshot, context.node).get(HOSTNAME)
        namespace = fed_options(context).namespace
        names = dict.fromkeys(configuration_name(text) for text in (context.node, label) if text)
        return {ObjectRef(FRR_CONFIGURATION.name, namespace, name): REPLACED for name in names}

    def _rows(self, snapshot: Snapshot, kind: Kind[Any]) -> Iterator[Any]:
        yield from self.tables.of(kind).all(snapshot)

    def selected(self, snapshot: Snapshot, node: str) -> Selected:
        """Return the objects that concern a node."""
        labels = self._labels(snapshot, node)
        return self._selections.of(snapshot, self.options.namespace).of(labels)

    def _labels(self, snapshot: Snapshot, node: str) -> Mapping[str, str]:
        row = self.tables.nodes.get(snapshot, ("", node))
        return row.metadata.labels if row is not None else {}
