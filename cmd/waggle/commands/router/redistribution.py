"""Originates routes that other programs have installed in the kernel (`originate` with a table)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final

from reconcilers.redistribution import Redistribution
from resources.host import KernelRoute
from resources.host.redistributed import read, watch
from speaker.api import RouteAttributes
from speaker.nlri import Family
from speaker.server import Speaker
from waggle.router_config import INSTANCE, Config

RETRY_SECONDS: Final = 5.0
REDISTRIBUTED: Final = RouteAttributes(origin=2)
"""INCOMPLETE (RFC 4271 section 5.1.1)."""


class KernelOriginated:
    """Keeps the originated routes of a router as the kernel has them."""

    def __init__(self, speaker: Speaker, report: Callable[[str], None]) -> None:
        self._speaker = speaker
        self._report = report
        self._config: Config | None = None
        self._routes: frozenset[KernelRoute] = frozenset()
        self._announced: set[tuple[Family, bytes]] = set()
        self._redistributions: list[Redistribution] = []
        self._own: set[tuple[Family, bytes]] = set()
        """The prefixes of the file itself, where any others are announced."""
        self._task: asyncio.Task[None] | None = None

    async def read(self, config: Config) -> None:
        """Read the tables, so that the initial table of a session is complete."""
        tables = config.kernel_tables
        if tables:
            try:
                self._routes = await asyncio.to_thread(read, tables)
            except OSError as error:
                self._failed(error)

    def configure(self, config: Config) -> None:
        """Follow the tables of a file, whose own prefixes are announced."""
        before, self._config = self._config, config
        self._redistributions = config.redistributions()
        # Once for each file, which may have many: the kernel changes more often.
        self._own = set(config.originated()) if self._redistributions or self._announced else set()
        self._announce()
        if before is not None and before.kernel_tables == config.kernel_tables:
            return
        self.stop()
        if config.kernel_tables:
            self._task = asyncio.get_running_loop().create_task(self._follow(config))

    def stop(self) -> None:
        """End the task that follows the kernel."""
        if self._task is not None:
            self._task.cancel()
            self._task = None

    async def _follow(self, config: Config) -> None:
        while True:
            try:
                await watch(config.kernel_tables, self._found)
            except OSError as error:
                # What is known stays announced.
                self._failed(error)
                await asyncio.sleep(RETRY_SECONDS)

    def _failed(self, error: OSError) -> None:
        self._report(f"the kernel's routes cannot be read: {error.strerror or error}")

    def _found(self, routes: frozenset[KernelRoute]) -> None:
        self._routes = routes
        self._announce()

    def _announce(self) -> None:
        """Announce and withdraw the difference; prefixes of the file itself stay."""
        if not self._redistributions and not self._announced:
            return
        own = self._own
        wanted = {
            prefix
            for redistribution in self._redistributions
            for prefix in redistribution.prefixes(self._routes)
        } - own
        changes: dict[Family, dict[bytes, RouteAttributes | None]] = {}
        for family, nlri in self._announced - wanted - own:
            changes.setdefault(family, {})[nlri] = None
        for family, nlri in wanted - self._announced:
            changes.setdefault(family, {})[nlri] = REDISTRIBUTED
        self._announced = wanted
        if changes:
            self._speaker.update_local(INSTANCE, changes)
