"""Compiles one object alone: its rules, and its values in a form that can be compared. Pure.

Source: FRR-k8s internal/controller/api_to_config.go and its definition; what its engine refuses is
refused as well, with the field.
"""

from __future__ import annotations

from reconcilers.frrk8s.one_object.findings import BFD
from reconcilers.frrk8s.one_object.passwords import SECRETS_NAMESPACE
from reconcilers.frrk8s.one_object.routers import compile_unit
from reconcilers.frrk8s.one_object.sessions import PORT
from reconcilers.frrk8s.one_object.vrfs import imported_elsewhere, routed_vrfs

__all__ = [
    "BFD",
    "PORT",
    "SECRETS_NAMESPACE",
    "compile_unit",
    "imported_elsewhere",
    "routed_vrfs",
]
