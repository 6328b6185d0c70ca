"""Namespace (v1): only metadata is used, with Waggle's annotations."""

from __future__ import annotations

from typing import Final

from resources.meta import Resource

PREFIX: Final = "waggle.dev/"


class Namespace(Resource, frozen=True):
    """One namespace."""

    def __post_init__(self) -> None:
        """Drop the annotations of other programs: their changes are none of the row."""
        annotations = self.metadata.annotations
        for key in [key for key in annotations if not key.startswith(PREFIX)]:
            del annotations[key]
