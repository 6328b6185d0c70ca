"""L2Advertisement: read so that it is known, and left alone; no BGP comes of it."""

from __future__ import annotations

from typing import Annotated

import msgspec

from resources.crds.schema_markers import doc
from resources.label_selectors import LabelSelector
from resources.meta import Resource, Struct


class L2AdvertisementSpec(Struct, frozen=True):
    """The specification."""

    ip_address_pools: Annotated[tuple[str, ...], doc("The pools, by name.")] = msgspec.field(
        default=(), name="ipAddressPools"
    )
    ip_address_pool_selectors: Annotated[tuple[LabelSelector, ...], doc("The pools, by label.")] = (
        msgspec.field(default=(), name="ipAddressPoolSelectors")
    )
    node_selectors: Annotated[tuple[LabelSelector, ...], doc("The nodes that announce.")] = ()
    interfaces: Annotated[tuple[str, ...], doc("The interfaces on which they announce.")] = ()
    service_selectors: Annotated[tuple[LabelSelector, ...], doc("The Services.")] = ()


class L2Advertisement(Resource, frozen=True):
    """One advertisement of layer 2."""

    spec: L2AdvertisementSpec = msgspec.field(default_factory=L2AdvertisementSpec)
