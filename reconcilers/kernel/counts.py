"""Counts of changes of the kernel's routes, for metrics."""

from __future__ import annotations

from typing import final

from reconcilers.kernel.writer.protocol_messages import Reason


@final
class Counts:
    """Numbers since the start."""

    def __init__(self) -> None:
        self.batches = 0
        self.routes = 0
        """Of confirmed batches."""
        self.written = 0
        """Messages to the kernel."""
        self.seconds = 0.0
        """The writer's time."""
        self.failures: dict[Reason, int] = {}
        self.changed: dict[str, int] = {}
        """Routes that others changed, by the way in which the writer noticed it."""
