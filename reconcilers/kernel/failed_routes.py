"""The routes of a table that the kernel does not have as they were sent, and why.

Counted as they come and go: health and metrics are read far more often than routes fail.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from typing import NamedTuple, final

from reconcilers.kernel.writer.protocol_messages import Reason


class RouteFailure(NamedTuple):
    """Why the kernel does not have a route."""

    reason: Reason
    text: str


@final
class FailedRoutes:
    """The failed routes of one table."""

    def __init__(self) -> None:
        self._failures: dict[bytes, RouteFailure] = {}
        self._counts: Counter[RouteFailure] = Counter()

    def __bool__(self) -> bool:
        """Whether there are any."""
        return bool(self._failures)

    def __iter__(self) -> Iterator[bytes]:
        return iter(self._failures)

    def get(self, nlri: bytes) -> RouteFailure | None:
        """Return why a route of this table failed in the kernel; None if it did not."""
        return self._failures.get(nlri)

    def add(self, prefixes: Collection[bytes], failure: RouteFailure) -> None:
        """Note routes of this table that failed in the kernel, in place of an earlier failure."""
        if not prefixes:
            return
        self.discard(prefixes)
        before = len(self._failures)
        self._failures.update(dict.fromkeys(prefixes, failure))
        self._counts[failure] += len(self._failures) - before

    def discard(self, prefixes: Iterable[bytes]) -> None:
        """Forget the failures of routes of this table that did not fail again."""
        for nlri in prefixes:
            failure = self._failures.pop(nlri, None)
            if failure is not None:
                self._counts[failure] -= 1
                if not self._counts[failure]:
                    del self._counts[failure]

    def counts(self) -> list[tuple[RouteFailure, int]]:
        """Return the number of failed routes of this table for each cause."""
        return sorted(self._counts.items())
