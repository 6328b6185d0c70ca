"""From what is the case with an object to the condition in its status, and back.

The operator and the agents go through here. A condition's time moves only when its status does.
Nothing here asks a clock.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec.structs import replace

from reconcilers.model import Condition
from resources import metav1

LONGEST = 1024
"""Characters of a message: what names objects names any number of them, and there are others."""


def written(wanted: Condition, before: metav1.Condition | None, time: str) -> metav1.Condition:
    """Spell a condition; ``time`` (RFC 3339) is when it became so, unless it was so before."""
    status = "True" if wanted.status else "False"
    same = before is not None and before.status == status
    return metav1.Condition(
        type=wanted.type,
        status="True" if wanted.status else "False",
        reason=wanted.reason,
        message=_cut(wanted.message),
        last_transition_time=before.last_transition_time if before and same else time,
        observed_generation=wanted.observed_generation,
    )


def _cut(text: str) -> str:
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…"


def read(content: Mapping[str, Any] | None) -> dict[str, metav1.Condition]:
    """Return the conditions that an object of the API has, by type; what is odd is left out."""
    status = content.get("status") if content else None
    listed = status.get("conditions") if isinstance(status, dict) else None
    found: dict[str, metav1.Condition] = {}
    for one in listed if isinstance(listed, list) else ():
        try:
            condition = msgspec.convert(one, metav1.Condition)
        except msgspec.ValidationError:
            continue
        found[condition.type] = condition
    return found


def with_times(status: Any, known: Mapping[str, metav1.Condition]) -> Any:  # noqa: ANN401
    """Return a status struct whose conditions keep their known transition times.

    A condition keeps the time of a known one with the same type and status.
    """
    kept = []
    for condition in status.conditions:
        before = known.get(condition.type)
        if before is not None and before.status == condition.status:
            condition = replace(condition, last_transition_time=before.last_transition_time)
        kept.append(condition)
    return replace(status, conditions=tuple(kept))
