"""FRR-k8s's BGP API as a dialect."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, ClassVar

from reconcilers.dialect import (
    Dialect,
    DialectSecrets,
    JoinConflictError,
    NodeContext,
    NodeIntent,
    OptionalKinds,
    Rival,
    RouteSource,
)
from reconcilers.dialect.join import united
from reconcilers.frrk8s.admission import ADMISSION
from reconcilers.frrk8s.blocked import Blocked
from reconcilers.frrk8s.cluster_addresses import RESERVED_ADDRESSES, addresses_of_rows
from reconcilers.frrk8s.compat_metrics import COMPAT_METRICS
from reconcilers.frrk8s.compile_node import compile_node
from reconcilers.frrk8s.convert import TO_V1BETA1
from reconcilers.frrk8s.diagnosis import DIAGNOSIS
from reconcilers.frrk8s.explain import EXPLANATION
from reconcilers.frrk8s.host_needs import HOST_NEEDS
from reconcilers.frrk8s.log_level import LOG_LEVEL
from reconcilers.frrk8s.merge import Merger
from reconcilers.frrk8s.node_objects import WRITTEN_OBJECTS, NodeStateObject, SessionStateObjects
from reconcilers.frrk8s.operate import OPERATION
from reconcilers.frrk8s.options import AUTO, Frrk8sClusterOptions, Frrk8sOptions
from reconcilers.frrk8s.reported_sessions import REPORTED_ADVERTISEMENTS, REPORTED_SESSIONS
from reconcilers.frrk8s.route_sets import (
    SOURCE,
)
from reconcilers.frrk8s.route_sources import ConfiguredPrefixSource
from reconcilers.frrk8s.router_rows import SortedPrefixes
from reconcilers.frrk8s.selection import ObjectSelections
from reconcilers.frrk8s.service_statuses import SERVICE_STATUSES
from reconcilers.frrk8s.stored_state import STORED_STATE
from reconcilers.frrk8s.unit_parts import Unit
from reconcilers.model import (
    Attributes,
    Contribution,
    ref_to,
)
from reconcilers.of_tables import OfTables
from reconcilers.selected_objects import Selected
from reconcilers.sliced_work import Pieces, Slices
from resources.core import Node
from resources.core.kinds import NODE, SECRET, SERVICE_CIDR
from resources.frrk8s.frrconfiguration import FRRConfiguration
from resources.frrk8s.kinds import (
    FRR_CONFIGURATION,
    FRRK8S_CONFIGURATION,
    KINDS,
)
from resources.kind import Kind
from resources.meta import ObjectKey
from resources.option_declarations import Options
from resources.tables import Tables
from statedb import Snapshot, Table


def _blocks_cluster(options: Options) -> bool:
    return isinstance(options, Frrk8sOptions) and options.blocks_cluster


def _secrets(
    dialect: Frrk8sDialect, snapshot: Snapshot, _secrets_namespace: str
) -> Iterator[ObjectKey]:
    """Yield the Secrets that neighbours name, of the namespace of FRR-k8s."""
    namespace = dialect.options.namespace
    for row in dialect.tables.in_namespace(snapshot, FRR_CONFIGURATION, namespace):
        for router in row.spec.bgp.routers:
            for neighbor in router.neighbors:
                yield namespace, neighbor.password_secret.name


class Frrk8sDialect(Dialect):
    """FRR-k8s's BGP API."""

    name: ClassVar = "frrk8s"
    title: ClassVar = "FRR-k8s"
    installs_routes: ClassVar = True
    cluster_kinds: ClassVar[tuple[Kind[Any], ...]] = (NODE, *KINDS, FRRK8S_CONFIGURATION)
    kinds: ClassVar[tuple[Kind[Any], ...]] = (*cluster_kinds, SECRET, SERVICE_CIDR)
    options_type: ClassVar = Frrk8sOptions
    operator_options_type: ClassVar = Frrk8sClusterOptions
    extensions: ClassVar = (
        COMPAT_METRICS,
        OptionalKinds(
            (SERVICE_CIDR,),
            when=_blocks_cluster,
            option="alwaysBlock",
            value=AUTO,
            of_all_nodes=(NODE,),
        ),
        DialectSecrets(_secrets, option="namespace"),
        Rival("FRR-k8s", "app.kubernetes.io/name=frr-k8s"),
        Rival("FRR-k8s", "app=frr-k8s"),
        HOST_NEEDS,
        RESERVED_ADDRESSES,
        STORED_STATE,
        ADMISSION,
        WRITTEN_OBJECTS,
        REPORTED_SESSIONS,
        REPORTED_ADVERTISEMENTS,
        SERVICE_STATUSES,
        DIAGNOSIS,
        OPERATION,
        EXPLANATION,
        LOG_LEVEL,
        TO_V1BETA1,
    )

    options: Frrk8sOptions | Frrk8sClusterOptions

    def __init__(self, tables: Tables, options: Frrk8sOptions | Frrk8sClusterOptions) -> None:
        super().__init__(tables, options)
        self.selections = ObjectSelections(tables)
        table = tables.of(FRR_CONFIGURATION)
        self.addresses = OfTables(
            [table], lambda snapshot, namespace: addresses_of_rows(table.all(snapshot), namespace)
        )
        self.merger = Merger()
        self._prepared: dict[ObjectKey, FRRConfiguration] = {}
        """The objects of the last `prepare`."""
        self.originated = SortedPrefixes()
        of_node = options if isinstance(options, Frrk8sOptions) else Frrk8sOptions()
        self.blocked = Blocked(tables, of_node)
        self.node_state = NodeStateObject()
        self.session_states = SessionStateObjects()
        self.sources: tuple[RouteSource, ...] = (ConfiguredPrefixSource(),)

    @property
    def compiled_tables(self) -> tuple[Table[Any], ...]:
        """The tables of FRR-k8s's kinds, and Secrets; the tables of the cluster's blocked networks."""
        t = self.tables
        tables = (*(t.of(kind) for kind in KINDS), t.of(FRRK8S_CONFIGURATION), t.secrets)
        return (*tables, t.nodes, t.of(SERVICE_CIDR)) if _blocks_cluster(self.options) else tables

    def prepare(self, rows: Iterable[FRRConfiguration], pieces: Pieces) -> Slices[None]:
        """Compile the FRRConfigurations that changed, each alone: one may have 100,000 prefixes."""
        before, self._prepared = self._prepared, {}
        for row in rows:
            self._prepared[row.key] = row
            if before.get(row.key) is not row:
                yield from self.merger.prepare(Unit(ref_to(FRR_CONFIGURATION, row), row), pieces)
        if pieces.slices:
            yield

    def compile(self, snapshot: Snapshot, context: NodeContext) -> Slices[NodeIntent]:
        """Merge the FRRConfigurations that select the node, and what other dialects feed."""
        return compile_node(self, snapshot, context)

    def selected(
        self, snapshot: Snapshot, node: Node | None
    ) -> Selected[tuple[FRRConfiguration, ...]]:
        """Return the FRRConfigurations that select a node."""
        labels = node.metadata.labels if node is not None else {}
        return self.selections.of(snapshot, self.options.namespace).of(labels)

    # Routes

    def join(self, contributions: Sequence[Contribution]) -> Attributes:
        """Unite communities; two local preferences contradict each other.

        A configured one stays where another dialect's differs: the merge reports that conflict.
        """
        if len(contributions) == 1:
            return contributions[0].attributes
        configured = [
            contribution
            for contribution in contributions
            if contribution.source == SOURCE
            and contribution.attributes.local_preference is not None
        ]
        preferences = {
            contribution.attributes.local_preference
            for contribution in contributions
            if contribution.attributes.local_preference is not None
        }
        if len(preferences) > 1 and configured:
            return united(contribution.attributes for contribution in configured)
        if len(preferences) > 1:
            text = " and ".join(map(str, sorted(preferences)))
            raise JoinConflictError("localPref", f"it has local preference {text}")
        return united(contribution.attributes for contribution in contributions)
