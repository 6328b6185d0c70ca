"""How each feed is, as a value for people; nothing is decided by it."""

from __future__ import annotations

import enum

import msgspec


class Phase(enum.StrEnum):
    """What a feed does."""

    WAITING = "waiting"
    """It has not been read yet."""
    FOLLOWING = "following"
    MISSING = "missing"
    """The API does not have the kind (yet)."""
    FORBIDDEN = "forbidden"
    FAILING = "failing"


class FeedStatus(msgspec.Struct, frozen=True):
    """One feed: a kind, in one namespace or in all."""

    kind: str
    namespace: str
    phase: Phase
    message: str
    objects: int
    cause: str = ""
    """Why it is failing, without what becomes of it; empty otherwise."""

    @property
    def name(self) -> str:
        """``Kind`` or ``Kind/namespace``."""
        return f"{self.kind}/{self.namespace}" if self.namespace else self.kind
