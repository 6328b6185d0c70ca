"""What a node could not do of what it was asked to, by instance, as one condition has to say it.

Of each instance the first few are told, as one mistake often makes many errors.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Final

from reconcilers.model import Condition, ObjectRef, Problem, ReconcileStatus
from resources.cilium.condition_types import RECONCILE_ERROR

FEW: Final = 5
"""Errors of one instance that are told."""
LONGEST: Final = 32768
"""Characters of a condition's message (metav1.Condition)."""
NODE_CONFIG: Final = "CiliumBGPNodeConfig"

_INSTANCE: Final = re.compile(r"spec\.bgpInstances\[(\d+)\]")
_CONFIGURATION: Final = frozenset(
    {NODE_CONFIG, "CiliumBGPPeerConfig", "CiliumBGPAdvertisement", "CiliumBGPNodeConfigOverride"}
)
"""Kinds whose problems keep something of a NodeConfig from being done."""

Errors = list[tuple[str, str]]
"""The instance, empty where it is of none alone, and the error."""


def errors_of(
    node: str,
    instances: Sequence[str],
    problems: Iterable[Problem],
    statuses: Iterable[ReconcileStatus],
) -> Errors:
    """Find the errors of a node whose NodeConfig has these instances, in a steady order."""
    found: Errors = []
    for problem in sorted(problems):
        ref = problem.objects[0] if problem.objects else None
        if ref is None or ref.kind not in _CONFIGURATION:
            continue
        if ref.kind in (NODE_CONFIG, "CiliumBGPNodeConfigOverride") and ref.name != node:
            continue
        place = _INSTANCE.match(problem.field) if ref.kind == NODE_CONFIG else None
        index = int(place[1]) if place is not None else len(instances)
        instance = instances[index] if index < len(instances) else ""
        where = problem.field if ref == ObjectRef(NODE_CONFIG, "", node) else f"{ref}"
        if where != problem.field and problem.field:
            where += f": {problem.field}"
        found.append((instance, f"{where}: {problem.message}" if where else problem.message))
    for status in sorted(statuses, key=lambda row: (row.reconciler, row.object)):
        if status.error is not None:
            instance, _, rest = status.object.partition("/")
            what = f"{status.reconciler} {rest}" if rest else status.reconciler
            found.append((instance, f"{what}: {status.error}"))
    return found


def reconcile_error(ref: ObjectRef, errors: Errors, generation: int | None) -> Condition:
    """Make the condition that says whether there are errors, and which."""
    by_instance: dict[str, list[str]] = {}
    for instance, text in errors:
        by_instance.setdefault(instance, []).append(" ".join(text.split()))
    lines = []
    for instance, texts in sorted(by_instance.items()):
        name = f"{instance}: " if instance else ""
        lines += [f"{name}{text}" for text in texts[:FEW]]
        if len(texts) > FEW:
            lines.append(f"{name}and {len(texts) - FEW} more")
    message = "\n".join(lines)
    if len(message) > LONGEST:
        message = message[: LONGEST - 1] + "…"
    return Condition(ref, RECONCILE_ERROR, bool(errors), "BGPReconcileError", message, generation)
