"""Feeds: the objects of a node that one dialect translates for another, and their outcome there.

A feeding dialect translates and validates its objects. The dialect that is fed merges the units of all
feeds with its own objects, decides which are in effect, and returns an `Outcome` for each feed.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Any, NamedTuple, Protocol, TypeAlias

import msgspec

from reconcilers.age import Age
from reconcilers.model import ObjectRef, Problem
from reconcilers.sliced_work import Slices
from statedb import Snapshot, Table

Objects: TypeAlias = Mapping[ObjectRef, Any]
"""Objects with values of the feeding dialect's own, mostly their rows."""


class Translated(msgspec.Struct, frozen=True):
    """An object of a feeding dialect, translated to a row of a kind of the dialect that is fed."""

    origin: ObjectRef
    """The object; problems and routes name it, and not the translation."""
    row: Any
    """Of a kind of the dialect that is fed."""
    fields: Mapping[str, str] | None = {}
    """Paths in the row to paths in the object, both without indices; others are the object itself.
    None where the row is the object."""
    rules: Any = None
    """Rules of the feeding dialect for its own route sources (`NodeIntent.route_sets`); see the
    dialect that is fed for how its route sets carry them."""
    is_quiet: bool = False
    """True if what has no effect of the row is no problem: this dialect reports it itself."""


class Translation(NamedTuple):
    """Objects in effect, translated with the rules of their routes."""

    units: Sequence[Translated]
    further: Sequence[Translated] = ()
    """Objects that may contradict others because the units are in effect."""
    followed: tuple[Table[Any], ...] = ()
    """The tables that ``further`` depends on, beside the compilation's."""


class FeedConflicts(Protocol):
    """A growing set of objects that are accepted, and the conflicts of others with them."""

    def accept(self, ref: ObjectRef) -> None:
        """Add an accepted object of a dialect's feed; one of another dialect has no effect."""
        ...

    def against(self, ref: ObjectRef, /) -> Iterator[ObjectRef]:
        """Yield the accepted objects of a dialect's feed with which another object conflicts.

        An object may come twice.
        """
        ...


class Reasons(NamedTuple):
    """Why an object is not in effect, as far as objects of its own dialect are the reason."""

    problems: Sequence[Problem]
    """About the object alone, or about it and the older ones with which it conflicts."""
    later: Sequence[Problem] = ()
    """Without these: about it and younger ones, which were accepted while it waited for references."""


class FeedRelations(Protocol):
    """References and conflicts among the objects of a feed that its units do not have."""

    @property
    def ages(self) -> Mapping[ObjectRef, Age]:
        """The ages of all objects of a dialect's feed, also of objects without a unit."""
        ...

    @property
    def wrong(self) -> AbstractSet[ObjectRef]:
        """The objects of a dialect's feed that are never in effect; they have no unit."""
        ...

    @property
    def references(self) -> Mapping[ObjectRef, frozenset[Hashable]]:
        """The references of the objects of a dialect's feed that have any."""
        ...

    @property
    def referents(self) -> Mapping[ObjectRef, frozenset[Hashable]]:
        """The keys by which other objects of a dialect's feed refer to an object."""
        ...

    def beside(self, environment: AbstractSet[ObjectRef], /) -> FeedConflicts:
        """Return an empty set of accepted objects of a dialect's feed.

        ``environment`` are all that may be accepted: two objects may conflict only where a third one
        is among these.
        """
        ...

    def reasons(self, accepted: AbstractSet[ObjectRef], /) -> Iterator[tuple[ObjectRef, Reasons]]:
        """Yield why objects of a dialect's feed are not in effect, as far as the feed knows."""
        ...


class UnrelatedFeed:
    """The relations of objects that have none beside their units."""

    ages: Mapping[ObjectRef, Age] = {}
    wrong: AbstractSet[ObjectRef] = frozenset()
    references: Mapping[ObjectRef, frozenset[Hashable]] = {}
    referents: Mapping[ObjectRef, frozenset[Hashable]] = {}

    def beside(self, _environment: AbstractSet[ObjectRef], /) -> UnrelatedFeed:
        """Return itself: objects of a dialect's feed without relations have no conflicts."""
        return self

    def accept(self, ref: ObjectRef) -> None:
        """Accept an object of a dialect's feed without relations: nothing to do."""

    def against(self, _ref: ObjectRef, /) -> Iterator[ObjectRef]:
        """Yield no conflicts: the objects of the dialect's feed have no relations."""
        return iter(())

    def reasons(self, _accepted: AbstractSet[ObjectRef], /) -> Iterator[tuple[ObjectRef, Reasons]]:
        """Yield no reasons: the objects of the dialect's feed have no relations."""
        return iter(())


class Feed:
    """The objects that a dialect feeds for one node; as it is, objects without relations."""

    def __init__(
        self,
        objects: Objects,
        *,
        problems: Iterable[Problem] = (),
        replaced: Mapping[ObjectRef, str] | None = None,
        last_good: Objects | None = None,
    ) -> None:
        self.objects = objects
        self.problems = tuple(problems)
        """Broken rules, references to nothing, and conflicts among the objects."""
        self.replaced = replaced or {}
        """Objects of the dialect that is fed which these replace, with a sentence for people; an empty
        one is no problem."""
        self.last_good = last_good
        """The last good objects of an earlier process (`Outcome.last_good`)."""

    @classmethod
    def of(cls, units: Iterable[Translated]) -> Feed:
        """Return a dialect's feed of units that do not depend on each other."""
        of_objects: dict[ObjectRef, list[Translated]] = {}
        for translated in units:
            of_objects.setdefault(translated.origin, []).append(translated)
        return cls(of_objects)

    def units(self, objects: Objects) -> Iterable[Translated]:
        """Translate some objects of the dialect's feed, without the rules of their routes."""
        return [translated for of_object in objects.values() for translated in of_object]

    def translation(
        self,
        _snapshot: Snapshot,
        objects: Objects,
        _others: Iterable[Any],
        /,
    ) -> Translation | Slices[Translation]:
        """Translate the objects of a dialect's feed that are in effect, with the rules of their routes.

        The last argument has rows of the dialect that is fed: of its own objects and of other feeds.
        """
        return Translation(list(self.units(objects)))

    def relations(self) -> FeedRelations:
        """Return the references and conflicts in a dialect's feed that its units do not have."""
        return UnrelatedFeed()


class Outcome(msgspec.Struct, frozen=True):
    """The outcome of the objects of a feed on a node."""

    objects: Objects = {}
    """The merged objects: without isolated ones, or the objects of an earlier state."""
    problems: tuple[Problem, ...] = ()
    note: str = ""
    """Why objects may not be in effect, as a clause; empty where all are."""
    last_good: Objects | None = None
    """The last objects that were in effect: the same mapping until they change."""
