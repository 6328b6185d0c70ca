"""What is wrong with an object: broken rules, what it refers to in vain, what has no effect."""

from __future__ import annotations

from typing import Final

from reconcilers.frrk8s.unit import Missing
from resources.errors import FieldError

RAW_CONFIG: Final = "RawConfig"
EVPN: Final = "EVPN"
BFD: Final = "BFD"
KERNEL_ROUTES: Final = "KernelRoutes"
"""Reasons of the condition PartiallyApplied."""


class Findings:
    """Collects the findings of one object; all of them are reported, in the order of its fields."""

    def __init__(self) -> None:
        self.errors: list[FieldError] = []
        self.missing: list[Missing] = []
        """VRFs that it imports and no object has."""
        self.unsupported: list[tuple[str, FieldError]] = []
        """What has no effect, each with a reason of the condition PartiallyApplied."""

    def error(self, path: str, message: str) -> None:
        """Add a broken rule."""
        self.errors.append(FieldError(path, message))

    def no_effect(self, reason: str, path: str, message: str) -> None:
        """Add a field that has no effect."""
        self.unsupported.append((reason, FieldError(path, message)))
