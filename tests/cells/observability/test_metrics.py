"""Metrics: the documented ones are there, and a blocked loop is noticed."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path
from typing import cast

from cells import declarations
from cells.hive import Level, load
from cells.hive.hive import Hive
from cells.observability.metrics import Metrics
from tests.support import looptime
from waggle_agent.__main__ import CELLS

PAGE = Path(__file__).parents[3] / "docs" / "operations.md"


def test_every_documented_metric_exists_and_every_metric_is_documented() -> None:
    documented = set()
    for line in PAGE.read_text().splitlines():
        if line.startswith("| `waggle_"):
            documented |= set(re.findall(r"`(waggle_\w+)`", line.split("|")[1]))
    hive = Hive(CELLS, load(CELLS, flags={"disable_cell": ["logging"], "--bfd": "true"}))
    text = hive.get(Metrics).render().decode()
    types = dict(re.findall(r"^# TYPE (waggle_\w+) (\w+)$", text, re.MULTILINE))
    created = {name for name in types if name.endswith("_created")}
    assert documented == types.keys() - created


def test_f22_a_blocked_loop_shows_in_health_and_recovers() -> None:
    cells = (declarations.METRICS,)
    hive = Hive(cells, load(cells))
    levels: list[tuple[Level, str]] = []

    async def scenario() -> None:
        loop = cast("looptime.VirtualTimeLoop", asyncio.get_running_loop())
        task = asyncio.create_task(hive.run())
        await asyncio.sleep(1.4)
        for jump in (30.0, 0.0):
            loop.advance(jump)
            await asyncio.sleep(0.6)
            status = hive.health.scope("metrics").status
            assert status is not None
            levels.append((status.level, status.message))
        hive.shutdown()
        await task

    looptime.run(scenario())
    (blocked, message), (recovered, _) = levels
    assert blocked is Level.DEGRADED
    assert message == "the event loop was blocked for 29.4 s"
    assert recovered is Level.OK
    value = hive.get(Metrics).registry.get_sample_value
    assert value("waggle_event_loop_lag_seconds_bucket", {"le": "+Inf"}) == 3
    assert value("waggle_event_loop_lag_seconds_bucket", {"le": "10.0"}) == 2
