"""Exponential backoff with jitter, for requests to an API server."""

from __future__ import annotations

import random
from typing import final


@final
class Backoff:
    """Retry pauses in seconds that double up to a limit, each shortened by random jitter."""

    def __init__(
        self,
        rng: random.Random,
        *,
        first: float,
        longest: float,
        jitter: float = 0.5,
        longest_retry_after: float = 300.0,
    ) -> None:
        """The n-th pause is ``first * 2**n``, at most ``longest``, less up to ``jitter`` of it.

        ``jitter`` is a fraction (0 to 1); ``longest_retry_after`` limits what a server requests.
        """
        self._rng = rng
        self._first = first
        self._longest = longest
        self._jitter = jitter
        self._longest_retry_after = longest_retry_after
        self.failures = 0
        """Pauses since the last `reset`."""

    def bound(self, first: float, longest: float) -> None:
        """Set the first and the longest pause of the backoff from now on."""
        self._first, self._longest = first, longest

    def reset(self) -> None:
        """Start the backoff again with the shortest pause."""
        self.failures = 0

    def next(self, retry_after: float = 0.0) -> float:
        """Return the next pause of the backoff; a Retry-After of the server is added to it.

        Added, as other clients have received the same Retry-After.
        """
        full = min(self._longest, self._first * 2.0 ** min(self.failures, 32))
        self.failures += 1
        pause = full * (1.0 - self._jitter + self._jitter * self._rng.random())
        return pause + min(retry_after, self._longest_retry_after)
