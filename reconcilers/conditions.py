"""Encodes conditions as metav1.Condition, and decodes the conditions of an object's status. Pure.

A transition time changes only with the condition's status.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import msgspec
from msgspec.structs import replace

from reconcilers.model import Condition
from resources import metav1


def encode(wanted: Condition, before: metav1.Condition | None, time: str) -> metav1.Condition:
    """Encode one of the intent's conditions as metav1.Condition; ``time`` is that of a transition."""
    status: Literal["True", "False"] = "True" if wanted.status else "False"
    is_unchanged = before is not None and before.status == status
    return metav1.Condition(
        type=wanted.type,
        status=status,
        reason=wanted.reason,
        message=wanted.message,
        last_transition_time=before.last_transition_time if before and is_unchanged else time,
        observed_generation=wanted.observed_generation,
    )


def decode(content: Mapping[str, Any] | None) -> dict[str, metav1.Condition]:
    """Decode the conditions of an object's status, by type; invalid conditions are ignored."""
    status = content.get("status") if content else None
    listed = status.get("conditions") if isinstance(status, dict) else None
    decoded: dict[str, metav1.Condition] = {}
    for item in listed if isinstance(listed, list) else ():
        try:
            condition = msgspec.convert(item, metav1.Condition)
        except msgspec.ValidationError:
            continue
        decoded[condition.type] = condition
    return decoded


def with_times(status: Any, known: Mapping[str, metav1.Condition]) -> Any:  # noqa: ANN401
    """Return a status whose conditions keep the transition times of known conditions.

    A condition keeps the time of a known one with the same type and status.
    """
    kept = []
    for condition in status.conditions:
        before = known.get(condition.type)
        if before is not None and before.status == condition.status:
            condition = replace(condition, last_transition_time=before.last_transition_time)
        kept.append(condition)
    return replace(status, conditions=tuple(kept))
