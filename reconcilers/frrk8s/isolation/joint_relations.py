"""The relations of the objects of all feeds as one; two feeds meet in their units. Pure."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from typing import Final

from reconcilers.age import Age
from reconcilers.dialect import FeedConflicts, FeedRelations
from reconcilers.model import ObjectRef


class JointRelations:
    """The relations of the objects of several feeds (`reconcilers.dialect.FeedRelations`)."""

    def __init__(self, of_feeds: Mapping[str, FeedRelations]) -> None:
        self.of_feeds = of_feeds
        self.ages: dict[ObjectRef, Age] = {}
        self.wrong: set[ObjectRef] = set()
        self.references: dict[ObjectRef, frozenset[Hashable]] = {}
        self.referents: dict[ObjectRef, frozenset[Hashable]] = {}
        for name, of_feed in of_feeds.items():
            self.ages.update(of_feed.ages)
            self.wrong.update(of_feed.wrong)
            self.references.update(_named(name, of_feed.references))
            self.referents.update(_named(name, of_feed.referents))

    def beside(self, environment: AbstractSet[ObjectRef]) -> _Beside:
        """Return an empty set of objects for isolation, with the joint relations of all feeds."""
        return _Beside(
            {
                ref: beside
                for of_feed in self.of_feeds.values()
                if of_feed.ages
                for beside in (of_feed.beside(environment),)
                for ref in of_feed.ages
            }
        )


def _named(
    feed: str, of_feed: Mapping[ObjectRef, frozenset[Hashable]]
) -> Iterator[tuple[ObjectRef, frozenset[Hashable]]]:
    for ref, names in of_feed.items():
        yield ref, frozenset((feed, name) for name in names)


class _Beside:
    """The accepted objects of all feeds."""

    def __init__(self, of_objects: Mapping[ObjectRef, FeedConflicts]) -> None:
        self._of_objects = of_objects

    def accept(self, ref: ObjectRef) -> None:
        of_object = self._of_objects.get(ref)
        if of_object is not None:
            of_object.accept(ref)

    def against(self, ref: ObjectRef) -> Iterator[ObjectRef]:
        of_object = self._of_objects.get(ref)
        return iter(()) if of_object is None else of_object.against(ref)


NO_RELATIONS: Final = JointRelations({})
