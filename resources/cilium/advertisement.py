"""CiliumBGPAdvertisement: what to advertise, and with which attributes; chosen by its labels."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from resources.cilium import communities
from resources.cilium.limits import Name
from resources.errors import FieldError
from resources.labels import LabelSelector, selector_errors
from resources.meta import Resource, Struct

AddressType = Literal["LoadBalancerIP", "ClusterIP", "ExternalIP"]
AdvertisementType = Literal["PodCIDR", "CiliumPodIPPool", "Service", "Interface"]
WellKnown = Literal[
    "internet",
    "planned-shut",
    "accept-own",
    "route-filter-translated-v4",
    "route-filter-v4",
    "route-filter-translated-v6",
    "route-filter-v6",
    "llgr-stale",
    "no-llgr",
    "blackhole",
    "no-export",
    "no-advertise",
    "no-export-subconfed",
    "no-peer",
]


class ServiceOptions(Struct, frozen=True):
    """Which addresses of the selected Services."""

    addresses: Annotated[tuple[AddressType, ...], Meta(min_length=1)]
    aggregation_length_ipv4: Annotated[int, Meta(ge=0, le=31)] | None = None
    aggregation_length_ipv6: Annotated[int, Meta(ge=0, le=127)] | None = None


class InterfaceOptions(Struct, frozen=True):
    """Which network interface's addresses."""

    name: Name


class Communities(Struct, frozen=True):
    """Communities of the three kinds."""

    standard: tuple[str, ...] = ()
    well_known: tuple[WellKnown, ...] = ()
    large: tuple[str, ...] = ()


class AdvertisementAttributes(Struct, frozen=True):
    """Path attributes; the local preference is told to iBGP peers only."""

    communities: Communities = msgspec.field(default_factory=Communities)
    local_preference: Annotated[int, Meta(ge=0, le=4294967295)] | None = None


class Advertisement(Struct, frozen=True):
    """One entry; without a selector it selects nothing, with an empty one everything of its type."""

    advertisement_type: AdvertisementType
    service: ServiceOptions | None = None
    interface: InterfaceOptions | None = None
    selector: LabelSelector | None = None
    attributes: AdvertisementAttributes = msgspec.field(default_factory=AdvertisementAttributes)


class AdvertisementSpec(Struct, frozen=True):
    """The specification."""

    advertisements: Annotated[tuple[Advertisement, ...], Meta(min_length=1)]


class CiliumBGPAdvertisement(Resource, frozen=True):
    """One set of advertisements."""

    spec: AdvertisementSpec


def community_errors(given: Communities, path: str) -> Iterator[FieldError]:
    """Check how communities are spelled."""
    parsers: tuple[tuple[str, tuple[str, ...], Callable[[str], object]], ...] = (
        ("standard", given.standard, communities.standard),
        ("large", given.large, communities.large),
    )
    for name, values, parse in parsers:
        for i, text in enumerate(values):
            try:
                parse(text)
            except ValueError as error:
                yield FieldError(f"{path}.{name}[{i}]", f"{text!r}: {error}")


def _entry_errors(entry: Advertisement, path: str) -> Iterator[FieldError]:
    kind = entry.advertisement_type
    for field, value, wanted in (
        ("service", entry.service, "Service"),
        ("interface", entry.interface, "Interface"),
    ):
        if kind == wanted and value is None:
            yield FieldError(f"{path}.{field}", f"is required with advertisementType {wanted}")
        elif kind != wanted and value is not None:
            yield FieldError(f"{path}.{field}", f"is only for advertisementType {wanted}")
    if kind == "PodCIDR" and entry.selector is not None:
        yield FieldError(f"{path}.selector", "is not for advertisementType PodCIDR")
    yield from selector_errors(entry.selector, f"{path}.selector")
    yield from community_errors(entry.attributes.communities, f"{path}.attributes.communities")


def advertisement_errors(advertisement: CiliumBGPAdvertisement) -> Iterator[FieldError]:
    """Check what a schema cannot."""
    for i, entry in enumerate(advertisement.spec.advertisements):
        yield from _entry_errors(entry, f"spec.advertisements[{i}]")
