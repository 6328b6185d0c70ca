"""The rules of route sets: the pools and BGPAdvertisements of a node, for each of its peers. Pure."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import NamedTuple, TypeAlias

import msgspec

from reconcilers.frrk8s.field_values import MED
from reconcilers.metallb.bit_sets import chosen, transposed
from reconcilers.metallb.objects import Objects
from reconcilers.metallb.pool_selection import PoolSelection
from reconcilers.metallb.translation import families_of
from reconcilers.model import Attributes, ObjectRef, ref_to
from resources.frrk8s.communities import Community, parse_community
from resources.metallb.bgpadvertisement import BGPAdvertisement
from resources.metallb.ipaddresspool import blocks
from resources.metallb.kinds import BGP_ADVERTISEMENT
from speaker.nlri import IPV4_UNICAST, Family, aggregate, prefix_to_wire

Withheld: TypeAlias = tuple[str, str]
"""Why something is not advertised: one word, and a sentence without its end."""


class AdvertisementRule(msgspec.Struct, frozen=True, dict=True):
    """One BGPAdvertisement of the node, with its communities resolved."""

    row: BGPAdvertisement
    attributes: Attributes

    @cached_property
    def ref(self) -> ObjectRef:
        """The BGPAdvertisement that has the rule."""
        return ref_to(BGP_ADVERTISEMENT, self.row)

    @property
    def communities(self) -> frozenset[Community]:
        """The communities of the BGPAdvertisement, large ones included."""
        return frozenset((*self.attributes.communities, *self.attributes.large_communities))

    @cached_property
    def community_count(self) -> int:
        """The number of the BGPAdvertisement's `communities`."""
        return len(self.attributes.communities) + len(self.attributes.large_communities)

    def length(self, family: Family) -> int:
        """Return the length of the prefix that the rule advertises an address of a family as."""
        spec = self.row.spec
        return spec.aggregation_length if family == IPV4_UNICAST else spec.aggregation_length_v6

    def selects(self, labels: Mapping[str, str]) -> bool:
        """True if the BGPAdvertisement is for Services with these labels."""
        selectors = self.row.spec.service_selectors
        return not selectors or any(selector.matches(labels) for selector in selectors)


class NodeRules(msgspec.Struct, frozen=True):
    """The values that are the same for all peers of a node."""

    pools: Mapping[Family, Mapping[bytes, str]]
    """The prefixes of the pools, by family, with the name of the pool."""
    advertisements: tuple[AdvertisementRule, ...]
    """Advertisements for this node."""
    selecting: Mapping[str, int] = {}
    """The advertisements that select a pool, a bit each (`bit_sets`), by its name."""
    lengths: Mapping[Family, tuple[int, ...]] = {}
    """The lengths of the prefixes of the pools: few, where an address has 32 or 128."""
    withheld: Withheld | None = None
    """Why the node advertises nothing, or None."""

    def pool_of(self, family: Family, nlri: bytes) -> str | None:
        """Return the pool, and so the advertisement rules, of an address as host route, or None."""
        prefixes = self.pools.get(family, {})
        for length in self.lengths.get(family, ()):
            pool = prefixes.get(aggregate(nlri, length))
            if pool is not None:
                return pool
        return None

    def of_pool(self, pool: str) -> tuple[AdvertisementRule, ...]:
        """Return the rules of the BGPAdvertisements that select a pool."""
        bits = self.selecting.get(pool, 0)
        if bits == (1 << len(self.advertisements)) - 1:  # as advertisements without selectors
            return self.advertisements
        return tuple(chosen(self.advertisements, bits))


class PeerRules(NamedTuple):
    """The rules of the routes of one BGPPeer; peers with equal rules share a route set."""

    name: str
    """A digest of the rules."""
    node: NodeRules
    families: tuple[Family, ...]
    """The families of the session."""
    for_peer: frozenset[ObjectRef]
    """The advertisements that are for the peer."""


def node_rules(objects: Objects, withheld: Withheld | None) -> NodeRules:
    """Compile the advertisement rules of a node: of pools and BGPAdvertisements without findings."""
    pools: dict[Family, dict[bytes, str]] = {}
    for pool in objects.pools:
        for entry in blocks(pool):
            for network in entry.networks:
                family, nlri = prefix_to_wire(str(network))
                pools.setdefault(family, {})[nlri] = pool.metadata.name
    names, selection = objects.aliases(), PoolSelection(objects.pools)
    advertisements = tuple(
        AdvertisementRule(row, _attributes(row, names)) for row in objects.advertisements
    )
    selected = [selection.bits(row) for row in objects.advertisements]
    pool_names = selection.names
    selecting = dict(zip(pool_names, transposed(selected, len(pool_names)), strict=True))
    lengths = {family: tuple({p[0]: None for p in prefixes}) for family, prefixes in pools.items()}
    return NodeRules(pools, advertisements, selecting, lengths, withheld)


def _attributes(row: BGPAdvertisement, names: Mapping[str, str]) -> Attributes:
    values = {parse_community(names.get(text, text)) for text in row.spec.communities}
    return Attributes(
        communities=tuple(sorted(v for v in values if isinstance(v, int))),
        large_communities=tuple(sorted(v for v in values if not isinstance(v, int))),
        local_preference=row.spec.local_pref or None,
        med=MED,
    )


class PeerRulesFactory:
    """Makes the rules of peers from the rules of their node."""

    def __init__(self, node: NodeRules) -> None:
        self._node = node
        content = (
            sorted((str(f), p.hex(), name) for f, ps in node.pools.items() for p, name in ps.items()),
            [(rule.row.metadata.name, rule.row.spec, rule.attributes) for rule in node.advertisements],
            sorted((name, f"{bits:x}") for name, bits in node.selecting.items()),
            node.withheld,
        )  # fmt: skip
        self._digest = _digest(content)
        self._of_all: list[ObjectRef] = []
        """The advertisements that are for all peers."""
        self._named: dict[str, list[ObjectRef]] = {}
        """The others, by the names of their peers."""
        self._known: dict[tuple[tuple[Family, ...], tuple[ObjectRef, ...]], PeerRules] = {}
        for advertisement in node.advertisements:
            if not advertisement.row.spec.peers:
                self._of_all.append(advertisement.ref)
            for name in dict.fromkeys(advertisement.row.spec.peers):
                self._named.setdefault(name, []).append(advertisement.ref)

    def rules(self, peer: str, families: Sequence[Family]) -> PeerRules:
        """Return the advertisement rules of a BGPPeer."""
        given, named = tuple(sorted(families)), tuple(self._named.get(peer, ()))
        rules = self._known.get((given, named))
        if rules is None:
            refs = frozenset((*self._of_all, *named))
            names = sorted(ref.name for ref in refs)
            digest = _digest((self._digest, [str(family) for family in given], names))
            rules = PeerRules(digest, self._node, given, refs)
            self._known[given, named] = rules
        return rules


def _digest(content: object) -> str:
    octets = msgspec.json.encode(content, order="deterministic")
    return hashlib.sha256(octets).hexdigest()[:12]


def peer_rules(objects: Objects, rules: NodeRules) -> dict[str, PeerRules]:
    """Return the advertisement rules of each BGPPeer, by its name."""
    factory = PeerRulesFactory(rules)
    return {
        peer.metadata.name: factory.rules(peer.metadata.name, families_of(peer))
        for peer in objects.peers
    }
