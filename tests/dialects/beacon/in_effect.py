"""The object in effect on a node: of Beacons and of all feeds, the oldest one."""

from collections.abc import Mapping
from typing import NamedTuple

from reconcilers import dialect as api
from reconcilers.age import age
from reconcilers.model import ObjectRef, Problem, ref_to
from tests.dialects.beacon.kinds import BEACON, Beacon


class InEffect(NamedTuple):
    ref: ObjectRef
    row: Beacon
    outcomes: Mapping[str, api.Outcome]


def in_effect(stored: Beacon | None, context: api.NodeContext) -> InEffect | None:
    feeds = context.feeds
    replaced = {ref for feed in feeds.values() for ref in feed.replaced}
    units = [(u.origin, u.row) for feed in feeds.values() for u in feed.units(feed.objects)]
    if stored is not None and ref_to(BEACON, stored) not in replaced:
        units.append((ref_to(BEACON, stored), stored))
    if not units:
        return None
    ref, row = min(units, key=lambda unit: age(unit[1].metadata.creation_timestamp, unit[0]))
    outcomes = {name: outcome_of(feed, ref, stored) for name, feed in feeds.items()}
    return InEffect(ref, row, outcomes)


def outcome_of(feed: api.Feed, chosen: ObjectRef, stored: Beacon | None) -> api.Outcome:
    problems = [
        Problem((ref, chosen), "spec", "a node has one Beacon", category="conflict")
        for ref in feed.objects
        if ref != chosen
    ]
    for ref, text in feed.replaced.items():
        if stored is not None and ref == ref_to(BEACON, stored):
            problems.append(Problem((ref,), "", text, category="unsupported"))
    objects = {ref: units for ref, units in feed.objects.items() if ref == chosen}
    return api.Outcome(objects, tuple(problems))
