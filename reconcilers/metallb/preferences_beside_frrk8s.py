"""Local preferences that MetalLB's objects and FRRConfigurations give one prefix. Pure.

Routes of Services are in no merged object, so that one Service costs one Service. A local preference
that an FRRConfiguration gives a prefix of a BGPPeer's neighbour is the exception: what a Service gives
it is merged, and contradicts it there.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import TypeAlias

from msgspec.structs import replace

from reconcilers.dialect import Contributed, Translated
from reconcilers.frrk8s.field_values import Prefix, address, prefix, vrf_name
from reconcilers.metallb.objects import Objects
from reconcilers.metallb.route_sets import AdvertisementRule, PeerRules
from reconcilers.metallb.services import ServiceState, contributions
from reconcilers.metallb.translation import ADVERTISEMENT_FIELDS, configuration_of
from reconcilers.model import ObjectRef
from resources.frrk8s.frrconfiguration import FRRConfiguration
from resources.frrk8s.neighbor import Advertise, AllowedOut, LocalPrefPrefixes, Neighbor
from resources.metallb.bgppeer import BGPPeer, end_of, vrf_of
from speaker.nlri import prefix_to_text

Watched: TypeAlias = Mapping[str, frozenset[Prefix]]
"""By BGPPeer: prefixes that FRRConfigurations give a local preference."""


def watched(rows: Iterable[FRRConfiguration], peers: Iterable[BGPPeer]) -> Watched:
    """Return the prefixes whose local preference FRRConfigurations give BGPPeers' neighbours."""
    names = {(vrf_of(peer), end_of(peer)): peer.metadata.name for peer in peers}
    prefixes_of: dict[str, set[Prefix]] = defaultdict(set)
    for row in rows:
        for router in row.spec.bgp.routers:
            for neighbor in router.neighbors:
                if not neighbor.to_advertise.with_local_pref:
                    continue
                name = names.get((vrf_name(router.vrf), _end(neighbor)))
                if name is not None:
                    prefixes_of[name].update(_with_preference(neighbor))
    return {name: frozenset(prefixes) for name, prefixes in prefixes_of.items()}


def _end(neighbor: Neighbor) -> str:
    try:
        return neighbor.interface or address(neighbor.address)
    except ValueError:
        return ""


def _with_preference(neighbor: Neighbor) -> Iterator[Prefix]:
    for entry in neighbor.to_advertise.with_local_pref:
        for text in entry.prefixes:
            try:
                yield prefix(text)
            except ValueError:
                continue


Given: TypeAlias = Mapping[tuple[ObjectRef, str], frozenset[Prefix]]
"""By BGPAdvertisement and BGPPeer: watched prefixes that Services give its local preference."""


def given(states: Iterable[ServiceState], rules: Mapping[str, PeerRules], watch: Watched) -> Given:
    """Return the watched prefixes to which Services give preferences, too; ``rules`` are by BGPPeer."""
    prefixes_of: dict[tuple[ObjectRef, str], set[Prefix]] = defaultdict(set)
    of_peers = [(name, rules[name]) for name in watch if name in rules]
    for state in states:
        for contribution in contributions(state, of_peers):
            if not isinstance(contribution, Contributed):
                continue
            if contribution.contribution.attributes.local_preference is None:
                continue
            if (contribution.family, contribution.nlri) in watch[contribution.route_set]:
                key = (contribution.contribution.origin.rule, contribution.route_set)
                prefixes_of[key].add((contribution.family, contribution.nlri))
    return {key: frozenset(prefixes) for key, prefixes in prefixes_of.items()}


def translated_preferences(
    preferences: Given, objects: Objects, advertisements: Mapping[ObjectRef, AdvertisementRule]
) -> tuple[Translated, ...]:
    """Return local preferences translated for FRR-k8s: units with a peer's session and prefixes."""
    peers = {peer.metadata.name: peer for peer in objects.peers}
    return tuple(
        _translated(advertisements[ref], peers[name], preferences[ref, name])
        for ref, name in sorted(preferences)
    )


def _translated(
    advertisement: AdvertisementRule, peer: BGPPeer, prefixes: frozenset[Prefix]
) -> Translated:
    texts = tuple(prefix_to_text(*prefix) for prefix in sorted(prefixes))
    entry = LocalPrefPrefixes(local_pref=advertisement.row.spec.local_pref, prefixes=texts)
    advertise = Advertise(allowed=AllowedOut(prefixes=texts), with_local_pref=(entry,))
    row = configuration_of(peer, advertise)
    metadata = replace(
        advertisement.row.metadata, namespace=peer.metadata.namespace, annotations={}
    )
    return Translated(advertisement.ref, replace(row, metadata=metadata), ADVERTISEMENT_FIELDS)
