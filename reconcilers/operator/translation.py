"""What the operator writes of Cilium's v1 policies: the objects of v2 that stand for them.

Each names its policy as the controller, so that the API server collects it with the policy. An object
that somebody wrote is left as it is, whatever its name; one that no policy is translated to any more
is deleted while its policy is there.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from reconcilers.intent.cilium.objects import Objects, controlling_policy, with_translated
from reconcilers.intent.cilium.v1.translate import Known, as_object, object_ref
from reconcilers.model import ObjectRef, Problem
from reconcilers.operator.writes import Apply, Delete, Write
from resources.cilium import CiliumBGPPeeringPolicy
from resources.meta import Resource


def translation(
    objects: Objects, policies: Mapping[str, CiliumBGPPeeringPolicy], known: Known
) -> tuple[list[Write], list[Problem]]:
    """Return what is to be written, in an order that interrupts nothing, and what is to be said."""
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
    writes: list[Write] = []
    problems = list(made.notes)
    for ref, row in made.rows.items():
        present = there.get(ref)
        if present is None:
            writes.append(Apply(ref, _content(row)))
        elif controlling_policy(present) is None:
            text = "is there already, and left as it is: no policy controls it"
            problems.append(Problem((ref, made.origins[ref]), "metadata.name", text))
        elif not _same(present, row):
            writes.append(Apply(ref, _content(row)))
    for ref, present in there.items():
        owner = controlling_policy(present)
        if owner is None or ref in made.rows:
            continue
        policy = policies.get(owner.name)
        if policy is not None and policy.metadata.uid == owner.uid:
            writes.append(Delete(ref, present.metadata.uid))
    return writes, problems


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
