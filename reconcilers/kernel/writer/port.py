"""The writer as the agent sees it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from reconcilers.kernel.writer.protocol_messages import FromWriter, ToWriter


class KernelWriter(Protocol):
    """A connection to the writer. All methods are quick and belong to the event loop's thread.

    Whenever a connection is made, at first and after the writer or the connection was lost, the agent
    sends `Settings` and gets the `Listing` with number 0: batches that were not confirmed are void.
    """

    def send(self, message: ToWriter) -> None:
        """Send a message through the writer's port; without a connection it is dropped."""

    def follow(self, connected: Callable[[], None], received: Callable[[FromWriter], None]) -> None:
        """Call ``connected`` and ``received`` for each connection of the writer's port."""
