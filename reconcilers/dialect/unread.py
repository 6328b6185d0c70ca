"""Kinds and objects that a program could not read of an API server."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import msgspec

from reconcilers.model import ObjectRef


class Unread(msgspec.Struct, frozen=True):
    """Kinds and objects that could not be read: an unknown object may exist."""

    waits_for: str = ""
    """A feed without an answer yet; empty once each kind was answered, by a list or an error, and some
    time after the start."""
    kinds: Mapping[str, str] = {}
    """The names of feeds of kinds, by the table of the kind."""
    objects: frozenset[ObjectRef] = frozenset()
    """Single objects (Secrets)."""


EVERYTHING_READ: Final = Unread()
