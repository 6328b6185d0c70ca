"""The operator's part for v1: the objects of v2 that it generates for policies.

Each has its policy as controller, so that the API server garbage-collects it with the policy. An object
without that owner reference is left unchanged, whatever its name; an object that the translation of its
policy no longer contains is deleted.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from reconcilers.cilium.objects import Objects, policy_translated_from, with_translated
from reconcilers.cilium.v1.translation import ClusterView, as_object, object_ref
from reconcilers.model import Delete, Generated, ObjectRef, Problem
from resources.cilium import CiliumBGPPeeringPolicy
from resources.meta import Resource


class Translation(NamedTuple):
    """The objects of v2 for v1's policies, and their differences from the stored ones."""

    generated: list[Generated]
    outdated: set[ObjectRef]
    deletions: list[Delete]
    problems: list[Problem]


def translation(
    objects: Objects, policies: Mapping[str, CiliumBGPPeeringPolicy], view: ClusterView
) -> Translation:
    """Generate the operator's objects of v2 for v1's policies, in an order that resets no session."""
    _, translated = with_translated(objects, policies, view)
    stored: dict[ObjectRef, Resource] = {
        object_ref(row): row
        for rows in (
            objects.peer_configs,
            objects.advertisements,
            objects.overrides,
            objects.cluster_configs,
        )
        for row in rows.values()
    }
    result = Translation([], set(), [], list(translated.notes))
    for ref, row in translated.rows.items():
        present = stored.get(ref)
        if present is not None and policy_translated_from(present) is None:
            text = "exists already, and is left unchanged: no policy controls it"
            result.problems.append(Problem((ref, translated.origins[ref]), "metadata.name", text))
            continue
        result.generated.append(Generated(ref, translated.origins[ref], _content(row)))
        if present is None or not _is_current(present, row):
            result.outdated.add(ref)
    for ref, present in stored.items():
        owner = policy_translated_from(present)
        if owner is None or ref in translated.rows:
            continue
        policy = policies.get(owner.name)
        if policy is not None and policy.metadata.uid == owner.uid:
            result.deletions.append(Delete(ref, present.metadata.uid))
    return result


def _is_current(stored: Resource, wanted: Resource) -> bool:
    """True if spec, owner and our labels are stored; labels of other writers are ignored."""
    return (
        _spec(stored) == _spec(wanted)
        and wanted.metadata.labels.items() <= stored.metadata.labels.items()
        and policy_translated_from(stored) == policy_translated_from(wanted)
    )


def _spec(row: Resource) -> object:
    # All four kinds have one, and no common base class.
    return getattr(row, "spec", None)


def _content(row: Resource) -> dict[str, Any]:
    """Return an object as it is applied, without the creationTimestamp that the API server sets."""
    content = as_object(row)
    content["metadata"].pop("creationTimestamp", None)
    return content
