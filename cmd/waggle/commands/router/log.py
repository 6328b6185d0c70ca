"""The log of a running router: a sentence a line, or with ``--log-format json`` the agent's JSON lines.

It is on standard error, but for the lines of the start: scripts wait for these on standard output.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final

from waggle.output import complain

if TYPE_CHECKING:
    from cells.observability.logging import Logs

FORMATS: Final = ("text", "json")
LOGGER: Final = "waggle.router"


class RouterLog:
    """The log in one of its formats."""

    def __init__(self, form: str = FORMATS[0]) -> None:
        self._logs = _agent_logs() if form == "json" else None

    async def start(self) -> None:
        """Write JSON lines from now on, also of the loggers of libraries."""
        if self._logs is not None:
            await self._logs.start()

    async def stop(self) -> None:
        """Write what is left."""
        if self._logs is not None:
            await self._logs.stop()

    def __call__(self, text: str, *, level: str = "warning", peer: str | None = None) -> None:
        """Write a line about a neighbour, or about the router."""
        if self._logs is not None:
            self._logs.emit(level, LOGGER, text, {"peer": peer})
        else:
            complain("waggle router", text if peer is None else f"{peer}: {text}")

    def started(self, text: str, **values: object) -> None:
        """Print a line of the start; ``values`` are its parts, for programs."""
        if self._logs is not None:
            from cells.observability.logging import lines

            now = time.time()
            text = lines.json(
                lines.event(when=now, level="info", logger=LOGGER, message=text, values=values)
            )
        print(text, flush=True)


def _agent_logs() -> Logs:
    from cells.hive import Health
    from cells.hive.lifecycle import Lifecycle
    from cells.observability.logging import Logs
    from cells.options import LoggingOptions

    return Logs(Lifecycle(), Health(), LoggingOptions(format="json"))
