"""``waggle trace`` against an agent with made-up spans, and against an agent that keeps none."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from cells.api.model import SpanItem
from cells.api.resource import ApiResource, NotFoundError, Query
from tests.support.api import MadeUp, serving
from waggle.__main__ import main

BEGIN = datetime(2026, 1, 1, tzinfo=UTC)


def span(
    number: int,
    name: str,
    parent: int | None = None,
    attributes: dict[str, object] | None = None,
) -> SpanItem:
    return SpanItem(
        name=name,
        trace_id="1",
        span_id=str(number),
        parent_span_id=None if parent is None else str(parent),
        start_time=BEGIN + timedelta(milliseconds=number),
        duration_seconds=0.00025,
        attributes=attributes or {},
    )


SPANS = [
    span(0, "resource.event", None, {"waggle.object": "shop/web\x1b[31m"}),
    span(1, "statedb.commit", 0),
    span(2, "intent.round", 0, {"waggle.prefixes": ["10.0.0.0/24", "10.0.1.0/24"]}),
    span(3, "apply.round", 2),
    span(4, "bgp.update.send", 9),
]


def read(query: Query) -> list[SpanItem]:
    if query.get("target") != "10.0.0.0/24":
        raise NotFoundError(f"no change of {query['target']}; the nearest: 10.0.0.0/24")
    return SPANS


SPANS_PATH = ApiResource(path="/v1/spans", kind="SpanList", parameters=("target",), read=read)


def test_the_spans_are_a_tree_in_the_order_of_their_begin(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "agent.sock"
    with serving(path, MadeUp(), SPANS_PATH):
        arguments = ["--socket", str(path)]
        assert main(["trace", "10.0.0.7/24", *arguments]) == 0
        assert capsys.readouterr().out.splitlines() == [
            " AFTER    TOOK  SPAN               TIMELINE             DETAILS",
            "0.00ms  0.25ms  resource.event     =                    object=shop/web\\x1b[31m",
            "1.00ms  0.25ms  +- statedb.commit  ....=                -",
            "2.00ms  0.25ms  +- intent.round    .........=           prefixes=10.0.0.0/24,10.0.1.0/24",
            "3.00ms  0.25ms  +--- apply.round   ..............=      -",
            # Its parent is no longer kept.
            "4.00ms  0.25ms  bgp.update.send    ..................=  -",
        ]
        assert main(["trace", "10.0.0.0/24", "-o", "json", *arguments]) == 0
        items = json.loads(capsys.readouterr().out)["items"]
        assert items[1]["parentSpanID"] == items[0]["spanID"]
        assert main(["trace", "10.9.0.0/24", *arguments]) == 4
        missing = "no change of 10.9.0.0/24; the nearest: 10.0.0.0/24"
        assert capsys.readouterr().err == f"waggle trace: {missing}\n"
        assert main(["trace", "10.9.0.0/24", "-o", "json", *arguments]) == 4
        (error,) = json.loads(capsys.readouterr().out)["errors"]
        assert error == {"code": "NotFound", "message": missing}


def test_an_agent_that_keeps_no_spans_names_the_option_to_set(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "agent.sock"
    with serving(path, MadeUp()):
        assert main(["trace", "10.0.0.0/24", "--socket", str(path)]) == 1
    error = "waggle trace: the agent keeps no spans: start it with --trace-buffer 2000\n"
    assert capsys.readouterr().err == error
