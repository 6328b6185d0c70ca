"""The conditions of a NodeConfig: a node's problems and failures, and its sessions that stay down.

The messages list the first errors of each instance, as one mistake often causes many.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from reconcilers.model import Condition, ObjectRef, Problem, ReconcileStatus
from resources.cilium.condition_types import RECONCILE_ERROR, SESSIONS_DOWN
from resources.enumeration import joined

MAX_ERRORS_SHOWN: Final = 5
"""Errors of one instance that the message lists."""
NODE_CONFIG: Final = "CiliumBGPNodeConfig"

_INSTANCE: Final = re.compile(r"spec\.bgpInstances\[(\d+)\]")
_CONFIGURATION: Final = frozenset(
    {NODE_CONFIG, "CiliumBGPPeerConfig", "CiliumBGPAdvertisement", "CiliumBGPNodeConfigOverride"}
)
"""Kinds whose problems are errors of a NodeConfig."""

Errors = list[tuple[str, str]]
"""The instance, empty if the error is of no single one, and the error."""


def errors_of(
    node: str,
    instances: Sequence[str],
    problems: Iterable[Problem],
    statuses: Iterable[ReconcileStatus],
) -> Errors:
    """Return the errors of a node by the instances of its NodeConfig, in a deterministic order."""
    errors: Errors = []
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
        errors.append((instance, f"{where}: {problem.message}" if where else problem.message))
    for status in sorted(statuses, key=lambda row: (row.reconciler, row.object)):
        if status.error is not None:
            instance, _, rest = status.object.partition("/")
            what = f"{status.reconciler} {rest}" if rest else status.reconciler
            errors.append((instance, f"{what}: {status.error}"))
    return errors


def listener_errors(instances: Sequence[str], listen_errors: Mapping[str, str | None]) -> Errors:
    """Return the errors of a node's NodeConfig for instances that cannot listen."""
    return [
        (name, f"spec.bgpInstances[{index}].localPort: {error}")
        for index, name in enumerate(instances)
        if (error := listen_errors.get(name))
    ]


def reconcile_error(ref: ObjectRef, errors: Errors, generation: int | None) -> Condition:
    """Return the condition BGPReconcileError with the errors of a node."""
    message = _message(errors)
    return Condition(ref, RECONCILE_ERROR, bool(errors), "BGPReconcileError", message, generation)


def sessions_down(
    ref: ObjectRef,
    sessions: Iterable[tuple[tuple[str, str], str]],
    generation: int | None,
) -> Condition:
    """Return the condition of a node's errors in sessions that stay down: (instance, peer), and why."""
    message = _message([(key[0], f"peer {key[1]}: {reason}") for key, reason in sessions])
    return Condition(ref, SESSIONS_DOWN, True, "SessionNotEstablished", message, generation)


def _message(errors: Errors) -> str:
    by_instance: dict[str, list[str]] = {}
    for instance, text in errors:
        by_instance.setdefault(instance, []).append(" ".join(text.split()))
    lines = []
    for instance, texts in sorted(by_instance.items()):
        name = f"{instance}: " if instance else ""
        lines += [f"{name}{text}" for text in texts[:MAX_ERRORS_SHOWN]]
        if len(texts) > MAX_ERRORS_SHOWN:
            lines.append(f"{name}and {len(texts) - MAX_ERRORS_SHOWN} more")
    return joined(lines, "\n")
