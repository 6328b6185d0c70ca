"""``waggle watch`` against an agent with changes that a test selects."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Sequence
from datetime import UTC, datetime
from pathlib import Path

import pytest

from cells.api.model import WatchItem
from cells.api.resource import ApiStream, NotFoundError, Query
from tests.support.api import MadeUp, serving
from waggle.__main__ import main

TIME = datetime(2026, 1, 1, 12, 0, 0, 500_000, UTC)
ITEMS = [
    WatchItem(event_time=TIME, type="ADDED", kind="Node", name="n1"),
    WatchItem(event_time=TIME, type="DELETED", kind="Service", namespace="shop", name="w\x1b[2Jb"),
]


def watching(query: Query) -> AsyncGenerator[Sequence[WatchItem]]:
    """Send the items, then end with an error."""
    if "pods" in query["kind"]:
        raise NotFoundError("there is no kind pods (did you mean nodes?)")

    async def items() -> AsyncGenerator[Sequence[WatchItem]]:
        yield ITEMS if query.get("changesOnly") != "true" else ITEMS[1:]
        raise RuntimeError("the source has failed")

    return items()


STREAM = ApiStream(path="/v1/watch", parameters=("kind", "changesOnly"), read=watching)


def test_each_change_is_a_line_and_the_end_has_its_reason(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "s"
    with serving(path, MadeUp(), STREAM):
        assert main(["watch", "nodes", "services", "--socket", str(path)]) == 1
    captured = capsys.readouterr()
    assert captured.out.splitlines() == [
        "2026-01-01T12:00:00.500Z  ADDED     Node  n1",
        "2026-01-01T12:00:00.500Z  DELETED   Service  shop/w\\x1b[2Jb",
    ]
    assert captured.err == "waggle watch: the source has failed\n"


def test_json_is_a_line_for_each_change(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "s"
    with serving(path, MadeUp(), STREAM):
        arguments = ["watch", "nodes", "-o", "json", "--watch-only", "--socket", str(path)]
        assert main(arguments) == 1
    item, end = map(json.loads, capsys.readouterr().out.splitlines())
    assert item == {
        "eventTime": "2026-01-01T12:00:00.500000Z",
        "type": "DELETED",
        "kind": "Service",
        "namespace": "shop",
        "name": "w\x1b[2Jb",
    }
    assert end == {"errors": [{"code": "StreamEnded", "message": "the source has failed"}]}


def test_an_unknown_kind_is_exit_status_4_with_a_suggestion(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "s"
    with serving(path, MadeUp(), STREAM):
        assert main(["watch", "pods", "--socket", str(path)]) == 4
    assert capsys.readouterr().err == (
        "waggle watch: there is no kind pods (did you mean nodes?)\n"
    )


def test_without_an_agent_the_socket_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["watch", "nodes", "--socket", str(tmp_path / "none")]) == 1
    assert "no agent runs here" in capsys.readouterr().err
