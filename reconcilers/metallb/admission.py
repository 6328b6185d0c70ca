"""The review of MetalLB's objects: objects without effect, as in MetalLB, and groups of nodes. Pure."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from typing import TYPE_CHECKING, Final

from reconcilers.dialect import Admission
from reconcilers.metallb.node_facts import excluded_node
from reconcilers.model import Problem, ref_to
from resources.errors import shortened
from resources.metallb import kinds
from resources.metallb.bgpadvertisement import BGPAdvertisement
from resources.metallb.bgppeer import BGPPeer
from resources.metallb.ipaddresspool import IPAddressPool
from resources.metallb.objects import MetalLBObject
from resources.schema import did_you_mean
from statedb import Snapshot

if TYPE_CHECKING:
    from reconcilers.metallb.dialect import MetalLBDialect

NO_EFFECT: Final = "has no effect"
NO_LAYER_2: Final = "has no effect: addresses are advertised by BGP alone"


def other_namespace(namespace: str) -> str:
    """Return the admission warning about a MetalLB object of another namespace."""
    return f"only objects of MetalLB in namespace {namespace} are used"


def node_group(dialect: MetalLBDialect, snapshot: Snapshot, node: str) -> Hashable:
    """Return a node's group in the admission review: its MetalLB objects, and whether it advertises."""
    row = dialect.tables.nodes.get(snapshot, ("", node))
    excluded = excluded_node(row, dialect.of_node.ignore_exclude_lb)
    return (dialect.selected(snapshot, node).group, excluded)


def warnings(dialect: MetalLBDialect, row: MetalLBObject, _former: object) -> Iterator[str]:
    """Yield the admission warnings about a MetalLB object: fields and namespaces without effect."""
    if row.metadata.namespace != dialect.options.namespace:
        yield other_namespace(dialect.options.namespace)
    if isinstance(row, BGPPeer) and row.spec.disable_mp:
        yield f"spec.disableMP: {NO_EFFECT}"


def without_effect(dialect: MetalLBDialect, snapshot: Snapshot) -> Iterator[Problem]:
    """Yield the MetalLB objects, names in BGPAdvertisements and fields without effect, for a check."""
    tables, namespace = dialect.tables, dialect.options.namespace
    for kind in kinds.CONFIGURATION:
        for row in tables.of(kind).all(snapshot):
            if row.metadata.namespace != namespace:
                ref, text = ref_to(kind, row), other_namespace(namespace)
                yield Problem((ref,), "metadata.namespace", text, category="unsupported")
    pools = list(tables.in_namespace(snapshot, kinds.IP_ADDRESS_POOL, namespace))
    peers = []
    for peer in tables.in_namespace(snapshot, kinds.BGP_PEER, namespace):
        peers.append(peer.metadata.name)
        if peer.spec.disable_mp:
            ref = ref_to(kinds.BGP_PEER, peer)
            yield Problem((ref,), "spec.disableMP", NO_EFFECT, category="unsupported")
    for layer_2 in tables.of(kinds.L2_ADVERTISEMENT).all(snapshot):
        ref = ref_to(kinds.L2_ADVERTISEMENT, layer_2)
        yield Problem((ref,), "", NO_LAYER_2, category="unsupported")
    for row in tables.in_namespace(snapshot, kinds.BGP_ADVERTISEMENT, namespace):
        if not row.errors:
            yield from _in_vain(row, pools, peers)


def _in_vain(
    row: BGPAdvertisement, pools: Sequence[IPAddressPool], peers: Sequence[str]
) -> Iterator[Problem]:
    spec, ref = row.spec, ref_to(kinds.BGP_ADVERTISEMENT, row)
    names = [pool.metadata.name for pool in pools]
    for field, kind, wanted, known in (
        ("ipAddressPools", "IPAddressPool", spec.ip_address_pools, names),
        ("peers", "BGPPeer", spec.peers, peers),
    ):
        present = frozenset(known)
        for i, name in enumerate(wanted):
            if name not in present:
                text = f"there is no {kind} {shortened(name)}{did_you_mean(name, known)}"
                yield Problem((ref,), f"spec.{field}[{i}]", text, category="unresolved")
    for i, selector in enumerate(spec.ip_address_pool_selectors):
        if not any(selector.matches(pool.metadata.labels) for pool in pools):
            text = "selects no IPAddressPool"
            path = f"spec.ipAddressPoolSelectors[{i}]"
            yield Problem((ref,), path, text, category="unresolved")


ADMISSION: Final = Admission(kinds.CONFIGURATION, node_group, warnings, without_effect)
