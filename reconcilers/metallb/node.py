"""Compiles MetalLB's objects to what one node feeds to the merge of FRRConfigurations. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from reconcilers.dialect import Fed
from reconcilers.metallb.check import Secrets, findings, isolated
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
from reconcilers.model import ObjectRef, ref_to
from resources.core import Node
from resources.metallb.kinds import BFD_PROFILE, BGP_PEER

EXCLUDE_LABEL: Final = "node.kubernetes.io/exclude-from-external-load-balancers"


class NodeObjects(NamedTuple):
    """The objects that a node is compiled from, and their problems."""

    objects: Objects
    """What counts: with findings, those that isolation takes, or none."""
    findings: tuple[Finding, ...]
    left_out: frozenset[ObjectRef]
    usable: bool
    """False where the findings stand in the way of everything (``keep``, ``clear``)."""


def checked(objects: Objects, secrets: Secrets, namespace: str, isolate: bool) -> NodeObjects:
    """Check objects; ``isolate`` leaves out those with problems, otherwise none can be used."""
    if isolate:
        taken = isolated(objects, secrets, namespace)
        return NodeObjects(taken.taken, taken.findings, taken.left_out, usable=True)
    found = tuple(findings(objects, secrets, namespace))
    return NodeObjects(objects, found, frozenset(), usable=not found)


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


def fed(objects: Objects, rules: Mapping[str, PeerRules]) -> tuple[Fed, ...]:
    """Return the FRRConfigurations of peers, with the rules of their routes, and of BFD profiles."""
    peers = (
        Fed(ref_to(BGP_PEER, row), configuration_of(row), FIELDS, rules[row.metadata.name])
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
