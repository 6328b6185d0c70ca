"""A collector that raises costs a scrape its own metrics alone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

from prometheus_client.core import GaugeMetricFamily
from structlog.testing import capture_logs

from cells.apply.compat_metrics import CompatCollector as OfAgent
from cells.hive import Group, Health, Late, Level
from cells.observability.exposition import Collected
from cells.observability.metrics import Metrics, MetricsCollector
from cells.operator.compat_metrics import CompatCollector as OfOperator
from cells.options import MetricsOptions
from reconcilers.dialect import CompatMetric, CompatMetrics, ConditionMetric, Dialect
from reconcilers.sliced_work import finish

if TYPE_CHECKING:
    from cells.hive.jobs import Jobs


class Broken:
    """Yields one metric, then raises while ``broken``."""

    broken = True

    def collect(self) -> Iterator[Collected]:
        yield GaugeMetricFamily("begun", "Before the error.", value=1)
        if self.broken:
            raise KeyError("tor-a")


class Sound:
    def collect(self) -> Iterator[Collected]:
        yield GaugeMetricFamily("sound", "Of another collector.", value=1)


class TwoDialects:
    """Stands for two dialects, the first of which raises whatever it is read for."""

    def __init__(self, name: str) -> None:
        self.name = name

    def read(self, _dialect: object, _context: object) -> Iterable[CompatMetric]:
        if self.name == "broken":
            raise KeyError("tor-a")
        return [CompatMetric(f"{self.name}_up", "gauge", "Up.", (), [((), 1.0)])]

    def each(self, extension: type) -> list[Any]:
        if extension is CompatMetrics:
            return [CompatMetrics(agent=self.read, operator=self.read)]
        return [None] if extension is ConditionMetric and self.name == "broken" else []


def metrics(health: Health, *collectors: MetricsCollector) -> Metrics:
    jobs = cast("Jobs", SimpleNamespace(add=lambda *_: None))
    late: Late[Group[MetricsCollector]] = Late(lambda: Group(collectors))
    late.resolve()
    return Metrics(jobs, health, MetricsOptions(compat=True), late)


def degraded(health: Health) -> dict[str, str]:
    return {
        status.path[-1]: status.message
        for status in health.report()
        if status.level is Level.DEGRADED
    }


DIALECTS = Group([cast("Dialect", TwoDialects("broken")), cast("Dialect", TwoDialects("sound"))])


def test_the_other_collectors_of_a_scrape_are_read() -> None:
    health = Health()
    text = finish(metrics(health, Broken(), Sound()).slices()).decode()
    assert "\nbegun 1.0\n" in text
    assert text.endswith("\nsound 1.0\n")
    assert degraded(health) == {"Broken": "its metrics are missing: KeyError: 'tor-a'"}


def test_an_error_is_logged_once_and_health_recovers() -> None:
    health, broken = Health(), Broken()
    program = metrics(health, broken)
    with capture_logs() as logged:
        for _ in range(3):
            finish(program.slices())
        broken.broken = False
        finish(program.slices())
    assert [(line["event_name"], line["collector"]) for line in logged] == [
        ("metrics.collector_failed", "Broken"),
        ("metrics.collector_recovered", "Broken"),
    ]
    assert list(health.report()) == []


def test_other_dialects_of_an_agent_are_read() -> None:
    nothing = cast(
        "Any",
        SimpleNamespace(
            name="n1", failures={}, problems=Counter(), has_applied=True, is_current=True
        ),
    )
    empty = cast(
        "Any", SimpleNamespace(all=lambda _: (), snapshot=lambda: None, peer_slices=lambda: ())
    )
    intent = cast("Any", SimpleNamespace(instances=empty, peers=empty))
    health = Health()
    program = metrics(health)
    collector = OfAgent(
        empty,
        nothing,
        intent,
        empty,
        nothing,
        DIALECTS,
        loop=nothing,
        apply=nothing,
        log=nothing,
        configuration=nothing,
        metrics=program,
    )
    assert [metric.name for metric in collector.collect() if metric] == ["sound_up"]
    assert degraded(health) == {"broken": "its metrics are missing: KeyError: 'tor-a'"}


def test_other_dialects_of_an_operator_are_read_and_so_is_its_own_state() -> None:
    health = Health()
    program = metrics(health)
    collector = OfOperator(DIALECTS, program, {})
    assert [metric.name for metric in collector.collect() if metric] == ["sound_up"]
    assert degraded(health).keys() == {"broken", "broken conditions"}
