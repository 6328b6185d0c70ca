"""The condition types of FRRConfigurations; FRR-k8s itself writes none."""

from __future__ import annotations

from typing import Final

ACCEPTED: Final = "Accepted"
"""Whether the object is used: reasons Accepted, Invalid, Unresolved, Conflict, OtherNamespace."""
CONFLICTING: Final = "Conflicting"
"""True while it contradicts another object, or itself."""
PARTIALLY_APPLIED: Final = "PartiallyApplied"
"""True where a part has no effect (RawConfig, EVPN), or the object is not in effect (LeftOut)."""
SELECTED: Final = "Selected"
"""False while it selects no node."""
TYPES: Final = frozenset({ACCEPTED, CONFLICTING, PARTIALLY_APPLIED, SELECTED})
