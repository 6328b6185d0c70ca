"""FRR-k8s's BGP API as a dialect."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, ClassVar, Final

from reconcilers.dialect import (
    Dialect,
    DialectSecrets,
    JoinConflictError,
    NodeContext,
    NodeIntent,
    Objects,
    OptionalKinds,
    Rival,
    RouteSource,
)
from reconcilers.dialect.join import united
from reconcilers.frrk8s.admission import ADMISSION
from reconcilers.frrk8s.blocked import Blocked
from reconcilers.frrk8s.claims import Resolve, Resolved
from reconcilers.frrk8s.cluster_addresses import RESERVED_ADDRESSES, addresses_of_rows
from reconcilers.frrk8s.compat_metrics import COMPAT_METRICS
from reconcilers.frrk8s.convert import TO_V1BETA1
from reconcilers.frrk8s.diagnosis import DIAGNOSIS
from reconcilers.frrk8s.explain import EXPLANATION
from reconcilers.frrk8s.host_needs import HOST_NEEDS
from reconcilers.frrk8s.in_effect import NodeObjects
from reconcilers.frrk8s.kernel_routes import kernel_tables, with_kernel_routes
from reconcilers.frrk8s.last_good import LastGood, good_state
from reconcilers.frrk8s.log_level import LOG_LEVEL, ineffective
from reconcilers.frrk8s.merge import Merger
from reconcilers.frrk8s.node_objects import WRITTEN_OBJECTS, NodeState, SessionStates
from reconcilers.frrk8s.operate import OPERATION
from reconcilers.frrk8s.options import AUTO, Frrk8sClusterOptions, Frrk8sOptions
from reconcilers.frrk8s.reported_sessions import REPORTED_SESSIONS
from reconcilers.frrk8s.route_sets import (
    SOURCE,
    changed_objects,
)
from reconcilers.frrk8s.route_sources import ConfiguredPrefixes
from reconcilers.frrk8s.router_rows import NodeValues, SortedPrefixes, neighbor_problems, rows
from reconcilers.frrk8s.selection import ObjectSelections, Selected
from reconcilers.frrk8s.service_statuses import SERVICE_STATUSES
from reconcilers.frrk8s.stored_state import STORED_STATE, State
from reconcilers.frrk8s.unit_parts import KERNEL_ROUTES, Unit
from reconcilers.model import (
    Attributes,
    Contribution,
    ObjectRef,
    PasswordRef,
    Problem,
    SecretRef,
    ref_to,
)
from reconcilers.of_tables import OfTables
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
from resources.passwords import password_error
from resources.secret_value import SecretValue
from resources.tables import Tables
from statedb import Snapshot, Table

PASSWORD: Final = "password"  # noqa: S105  the key within a Secret
SECRET_TYPE: Final = "kubernetes.io/basic-auth"  # noqa: S105  the type of a Secret


def _blocks_cluster(options: Options) -> bool:
    return isinstance(options, Frrk8sOptions) and options.blocks_cluster


def _secrets(
    dialect: Frrk8sDialect, snapshot: Snapshot, _secrets_namespace: str
) -> Iterator[ObjectKey]:
    """Yield the Secrets that neighbours name, of the namespace of FRR-k8s."""
    for row in dialect.tables.of(FRR_CONFIGURATION).all(snapshot):
        if row.metadata.namespace != dialect.options.namespace:
            continue
        for router in row.spec.bgp.routers:
            for neighbor in router.neighbors:
                yield row.metadata.namespace, neighbor.password_secret.name


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
        self.merger = Merger(self._has_effect)
        self._prepared: dict[ObjectKey, FRRConfiguration] = {}
        """The objects of the last `prepare`."""
        self._originated = SortedPrefixes()
        of_node = options if isinstance(options, Frrk8sOptions) else Frrk8sOptions()
        self._blocked = Blocked(tables, of_node)
        self.node_state = NodeState()
        self.session_states = SessionStates()
        self.sources: tuple[RouteSource, ...] = (ConfiguredPrefixes(),)

    def _has_effect(self, reason: str) -> bool:
        """True for fields that have an effect in this program, and not in all."""
        return reason == KERNEL_ROUTES and self.routes_installed

    @property
    def compiled_tables(self) -> tuple[Table[Any], ...]:
        """The tables of FRR-k8s's kinds, and Secrets; the tables of the cluster's blocked networks."""
        t = self.tables
        tables = (*(t.of(kind) for kind in KINDS), t.of(FRRK8S_CONFIGURATION), t.secrets)
        return (*tables, t.nodes, t.of(SERVICE_CIDR)) if _blocks_cluster(self.options) else tables

    def prepare(self, rows: Iterable[FRRConfiguration], pieces: Pieces) -> Slices[None]:
        """Compile the objects that changed, each alone: one may have 100,000 prefixes."""
        before, self._prepared = self._prepared, {}
        for row in rows:
            self._prepared[row.key] = row
            if before.get(row.key) is not row:
                yield from self.merger.prepare(Unit(ref_to(FRR_CONFIGURATION, row), row), pieces)
        if pieces.slices:
            yield

    def compile(self, snapshot: Snapshot, context: NodeContext) -> Slices[NodeIntent]:
        """Merge the FRRConfigurations that select the node, and what other dialects feed."""
        node = self.tables.nodes.get(snapshot, ("", context.node))
        state: State = context.state or State()
        pieces = Pieces()
        chosen = self.selected(snapshot, node)
        if not context.for_operator:
            yield from self.prepare(chosen.rows, pieces)
        given = self.given(snapshot, chosen.rows, context, state.fed)
        if state.good.memory is not None:
            given = given._replace(good=state.good.memory.units)
        effect = yield from given.in_effect(pieces)
        configurations = self.tables.of(FRRK8S_CONFIGURATION).all(snapshot)
        problems = (
            *chosen.problems,
            *ineffective(configurations, self.options.namespace),
            *effect.merge.problems,
        )
        if context.for_operator:
            return NodeIntent(problems=problems, outcomes=effect.outcomes)
        self.merger.forget_unused()
        is_good = effect.merge.routers is not None
        good = state.good
        if is_good:
            good = good_state(effect.merge, given.resolve, good)
        elif self.options.on_conflict == "clear":
            good = LastGood(memory=good.memory)
        fed = {
            name: outcome.last_good
            for name, outcome in effect.outcomes.items()
            if outcome.last_good is not None
        }
        effective = good if is_good else good.with_rules((yield from given.present_rules()))
        blocked = self._blocked.prefixes(snapshot)
        held = {} if is_good else effective.passwords
        values = NodeValues(context.node, node, context.host, blocked, held)
        redistributed = kernel_tables(effective.routers)
        routers = tuple(with_kernel_routes(effective.routers, context.host.routes))
        compiled = yield from rows(routers, values, state.sets, self._originated, pieces)
        sets = compiled.route_sets.by_name
        if is_good:
            # With an earlier state in force its own problems are no longer news of these objects.
            problems = (*problems, *neighbor_problems(compiled.problems, effect.units))
        recompiled = yield from changed_objects(state.sets.by_name, sets, pieces)
        if pieces.slices:
            yield
        return NodeIntent(
            compiled.instances,
            compiled.peers,
            sets,
            problems=problems,
            outcomes=effect.outcomes,
            recompiled={SOURCE: recompiled},
            state=State(good, fed, compiled.route_sets, effect, routers),
            followed=(*effect.followed, self.tables.kernel_routes)
            if redistributed
            else effect.followed,
            kernel_tables=redistributed,
        )

    def selected(self, snapshot: Snapshot, node: Node | None) -> Selected:
        """Return the objects that select a node."""
        labels = node.metadata.labels if node is not None else {}
        return self.selections.of(snapshot, self.options.namespace).of(labels)

    def given(
        self,
        snapshot: Snapshot,
        selected: Iterable[FRRConfiguration],
        context: NodeContext,
        held: Mapping[str, Objects],
    ) -> NodeObjects:
        """Return the objects of a node; ``held`` are the last good ones of feeds in this process."""
        table, feeds = self.tables.of(FRR_CONFIGURATION), context.feeds
        replaced: dict[str, list[Problem]] = {}
        refs: set[ObjectRef] = set()
        earlier: dict[str, Objects] = {}
        for name, feed in feeds.items():
            present = [
                (ref, text)
                for ref, text in feed.replaced.items()
                if text and table.get(snapshot, (ref.namespace, ref.name)) is not None
            ]
            replaced[name] = [
                Problem((ref,), "", text, category="unsupported") for ref, text in present
            ]
            refs.update(feed.replaced)
            if feed.last_good is not None:
                earlier[name] = feed.last_good
        own = [Unit(ref_to(FRR_CONFIGURATION, row), row) for row in selected]
        return NodeObjects(
            context.node,
            snapshot,
            self.options.on_conflict,
            self.merger,
            self._resolver(snapshot),
            [unit for unit in own if unit.ref not in refs] if refs else own,
            feeds,
            replaced,
            {**earlier, **held},
            named=not context.for_operator,
        )

    def _resolver(self, snapshot: Snapshot) -> Resolve:
        reads_secrets = isinstance(self.options, Frrk8sOptions)

        def resolve(ref: PasswordRef, value: SecretValue | None) -> Resolved:
            if isinstance(ref, SecretRef):
                # The operator may read no password: the agents report what is wrong with one.
                return self._password(snapshot, ref) if reads_secrets else SecretValue.withheld()
            return "the password is missing" if value is None else value

        return resolve

    def _password(self, snapshot: Snapshot, ref: SecretRef) -> Resolved:
        secret = self.tables.secrets.get(snapshot, (ref.namespace, ref.name))
        if secret is None:
            return f"{ref} does not exist, or may not be read"
        if secret.type != SECRET_TYPE:
            return f"{ref} is of type {secret.type}, not {SECRET_TYPE}"
        value = secret.data.get(PASSWORD)
        if value is None:
            return f"{ref} has no key {PASSWORD!r}"
        reason = password_error(value.reveal()) if value.known else None
        return value if reason is None else f"{ref}: {reason}"

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
