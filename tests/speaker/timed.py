"""An engine in a time of its own, which passes when it is told to."""

from __future__ import annotations

import random
from abc import ABC, abstractmethod

from speaker.api import Event
from speaker.engine import Engine
from speaker.engine.inputs import Input, TimersDue


class Timed(ABC):
    """The engine, what time it is for it, in seconds, and what it has told."""

    def __init__(self) -> None:
        self.now = 0.0
        self.engine = Engine(random.Random(1), max_queue=1_000_000)  # noqa: S311  a seed, no secret
        self.events: list[Event] = []

    @abstractmethod
    def give(self, item: Input) -> object:
        """Hand over an input and take note of the actions."""

    def wait(self, seconds: float) -> None:
        """Let time pass, timer by timer."""
        until = self.now + seconds
        while (deadline := self.engine.next_deadline()) is not None and deadline <= until:
            self.now = max(self.now, deadline)
            self.give(TimersDue())
        self.now = until
