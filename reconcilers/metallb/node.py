"""Compiles MetalLB's objects to what one node feeds to the merge of FRRConfigurations. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final, NamedTuple, TypeAlias

from reconcilers.dialect import Fed
from reconcilers.frrk8s.isolation import Isolated, Relations
from reconcilers.metallb.check import Secrets, finding_slices
from reconcilers.metallb.isolation import MetalLBRelations
from reconcilers.metallb.objects import Finding, Objects
from reconcilers.metallb.rules import (
    NodeRules,
    PeerRules,
    PeerRulesFactory,
    Withheld,
    node_rules,
)
from reconcilers.metallb.translation import (
    FIELDS,
    PROFILE_FIELDS,
    configuration_of,
    families_of,
    profile_configuration,
)
from reconcilers.model import ObjectRef, Problem, ref_to
from reconcilers.slices import Pieces, Slices
from resources.core import Node
from resources.metallb.kinds import BFD_PROFILE, BGP_PEER

NO_RULES: Final[Mapping[str, PeerRules]] = {}
EXCLUDE_LABEL: Final = "node.kubernetes.io/exclude-from-external-load-balancers"


Isolate: TypeAlias = Callable[[Sequence[Fed], Relations], Isolated]
"""Takes translated objects in, in one order with the FRRConfigurations of the node."""
Preferences: TypeAlias = Callable[[Objects], Sequence[Fed]]
"""The local preferences of objects that FRRConfigurations may contradict; see `preferences`."""
PIECES_OF_REASON: Final = 25
"""Pieces of a slice that the reason counts for which one object is left out."""
MAX_TRIALS: Final = 8
"""Of an isolation where objects that come in have further local preferences."""


class NodeObjects(NamedTuple):
    """The objects that a node is compiled from, and their problems."""

    objects: Objects
    """What counts: with findings, those that isolation takes, or none."""
    findings: tuple[Finding, ...] = ()
    left_out: frozenset[ObjectRef] = frozenset()
    usable: bool = True
    """False where the findings stand in the way of everything (``keep``, ``clear``)."""
    taken: frozenset[ObjectRef] | None = None
    """What isolation takes, FRRConfigurations included; None without one."""
    disagreeing: tuple[Fed, ...] = ()
    """Of what isolation leaves out: the objects that disagree with an older FRRConfiguration. The merge
    of FRR-k8s leaves them out as well, and reports it."""


def checked(
    objects: Objects, secrets: Secrets, namespace: str, pieces: Pieces
) -> Slices[NodeObjects]:
    """Check objects of which none can be used where one has a problem."""
    found = tuple((yield from finding_slices(objects, secrets, namespace, pieces)))
    return NodeObjects(objects, found, usable=not found)


def isolated(
    objects: Objects,
    relations: MetalLBRelations,
    isolate: Isolate,
    preferences: Preferences,
    pieces: Pieces,
) -> Slices[NodeObjects]:
    """Leave out the objects that do not go together with older ones, those of FRR-k8s included."""
    rows = dict(objects.refs())
    translated = fed(objects.only(frozenset(rows) - relations.wrong))
    preferred: list[Fed] = []
    for _ in range(MAX_TRIALS):
        result = isolate((*translated, *preferred), relations)
        if pieces.fill_slice(len(rows)):
            yield
        taken = objects.only(result.refs)
        more = [one for one in preferences(taken) if one not in preferred]
        if not more:
            break
        preferred += more
    found: dict[Finding, None] = {}
    disagreeing: set[ObjectRef] = set()
    for ref, reasons in relations.reasons(result.refs):
        if pieces.fill_slice(PIECES_OF_REASON):
            yield
        found.update(dict.fromkeys(reasons.findings))
        units = result.left_out[ref]
        foreign = any(one not in rows for p in units.problems for one in p.objects)
        if units.problems and (units.cause == "itself" or (units.cause == "older" and foreign)):
            disagreeing.add(ref)
        elif not reasons.findings:
            later = reasons.later or map(_finding, units.problems)
            found.update(dict.fromkeys(later))
    return NodeObjects(
        taken,
        tuple(found),
        frozenset(rows.keys() - result.refs),
        taken=result.refs,
        disagreeing=tuple(one for one in (*translated, *preferred) if one.origin in disagreeing),
    )


def _finding(problem: Problem) -> Finding:
    return Finding(problem.objects, problem.field, problem.message, problem.category)


def withheld(node: Node | None, ignore_label: bool) -> Withheld | None:
    """Return why a node advertises no Service, or None."""
    if node is None:
        return None
    if node.network_unavailable:
        return ("NetworkUnavailable", "the node's condition NetworkUnavailable is True")
    if EXCLUDE_LABEL in node.metadata.labels and not ignore_label:
        return ("NodeExcluded", f"the node has the label {EXCLUDE_LABEL}")
    return None


def peer_rules(objects: Objects, rules: NodeRules) -> dict[str, PeerRules]:
    """Return the rules of each peer's routes, by its name."""
    factory = PeerRulesFactory(rules)
    return {
        peer.metadata.name: factory.rules(peer.metadata.name, families_of(peer))
        for peer in objects.peers
    }


def fed(objects: Objects, rules: Mapping[str, PeerRules] = NO_RULES) -> tuple[Fed, ...]:
    """Return the FRRConfigurations of peers, with the rules of their routes, and of BFD profiles."""
    peers = (
        Fed(ref_to(BGP_PEER, row), configuration_of(row), FIELDS, rules.get(row.metadata.name))
        for row in objects.peers
    )
    profiles = (
        Fed(ref_to(BFD_PROFILE, row), profile_configuration(row), PROFILE_FIELDS)
        for row in objects.profiles
    )
    return (*peers, *profiles)


def compiled_rules(objects: Objects, node: Node | None, ignore_label: bool) -> NodeRules:
    """Return the rules of a node whose objects can be used."""
    return node_rules(objects, withheld(node, ignore_label))
