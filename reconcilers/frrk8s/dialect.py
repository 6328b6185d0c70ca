"""FRR-k8s's BGP API as a dialect."""

from __future__ import annotations

import ipaddress
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from typing import Any, ClassVar, Final

from reconcilers.dialect import (
    Candidate,
    ClusterAddresses,
    ClusterContext,
    ClusterIntent,
    Dialect,
    DraftConverter,
    Fed,
    JoinConflictError,
    LogLevel,
    Memory,
    NodeContext,
    NodeIntent,
    NodeObject,
    NodeObjectContext,
    NodeObjectKind,
    RbacRule,
    Rival,
    RouteSource,
    Target,
    explanation_of,
)
from reconcilers.frrk8s.blocked import Blocked
from reconcilers.frrk8s.claims import Resolve, Resolved
from reconcilers.frrk8s.conditions import NodesMerge, conditions, other_namespace
from reconcilers.frrk8s.draft import convert_draft
from reconcilers.frrk8s.explain import Withheld, explained, withheld
from reconcilers.frrk8s.intent import IntentState, NodeValues, Rows, located, rows
from reconcilers.frrk8s.isolation import Isolated, Relations
from reconcilers.frrk8s.last_good import LastGood, good_state, restored
from reconcilers.frrk8s.merge import Merge, MergedRouter, Merger
from reconcilers.frrk8s.node_objects import (
    NODE_STATE,
    SESSION_STATE,
    NodeState,
    SessionStates,
)
from reconcilers.frrk8s.options import AUTO, Frrk8sClusterOptions, Frrk8sOptions
from reconcilers.frrk8s.review_warnings import review_warnings
from reconcilers.frrk8s.route_sets import (
    SOURCE,
    ConfiguredPrefixes,
    RouteSet,
    candidates,
    changed_objects,
)
from reconcilers.frrk8s.selection import Selected, Selections
from reconcilers.frrk8s.settings import log_level, without_effect
from reconcilers.frrk8s.unit import Unit
from reconcilers.intent.join import united
from reconcilers.model import (
    Attributes,
    Condition,
    Contribution,
    ObjectRef,
    PasswordRef,
    Peer,
    Problem,
    RouteExplanation,
    SecretRef,
    ref_to,
)
from reconcilers.slices import Pieces, Slices, finish
from resources.core import Node
from resources.core.kinds import NODE, SECRET, SERVICE_CIDR
from resources.frrk8s import condition_types
from resources.frrk8s.frrconfiguration import FRRConfiguration
from resources.frrk8s.frrk8sconfiguration import NAME as SETTINGS_NAME
from resources.frrk8s.kinds import (
    BGP_SESSION_STATE,
    FRR_CONFIGURATION,
    FRR_NODE_STATE,
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


class Frrk8sDialect(Dialect):
    """FRR-k8s's BGP API."""

    name: ClassVar = "frrk8s"
    title: ClassVar = "FRR-k8s"
    cluster_kinds: ClassVar[tuple[Kind[Any], ...]] = (NODE, *KINDS, FRRK8S_CONFIGURATION)
    optional_kinds: ClassVar[tuple[Kind[Any], ...]] = (SERVICE_CIDR,)
    kinds: ClassVar[tuple[Kind[Any], ...]] = (*cluster_kinds, SECRET, *optional_kinds)
    rbac: ClassVar = (
        RbacRule(optional_kinds, ("list", "watch"), option="alwaysBlock", value=AUTO),
    )
    log_level_kind: ClassVar = FRRK8S_CONFIGURATION
    options_type: ClassVar = Frrk8sOptions
    operator_options_type: ClassVar = Frrk8sClusterOptions
    rivals: ClassVar = (
        Rival("FRR-k8s", "app.kubernetes.io/name=frr-k8s"),
        Rival("FRR-k8s", "app=frr-k8s"),
    )
    draft_converters: ClassVar = (DraftConverter(("draft of FRRConfiguration",), convert_draft),)
    selecting_kinds: ClassVar = frozenset({FRR_CONFIGURATION.name})
    managed_conditions: ClassVar = condition_types.TYPES
    condition_kinds: ClassVar = (FRR_CONFIGURATION,)
    reviewed_kinds: ClassVar = (FRR_CONFIGURATION,)
    secrets_namespace_option: ClassVar = "namespace"
    node_object_kinds: ClassVar[tuple[NodeObjectKind, ...]] = (NODE_STATE, SESSION_STATE)
    defined_kinds: ClassVar = (FRR_NODE_STATE, BGP_SESSION_STATE)

    options: Frrk8sOptions | Frrk8sClusterOptions

    def __init__(self, tables: Tables, options: Frrk8sOptions | Frrk8sClusterOptions) -> None:
        super().__init__(tables, options)
        self._selections = Selections(tables)
        self._merger = Merger()
        self._prepared: dict[ObjectKey, FRRConfiguration] = {}
        """The objects of the last `prepare`."""
        self._prefixes = ConfiguredPrefixes()
        self._route_sets: Mapping[str, RouteSet] = {}
        self._intent = IntentState()
        of_node = options if isinstance(options, Frrk8sOptions) else Frrk8sOptions()
        self._blocked = Blocked(tables, of_node)
        self._good = LastGood()
        """The configuration in effect: with ``keep`` the last good state."""
        self._routers: tuple[MergedRouter, ...] = ()
        """Of the last compilation."""
        self._merge: tuple[Sequence[Unit], Merge] | None = None
        """The units of the last compilation, and what they are merged to."""
        self._node_state = NodeState()
        self._session_states = SessionStates()
        self.sources: tuple[RouteSource, ...] = (self._prefixes,)

    @property
    def compiled_tables(self) -> tuple[Table[Any], ...]:
        """The tables of FRR-k8s's kinds, and Secrets; those of the blocked networks of the cluster."""
        t = self.tables
        found = (*(t.of(kind) for kind in KINDS), t.of(FRRK8S_CONFIGURATION), t.secrets)
        return (*found, t.nodes, t.of(SERVICE_CIDR)) if _blocks_cluster(self.options) else found

    @classmethod
    def read_by_agent(cls, options: Options) -> tuple[Kind[Any], ...]:
        """All of its kinds; ServiceCIDRs where these are blocked."""
        found = super().read_by_agent(options)
        return (*found, SERVICE_CIDR) if _blocks_cluster(options) else found

    @classmethod
    def read_of_all_nodes(cls, options: Options) -> tuple[Kind[Any], ...]:
        """Nodes, where their pod CIDRs are blocked."""
        return (NODE,) if _blocks_cluster(options) else ()

    def referenced_secrets(self, snapshot: Snapshot, secrets_namespace: str) -> Iterator[ObjectKey]:  # noqa: ARG002
        """Yield the Secrets that neighbours name, of the namespace of FRR-k8s."""
        for row in self.tables.of(FRR_CONFIGURATION).all(snapshot):
            if row.metadata.namespace != self.options.namespace:
                continue
            for router in row.spec.bgp.routers:
                for neighbor in router.neighbors:
                    yield row.metadata.namespace, neighbor.password_secret.name

    def cluster_addresses(self, snapshot: Snapshot, node: str | None = None) -> ClusterAddresses:  # noqa: ARG002
        """Return both ends of the sessions of all FRRConfigurations in effect.

        Those of the namespace; a source address that is the name of an interface is left out.
        """
        rows = self.tables.of(FRR_CONFIGURATION).all(snapshot)
        own = (row.spec.bgp for row in rows if row.metadata.namespace == self.options.namespace)
        neighbors = [
            neighbor for bgp in own for router in bgp.routers for neighbor in router.neighbors
        ]
        return ClusterAddresses(
            nodes=frozenset(
                one.sourceaddress
                for one in neighbors
                if one.sourceaddress and not _is_interface(one.sourceaddress)
            ),
            peers=frozenset(one.address for one in neighbors if one.address),
        )

    def needs_host(self, snapshot: Snapshot, node: str) -> bool:  # noqa: ARG002
        """True if there is a VRF, or a source address is the name of an interface."""
        return any(
            router.vrf not in ("", "default")
            or any(
                _is_interface(neighbor.sourceaddress)
                for neighbor in router.neighbors
                if neighbor.sourceaddress
            )
            for row in self.tables.of(FRR_CONFIGURATION).all(snapshot)
            for router in row.spec.bgp.routers
        )

    def prepare(self, snapshot: Snapshot, node: str | None) -> Slices[None]:
        """Compile the objects that changed, each alone: one may have 100,000 prefixes."""
        rows: Iterable[FRRConfiguration]
        if node is None:
            rows = self.tables.of(FRR_CONFIGURATION).all(snapshot)
        else:
            rows = self._selected(snapshot, self.tables.nodes.get(snapshot, ("", node))).rows
        pieces = Pieces()
        before, self._prepared = self._prepared, {}
        for row in rows:
            self._prepared[row.key] = row
            if before.get(row.key) is not row:
                yield from self._merger.prepare(Unit(ref_to(FRR_CONFIGURATION, row), row), pieces)

    def compile(self, snapshot: Snapshot, context: NodeContext) -> NodeIntent:
        """Merge the FRRConfigurations that select the node, and what other dialects feed."""
        return finish(self.compile_slices(snapshot, context))

    def compile_slices(self, snapshot: Snapshot, context: NodeContext) -> Slices[NodeIntent]:
        """As `compile`: one router may have 100,000 prefixes."""
        node = self.tables.nodes.get(snapshot, ("", context.node))
        found = self._selected(snapshot, node)
        units = _units(found.rows, context.fed, context.replaced)
        resolve = self._resolver(snapshot)
        merged = self._merged(units, resolve, context.node, context.taken)
        configurations = self.tables.of(FRRK8S_CONFIGURATION).all(snapshot)
        problems = (
            *found.problems,
            *without_effect(configurations, self.options.namespace),
            *merged.problems,
        )
        if context.for_operator:
            return NodeIntent(problems=problems)
        self._merger.forget_unused()
        if merged.routers is not None:
            self._good = good_state(merged, resolve, self._good)
        elif self.options.on_conflict == "clear":
            self._good = LastGood(memory=self._good.memory)
        force = (
            self._good
            if merged.routers is not None
            else self._good.with_rules(context.fed_last_good)
        )
        held = {} if merged.routers is not None else force.passwords
        self._routers, self._merge = force.routers, (units, merged)
        blocked = self._blocked.prefixes(snapshot)
        values = NodeValues(context.node, node, context.host, blocked, held)
        compiled = yield from rows(force.routers, values, self._intent, Pieces())
        return NodeIntent(
            compiled.instances,
            compiled.peers,
            compiled.route_sets,
            # With an earlier state in force its own problems are no longer news of these objects.
            problems=(
                *problems,
                *(located(compiled.problems, units) if merged.routers is not None else ()),
            ),
            uses_fed=merged.routers is not None,
            recompiled={SOURCE: self._recompiled(compiled)},
        )

    # Restarts

    remembers: ClassVar = True

    @property
    def memory(self) -> Memory | None:
        """The objects of the last good state; in every mode, as the next process may have ``keep``."""
        return self._good.memory

    def remember(self, octets: bytes) -> None:
        """Take the last good state of an earlier process. Raises ValueError."""
        if self.options.on_conflict == "keep":
            self._good = restored(octets)

    def _selected(self, snapshot: Snapshot, node: Node | None) -> Selected:
        labels = node.metadata.labels if node is not None else {}
        return self._selections.of(snapshot, self.options.namespace).of(labels)

    def merged_for(self, snapshot: Snapshot, node: str, given: NodeIntent) -> Merge:
        """Merge what a feeding dialect has for a node with the FRRConfigurations that select it."""
        found = self._selected(snapshot, self.tables.nodes.get(snapshot, ("", node)))
        units = _units(found.rows, given.fed, given.replaced)
        return self._merged(units, self._resolver(snapshot), node, given.taken)

    def isolated_for(
        self,
        snapshot: Snapshot,
        node: str,
        fed: Iterable[Fed],
        replaced: frozenset[ObjectRef],
        relations: Relations,
    ) -> Isolated:
        """Isolate a feeding dialect's objects of a node and the FRRConfigurations that select it."""
        found = self._selected(snapshot, self.tables.nodes.get(snapshot, ("", node)))
        units = _units(found.rows, fed, replaced)
        return self._merger.isolated(units, self._resolver(snapshot), relations)

    def _merged(
        self,
        units: Sequence[Unit],
        resolve: Resolve,
        node: str,
        taken: frozenset[ObjectRef] | None,
    ) -> Merge:
        if self.options.on_conflict == "isolate":
            return self._merger.isolate(units, resolve, node, taken)
        return self._merger.merge(units, resolve, node)

    def forget_unused(self) -> None:
        """Forget what was compiled for `merged_for`, but for what was used since the last call."""
        self._merger.forget_unused()

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
            return f"there is no {ref}"
        if secret.type != SECRET_TYPE:
            return f"{ref} is of type {secret.type}, not {SECRET_TYPE}"
        value = secret.data.get(PASSWORD)
        if value is None:
            return f"{ref} has no key {PASSWORD!r}"
        reason = password_error(value.reveal()) if value.known else None
        return value if reason is None else f"{ref}: {reason}"

    def _recompiled(self, compiled: Rows) -> frozenset[Any]:
        """Return the objects that contribute other routes than before to sets that stay."""
        changed = changed_objects(self._route_sets, compiled.route_sets)
        self._route_sets = compiled.route_sets
        self._prefixes.objects = tuple(
            dict.fromkeys(ref for found in compiled.route_sets.values() for ref in found.exports)
        )
        return changed

    # Status

    def log_level(self, snapshot: Snapshot) -> LogLevel | None:
        """Return the log level of the FRRK8sConfiguration ``config``."""
        key = (self.options.namespace, SETTINGS_NAME)
        return log_level(self.tables.of(FRRK8S_CONFIGURATION).get(snapshot, key))

    def node_objects(self, snapshot: Snapshot, context: NodeObjectContext) -> Iterator[NodeObject]:
        """Yield the FRRNodeState, and the BGPSessionState of each session."""
        yield self._node_state.row(snapshot, context)
        yield from self._session_states.rows(snapshot, context)

    # The operator

    def operate(self, snapshot: Snapshot, context: ClusterContext) -> ClusterIntent:
        """Report conditions: nodes with the same objects are merged once."""
        if not context.reports_conditions:
            return ClusterIntent()
        namespace = self.options.namespace
        objects: dict[ObjectRef, int] = {}
        reported: list[Condition] = []
        for row in self.tables.of(FRR_CONFIGURATION).all(snapshot):
            ref, generation = ref_to(FRR_CONFIGURATION, row), row.metadata.generation
            if row.metadata.namespace == namespace:
                objects[ref] = generation
            else:
                reported.append(other_namespace(ref, generation, namespace))
        groups: dict[Hashable, list[Node]] = {}
        for node in self.tables.nodes.all(snapshot):
            name = node.metadata.name
            group = (self.node_group(snapshot, name), context.feeding_group(name))
            groups.setdefault(group, []).append(node)
        merges: list[NodesMerge] = []
        resolve = self._resolver(snapshot)
        problems = self._selected(snapshot, None).problems
        for nodes in groups.values():
            first = context.of_node(nodes[0].metadata.name)
            selected = self._selected(snapshot, nodes[0]).rows
            units = _units(selected, first.fed, first.replaced)
            names = tuple(sorted(node.metadata.name for node in nodes))
            merge = self._merged(units, resolve, first.node, first.taken)
            merges.append(_of_nodes(names, units, merge, selected, first.replaced))
        self._merger.forget_unused()
        isolate = self.options.on_conflict == "isolate"
        reported += conditions(objects, merges, problems, isolate=isolate)
        refs = tuple({condition.object: None for condition in reported})
        return ClusterIntent(conditions=tuple(reported), reported=refs)

    # Admission

    def node_group(self, snapshot: Snapshot, node: str) -> Hashable:
        """Return the objects that select a node."""
        return self._selected(snapshot, self.tables.nodes.get(snapshot, ("", node))).group

    def review_warnings(
        self, row: FRRConfiguration, former: FRRConfiguration | None
    ) -> Iterable[str]:
        """Yield warnings about what has no effect, and about a change that resets a session."""
        if row.metadata.namespace != self.options.namespace:
            yield self._other_namespace
        yield from review_warnings(row, former)

    @property
    def _other_namespace(self) -> str:
        return f"only FRRConfigurations in namespace {self.options.namespace} count"

    def without_effect(self, snapshot: Snapshot) -> Iterator[Problem]:
        """Yield the FRRConfigurations of other namespaces."""
        for row in self.tables.of(FRR_CONFIGURATION).all(snapshot):
            if row.metadata.namespace != self.options.namespace:
                ref, text = ref_to(FRR_CONFIGURATION, row), self._other_namespace
                yield Problem((ref,), "metadata.namespace", text, category="unsupported")

    # Routes

    def join(self, contributions: Sequence[Contribution]) -> Attributes:
        """Unite communities; two local preferences contradict each other.

        A configured one stays where another dialect's differs: the merge reports that conflict.
        """
        configured = [
            one
            for one in contributions
            if one.source == SOURCE and one.attributes.local_preference is not None
        ]
        preferences = {
            one.attributes.local_preference
            for one in contributions
            if one.attributes.local_preference is not None
        }
        if len(preferences) > 1 and configured:
            return united(one.attributes for one in configured)
        if len(preferences) > 1:
            found = " and ".join(map(str, sorted(preferences)))
            raise JoinConflictError("localPref", f"it has local preference {found}")
        return united(one.attributes for one in contributions)

    explained_kinds: ClassVar[Mapping[str, str]] = {
        "frrconfiguration": FRR_CONFIGURATION.name,
        "frrconfigurations": FRR_CONFIGURATION.name,
    }

    def explain(self, candidate: Candidate, peer: Peer, rules: RouteSet | None) -> RouteExplanation:
        """Explain which object allows a prefix, or that none does."""
        if isinstance(candidate, Withheld):
            return explanation_of(candidate, candidate.reason, candidate.message)
        return explained(super().explain(candidate, peer, rules), candidate, peer)

    def candidates(
        self,
        snapshot: Snapshot,  # noqa: ARG002
        context: NodeContext,  # noqa: ARG002
        rules: Mapping[str, Any],  # noqa: ARG002
        target: Target | None,  # noqa: ARG002
    ) -> Iterator[Candidate]:
        """Yield the prefixes of routers, and those of objects that are not in effect."""
        yield from candidates(self._routers)
        if self._merge is not None:
            yield from withheld(*self._merge, self._routers, self.options.on_conflict)


def _blocks_cluster(options: Options) -> bool:
    return isinstance(options, Frrk8sOptions) and options.blocks_cluster


def _units(
    rows: Iterable[FRRConfiguration],
    fed: Iterable[Fed],
    replaced: frozenset[ObjectRef],
) -> list[Unit]:
    """Return the units to merge: the objects of a node, and those of feeding dialects."""
    own = ((ref_to(FRR_CONFIGURATION, row), row) for row in rows)
    units = [Unit(ref, row) for ref, row in own if ref not in replaced]
    return [*units, *(Unit(one.origin, one.row, one.fields, one.rules) for one in fed)]


def _of_nodes(
    names: tuple[str, ...],
    units: Iterable[Unit],
    merge: Merge,
    selected: Iterable[FRRConfiguration],
    replaced: frozenset[ObjectRef],
) -> NodesMerge:
    """Return the merge of nodes, with the objects that select them and are replaced by what is fed."""
    left_out = [ref for row in selected if (ref := ref_to(FRR_CONFIGURATION, row)) in replaced]
    refs = dict.fromkeys([*(unit.ref for unit in units), *left_out])
    partial = (*merge.partial, *((ref, "LeftOut") for ref in left_out))
    return NodesMerge(names, tuple(refs), merge._replace(partial=partial))


def _is_interface(text: str) -> bool:
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return True
    return False
