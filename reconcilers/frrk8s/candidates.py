"""The prefixes that FRRConfigurations could advertise, for ``waggle explain``. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from reconcilers.dialect import Address, Candidate, NodeContext, Target
from reconcilers.frrk8s.in_effect import InEffect
from reconcilers.frrk8s.merge import MergedRouter
from reconcilers.frrk8s.one_object import routed_vrfs
from reconcilers.frrk8s.options import OnConflict
from reconcilers.frrk8s.route_sets import ADDRESS_TYPE
from reconcilers.frrk8s.route_sources import address_of, node_ref
from reconcilers.frrk8s.stored_state import State
from reconcilers.frrk8s.unit_parts import Unit
from reconcilers.model import ObjectRef, ref_to
from reconcilers.prefixes import covers
from reconcilers.redistribution import KERNEL_ROUTE
from resources.enumeration import joined
from resources.frrk8s.kinds import FRR_CONFIGURATION, node_selectors
from resources.label_selectors import nearest_mismatch
from speaker.nlri import Family, covering_prefixes, prefix_to_text
from statedb import Snapshot

if TYPE_CHECKING:
    from reconcilers.frrk8s.dialect import Frrk8sDialect


NOT_IN_KERNEL: Final = "NotInKernel"
"""The reason of a prefix that is redistributed as soon as the kernel has it."""


class Withheld(NamedTuple):
    """A prefix of an object that is not in effect (a `Candidate`)."""

    object: ObjectRef
    type: str
    family: Family | None
    nlri: bytes | None
    reason: str
    message: str
    rule: ObjectRef | None = None
    service_field: str | None = None
    in_pool: bool = False


def candidates_not_in_effect(
    effect: InEffect, routers: Iterable[MergedRouter], mode: OnConflict
) -> Iterator[Withheld]:
    """Yield candidates: prefixes of FRRConfigurations that are not in effect in ``routers``."""
    merge, units = effect.merge, effect.units
    accepted = {unit.ref for unit in merge.accepted}
    if accepted.issuperset(unit.ref for unit in units):
        return
    in_effect = {
        (ref, router.vrf, nlri)
        for router in routers
        for ref, given in router.given
        for nlri in given
    }
    problems = [problem for problem in merge.problems if problem.category != "unsupported"]
    for unit in units:
        if unit.ref in accepted:
            continue
        own = [problem.message for problem in problems if unit.ref in problem.objects]
        if mode == "isolate":
            reason, head = "LeftOut", "the object is not in effect"
        else:
            reason, head = "NotInEffect", "the objects of the node do not go together"
            own = own or [problem.message for problem in problems[:1]]
        message = joined((head, *own))
        for vrf, prefixes in routed_vrfs(unit).items():
            for prefix in prefixes:
                if (unit.ref, vrf, prefix) not in in_effect:
                    yield Withheld(unit.ref, ADDRESS_TYPE, *prefix, reason, message)


def candidates_of_routers(routers: Sequence[MergedRouter], node: str) -> Iterator[Address]:
    """Yield candidates: every prefix that an FRRConfiguration, or the kernel, gives a merged router."""
    for ref, nlri in dict.fromkeys(
        (ref, nlri) for router in routers for ref, prefixes in router.given for nlri in prefixes
    ):
        yield address_of(ref, nlri)
    for nlri in dict.fromkeys(
        nlri for router in routers for _, prefixes in router.kernel_routes for nlri in prefixes
    ):
        yield address_of(node_ref(node), nlri, KERNEL_ROUTE)


def candidates_not_in_kernel(
    routers: Iterable[MergedRouter], node: str, family: Family, nlri: bytes
) -> Iterator[Withheld]:
    """Yield a candidate: the longest prefix around a target that FRR-k8s would redistribute."""
    for covering in covering_prefixes(nlri):
        tables = [
            str(redistribution.table)
            for router in routers
            for _, redistribution in router.redistributions
            if redistribution.permits(family, covering)
        ]
        if tables:
            where = " or ".join(dict.fromkeys(tables))
            message = f"the kernel has no route {prefix_to_text(family, covering)} in {where}"
            yield Withheld(node_ref(node), KERNEL_ROUTE, family, covering, NOT_IN_KERNEL, message)
            return


def candidates_of_other_nodes(
    dialect: Frrk8sDialect, snapshot: Snapshot, node: str, target: Target
) -> Iterator[Withheld]:
    """Yield candidates: prefixes of the target in FRRConfigurations that do not select the node."""
    tables = dialect.tables
    row = tables.nodes.get(snapshot, ("", node))
    labels = {} if row is None else row.metadata.labels
    for configuration in tables.in_namespace(
        snapshot, FRR_CONFIGURATION, dialect.options.namespace
    ):
        ref = ref_to(FRR_CONFIGURATION, configuration)
        if target.prefix is None and not target.names(ref):
            continue
        mismatch = nearest_mismatch(node_selectors(configuration), labels)
        if mismatch is None:
            continue
        message = (
            f"the object is for other nodes: nodeSelector {mismatch.wanted}; node {node} has "
            f"{mismatch.present}"
        )
        prefixes = {
            (family, nlri)
            for _, given in routed_vrfs(Unit(ref, configuration)).items()
            for family, nlri in given
        }
        for family, nlri in prefixes:
            if target.prefix is None or (
                family == target.prefix[0] and covers(nlri, target.prefix[1])
            ):
                yield Withheld(ref, ADDRESS_TYPE, family, nlri, "NotSelected", message, ref)
        if not prefixes and target.prefix is None:
            yield Withheld(ref, ADDRESS_TYPE, None, None, "NotSelected", message, ref)


def candidates(
    dialect: Frrk8sDialect,
    snapshot: Snapshot,
    context: NodeContext,
    _rules: Mapping[str, Any],
    target: Target | None,
) -> Iterator[Candidate]:
    """Yield FRR-k8s's candidates: the prefixes of routers, and of objects that are not in effect.

    For a prefix that none of them covers, what a redistribution permits, and objects for other nodes.
    """
    state: State = context.state or State()
    known = tuple(candidates_of_routers(state.routers, context.node))
    yield from known
    if target is not None and target.prefix is not None:
        family, nlri = target.prefix
        if not any(c.family == family and c.nlri and covers(c.nlri, nlri) for c in known):
            yield from candidates_not_in_kernel(state.routers, context.node, family, nlri)
            yield from candidates_of_other_nodes(dialect, snapshot, context.node, target)
    elif target is not None:
        yield from candidates_of_other_nodes(dialect, snapshot, context.node, target)
    if state.effect is not None:
        yield from candidates_not_in_effect(
            state.effect, state.routers, dialect.options.on_conflict
        )
