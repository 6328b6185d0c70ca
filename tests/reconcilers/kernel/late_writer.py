"""A writer whose answers are late, and rounds of few routes, for random orders of what happens."""

from __future__ import annotations

import contextlib
from collections import deque
from collections.abc import Callable, Iterator

import pytest

from reconcilers.kernel import (
    installed,
    resolution,
    routes_of_classes,
    unsettled_moves,
    wanted_tables,
)
from reconcilers.kernel.writer.protocol_messages import FromWriter
from reconcilers.target import comparison, verification
from tests.reconcilers.kernel.memory_writer import MemoryWriter


class SmallBatches:
    """In place of `BatchSize`: several changes of one prefix are on their way."""

    routes = 2

    def confirmed(self, routes: int, seconds: float) -> None:
        """See `BatchSize`."""


class LateWriter(MemoryWriter):
    """A writer whose answers arrive when the test lets them."""

    def __init__(self) -> None:
        super().__init__()
        self.answers: deque[FromWriter] = deque()
        self._hear: Callable[[FromWriter], None] = lambda _: None

    def follow(self, connected: Callable[[], None], received: Callable[[FromWriter], None]) -> None:
        super().follow(connected, self.answers.append)
        self._hear = received

    def connect(self) -> None:
        self.answers.clear()
        super().connect()

    def answer(self) -> None:
        if self.answers:
            self._hear(self.answers.popleft())

    def run(self) -> None:
        while self.sent or self.answers:
            if self.sent:
                self.step()
            self.answer()


@contextlib.contextmanager
def small_rounds() -> Iterator[None]:
    """Let each slice, batch and round have few routes, so that much happens between them."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(installed, "BatchSize", SmallBatches)
        patch.setattr(comparison, "SLICE_PARTS", 3)
        patch.setattr(verification, "PIECE_PARTS", 2)
        patch.setattr(wanted_tables, "TAKEN", 4)
        patch.setattr(wanted_tables, "FEW", 1)
        patch.setattr(resolution, "RESOLVED", 2)
        patch.setattr(routes_of_classes, "LOOKED_AT", 3)
        patch.setattr(unsettled_moves, "SETTLED", 3)
        yield
