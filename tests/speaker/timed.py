"""An engine in virtual time, which a test advances."""

from __future__ import annotations

import random
from abc import ABC, abstractmethod

from speaker.api import Event
from speaker.engine import Engine
from speaker.engine.inputs import Input, TimersDue


class Timed(ABC):
    """The engine, its time in seconds, and its events."""

    def __init__(self) -> None:
        self.now = 0.0
        self.engine = Engine(random.Random(1), max_queue=1_000_000)  # noqa: S311  a seed, no secret
        self.events: list[Event] = []

    @abstractmethod
    def give(self, item: Input) -> object:
        """Pass an input to the engine and collect the actions."""

    def wait(self, seconds: float) -> None:
        """Advance the time, timer by timer."""
        until = self.now + seconds
        while (deadline := self.engine.next_deadline()) is not None and deadline <= until:
            self.now = max(self.now, deadline)
            self.give(TimersDue())
        self.now = until
