"""Compiles one object alone: its rules, and its values in a form that can be compared. Pure.

Source: FRR-k8s internal/controller/api_to_config.go and its definition; what its engine refuses is
refused as well, with the field.
"""

from __future__ import annotations

from reconcilers.frrk8s.one_object.routers import compile_unit, imported_elsewhere, routed_vrfs
from reconcilers.frrk8s.one_object.session import PORT, SECRETS_NAMESPACE

__all__ = [
    "PORT",
    "SECRETS_NAMESPACE",
    "compile_unit",
    "imported_elsewhere",
    "routed_vrfs",
]
