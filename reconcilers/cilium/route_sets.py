"""Route sets: what the Advertisements that a peer's families select come to, compiled once.

Peers that are told the same share one set. A set's name is made of its content, so that a changed
Advertisement is another set, which is filled before the peers are moved to it: they are told
differences only.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from typing import NamedTuple

import msgspec

from reconcilers.model import Attributes, ObjectRef
from resources.cilium import CiliumBGPAdvertisement, communities
from resources.cilium.advertisement import Advertisement, AdvertisementAttributes
from resources.labels import LabelSelector
from speaker.nlri import IPV4_UNICAST, Family

ADVERTISEMENT = "CiliumBGPAdvertisement"


class Entry(NamedTuple):
    """One entry of one Advertisement, ready to be asked."""

    rule: ObjectRef
    type: str
    selector: LabelSelector | None
    addresses: frozenset[str]
    aggregation_length: int | None
    attributes: Attributes
    within: tuple[bytes, ...] | None = None
    """Only host routes within one of these prefixes; None is all."""
    interface: str | None = None
    needs_endpoint: bool = False
    """Only Services with an active endpoint anywhere, whatever their traffic policy."""


class RouteSet(NamedTuple):
    """What a group of peers is told: for each family the entries that apply."""

    name: str
    entries: dict[Family, tuple[Entry, ...]]


def compile_attributes(given: AdvertisementAttributes) -> Attributes:
    """Make numbers of communities, each once."""
    texts = given.communities
    standard = {communities.standard(text) for text in texts.standard}
    standard |= {communities.WELL_KNOWN[name] for name in texts.well_known}
    return Attributes(
        communities=tuple(sorted(standard)),
        large_communities=tuple(sorted({communities.large(text) for text in texts.large})),
        local_preference=given.local_preference,
    )


def _entry(rule: ObjectRef, entry: Advertisement, family: Family) -> Entry:
    service = entry.service
    length = None
    if service is not None:
        length = (
            service.aggregation_length_ipv4
            if family == IPV4_UNICAST
            else service.aggregation_length_ipv6
        )
    return Entry(
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
    """Compile what is advertised in these families; None where nothing can be."""
    ordered = sorted(advertisements, key=lambda a: a.metadata.name)
    chosen: dict[Family, list[CiliumBGPAdvertisement]] = {}
    for family in sorted(families):
        selector = families[family]
        if selector is not None:
            matching = [a for a in ordered if selector.matches(a.metadata.labels)]
            if matching:
                chosen[family] = matching
    if not chosen:
        return None
    return named_set(
        {
            family: tuple(
                _entry(ObjectRef(ADVERTISEMENT, "", a.metadata.name), entry, family)
                for a in matching
                for entry in a.spec.advertisements
            )
            for family, matching in chosen.items()
        }
    )


def named_set(entries: dict[Family, tuple[Entry, ...]]) -> RouteSet:
    """Give entries by family the name that their content makes."""
    content = [(str(family), entries[family]) for family in sorted(entries)]
    digest = hashlib.sha256(msgspec.json.encode(content, order="deterministic")).hexdigest()
    return RouteSet(digest[:12], entries)
