"""Compiles the FRRConfigurations of a node, and what other dialects feed, to intent. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Final

from reconcilers.dialect import NodeContext, NodeIntent, Objects
from reconcilers.frrk8s.in_effect import ObjectsOfNode
from reconcilers.frrk8s.kernel_routes import kernel_tables, with_kernel_routes
from reconcilers.frrk8s.last_good import LastGood, good_state
from reconcilers.frrk8s.log_level import ineffective
from reconcilers.frrk8s.options import Frrk8sOptions
from reconcilers.frrk8s.passwords import Resolve, Resolved, password_of
from reconcilers.frrk8s.route_sets import SOURCE, changed_objects
from reconcilers.frrk8s.router_rows import NodeValues, neighbor_problems, rows
from reconcilers.frrk8s.stored_state import State
from reconcilers.frrk8s.unit_parts import KERNEL_ROUTES, Unit
from reconcilers.model import ObjectRef, PasswordRef, Problem, SecretRef, ref_to
from reconcilers.sliced_work import Pieces, Slices
from resources.frrk8s.frrconfiguration import FRRConfiguration
from resources.frrk8s.kinds import FRR_CONFIGURATION, FRRK8S_CONFIGURATION
from resources.secret_value import SecretValue
from statedb import Snapshot

if TYPE_CHECKING:
    from reconcilers.frrk8s.dialect import Frrk8sDialect

WITH_KERNEL_ROUTES: Final = frozenset((KERNEL_ROUTES,))
"""Reasons for which fields have an effect where received routes are installed."""


def compile_node(
    dialect: Frrk8sDialect, snapshot: Snapshot, context: NodeContext
) -> Slices[NodeIntent]:
    """Compile the node's intent: its FRRConfigurations, merged with translated objects."""
    node = dialect.tables.nodes.get(snapshot, ("", context.node))
    state: State = context.state or State()
    pieces = Pieces()
    chosen = dialect.selected(snapshot, node)
    if not context.for_operator:
        yield from dialect.prepare(chosen.objects, pieces)
    given = given_objects(dialect, snapshot, chosen.objects, context, state.translated)
    if state.good.memory is not None:
        given = given._replace(good=state.good.memory.units)
    effect = yield from given.in_effect(pieces)
    configurations = dialect.tables.of(FRRK8S_CONFIGURATION).all(snapshot)
    problems = (
        *dialect.selections.of(snapshot, dialect.options.namespace).problems,
        *ineffective(configurations, dialect.options.namespace),
        *effect.merge.problems,
    )
    if context.for_operator:
        return NodeIntent(problems=problems, outcomes=effect.outcomes)
    is_good = effect.merge.routers is not None
    good = state.good
    if is_good:
        good = good_state(effect.merge, given.resolve, good)
    elif dialect.options.on_conflict == "clear":
        good = LastGood(memory=good.memory)
    dialect.merger.forget_unused(() if good.memory is None else good.memory.units)
    translated = {
        name: outcome.last_good
        for name, outcome in effect.outcomes.items()
        if outcome.last_good is not None
    }
    effective = good if is_good else good.with_rules((yield from given.present_rules()))
    blocked = dialect.blocked.prefixes(snapshot)
    held = {} if is_good else effective.passwords
    values = NodeValues(context.node, node, context.host, blocked, held)
    redistributed = kernel_tables(effective.routers)
    routers = tuple(with_kernel_routes(effective.routers, context.host.routes))
    compiled = yield from rows(routers, values, state.sets, dialect.originated, pieces)
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
        state=State(good, translated, compiled.route_sets, effect, routers),
        followed=(*effect.followed, dialect.tables.kernel_routes)
        if redistributed
        else effect.followed,
        kernel_tables=redistributed,
    )


def given_objects(
    dialect: Frrk8sDialect,
    snapshot: Snapshot,
    selected: Iterable[FRRConfiguration],
    context: NodeContext,
    held: Mapping[str, Objects],
) -> ObjectsOfNode:
    """Return FRRConfigurations and translated objects; ``held`` are last good ones of feeds."""
    table, feeds = dialect.tables.of(FRR_CONFIGURATION), context.feeds
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
    return ObjectsOfNode(
        context.node,
        snapshot,
        dialect.options.on_conflict,
        dialect.merger,
        _resolver(dialect, snapshot),
        [unit for unit in own if unit.ref not in refs] if refs else own,
        feeds,
        replaced,
        {**earlier, **held},
        named=not context.for_operator,
        effective=WITH_KERNEL_ROUTES if context.routes_installed else frozenset(),
    )


def _resolver(dialect: Frrk8sDialect, snapshot: Snapshot) -> Resolve:
    reads_secrets = isinstance(dialect.options, Frrk8sOptions)

    def resolve(ref: PasswordRef, value: SecretValue | None) -> Resolved:
        if isinstance(ref, SecretRef):
            # The operator may read no password: the agents report what is wrong with one.
            return _password(dialect, snapshot, ref) if reads_secrets else SecretValue.withheld()
        return "the password is missing" if value is None else value

    return resolve


def _password(dialect: Frrk8sDialect, snapshot: Snapshot, ref: SecretRef) -> Resolved:
    password = password_of(dialect.tables.secrets.get(snapshot, (ref.namespace, ref.name)))
    return f"{ref} {password}" if isinstance(password, str) else password
