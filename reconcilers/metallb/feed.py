"""The feed of MetalLB's objects of one node to FRR-k8s: units, relations, and the rules of routes."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, NamedTuple

from reconcilers import dialect as api
from reconcilers.metallb.findings import Secrets
from reconcilers.metallb.node_facts import excluded_node
from reconcilers.metallb.objects import Objects
from reconcilers.metallb.options import MetalLBOptions
from reconcilers.metallb.preferences_beside_frrk8s import given, translated_preferences, watched
from reconcilers.metallb.relations import MetalLBRelations
from reconcilers.metallb.route_sets import (
    PeerRules,
    node_rules,
    peer_rules,
)
from reconcilers.metallb.services import ServiceState, service_state
from reconcilers.metallb.translation import (
    FIELDS,
    PROFILE_FIELDS,
    configuration_of,
    profile_configuration,
)
from reconcilers.model import ObjectRef, Problem, ref_to
from reconcilers.sliced_work import Pieces, Slices
from resources.core.kinds import BY_SERVICE
from resources.core.service import LOAD_BALANCER
from resources.metallb.kinds import BFD_PROFILE, BGP_PEER
from resources.tables import Tables
from statedb import Snapshot

PIECES_OF_OBJECT: Final = 5
"""Pieces of a slice for the translation of one object."""
PIECES_OF_RULES: Final = 2
"""Pieces of a slice for the rules of one peer."""
NO_RULES: Final[Mapping[str, PeerRules]] = {}


class Checked(NamedTuple):
    """The objects of a node, and what is wrong with them."""

    objects: Objects
    problems: tuple[Problem, ...]
    secrets: Secrets
    namespace: str


class MetalLBFeed(api.Feed):
    """The objects of one node; routes are of the Services that a snapshot has."""

    def __init__(
        self,
        tables: Tables,
        options: MetalLBOptions,
        node: str,
        checked: Checked,
        replaced: Mapping[ObjectRef, str],
        last_good: api.Objects | None,
    ) -> None:
        objects = dict(checked.objects.refs())
        super().__init__(objects, problems=checked.problems, replaced=replaced, last_good=last_good)
        self._tables = tables
        self._class = options.load_balancer_class
        self._ignore_label = options.ignore_exclude_lb
        self._node = node
        self._checked = checked

    def units(self, objects: api.Objects) -> Iterable[api.Translated]:
        """Translate the feed's BGPPeers and BFDProfiles."""
        return translated_units(Objects.of(objects.items()))

    def translation(
        self, snapshot: Snapshot, objects: api.Objects, others: Iterable[Any]
    ) -> Slices[api.Translation]:
        """Translate the feed's objects with the rules of the routes of each peer.

        Further units are the local preferences that other objects may contradict.
        """
        of_kinds = Objects.of(objects.items())
        node = self._tables.nodes.get(snapshot, ("", self._node))
        rules = node_rules(of_kinds, excluded_node(node, self._ignore_label))
        of_peers = peer_rules(of_kinds, rules)
        pieces = Pieces()
        if pieces.fill_slice(len(of_peers) * PIECES_OF_RULES):
            yield
        units: list[api.Translated] = []
        for translated in translated_units(of_kinds, of_peers):
            units.append(translated)
            if pieces.fill_slice(PIECES_OF_OBJECT):
                yield
        watch = watched(others, of_kinds.peers) if of_kinds.peers else {}
        if not watch:
            return api.Translation(units)
        advertisements = {
            advertisement.ref: advertisement for advertisement in rules.advertisements
        }
        preferences = given(self._services(snapshot), of_peers, watch)
        further = translated_preferences(preferences, of_kinds, advertisements)
        return api.Translation(
            units, further, (self._tables.services, self._tables.endpoint_slices)
        )

    def relations(self) -> MetalLBRelations:
        """Return the references and conflicts among the feed's objects."""
        return MetalLBRelations(*self._checked)

    def _services(self, snapshot: Snapshot) -> Iterator[ServiceState]:
        t = self._tables
        for service in t.services.all(snapshot):
            if service.spec.type == LOAD_BALANCER:
                slices = t.endpoint_slices.find(snapshot, BY_SERVICE, service.key)
                yield service_state(service, slices, self._node, self._class)


def translated_units(
    objects: Objects, rules: Mapping[str, PeerRules] = NO_RULES
) -> Iterator[api.Translated]:
    """Iterate over the units of MetalLB's feed: peers with their rules, and BFD profiles."""
    peers = (
        api.Translated(
            ref_to(BGP_PEER, row), configuration_of(row), FIELDS, rules.get(row.metadata.name)
        )
        for row in objects.peers
    )
    profiles = (
        api.Translated(ref_to(BFD_PROFILE, row), profile_configuration(row), PROFILE_FIELDS)
        for row in objects.profiles
    )
    return itertools.chain(peers, profiles)
