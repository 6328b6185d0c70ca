"""Metrics: the documented ones are there, and a blocked loop is noticed."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Sequence
from pathlib import Path
from typing import cast

from prometheus_client.core import Metric

from cells import declarations
from cells.dialects.cell import DialectCell
from cells.hive import Cell, Level, load
from cells.hive.hive import Hive
from cells.observability.exposition import exposed_name
from cells.observability.metrics import Metrics
from tests.support import looptime
from waggle_agent.__main__ import CELLS as AGENT_CELLS
from waggle_operator.__main__ import CELLS as OPERATOR_CELLS

PAGE = Path(__file__).parents[3] / "docs" / "metrics.md"
ROW = re.compile(r"^\| `(\w+)` \| (\w+) \| ([\w, ]*)\|", re.MULTILINE)

Described = dict[str, tuple[str, set[str]]]
"""Types and labels by name."""


def documented() -> Described:
    rows = ROW.findall(PAGE.read_text())
    return {name: (kind, set(re.findall(r"\w+", labels))) for name, kind, labels in rows}


def served(cells: Sequence[Cell], **flags: object) -> Described:
    """What a program serves: its metrics with all cells on."""
    dialects = [cell.name for cell in cells if isinstance(cell, DialectCell)]
    switches = {"disable_cell": ["logging"], "enable_cell": dialects}
    hive = Hive(cells, load(cells, flags={**switches, **flags}))
    found: Described = {}
    for metric in filter(None, hive.get(Metrics).collect()):
        name = exposed_name(metric)
        assert name not in found, "a name is one family"
        found[name] = (metric.type, labels_of(metric))
    return found


def labels_of(metric: Metric) -> set[str]:
    names = getattr(metric, "_labelnames", None)
    if names is None:
        names = {name for sample in metric.samples for name in sample.labels} - {"le"}
    return set(names)


def test_every_metric_is_documented_with_its_type_and_labels() -> None:
    source = {"--kubeconfig": "in-cluster", "--otlp-endpoint": "http://127.0.0.1:4318"}
    fib = {"--fib": "true", "--fib-socket": "fib.sock"}
    compat = {"--compat-metrics": "true"}
    agent = served(AGENT_CELLS, **source, **fib, **compat, **{"--bfd": "true"})
    operator = served(OPERATOR_CELLS, **source, **compat, **{"--webhook": "9443"})
    for name in agent.keys() & operator.keys():
        assert agent[name][0] == operator[name][0]
    assert {**operator, **agent} == documented()


def test_without_the_option_no_metric_has_another_program_s_name() -> None:
    names = {*served(AGENT_CELLS, **{"--bfd": "true"}), *served(OPERATOR_CELLS)}
    assert not [name for name in names if not name.startswith(("waggle_", "process_"))]


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
