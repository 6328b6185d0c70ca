"""CiliumBGPAdvertisement: routes to advertise, with their attributes; selected by its labels."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Annotated, ClassVar, Final

import msgspec
from msgspec import Meta

from resources.cilium import communities
from resources.cilium.field_rules import LocalPreference, Name
from resources.crds.patterns import LARGE_COMMUNITY, STANDARD_COMMUNITY
from resources.crds.schema_markers import ATOMIC_MAP, Rule, doc, known_values
from resources.errors import FieldError
from resources.label_selectors import LabelSelector, selector_errors
from resources.meta import Resource, Struct

ADDRESS_TYPES: Final = ("LoadBalancerIP", "ClusterIP", "ExternalIP")
ADVERTISEMENT_TYPES: Final = ("PodCIDR", "CiliumPodIPPool", "Service", "Interface")
AddressType = Annotated[str, known_values(*ADDRESS_TYPES)]
AdvertisementType = Annotated[str, known_values(*ADVERTISEMENT_TYPES)]
WellKnown = Annotated[str, known_values(*communities.WELL_KNOWN)]


class ServiceOptions(Struct, frozen=True):
    """The advertised addresses of the selected Services."""

    addresses: Annotated[
        tuple[AddressType, ...],
        Meta(min_length=1),
        doc(
            "Which addresses of a Service. LoadBalancerIP and ExternalIP follow its "
            "externalTrafficPolicy, ClusterIP its internalTrafficPolicy."
        ),
    ]
    aggregation_length_ipv4: Annotated[
        Annotated[int, Meta(ge=0, le=31)] | None,
        doc(
            "Advertise the IPv4 prefix of this length that an address is in, not the address. Only "
            "where the traffic policy is Cluster."
        ),
    ] = None
    aggregation_length_ipv6: Annotated[
        Annotated[int, Meta(ge=0, le=127)] | None,
        doc(
            "Advertise the IPv6 prefix of this length that an address is in, not the address. Only "
            "where the traffic policy is Cluster."
        ),
    ] = None


class InterfaceOptions(Struct, frozen=True):
    """The network interface with the advertised addresses."""

    name: Annotated[
        Name,
        doc("The interface of the node whose addresses are advertised, each as a host route."),
    ]


StandardCommunity = Annotated[str, Meta(extra_json_schema=dict(STANDARD_COMMUNITY))]
LargeCommunity = Annotated[str, Meta(extra_json_schema=dict(LARGE_COMMUNITY))]


class Communities(Struct, frozen=True):
    """Communities of the three kinds."""

    standard: Annotated[
        tuple[StandardCommunity, ...],
        doc(
            "Communities (RFC 1997) as two numbers of 16 bits, 65001:100, or one number of 32 bits."
        ),
    ] = ()
    well_known: Annotated[
        tuple[WellKnown, ...],
        doc("Communities by their registered names, such as no-export (65535:65281)."),
    ] = ()
    large: Annotated[
        tuple[LargeCommunity, ...],
        doc("Large communities (RFC 8092) as three numbers of 32 bits: 65001:1:100."),
    ] = ()


class AdvertisementAttributes(Struct, frozen=True):
    """Path attributes; the local preference is sent to iBGP peers only."""

    communities: Annotated[Communities, doc("Communities of the routes.")] = msgspec.field(
        default_factory=Communities
    )
    local_preference: LocalPreference = None


class Advertisement(Struct, frozen=True):
    """One entry; without a selector it selects nothing, with an empty one everything of its type."""

    cel: ClassVar[tuple[Rule, ...]] = (
        Rule(
            "self.advertisementType != 'Service' || has(self.service)",
            "is required with advertisementType Service",
            "service",
        ),
        Rule(
            "self.advertisementType == 'Service' || !has(self.service)",
            "is only for advertisementType Service",
            "service",
        ),
        Rule(
            "self.advertisementType != 'Interface' || has(self.interface)",
            "is required with advertisementType Interface",
            "interface",
        ),
        Rule(
            "self.advertisementType == 'Interface' || !has(self.interface)",
            "is only for advertisementType Interface",
            "interface",
        ),
        Rule(
            "self.advertisementType != 'PodCIDR' || !has(self.selector)",
            "is not for advertisementType PodCIDR",
            "selector",
        ),
    )
    advertisement_type: Annotated[
        AdvertisementType,
        doc(
            "What is advertised. PodCIDR: the node's pod networks. CiliumPodIPPool: what the node "
            "has of pools. Service: addresses of Services. Interface: addresses of an interface."
        ),
    ]
    service: Annotated[
        ServiceOptions | None, doc("Which addresses; with advertisementType Service, required.")
    ] = None
    interface: Annotated[
        InterfaceOptions | None,
        doc("Which interface; with advertisementType Interface, required."),
    ] = None
    selector: Annotated[
        LabelSelector | None,
        doc(
            "Which Services or pools, by their labels. Absent selects none, empty selects all. Not "
            "for PodCIDR. Services also have the labels io.kubernetes.service.name and "
            "io.kubernetes.service.namespace.",
            ATOMIC_MAP,
        ),
    ] = None
    attributes: Annotated[AdvertisementAttributes, doc("Path attributes of these routes.")] = (
        msgspec.field(default_factory=AdvertisementAttributes)
    )


class AdvertisementSpec(Struct, frozen=True):
    """The specification."""

    advertisements: Annotated[
        tuple[Advertisement, ...],
        doc("What is advertised; several entries may select the same prefix, and are joined."),
    ]


class CiliumBGPAdvertisement(Resource, frozen=True):
    """One set of advertisements."""

    spec: Annotated[AdvertisementSpec, doc("What is advertised.")]


def community_errors(given: Communities, path: str) -> Iterator[FieldError]:
    """Yield the invalid communities of the attributes of a CiliumBGPAdvertisement."""
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
    rules = kind in ADVERTISEMENT_TYPES
    for field, value, wanted in (
        ("service", entry.service, "Service"),
        ("interface", entry.interface, "Interface"),
    ):
        if kind == wanted and value is None:
            yield FieldError(f"{path}.{field}", f"is required with advertisementType {wanted}")
        elif rules and kind != wanted and value is not None:
            yield FieldError(f"{path}.{field}", f"is only for advertisementType {wanted}")
    if kind == "PodCIDR" and entry.selector is not None:
        yield FieldError(f"{path}.selector", "is not for advertisementType PodCIDR")
    yield from selector_errors(entry.selector, f"{path}.selector")
    yield from community_errors(entry.attributes.communities, f"{path}.attributes.communities")


def advertisement_errors(advertisement: CiliumBGPAdvertisement) -> Iterator[FieldError]:
    """Yield the rules that a CiliumBGPAdvertisement breaks, and a schema cannot express."""
    for i, entry in enumerate(advertisement.spec.advertisements):
        yield from _entry_errors(entry, f"spec.advertisements[{i}]")
