"""How long things take and how often they are tried, in one place; seconds."""

from __future__ import annotations

import random

import msgspec


class Timing(msgspec.Struct, frozen=True, kw_only=True):
    """All of them; tests shorten them, nobody else needs to."""

    page: int = 500
    """Objects asked for at a time."""
    connect: float = 5.0
    read: float = 60.0
    """Longest silence within an answer to a list."""
    silence: float = 90.0
    """Longest silence of a watch: bookmarks come about once a minute."""
    watch_least: float = 300.0
    watch_most: float = 600.0
    """A watch is asked to end after a random time between them, so that load moves between servers."""
    lasting: float = 5.0
    """A watch that lived for so long was a good one."""
    first: float = 0.5
    longest: float = 30.0
    """Of the pauses between attempts."""
    patience: float = 300.0
    """The longest pause that a server may ask for."""
    confirm: float = 1.0
    """Until a list that would take everything away is asked for again."""
    missing: float = 30.0
    """Until a kind that the API does not have is looked for again."""
    grace: float = 30.0
    """How long a forbidden list may hold up the start; roles may come after their users."""


class Backoff:
    """Growing pauses with jitter: the n-th is half to all of ``first * 2**n``, ``longest`` at most."""

    def __init__(self, timing: Timing, rng: random.Random) -> None:
        self._timing = timing
        self._rng = rng
        self._failures = 0

    def reset(self) -> None:
        """Begin with short pauses again."""
        self._failures = 0

    def next(self, at_least: float = 0.0) -> float:
        """Give the next pause; longer than what a server asked for, as others were asked as well."""
        t = self._timing
        full = min(t.longest, t.first * 2.0 ** min(self._failures, 32))
        self._failures += 1
        pause = full * (0.5 + self._rng.random() / 2)
        return pause + min(at_least, t.patience)
