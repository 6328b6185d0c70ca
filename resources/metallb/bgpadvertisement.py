"""BGPAdvertisement: which pools are advertised, from which nodes, to which peers, and how."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Final

import msgspec
from msgspec import Meta

from resources.crds.schema_markers import Rule, doc
from resources.errors import FieldError
from resources.label_selectors import LabelSelector
from resources.meta import Struct
from resources.metallb.field_rules import selectors_errors, twice_errors
from resources.metallb.objects import MetalLBObject

HOST_LENGTH: Final = {4: 32, 6: 128}
"""By version of IP: the aggregation length that aggregates nothing."""


class BGPAdvertisementSpec(Struct, frozen=True):
    """The specification; everything has a default, and the default is all pools to all peers."""

    cel = (
        Rule(
            "!has(self.serviceSelectors) || size(self.serviceSelectors) == 0 || "
            "(self.aggregationLength == 32 && self.aggregationLengthV6 == 128)",
            "serviceSelectors need aggregationLength 32 and aggregationLengthV6 128",
            "serviceSelectors",
        ),
    )
    aggregation_length: Annotated[
        int,
        Meta(ge=1),
        doc("The length of the IPv4 prefix that an address is advertised as.", {"maximum": 32}),
    ] = HOST_LENGTH[4]
    aggregation_length_v6: Annotated[
        int,
        doc(
            "The length of the IPv6 prefix that an address is advertised as.",
            {"minimum": 1, "maximum": 128},
        ),
    ] = HOST_LENGTH[6]
    local_pref: Annotated[
        int,
        Meta(ge=0, le=4294967295),
        doc("The local preference of the routes; sent to internal peers only. 0 is none."),
    ] = 0
    communities: Annotated[
        tuple[str, ...],
        doc(
            "Communities of the routes: 65000:1, large:65000:1:2, or the name of one in a Community."
        ),
    ] = ()
    ip_address_pools: Annotated[
        tuple[str, ...],
        doc("The pools, by name; without these and selectors, all pools."),
    ] = msgspec.field(default=(), name="ipAddressPools")
    ip_address_pool_selectors: Annotated[
        tuple[LabelSelector, ...], doc("The pools, by label: one selector is enough.")
    ] = msgspec.field(default=(), name="ipAddressPoolSelectors")
    node_selectors: Annotated[
        tuple[LabelSelector, ...],
        doc("The nodes that advertise: one selector is enough. None selects all nodes."),
    ] = ()
    peers: Annotated[tuple[str, ...], doc("The BGPPeers, by name. None is all of them.")] = ()
    service_selectors: Annotated[
        tuple[LabelSelector, ...],
        doc("The Services: one selector is enough. None selects all Services of the pools."),
    ] = ()


class BGPAdvertisement(MetalLBObject, frozen=True, kw_only=True):
    """One advertisement; without a spec it is for all pools and all peers."""

    spec: BGPAdvertisementSpec = msgspec.field(default_factory=BGPAdvertisementSpec)


def aggregation_length(row: BGPAdvertisement, version: int) -> int:
    """Return the length of a BGPAdvertisement's aggregates of a version of IP."""
    return row.spec.aggregation_length if version == 4 else row.spec.aggregation_length_v6


def advertisement_errors(row: BGPAdvertisement) -> Iterator[FieldError]:
    """Yield the rules that a MetalLB BGPAdvertisement breaks, each on its own."""
    spec = row.spec
    lengths = (
        ("aggregationLength", spec.aggregation_length, 32),
        ("aggregationLengthV6", spec.aggregation_length_v6, 128),
    )
    for name, length, longest in lengths:
        if not 1 <= length <= longest:
            yield FieldError(f"spec.{name}", f"{length} is not from 1 to {longest}")
        elif spec.service_selectors and length != longest:
            text = f"{length}: with serviceSelectors it has to be {longest}"
            yield FieldError(f"spec.{name}", text)
    yield from twice_errors(spec.communities, "spec.communities")
    yield from twice_errors(spec.ip_address_pools, "spec.ipAddressPools")
    yield from twice_errors(spec.peers, "spec.peers")
    yield from selectors_errors(spec.ip_address_pool_selectors, "spec.ipAddressPoolSelectors")
    yield from selectors_errors(spec.node_selectors, "spec.nodeSelectors")
    yield from selectors_errors(spec.service_selectors, "spec.serviceSelectors")
