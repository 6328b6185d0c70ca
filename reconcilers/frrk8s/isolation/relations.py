"""What a feeding dialect knows of its objects beside their units: references, and conflicts. Pure."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from typing import Final, Protocol

from reconcilers.age import Age
from reconcilers.model import ObjectRef


class Beside(Protocol):
    """A growing set of objects of a feeding dialect that are taken, and what disagrees with them."""

    def take(self, ref: ObjectRef) -> None:
        """Add an object."""
        ...

    def against(self, ref: ObjectRef) -> Iterator[ObjectRef]:
        """Iterate over the objects with which another one disagrees; an object may come twice."""
        ...


class Relations(Protocol):
    """What a feeding dialect knows of its objects beside their units."""

    @property
    def ages(self) -> Mapping[ObjectRef, Age]:
        """All of its objects, also those without a unit."""
        ...

    @property
    def wrong(self) -> AbstractSet[ObjectRef]:
        """Those that are left out whatever the others are; they have no unit."""
        ...

    @property
    def references(self) -> Mapping[ObjectRef, frozenset[Hashable]]:
        """What an object refers to, where it refers to others."""
        ...

    @property
    def referents(self) -> Mapping[ObjectRef, frozenset[Hashable]]:
        """What an object is to others that refer to it."""
        ...

    def beside(self, environment: AbstractSet[ObjectRef]) -> Beside:
        """Return an empty set of objects, of which some may disagree where others are there.

        ``environment`` are all that may be taken. A disagreement may depend on an object which is no
        party to it: such an object counts as soon as it is one of these.
        """
        ...


class _NoneBeside:
    """Of dialects without relations."""

    ages: Final[Mapping[ObjectRef, Age]] = {}
    wrong: Final[AbstractSet[ObjectRef]] = frozenset()
    references: Final[Mapping[ObjectRef, frozenset[Hashable]]] = {}
    referents: Final[Mapping[ObjectRef, frozenset[Hashable]]] = {}

    def beside(self, environment: AbstractSet[ObjectRef]) -> Beside:  # noqa: ARG002
        return self

    def take(self, ref: ObjectRef) -> None:
        pass

    def against(self, ref: ObjectRef) -> Iterator[ObjectRef]:  # noqa: ARG002
        return iter(())


NO_RELATIONS: Final[Relations] = _NoneBeside()
