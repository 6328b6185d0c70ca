"""Reload at SIGHUP: manifests and the configuration file are read again, sessions go on.

Of the configuration file the log level takes effect at once. Cells are constructed once, with their
options: each other setting that has changed is named in the log, and takes effect after a restart.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Final

import structlog
from msgspec.structs import replace

from cells.hive import Cell, HiveError, Settings, describe
from cells.hive.hive import Hive
from cells.options import LoggingOptions

LEVEL: Final = "cells.logging.level"

log = structlog.get_logger("waggle.agent")


def changed_settings(cells: Sequence[Cell], before: Settings, after: Settings) -> list[str]:
    """Return the keys of the configuration file whose values differ, in the order of the cells.

    A cell that is on or off for another reason than an option of its own has the key ``enabled``.
    """
    changed: list[str] = []
    for cell in cells:
        former, other = before.options[cell.name], after.options[cell.name]
        keys = [
            f"cells.{cell.name}.{item.key}"
            for item in describe(cell.name, cell.options)
            if getattr(former, item.field) != getattr(other, item.field)
        ]
        if not keys and before.enabled[cell.name] != after.enabled[cell.name]:
            keys = [f"cells.{cell.name}.enabled"]
        changed += keys
    return changed


class Reload:
    """Reads and compares at each request; an error leaves everything as it is."""

    def __init__(self, hive: Hive, read: Callable[[], Settings]) -> None:
        """``read`` reads the settings as at the start, and raises `HiveError`."""
        self._hive = hive
        self._read = read
        self._in_effect = hive.settings
        self._requested = asyncio.Event()

    def request(self) -> None:
        """Read again soon; several requests may be one."""
        self._requested.set()

    async def run(self) -> None:
        """Serve requests until cancelled."""
        while True:
            await self._requested.wait()
            self._requested.clear()
            if self._hive.settings.enabled["manifests"]:
                from resources.manifests.source import ManifestsSource

                self._hive.get(ManifestsSource).rescan()
            try:
                # In a thread: the file may be on a network file system.
                self._compare(await asyncio.to_thread(self._read))
            except HiveError as error:
                _log_failure(str(error))
            except Exception as error:  # noqa: BLE001  the next request has to find its task
                _log_failure(f"{type(error).__name__}: {error}")
            else:
                log.info("files are read again", event_name="agent.reload")

    def _compare(self, after: Settings) -> None:
        options = after.options["logging"]
        for key in changed_settings(self._hive.cells, self._in_effect, after):
            if (
                key == LEVEL
                and self._hive.settings.enabled["logging"]
                and isinstance(options, LoggingOptions)
            ):
                self._set_level(options.level)
            else:
                log.warning(
                    "a changed setting takes effect after a restart",
                    event_name="agent.setting_pending",
                    setting=key,
                )

    def _set_level(self, level: str) -> None:
        from cells.observability.logging import Logs

        log.info(
            "a changed setting is in effect", event_name="agent.setting_applied", setting=LEVEL
        )
        self._hive.get(Logs).configure(level)
        options = dict(self._in_effect.options)
        options["logging"] = replace(options["logging"], level=level)
        self._in_effect = replace(self._in_effect, options=options)


def _log_failure(reason: str) -> None:
    log.error(
        "the configuration cannot be used: every setting stays as it is",
        event_name="agent.reload_failed",
        reason=reason,
    )
