"""``waggle history``: entries as a table, lines and documents; targets, times, an agent without one."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

import msgspec
import pytest

from cells.api.history import FieldChangeItem, HistoryItem
from cells.api.resource import ApiStream
from cells.history.api import history_resource
from cells.history.log import HistoryLog
from tests.support.api import MadeUp, serving
from waggle import output
from waggle.__main__ import main
from waggle.commands.history import OFF, _since
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
def test_an_invalid_time_is_wrong_usage(text: str, capsys: pytest.CaptureFixture[str]) -> None:
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


def follow(asked: list[Mapping[str, str]], *items: HistoryItem) -> ApiStream:
    """The path of new entries, which ends behind these; ``asked`` gets each query."""

    async def read(query: Mapping[str, str]) -> AsyncGenerator[Sequence[HistoryItem]]:
        asked.append(dict(query))
        yield [item for item in items if query.get("about") in (None, item.name)]

    return ApiStream(path="/v1/history/follow", parameters=("about", "after"), read=read)


def test_new_changes_are_lines_behind_the_others_until_the_agent_stops(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log = HistoryLog("n", 100)
    log.add(ENTRIES[0])
    later, other = (HistoryItem(event_time=NOW, type="ADDED", kind="Service", name=name)
                    for name in ("shop/web", "shop/api"))  # fmt: skip
    path = tmp_path / "agent.sock"
    asked: list[Mapping[str, str]] = []
    with serving(path, MadeUp(), history_resource(log), follow(asked, later, other)):
        watch = ["history", "--watch", "--socket", str(path)]
        assert main(watch) == 1
        captured = capsys.readouterr()
        subjects = [line.split()[3] for line in captured.out.splitlines()]
        assert subjects == ["Service/shop/web", "Service/shop/web", "Service/shop/api"]
        assert captured.err == "waggle history: the agent has closed the connection\n"
        assert main([*watch, "shop/web", "-o", "jsonl"]) == 1
        lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
        assert [(line["type"], line["name"]) for line in lines] == [
            ("MODIFIED", "shop/web"),
            ("ADDED", "shop/web"),
        ]
        assert main([*watch, "--since", "1s"]) == 1
    assert asked == [{"after": "1"}, {"about": "shop/web", "after": "1"}, {}], (
        "no change between the two requests is lost"
    )


def test_a_target_without_changes_is_named_before_it_is_followed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """It may be a typing error, and it may have its first change later."""
    log = HistoryLog("n", 100)
    log.add(ENTRIES[0])
    path = tmp_path / "agent.sock"
    later = HistoryItem(event_time=NOW, type="ADDED", kind="Service", name="shop/wib")
    with serving(path, MadeUp(), history_resource(log), follow([], later)):
        assert main(["history", "--watch", "shop/wib", "--socket", str(path)]) == 1
    captured = capsys.readouterr()
    assert "Service/shop/wib" in captured.out
    assert "no change of shop/wib is among" in captured.err
    assert "did you mean shop/web?" in captured.err


def test_a_document_has_no_end_to_wait_for(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["history", "--watch", "-o", "json"]) == 2
    assert "--watch: with -o table, wide, jsonl only" in capsys.readouterr().err


def test_a_time_without_a_change_and_a_document_of_what_is_not_found(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert waggle(tmp_path, "--since", (NOW + timedelta(days=1)).isoformat()) == 0
    assert capsys.readouterr().err == "waggle history: no change in that time\n"
    assert waggle(tmp_path, "shop/none", "-o", "json") == 4
    assert json.loads(capsys.readouterr().out)["errors"][0]["code"] == "NotFound"


def test_a_duration_is_one_before_now() -> None:
    for text, seconds in (("90s", 90), ("15m", 900), ("2h", 7200), ("3d", 259_200)):
        before = datetime.now(UTC)
        since = _since(text)
        duration = timedelta(seconds=seconds)
        assert before <= since + duration <= datetime.now(UTC)
    assert _since("999999999d") == datetime.min.replace(tzinfo=UTC)
    assert _since("2026-01-01T00:00:00+02:00").isoformat() == "2026-01-01T00:00:00+02:00"
    assert _since("2026-01-01T00:00:00").tzinfo is not None


@pytest.mark.parametrize("value", ["0", "-1", "many"])
def test_a_limit_is_a_positive_number(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], value: str
) -> None:
    with pytest.raises(SystemExit) as raised:
        waggle(tmp_path, f"--limit={value}")
    assert raised.value.code == output.EXIT_USAGE
    assert "--limit" in capsys.readouterr().err
