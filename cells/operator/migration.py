"""The job of the leader that brings stored objects to the present version of their kinds.

Looked at when the leadership is gained and now and then, as definitions are changed while operators
run. What fails is tried again later and shows in health; nothing else waits for it.
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
"""Seconds between two looks at the definitions."""
FIRST, LONGEST = 1.0, 512.0
"""Seconds until what failed is tried again: doubling, with jitter."""


def migrated(kinds: Kinds) -> tuple[Kind[Any], ...]:
    """Return the kinds that have had other versions than the present one."""
    return tuple(kind for kind in defined(kinds) if len(kind.versions) > 1)


log = structlog.get_logger("waggle.operator")


class Migrations:
    """Keeps the stored versions of the kinds as they should be; ``leads`` is asked before writes."""

    def __init__(
        self, kinds: Kinds, rng: random.Random, health: Health, leads: Callable[[], bool]
    ) -> None:
        self._kinds = migrated(kinds)
        self._rng = rng
        self._health = health
        self._leads = leads

    async def run(self, writer: Writer, gained: asyncio.Event) -> None:
        """Look at all kinds, again and again, while we lead; until cancelled."""
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
        """Look at each kind once; whether all is as it should be."""
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
