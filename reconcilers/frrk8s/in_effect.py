"""The objects that are in effect on a node: its own and all feeds', by ``--on-conflict``.

With ``isolate`` all of them are one order, by their age. With ``keep`` and ``clear`` a feed whose
objects are wrong by themselves stops no other: its last good objects are merged, or none of it. So do
FRRConfigurations whose passwords are missing.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Any, Final, NamedTuple

from reconcilers.dialect import Feed, FeedRelations, Objects, Outcome, Translated, Translation
from reconcilers.frrk8s.isolation import Isolated, JointRelations, isolated
from reconcilers.frrk8s.merge import Merge, Merger
from reconcilers.frrk8s.options import OnConflict
from reconcilers.frrk8s.passwords import Resolve
from reconcilers.frrk8s.unit_parts import Unit
from reconcilers.model import ObjectRef, Problem
from reconcilers.sliced_work import Pieces, Slices, sliced
from resources.frrk8s.kinds import FRR_CONFIGURATION
from statedb import Snapshot, Table

PIECES_OF_REASON: Final = 50
"""Pieces of a slice for the reason why one object is not in effect."""
PIECES_OF_TRANSLATION: Final = 5
"""Pieces of a slice for the translation of one object."""
MAX_TRIALS: Final = 8
"""Isolations of all objects, where objects that come in have further units. Later isolations are of
the objects that are still accepted."""


class InEffect(NamedTuple):
    """The objects in effect on a node, and why others are not."""

    merge: Merge
    units: Sequence[Unit]
    """Of all objects."""
    accepted: frozenset[ObjectRef]
    """All objects but the isolated ones, also objects without units."""
    outcomes: Mapping[str, Outcome]
    """By feed."""
    followed: tuple[Table[Any], ...]
    """The tables that the translations of feeds depend on."""


class ObjectsOfNode(NamedTuple):
    """The objects of a node in a snapshot, and how they are merged."""

    node: str
    snapshot: Snapshot
    mode: OnConflict
    merger: Merger
    resolve: Resolve
    own: Sequence[Unit]
    """The FRRConfigurations that select it, except replaced ones."""
    feeds: Mapping[str, Feed] = {}
    replaced: Mapping[str, Sequence[Problem]] = {}
    """By feed: a problem for each FRRConfiguration that its objects replace."""
    held: Mapping[str, Objects] = {}
    """By feed: the last good objects."""
    good: Sequence[Unit] = ()
    """The units of the last good state."""
    named: bool = False
    """True if problems name the node, which are reported by it alone."""
    effective: AbstractSet[str] = frozenset()
    """Reasons for which fields are without effect elsewhere, and have one here."""

    def in_effect(self, pieces: Pieces) -> Slices[InEffect]:
        """Return the objects in effect on a node, in slices where they are many."""
        objects = {name: feed.objects for name, feed in self.feeds.items()}
        wrong = [name for name, feed in self.feeds.items() if feed.problems]
        if self.mode == "isolate":
            whole = None if wrong else (yield from self.merged(objects, pieces))
            if whole is not None and whole.merge.routers is not None:
                return whole
            return (yield from self._isolated(pieces))
        held = self.held if self.mode == "keep" else {}
        usable = {**objects, **{name: held.get(name, {}) for name in wrong}}
        whole = yield from self.merged(usable, pieces)
        if whole.merge.routers is not None or not any(usable.values()):
            return whole
        return (yield from self._without_own(whole, usable, pieces)) or whole

    def present_rules(self) -> Slices[list[Translated]]:
        """Return the translation of the feeds' objects still in effect, with their present rules."""
        held = {name: objects for name, objects in self.held.items() if name in self.feeds}
        translations = yield from self._translations(held)
        return [unit for translation in translations.values() for unit in translation.units]

    def merged(self, objects: Mapping[str, Objects], pieces: Pieces) -> Slices[InEffect]:
        """Merge these objects of feeds and all own ones; return which are in effect."""
        translations = yield from self._translations(objects)
        units = [*self.own, *_units(translations.values())]
        merge = yield from self.merger.merge(
            units,
            self.resolve,
            pieces,
            self.node,
            named=self.named,
            effective=self.effective,
        )
        accepted = {unit.ref for unit in units}.union(*objects.values())
        problems = {name: feed.problems for name, feed in self.feeds.items()}
        return self._result(merge, units, accepted, translations, objects, problems)

    def _without_own(
        self, whole: InEffect, objects: Mapping[str, Objects], pieces: Pieces
    ) -> Slices[InEffect | None]:
        """Return what feeds have in effect beside FRRConfigurations whose passwords are missing.

        Of FRRConfigurations the last good ones stay, with ``clear`` none. None where something else
        is wrong: a password that is in use and now missing, a conflict, or a session of a feed that
        has its password of an FRRConfiguration.
        """
        refs = {unit.ref for unit in self.own}
        keys, unread = self.merger.without_password(self.own, self.resolve)
        wrong = [problem for problem in whole.merge.problems if problem.category != "unsupported"]
        if not unread or any(set(unit.objects) - refs for unit in wrong):
            return None
        good = [unit for unit in self.good if unit.ref.kind == FRR_CONFIGURATION.name]
        own = good if self.mode == "keep" else []
        result = yield from self._replace(own=own).merged(objects, pieces)
        if result.merge.routers is None or any(
            neighbor.key in keys for router in result.merge.routers for neighbor in router.neighbors
        ):
            return None
        problems = tuple(dict.fromkeys((*whole.merge.problems, *result.merge.problems)))
        return result._replace(merge=result.merge._replace(problems=problems), units=whole.units)

    def _isolated(self, pieces: Pieces) -> Slices[InEffect]:
        """Isolate the objects that conflict with older ones, of whichever dialect."""
        given_relations: dict[str, FeedRelations] = {}
        for name, of_feed in self.feeds.items():
            given_relations[name] = of_feed.relations()
            if pieces.fill_slice(len(of_feed.objects)):
                yield
        relations = JointRelations(given_relations)
        units = [*self.own]
        for feed in self.feeds.values():
            for translated in feed.units(_without(feed.objects, relations.wrong)):
                units.append(_unit(translated))
                if pieces.fill_slice(PIECES_OF_TRANSLATION):
                    yield
        added: list[Unit] = []
        count = len({unit.ref for unit in units} | relations.ages.keys())
        # The last isolation of all objects, and the isolations of still accepted objects.
        last: list[Isolated] = []
        barred: frozenset[ObjectRef] = frozenset()
        for trial in itertools.count(1):
            given = [*units, *added]
            node = self.node if self.named else ""
            compile_unit = self.merger.compile
            result = yield from isolated(
                given, compile_unit, self.resolve, relations, pieces, node, barred
            )
            if pieces.fill_slice(count):
                yield
            objects = {
                name: _only(of_feed.objects, result.refs) for name, of_feed in self.feeds.items()
            }
            translations = yield from self._translations(objects)
            further = _units(
                translation._replace(units=()) for translation in translations.values()
            )
            more = [unit for unit in further if unit not in added]
            if trial >= MAX_TRIALS or not more:
                last.append(result)
                barred = barred.union(result.left_out)
            if not more:
                break
            added += more
        own: list[Problem] = []
        of_feeds: dict[str, list[Problem]] = {name: [] for name in self.feeds}
        for isolation in last:
            yield from self._reasons(isolation, relations, pieces, own, of_feeds)
        kept = [ref for ref in self.own if ref.ref in result.refs]
        kept = sorted([*kept, *_units(translations.values())], key=lambda unit: unit.age)
        merge = yield from self.merger.united(kept, own, pieces, self.effective)
        return self._result(merge, [*units, *added], result.refs, translations, objects, of_feeds)

    def _reasons(
        self,
        result: Isolated,
        relations: JointRelations,
        pieces: Pieces,
        of_units: list[Problem],
        of_feeds: Mapping[str, list[Problem]],
    ) -> Slices[None]:
        """Add why objects are not in effect: the problems of units, and of feeds.

        A conflict among the units of one feed is its own to describe, where it knows the reason.
        """
        described: set[ObjectRef] = set()
        for name, of_feed in relations.of_feeds.items():
            objects = self.feeds[name].objects
            problems: dict[Problem, None] = {}
            for ref, reasons in of_feed.reasons(result.refs):
                if ref not in result.left_out:
                    continue
                if pieces.fill_slice(PIECES_OF_REASON):
                    yield
                described.add(ref)
                problems.update(dict.fromkeys(reasons.problems))
                units = result.left_out[ref]
                is_foreign = any(
                    of_problem not in objects for p in units.problems for of_problem in p.objects
                )
                if units.cause == "itself" or (units.cause == "older" and is_foreign):
                    of_units += units.problems
                elif not reasons.problems:
                    problems.update(dict.fromkeys(reasons.later or units.problems))
            of_feeds[name].extend(problems)
        for ref, units in result.left_out.items():
            if ref not in described:
                of_units += units.problems

    def _translations(self, objects: Mapping[str, Objects]) -> Slices[dict[str, Translation]]:
        translations: dict[str, Translation] = {}
        for name, of_objects in objects.items():
            others = self._others(name, objects)
            given = self.feeds[name].translation(self.snapshot, of_objects, others)
            translations[name] = yield from sliced(given)
        return translations

    def _others(self, feed: str, objects: Mapping[str, Objects]) -> list[Any]:
        """Return the rows of the node's own objects, and of these objects of the other feeds."""
        of_feeds = (
            translated.row
            for name, of_objects in objects.items()
            if name != feed
            for translated in self.feeds[name].units(of_objects)
        )
        return [*(unit.row for unit in self.own), *of_feeds]

    def _result(
        self,
        merge: Merge,
        units: Sequence[Unit],
        accepted: Iterable[ObjectRef],
        translations: Mapping[str, Translation],
        objects: Mapping[str, Objects],
        problems: Mapping[str, Sequence[Problem]],
    ) -> InEffect:
        return InEffect(
            merge,
            units,
            frozenset(accepted),
            {name: self._outcome(name, merge, objects[name], problems[name]) for name in objects},
            tuple(table for translation in translations.values() for table in translation.followed),
        )

    def _outcome(
        self, name: str, merge: Merge, objects: Objects, problems: Sequence[Problem]
    ) -> Outcome:
        last_good = self.held.get(name)
        is_good = self.mode == "isolate" or not self.feeds[name].problems
        if merge.routers is not None and is_good and not _same(objects, last_good):
            last_good = objects
        note = ""
        if problems:
            earlier = self.mode == "keep"
            head = "earlier objects are in effect" if earlier else "objects are not in effect"
            note = f"{head}: {problems[0].message}"
        elif merge.routers is None:
            note = "earlier objects are in effect, as some are in conflict"
        return Outcome(objects, (*problems, *self.replaced.get(name, ())), note, last_good)


def _unit(translated: Translated) -> Unit:
    return Unit(
        translated.origin, translated.row, translated.fields, translated.rules, translated.is_quiet
    )


def _units(translations: Iterable[Translation]) -> list[Unit]:
    return [
        _unit(translated)
        for translation in translations
        for translated in (*translation.units, *translation.further)
    ]


def _only(objects: Objects, refs: frozenset[ObjectRef]) -> Objects:
    return {ref: value for ref, value in objects.items() if ref in refs}


def _without(objects: Objects, refs: Iterable[ObjectRef]) -> Objects:
    wrong = frozenset(refs)
    return {ref: value for ref, value in objects.items() if ref not in wrong}


def _same(objects: Objects, others: Objects | None) -> bool:
    return (
        others is not None
        and objects.keys() == others.keys()
        and all(value is others[ref] for ref, value in objects.items())
    )
