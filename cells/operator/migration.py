"""The job of the leader that brings stored objects to the present version of their kinds.

Runs when the leadership is gained and periodically, as definitions change while operators run. A
failure shows in health and is retried; nothing else waits for it.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from typing import Any

import structlog

from cells.hive import Health
from resources.crds.generate import defined
from resources.kind import Kind, Kinds
from resources.kubernetes import KubernetesError, Writer, migrate

EVERY = 600.0
"""Seconds between two passes over the definitions."""
FIRST, LONGEST = 1.0, 512.0
"""Seconds until a failed pass is retried: doubling, with jitter."""


def migrated(kinds: Kinds) -> tuple[Kind[Any], ...]:
    """Return the kinds with other versions than the present one."""
    return tuple(kind for kind in defined(kinds) if len(kind.versions) > 1)


log = structlog.get_logger("waggle.operator")


class Migrations:
    """Brings stored objects to the present version; ``leads`` is checked before each write."""

    def __init__(
        self, kinds: Kinds, rng: random.Random, health: Health, leads: Callable[[], bool]
    ) -> None:
        self._kinds = migrated(kinds)
        self._rng = rng
        self._health = health
        self._leads = leads

    async def run(self, writer: Writer, gained: asyncio.Event) -> None:
        """Run passes over all kinds while this operator leads, until cancelled."""
        failures = 0
        while True:
            await gained.wait()
            if await self._pass(writer):
                failures = 0
                pause = EVERY
            else:
                pause = min(LONGEST, FIRST * 2.0**failures)
                failures = min(failures + 1, 16)
            await asyncio.sleep(pause * self._rng.uniform(0.75, 1.0))

    async def _pass(self, writer: Writer) -> bool:
        """Process each kind once; True if all are stored in their present version."""
        errors: list[KubernetesError] = []
        for kind in self._kinds:
            try:
                done = await migrate(writer, kind, self._leads)
            except KubernetesError as error:
                errors.append(error)
                continue
            if done is not None:
                log.info(
                    "stored in the present version",
                    event_name="operator.migrated",
                    kind=done.kind,
                    objects=done.objects,
                    dropped=", ".join(done.dropped),
                )
        if errors:
            more = f" (and {len(errors) - 1} more)" if len(errors) > 1 else ""
            self._health.degraded(f"objects of old versions stay as they are: {errors[0]}{more}")
        else:
            self._health.ok("every kind is stored in its present version")
        return not errors
