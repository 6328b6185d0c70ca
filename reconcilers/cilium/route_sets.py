"""Route sets: the entries of the Advertisements that a peer's families select.

Peers with the same entries share one set. The name of a set is a hash of its content, so that a
changed Advertisement gives another set, which is filled before peers are moved to it: the peers then
receive the differences only.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import NamedTuple

import msgspec

from reconcilers.dialect import Contributed
from reconcilers.model import Attributes, Contribution, ObjectRef, Origin, Problem
from resources.cilium import CiliumBGPAdvertisement, communities
from resources.cilium.advertisement import (
    ADDRESS_TYPES,
    ADVERTISEMENT_TYPES,
    Advertisement,
    AdvertisementAttributes,
)
from resources.label_selectors import LabelSelector
from speaker.nlri import IPV4_UNICAST, Family

ADVERTISEMENT = "CiliumBGPAdvertisement"


class AdvertisementEntry(NamedTuple):
    """One entry of an Advertisement for one family, with its attributes encoded as numbers."""

    rule: ObjectRef
    """The Advertisement, or the v1 policy."""
    type: str
    """The ``advertisementType``."""
    selector: LabelSelector | None
    addresses: frozenset[str]
    """Types of a Service's addresses."""
    aggregation_length: int | None
    attributes: Attributes
    within: tuple[bytes, ...] | None = None
    """Prefixes that limit the host routes; None does not."""
    interface: str | None = None
    needs_endpoint: bool = False
    """True to select only Services with an active endpoint, whatever their traffic policy."""


class RouteSet(NamedTuple):
    """The entries by family whose routes a group of peers receives."""

    name: str
    entries: dict[Family, tuple[AdvertisementEntry, ...]]

    def contributed(
        self,
        ref: ObjectRef,
        prefixes: Iterable[tuple[Family, bytes]],
        selects: Callable[[AdvertisementEntry], bool],
    ) -> Iterator[Contributed]:
        """Yield these prefixes of an object for each entry of their family that selects the object."""
        for family, entries in self.entries.items():
            for entry in filter(selects, entries):
                contribution = Contribution(Origin(ref, entry.rule, entry.type), entry.attributes)
                for prefix_family, nlri in prefixes:
                    if prefix_family == family:
                        yield Contributed(self.name, family, nlri, contribution)


def compile_attributes(given: AdvertisementAttributes) -> Attributes:
    """Return the attributes of entries in Cilium's route sets: communities as numbers, each once."""
    texts = given.communities
    standard = {communities.standard(text) for text in texts.standard}
    standard |= {communities.WELL_KNOWN[name] for name in texts.well_known}
    return Attributes(
        communities=tuple(sorted(standard)),
        large_communities=tuple(sorted({communities.large(text) for text in texts.large})),
        local_preference=given.local_preference,
    )


def unknown_values(advertisement: CiliumBGPAdvertisement) -> Iterator[Problem]:
    """Yield what Cilium's route sets ignore of an Advertisement: values of a later release.

    An entry with an unknown type, or with a community of unknown number, is ignored: without it its
    routes might go further than they should. Addresses of an unknown type are ignored.
    """
    ref = ObjectRef(ADVERTISEMENT, "", advertisement.metadata.name)

    def unknown(field: str, value: str, known: Iterable[str], out: str) -> Problem:
        text = f"{value!r} is not known, and {out} ignored; known are {', '.join(known)}"
        return Problem((ref,), field, text, category="unsupported")

    for i, entry in enumerate(advertisement.spec.advertisements):
        path = f"spec.advertisements[{i}]"
        kind = entry.advertisement_type
        if kind not in ADVERTISEMENT_TYPES:
            where = f"{path}.advertisementType"
            yield unknown(where, kind, ADVERTISEMENT_TYPES, "the entry is")
            continue
        for j, name in enumerate(entry.attributes.communities.well_known):
            if name not in communities.WELL_KNOWN:
                where = f"{path}.attributes.communities.wellKnown[{j}]"
                yield unknown(where, name, communities.WELL_KNOWN, "the entry is")
        for j, name in enumerate(entry.service.addresses if entry.service is not None else ()):
            if name not in ADDRESS_TYPES:
                where = f"{path}.service.addresses[{j}]"
                yield unknown(where, name, ADDRESS_TYPES, "these addresses are")


def _is_known(entry: Advertisement) -> bool:
    """True if the type and the communities of an entry are known."""
    return entry.advertisement_type in ADVERTISEMENT_TYPES and all(
        name in communities.WELL_KNOWN for name in entry.attributes.communities.well_known
    )


def _entry(rule: ObjectRef, entry: Advertisement, family: Family) -> AdvertisementEntry:
    service = entry.service
    length = None
    if service is not None:
        length = (
            service.aggregation_length_ipv4
            if family == IPV4_UNICAST
            else service.aggregation_length_ipv6
        )
    return AdvertisementEntry(
        rule,
        entry.advertisement_type,
        entry.selector,
        frozenset(service.addresses) if service is not None else frozenset(),
        length,
        compile_attributes(entry.attributes),
        interface=None if entry.interface is None else entry.interface.name,
    )


def route_set(
    families: Mapping[Family, LabelSelector | None],
    advertisements: Iterable[CiliumBGPAdvertisement],
) -> RouteSet | None:
    """Compile the route set of the Advertisements that a peer's families select; None without."""
    ordered = sorted(advertisements, key=lambda advertisement: advertisement.metadata.name)
    entries: dict[Family, tuple[AdvertisementEntry, ...]] = {}
    for family, selector in sorted(families.items(), key=lambda item: item[0]):
        if selector is None:
            continue
        matching = [row for row in ordered if selector.matches(row.metadata.labels)]
        if matching:
            entries[family] = tuple(
                _entry(ObjectRef(ADVERTISEMENT, "", row.metadata.name), entry, family)
                for row in matching
                for entry in row.spec.advertisements
                if _is_known(entry)
            )
    return named_set(entries) if entries else None


def named_set(entries: dict[Family, tuple[AdvertisementEntry, ...]]) -> RouteSet:
    """Return the Cilium route set with these entries of Advertisements, named by a hash of them."""
    content = [(str(family), entries[family]) for family in sorted(entries)]
    digest = hashlib.sha256(msgspec.json.encode(content, order="deterministic")).hexdigest()
    return RouteSet(digest[:12], entries)
