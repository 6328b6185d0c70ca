"""``waggle metrics``: the samples of an agent, by a part of their names."""

from __future__ import annotations

import json
from pathlib import Path
from typing import cast

import pytest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily

from cells.observability.metrics import Metrics
from cells.options import NodeOptions
from cells.serve.metrics import metrics_resource
from cells.state.node import ThisNode
from tests.support.api import MadeUp, serving
from waggle.__main__ import main


class SomeMetrics:
    """A gauge with text that must not reach a terminal, a counter and a histogram."""

    def collect(self) -> list[object]:
        up = GaugeMetricFamily("waggle_bgp_session_up", "1 while Established.", labels=["peer"])
        up.add_metric(["tor\x1b[31m"], 1)
        writes = CounterMetricFamily("waggle_writes", "Writes.", value=1234567)
        took = HistogramMetricFamily("waggle_took_seconds", "Time.", labels=[])
        took.add_metric([], [("0.5", 1), ("+Inf", 2)], 1.25)
        return [up, None, writes, took]


(RESOURCE,) = metrics_resource(
    cast("Metrics", SomeMetrics()), ThisNode(NodeOptions(name="worker-1"))
)


@pytest.fixture
def socket(tmp_path: Path) -> Path:
    return tmp_path / "agent.sock"


def test_a_table_has_a_line_for_each_sample_without_buckets(
    socket: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with serving(socket, MadeUp(), RESOURCE):
        assert main(["metrics", "--socket", str(socket)]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "NAME                       LABELS              VALUE",
        "waggle_bgp_session_up      peer=tor\\x1b[31m        1",
        "waggle_writes_total        -                 1234567",
        "waggle_took_seconds_count  -                       2",
        "waggle_took_seconds_sum    -                    1.25",
    ]


def test_a_part_of_a_name_selects(socket: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with serving(socket, MadeUp(), RESOURCE):
        assert main(["metrics", "took", "-o", "json", "--socket", str(socket)]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert answer["kind"] == "MetricList"
    names = [item["name"] for item in answer["items"]]
    assert names == ["waggle_took_seconds_bucket"] * 2 + [
        "waggle_took_seconds_count",
        "waggle_took_seconds_sum",
    ]
    assert answer["items"][0] == {
        "node": "worker-1",
        "name": "waggle_took_seconds_bucket",
        "type": "histogram",
        "labels": {"le": "0.5"},
        "value": 1,
        "description": "Time.",
    }


def test_an_unknown_name_has_its_neighbours(
    socket: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with serving(socket, MadeUp(), RESOURCE):
        assert main(["metrics", "waggle_bgp_sesion_up", "--socket", str(socket)]) == 4
    error = capsys.readouterr().err
    assert "no metric has 'waggle_bgp_sesion_up' in its name" in error
    assert "similar: waggle_bgp_session_up" in error


def test_an_agent_without_metrics_is_reported(
    socket: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with serving(socket, MadeUp()):
        assert main(["metrics", "--socket", str(socket)]) == 1
    assert "the agent runs without metrics" in capsys.readouterr().err
