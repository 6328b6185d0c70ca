"""Pools with an address in common. Pure."""

from __future__ import annotations

import bisect
from collections.abc import Iterator, Sequence

from reconcilers.metallb.conflicts.problem_texts import listed_values, named_other, others_beside
from reconcilers.metallb.conflicts.valid_objects import (
    MAX_COMPARED,
    VERSIONS,
    Span,
    ValidObjects,
)
from reconcilers.metallb.objects import problem_of_objects
from reconcilers.model import ObjectRef, Problem
from resources.metallb.objects import MetalLBObject


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
        """Iterate over the spans with an address of another one, by their first addresses."""
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

    def accept(self, ref: ObjectRef, row: MetalLBObject) -> None:  # noqa: ARG002
        """Add an IPAddressPool, which others may overlap."""
        for version, place in self._valid.places.get(ref, ()):
            self._accepted[version].accept(place)

    def against(self, ref: ObjectRef, row: MetalLBObject) -> Iterator[ObjectRef]:  # noqa: ARG002
        """Iterate over the pools that overlap another one: with an address in common."""
        return (other.pool for _, other in self._pairs(ref))

    def _pairs(self, ref: ObjectRef) -> Iterator[tuple[Span, Span]]:
        for version, place in self._valid.places.get(ref, ()):
            own = self._valid.spans[version][place]
            for other in self._accepted[version].overlapping(own):
                if other.pool != ref:
                    yield own, other

    def problems(self, ref: ObjectRef, row: MetalLBObject) -> Iterator[Problem]:  # noqa: ARG002
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
