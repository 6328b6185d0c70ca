"""Objects of MetalLB, and references of advertisements, that have no effect, as in MetalLB. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from reconcilers.model import Problem, ref_to
from resources.errors import shortened
from resources.metallb import kinds
from resources.metallb.bgpadvertisement import BGPAdvertisement
from resources.metallb.ipaddresspool import IPAddressPool
from resources.schema import did_you_mean
from resources.tables import Tables
from statedb import Snapshot


def other_namespace(namespace: str) -> str:
    """Return the sentence about an object of another namespace than MetalLB's."""
    return f"only objects of MetalLB in namespace {namespace} are used"


def without_effect(tables: Tables, snapshot: Snapshot, namespace: str) -> Iterator[Problem]:
    """Yield the objects of other namespaces, and what advertisements name in vain."""
    for kind in kinds.CONFIGURATION:
        for row in tables.of(kind).all(snapshot):
            if row.metadata.namespace != namespace:
                ref, text = ref_to(kind, row), other_namespace(namespace)
                yield Problem((ref,), "metadata.namespace", text, category="unsupported")
    pools = [
        row
        for row in tables.of(kinds.IP_ADDRESS_POOL).all(snapshot)
        if row.metadata.namespace == namespace
    ]
    peers = [
        row.metadata.name
        for row in tables.of(kinds.BGP_PEER).all(snapshot)
        if row.metadata.namespace == namespace
    ]
    for row in tables.of(kinds.BGP_ADVERTISEMENT).all(snapshot):
        if row.metadata.namespace == namespace and not row.errors:
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
