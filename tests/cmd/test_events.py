"""``waggle events``: the Events that an agent reports, as a table."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from cells.report.event_items import event_item
from reconcilers.model import ObjectRef
from reconcilers.report.events import EventCorrelator, Occurrence, Regarding
from reconcilers.target.write_spread import WriteSpread
from tests.cells.api.test_client import answering, http
from waggle.__main__ import main


def item(type_: str, reason: str) -> dict[str, Any]:
    return {
        "node": "n", "type": type_, "reason": reason, "object": {"kind": "Node", "name": "n"},
        "message": "the session main/tor-1 is down", "count": 2,
        "firstTime": "2026-01-01T00:00:00Z", "lastTime": "2026-01-01T00:01:00Z",
    }  # fmt: skip


@pytest.mark.parametrize(("words", "rows"), [("", 2), ("--warnings", 1)])
def test_events_are_a_table(
    words: str, rows: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    items = [item("Normal", "SessionEstablished"), item("Warning", "SessionDown")]
    answer = {"apiVersion": "cli.waggle/v1", "kind": "EventList", "errors": [], "items": items}
    answer["generatedAt"] = "2026-01-01T00:01:30Z"
    with answering(tmp_path / "api", http(answer)):
        assert main(["events", *words.split(), "--socket", str(tmp_path / "api")]) == 0
    title, *lines = capsys.readouterr().out.splitlines()
    assert title.split() == ["LAST-SEEN", "TYPE", "REASON", "OBJECT", "COUNT", "MESSAGE"]
    assert len(lines) == rows
    assert lines[-1].split() == [
        *("30s", "Warning", "SessionDown", "Node/n", "2"),
        *("the", "session", "main/tor-1", "is", "down"),
    ]


def test_an_event_that_recurs_is_listed_last_with_its_number() -> None:
    events = EventCorrelator("n", WriteSpread(lambda: 0.0, lambda: 1))
    node = Regarding(ObjectRef("Node", "", "n"), "v1")
    down = Occurrence(node, "Warning", "SessionDown", "BGPSession", "down")
    up = Occurrence(node, "Normal", "SessionEstablished", "BGPSession", "up")
    for at, occurrence in enumerate((down, up, down)):
        events.record(occurrence, float(at), 1_767_225_600.0 + at)
    first, last = (event_item("n", recorded) for recorded in events.recorded())
    assert (first.reason, first.count) == ("SessionEstablished", 1)
    assert (last.reason, last.count, last.first_time.second, last.last_time.second) == (
        *("SessionDown", 2),
        *(0, 2),
    )


@pytest.mark.parametrize(
    ("words", "text"),
    [("", "no Events since"), ("--warnings", "no Events of type Warning since")],
)
def test_a_sentence_about_warnings_is_none_about_other_events(
    words: str, text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    items = [item("Normal", "SessionEstablished")] if words else []
    answer = {"apiVersion": "cli.waggle/v1", "kind": "EventList", "errors": [], "items": items}
    answer["generatedAt"] = "2026-01-01T00:01:30Z"
    with answering(tmp_path / "api", http(answer)):
        assert main(["events", *words.split(), "--socket", str(tmp_path / "api")]) == 0
    assert capsys.readouterr().err == f"waggle events: {text} the agent started\n"
