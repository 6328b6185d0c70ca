"""A token bucket: a rate, with a burst after a time without any. Pure; times are in seconds."""

from __future__ import annotations

from typing import Final, final

SHORTEST_PAUSE: Final = 0.001
"""Less is below the precision of a clock."""


@final
class TokenBucket:
    """Tokens, full at first; each allowed thing takes one."""

    def __init__(self, size: float, rate: float) -> None:
        """``size`` is the burst, ``rate`` the tokens of a second."""
        self.rate = rate
        self._size = size
        self._tokens = size
        self._filled_at = float("-inf")

    def tokens(self, now: float) -> float:
        """Return the tokens that there are now; fewer than none where more were taken."""
        self._tokens = min(self._size, self._tokens + max(0.0, now - self._filled_at) * self.rate)
        self._filled_at = now
        return self._tokens

    def pause(self, now: float, needed: float = 1.0) -> float:
        """Return the time until the bucket has some tokens; 0.0 where it has them."""
        missing = needed - self.tokens(now)
        return max(SHORTEST_PAUSE, missing / self.rate) if missing > 0 else 0.0

    def take(self, count: float = 1.0) -> None:
        """Take tokens."""
        self._tokens -= count
