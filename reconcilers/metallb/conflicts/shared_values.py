"""Names and values that objects give differently, and addresses that pools have in common. Pure."""

from __future__ import annotations

import bisect
from collections.abc import Hashable, Iterator, Sequence
from typing import NamedTuple

from reconcilers.metallb.conflicts.valid_objects import (
    MAX_COMPARED,
    VERSIONS,
    Span,
    ValidObjects,
)
from reconcilers.metallb.objects import (
    MAX_LISTED_OBJECTS,
    listed_values,
    named_other,
    others_beside,
    problem_of_objects,
)
from reconcilers.model import ObjectRef, Problem
from resources.enumeration import enumerate_some
from resources.metallb.bgppeer import DEFAULT_VRF, BGPPeer, end_of, vrf_of
from resources.metallb.community import Community
from resources.metallb.objects import MetalLBObject


class NamedValue(NamedTuple):
    """The value that an object gives a name; two values of one name are a conflict."""

    key: tuple[Hashable, ...]
    value: Hashable
    field: str
    title: str
    shown: object | None = None
    """The value for people; None for a name that one object alone may have."""


class NamesAndValues:
    """The claims of the accepted objects."""

    def __init__(self) -> None:
        self._accepted: dict[Hashable, dict[Hashable, list[tuple[ObjectRef, NamedValue]]]] = {}
        """By name, and by value."""
        self._known: set[Hashable] = set()
        """The names with a problem."""

    def accept(self, ref: ObjectRef, row: MetalLBObject) -> None:
        """Add the names and values that a MetalLB object has."""
        for claim in _claims(ref, row):
            self._accepted.setdefault(claim.key, {}).setdefault(claim.value, []).append(
                (ref, claim)
            )

    def against(self, ref: ObjectRef, row: MetalLBObject) -> Iterator[ObjectRef]:
        """Iterate over the objects that are in conflict with another object for the value of a name."""
        for claim in _claims(ref, row):
            for value, others in self._accepted.get(claim.key, {}).items():
                if value != claim.value:
                    for other, _ in others:
                        yield other

    def problems(self, ref: ObjectRef, row: MetalLBObject) -> Iterator[Problem]:
        """Yield a problem of all objects that give one name different values."""
        for claim in _claims(ref, row):
            of_key = self._accepted[claim.key]
            if len(of_key) < 2 or claim.key in self._known:
                continue
            self._known.add(claim.key)
            values = {pair: problem.shown for pairs in of_key.values() for pair, problem in pairs}
            if claim.shown is None:
                text = enumerate_some(sorted(values), MAX_LISTED_OBJECTS)
            else:
                text = listed_values(values)
            yield problem_of_objects(values, claim.field, f"{claim.title}: {text}", "conflict")


def _claims(ref: ObjectRef, row: MetalLBObject) -> Iterator[NamedValue]:
    if isinstance(row, Community):
        for i, alias in enumerate(row.spec.communities):
            title = f"community name {alias.name[:64]!r} is defined more than once"
            yield NamedValue(
                ("alias", alias.name), (ref, i), "spec.communities", title, alias.value
            )
    elif isinstance(row, BGPPeer):
        spec, vrf, end = row.spec, vrf_of(row), end_of(row)
        title = "routerID differs between BGPPeers of a node"
        yield NamedValue(
            ("routerID",), spec.router_id, "spec.routerID", title, spec.router_id or "unset"
        )
        where = f"VRF {vrf or DEFAULT_VRF}"
        title = f"myASN differs between BGPPeers of {where}"
        yield NamedValue(("myASN", vrf), spec.my_asn, "spec.myASN", title, spec.my_asn)
        field = "spec.interface" if spec.interface else "spec.peerAddress"
        title = f"{end} in {where} is configured by several BGPPeers"
        yield NamedValue(("end", vrf, bool(spec.interface), end), ref, field, title)


class _LastAddresses:
    """The last addresses of the accepted spans: a binary tree with the highest of each part."""

    def __init__(self, spans: Sequence[Span]) -> None:
        self._spans = spans
        self._size = 1 << (len(spans) - 1).bit_length() if spans else 1
        self._highest = [-1] * (2 * self._size)

    def accept(self, place: int) -> None:
        """Add a span."""
        node, last = self._size + place, self._spans[place].last
        while node and self._highest[node] < last:
            self._highest[node] = last
            node >>= 1

    def overlapping(self, span: Span) -> Iterator[Span]:
        """Iterate over the spans with an address of another span, by their first addresses."""
        end = bisect.bisect_right(self._spans, span.last, key=lambda end_of: end_of.first)
        parts = [(1, 0, self._size)]
        while parts:
            node, place, size = parts.pop()
            if place >= end or self._highest[node] < span.first:
                continue
            if size == 1:
                yield self._spans[place]
            else:
                half = size // 2
                parts += ((2 * node + 1, place + half, half), (2 * node, place, half))


class Overlaps:
    """The addresses of the accepted pools."""

    def __init__(self, valid: ValidObjects) -> None:
        self._valid = valid
        self._accepted = {version: _LastAddresses(valid.spans[version]) for version in VERSIONS}

    def accept(self, ref: ObjectRef, _row: MetalLBObject, /) -> None:
        """Add an IPAddressPool, which others may overlap."""
        for version, place in self._valid.places.get(ref, ()):
            self._accepted[version].accept(place)

    def against(self, ref: ObjectRef, _row: MetalLBObject, /) -> Iterator[ObjectRef]:
        """Iterate over the pools that overlap another pool: with an address in common."""
        return (other.pool for _, other in self._pairs(ref))

    def _pairs(self, ref: ObjectRef) -> Iterator[tuple[Span, Span]]:
        for version, place in self._valid.places.get(ref, ()):
            own = self._valid.spans[version][place]
            for other in self._accepted[version].overlapping(own):
                if other.pool != ref:
                    yield own, other

    def problems(self, ref: ObjectRef, _row: MetalLBObject, /) -> Iterator[Problem]:
        """Yield a problem of a pool with another pool that overlaps it, and how many others do."""
        entries: dict[ObjectRef, tuple[str, str]] = {}
        for own, span in self._pairs(ref):
            entries.setdefault(span.pool, (own.entry.text[:64], span.entry.text[:64]))
            if len(entries) >= MAX_COMPARED:
                break
        if not entries:
            return
        other = named_other(sorted(entries), ref.__lt__)
        own_text, text = entries[other]
        is_many = len(entries) >= MAX_COMPARED
        clause = others_beside(ref, len(entries) - 1, at_least=is_many)
        message = f"pools overlap: {listed_values({ref: own_text, other: text})}{clause}"
        yield problem_of_objects((ref, other), "spec.addresses", message, "conflict")
