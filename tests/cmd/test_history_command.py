"""``waggle history``: entries as a table, lines and documents; targets, times, an agent without one."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import msgspec
import pytest

from cells.api.history import FieldChangeItem, HistoryItem
from cells.history.api import history_resource
from cells.history.log import HistoryLog
from tests.support.api import MadeUp, serving
from waggle import output
from waggle.__main__ import main
from waggle.commands.history import OFF
from waggle.history import change, line

NOW = datetime.now(UTC)
ENTRIES = (
    HistoryItem(
        event_time=NOW - timedelta(hours=2),
        type="MODIFIED",
        kind="Service",
        name="shop/web",
        changes=(FieldChangeItem(field="spec.type", old="ClusterIP", new="LoadBalancer"),),
    ),
    HistoryItem(
        event_time=NOW - timedelta(minutes=5),
        type="DELETED",
        kind="Route",
        name="198.51.100.10/32",
        changes=(FieldChangeItem(field="med", old="5"),),
        causes=("Service/shop/web",),
    ),
    HistoryItem(
        event_time=NOW,
        type="OCCURRED",
        kind="Session",
        name="main/tor-1",
        address="192.0.2.1",
        message="not Established: \x1b[31mrefused",
        count=3,
    ),
)


def waggle(tmp_path: Path, *words: str) -> int:
    log = HistoryLog("n", 100)
    passed = datetime.now(UTC) - NOW
    for entry in ENTRIES:
        log.add(msgspec.structs.replace(entry, event_time=entry.event_time + passed))
    path = tmp_path / "agent.sock"
    with serving(path, MadeUp(), history_resource(log)):
        return main(["history", *words, "--socket", str(path)])


def test_the_oldest_is_first_with_old_new_and_cause(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert waggle(tmp_path) == output.EXIT_OK
    head, *rows = capsys.readouterr().out.splitlines()
    assert head.split() == ["TIME", "TYPE", "OBJECT", "CHANGE", "CAUSE"]
    service, route, session = (" ".join(row.split()[2:]) for row in rows)
    assert service == "MODIFIED Service/shop/web spec.type: ClusterIP -> LoadBalancer -"
    assert route == "DELETED Route/198.51.100.10/32 - Service/shop/web"
    assert session.startswith(
        "OCCURRED Session/main/tor-1 not Established: \\x1b[31mrefused (3 times)"
    )


@pytest.mark.parametrize(
    ("words", "kinds"),
    [
        (["--since", "10m"], ["Route", "Session"]),
        (["--since", "120s"], ["Session"]),
        (["--since", (NOW - timedelta(hours=3)).isoformat()], ["Service", "Route", "Session"]),
        (["--limit", "1"], ["Session"]),
        (["shop/web"], ["Service", "Route"]),
        (["198.51.100.0/24"], ["Route"]),
        (["192.0.2.1"], ["Session"]),
    ],
)
def test_entries_are_selected(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], words: list[str], kinds: list[str]
) -> None:
    assert waggle(tmp_path, *words, "-o", "jsonl") == output.EXIT_OK
    items = [json.loads(text) for text in capsys.readouterr().out.splitlines()]
    assert [item["kind"] for item in items] == kinds


def test_an_unknown_name_is_answered_with_the_nearest_one(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert waggle(tmp_path, "shop/wib") == output.EXIT_NOT_FOUND
    assert capsys.readouterr().err == (
        "waggle history: no change of shop/wib is among the last 3 entries (did you mean shop/web?)\n"
    )


def test_an_agent_without_history_names_the_flag(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "agent.sock"
    with serving(path, MadeUp()):
        assert main(["history", "--socket", str(path)]) == output.EXIT_ERROR
    assert capsys.readouterr().err == f"waggle history: {OFF}\n"


@pytest.mark.parametrize("text", ["yesterday", "5", "-1m", "1w", "2026-13-01"])
def test_a_time_that_is_none_is_wrong_usage(text: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["history", f"--since={text}"])
    assert ended.value.code == output.EXIT_USAGE
    assert text in capsys.readouterr().err


def test_changes_that_are_only_counted_are_a_number_and_a_sentence() -> None:
    item = {
        "eventTime": NOW.isoformat(),
        "type": "OCCURRED",
        "kind": "Route",
        "message": "changes that are counted only",
        "count": 500,
    }
    assert change(item) == "500 changes that are counted only"
    assert line(item).endswith("OCCURRED  Route  500 changes that are counted only")
