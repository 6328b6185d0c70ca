"""The objects of v2 that the operator generates for Cilium's v1 policies.

Each has its policy as the controller, so that the API server collects it with the policy. An object
without our owner reference is left unchanged, whatever its name; one that no policy is translated to
any more is deleted while its policy exists.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from reconcilers.cilium.objects import Objects, controlling_policy, with_translated
from reconcilers.cilium.v1.translate import Known, as_object, object_ref
from reconcilers.dialect import Delete
from reconcilers.model import Generated, ObjectRef, Problem
from resources.cilium import CiliumBGPPeeringPolicy
from resources.meta import Resource


class Translation(NamedTuple):
    """The objects of v2 for v1's policies, and how they differ from those that exist."""

    generated: list[Generated]
    outdated: set[ObjectRef]
    deletions: list[Delete]
    problems: list[Problem]


def translation(
    objects: Objects, policies: Mapping[str, CiliumBGPPeeringPolicy], known: Known
) -> Translation:
    """Translate policies, in an order of objects whose writing interrupts no session."""
    _, made = with_translated(objects, policies, known)
    there: dict[ObjectRef, Resource] = {
        object_ref(row): row
        for rows in (
            objects.peer_configs,
            objects.advertisements,
            objects.overrides,
            objects.cluster_configs,
        )
        for row in rows.values()
    }
    found = Translation([], set(), [], list(made.notes))
    for ref, row in made.rows.items():
        present = there.get(ref)
        if present is not None and controlling_policy(present) is None:
            text = "exists already, and is left unchanged: no policy controls it"
            found.problems.append(Problem((ref, made.origins[ref]), "metadata.name", text))
            continue
        found.generated.append(Generated(ref, made.origins[ref], _content(row)))
        if present is None or not _same(present, row):
            found.outdated.add(ref)
    for ref, present in there.items():
        owner = controlling_policy(present)
        if owner is None or ref in made.rows:
            continue
        policy = policies.get(owner.name)
        if policy is not None and policy.metadata.uid == owner.uid:
            found.deletions.append(Delete(ref, present.metadata.uid))
    return found


def _same(there: Resource, wanted: Resource) -> bool:
    """Tell whether an object is as it should be; labels that others added do not count."""
    return (
        _specification(there) == _specification(wanted)
        and wanted.metadata.labels.items() <= there.metadata.labels.items()
        and controlling_policy(there) == controlling_policy(wanted)
    )


def _specification(row: Resource) -> object:
    # All four kinds have one; what they have in common has no name of its own.
    return getattr(row, "spec", None)


def _content(row: Resource) -> dict[str, Any]:
    """Return an object as it is applied: the time of its making is the API server's to say."""
    content = as_object(row)
    content["metadata"].pop("creationTimestamp", None)
    return content
