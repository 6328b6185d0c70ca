"""How sessions with the addresses of dynamic peers ended, for the last places of a range.

Any host can connect from an address of a range, and any number of them: both tables are bounded, the
oldest entries go first.
"""

from __future__ import annotations

from typing import Final, NamedTuple, final

MAX_SOURCES: Final = 4096
"""The number of addresses in each table."""
FIRST_WAIT_SECONDS: Final = 5.0
MAX_WAIT_SECONDS: Final = 60.0


class Failures(NamedTuple):
    """Connections of one address, one after another, that brought no session."""

    number: int
    until: float
    """When the address may take the next place."""


@final
class SourceHistory:
    """The addresses of one instance's dynamic peers."""

    __slots__ = ("_failures", "_known")

    def __init__(self) -> None:
        self._known: dict[str, None] = {}
        """Addresses that have had an Established session, the latest last."""
        self._failures: dict[str, Failures] = {}

    def established(self, address: str) -> None:
        """Record a session that is Established."""
        self._failures.pop(address, None)
        self._known.pop(address, None)
        _make_room(self._known)
        self._known[address] = None

    def failed(self, address: str, now: float) -> None:
        """Record a connection that ended without a session, at a time in seconds."""
        before = self._failures.pop(address, None)
        number = 1
        if before is not None and now - before.until < MAX_WAIT_SECONDS:
            number = before.number + 1
        _make_room(self._failures)
        pause = min(FIRST_WAIT_SECONDS * 2.0 ** min(number - 1, 16), MAX_WAIT_SECONDS)
        self._failures[address] = Failures(number, now + pause)

    def is_known(self, address: str) -> bool:
        """Return whether an address has had a session."""
        return address in self._known

    def must_wait(self, address: str, now: float) -> bool:
        """Return whether an address that never had a session has to wait after a failure."""
        failures = self._failures.get(address)
        return failures is not None and now < failures.until and address not in self._known


def _make_room(table: dict[str, None] | dict[str, Failures]) -> None:
    if len(table) >= MAX_SOURCES:
        del table[next(iter(table))]
