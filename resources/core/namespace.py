"""Namespace (v1): only its labels are used."""

from __future__ import annotations

from resources.meta import Resource


class Namespace(Resource, frozen=True):
    """One namespace."""
