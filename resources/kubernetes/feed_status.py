"""The state of each feed, for health, logs and metrics."""

from __future__ import annotations

import enum

import msgspec


class Phase(enum.StrEnum):
    """The phase of a feed."""

    WAITING = "waiting"
    """No list has been completed yet."""
    FOLLOWING = "following"
    HOLDING = "holding"
    """Followed, and objects that the last list did not have are kept until lists confirm it."""
    MISSING = "missing"
    """The API server does not have the kind."""
    REMOVED = "removed"
    """The API server had the kind, and has it no more."""
    FORBIDDEN = "forbidden"
    FAILING = "failing"


class FeedStatus(msgspec.Struct, frozen=True):
    """One feed: a kind, in one namespace or in all, or one object of it."""

    kind: str
    namespace: str
    phase: Phase
    message: str
    objects: int
    cause: str = ""
    """The error of a failing feed, without its consequence; otherwise empty."""

    object_name: str = ""
    """Of a feed of one object."""
    unread: bool = False
    """True if there was no answer with the objects yet, or they may not be read: that one is not known
    does not mean that it does not exist."""

    @property
    def name(self) -> str:
        """The name of a feed in its status: ``Kind``, ``Kind/namespace`` or ``Kind/namespace/name``."""
        if not self.namespace and not self.object_name:
            return self.kind  # of most feeds, each of which is named with each change of one
        return "/".join(part for part in (self.kind, self.namespace, self.object_name) if part)
