"""The claims of all units of a merge, kept as units come, change and go.

A merge costs the units that differ from the last one: a field whose claims agree stays agreed when a
unit claims the same value again.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import Final, TypeAlias

from reconcilers.frrk8s.claims import Claim, Subject, conflicts, differ
from reconcilers.frrk8s.unit_parts import Compiled
from reconcilers.model import ObjectRef, Problem
from reconcilers.sliced_work import Pieces, Slices

Slot: TypeAlias = tuple[ObjectRef, int]
"""An object, and the number of the unit among its units."""

PIECES_OF_UNIT: Final = 4
"""Pieces of a slice for the claims of one unit."""


class UnitClaims:
    """The claims of one unit; compared with the last merge's by identity and value."""

    __slots__ = ("compiled", "passwords")

    def __init__(self, compiled: Compiled, passwords: Sequence[tuple[Subject, Claim]]) -> None:
        """``passwords`` follow Secrets; the other claims belong to the compilation."""
        self.compiled = compiled
        self.passwords = passwords

    def __iter__(self) -> Iterator[tuple[Subject, Claim]]:
        """Iterate over all claims."""
        return chain(self.compiled.claims, self.passwords)

    def is_same(self, other: UnitClaims | None) -> bool:
        """True if the table's claims of a unit are of the same compilation, with the same passwords."""
        if other is None or self.compiled is not other.compiled:
            return False
        return [(subject, claim.value) for subject, claim in self.passwords] == [
            (subject, claim.value) for subject, claim in other.passwords
        ]


class ClaimTable:
    """The claims of the units of the last merge by field, and the fields that are in dispute."""

    def __init__(self) -> None:
        self._units: dict[Slot, UnitClaims] = {}
        self._claims: dict[Subject, dict[Slot, list[Claim]]] = {}
        self._disputed: set[Subject] = set()
        """Fields whose claims may differ; the claims of all others are equal."""
        self._conflicts: list[Problem] | None = []
        """Of the disputed fields; None once the claims to one of them have changed."""

    def replace(self, units: dict[Slot, UnitClaims], pieces: Pieces) -> Slices[list[Problem]]:
        """Replace the claims in the table by a merge's, in its order of units; return the conflicts.

        A change that concerns no disputed field costs nothing for these. The table is complete after
        each unit, also where the slices end early.
        """
        for slot in self._units.keys() - units.keys():
            self._put(slot, ())
            del self._units[slot]
            if pieces.fill_slice(PIECES_OF_UNIT):
                yield
        for slot, claims in units.items():
            if not claims.is_same(self._units.get(slot)):
                self._put(slot, claims)
                self._units[slot] = claims
                if pieces.fill_slice(PIECES_OF_UNIT):
                    yield
        if self._conflicts is None:
            disputed = ((subject, self._claims_to(subject)) for subject in self._disputed)
            conflicting = [(subject, claims) for subject, claims in disputed if differ(claims)]
            self._disputed = {subject for subject, _ in conflicting}
            self._conflicts = conflicts(conflicting)
        return self._conflicts

    def _claims_to(self, subject: Subject) -> list[Claim]:
        of_slots = self._claims.get(subject, {})
        return [claim for slot in sorted(of_slots) for claim in of_slots[slot]]

    def _put(self, slot: Slot, claims: Iterable[tuple[Subject, Claim]]) -> None:
        """Exchange the claims of one unit."""
        given: dict[Subject, list[Claim]] = {}
        for subject, claim in claims:
            given.setdefault(subject, []).append(claim)
        for subject, _ in self._units.get(slot, ()):
            if subject in self._disputed:
                self._conflicts = None
            of_slots = self._claims.get(subject)
            if subject not in given and of_slots is not None:
                of_slots.pop(slot, None)
                if not of_slots:
                    del self._claims[subject]
        for subject, own in given.items():
            of_slots = self._claims.setdefault(subject, {})
            of_slots[slot] = own
            if len(own) == len(of_slots) == 1 and subject not in self._disputed:
                continue  # No other claim.
            if subject in self._disputed or not _agree(own, slot, of_slots):
                self._disputed.add(subject)
                self._conflicts = None


def _agree(own: Sequence[Claim], slot: Slot, of_slots: dict[Slot, list[Claim]]) -> bool:
    """True if the claims of a unit equal each other, and another unit's: these all agree."""
    value = own[0].value
    if any(claim.value != value for claim in own[1:]):
        return False
    other = next((claims for at, claims in of_slots.items() if at != slot), None)
    return other is None or other[0].value == value
