"""Whether the writer answers: a process that hangs keeps its connection, and confirms nothing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, final

ANSWER_SECONDS: Final = 10.0
"""Without any message of the writer while an answer is due: listings and batches take milliseconds to
seconds, and a long listing comes in pieces."""


@final
class Answers:
    """The messages to the writer that are not answered yet, by number; 0 is the first listing."""

    def __init__(self, clock: Callable[[], float]) -> None:
        """``clock`` is in seconds."""
        self._clock = clock
        self._due: set[int] = set()
        self._since = 0.0
        """When the writer was last heard, or the first of these messages was sent."""

    def begin(self) -> None:
        """Forget the messages without answer, on a new connection to the writer."""
        self._due.clear()
        self.sent(0)

    def sent(self, number: int) -> None:
        """Note a message that the writer is to answer."""
        if not self._due:
            self._since = self._clock()
        self._due.add(number)

    def received(self) -> None:
        """Note any message of the writer as a sign that it answers."""
        self._since = self._clock()

    def answered(self, number: int) -> None:
        """Note that the writer has answered a message, as a whole."""
        self._due.discard(number)

    @property
    def problem(self) -> str:
        """Why the writer does not answer; empty while it answers in time, or has nothing to."""
        silent = self._clock() - self._since
        if not self._due or silent < ANSWER_SECONDS:
            return ""
        return (
            f"waggle-kernel has not answered for {ANSWER_SECONDS:g} s: routes stay as they are; "
            "if it does not go on, end its process, which is started again"
        )
