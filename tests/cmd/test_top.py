"""``waggle top``: what the screen has at each size, rates of two readings, and lines over a pipe."""

from __future__ import annotations

import contextlib
import json
import re
import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from cells.api.model import ProcessItem
from cells.api.resource import ApiResource
from tests.cmd.terminal import run_in_terminal
from tests.support.api import MadeUp, serving, session_item
from waggle import output
from waggle.__main__ import main
from waggle.tables import text_width
from waggle.top_screen import Reading, lines, size, summary

NOW = datetime.now(UTC)


def process(cpu: float, pid: int = 1) -> dict[str, Any]:
    return {
        "node": "worker-1",
        "version": "1",
        "pid": pid,
        "startTime": (NOW - timedelta(hours=3, minutes=7)).isoformat(),
        "cpuSeconds": cpu,
        "residentOctets": 87_400_000,
    }


def session(name: str, *, up: bool = True, received: int = 0, queued: int = 0) -> dict[str, Any]:
    item = {
        "instance": "main",
        "name": name,
        "address": "192.0.2.1",
        "state": "Established" if up else "Idle",
        "sinceTime": (NOW - timedelta(minutes=5)).isoformat(),
        "updatesReceived": received,
        "updatesSent": 7,
        "queuedOctets": queued,
    }
    if not up:
        return item | {"reason": "connection \x1b[2Jrefused", "retrySeconds": 4.0}
    return item | {"received": [{"family": "ipv4-unicast", "routes": 3}], "advertised": []}


def changes(count: int) -> list[dict[str, Any]]:
    return [
        {"eventTime": NOW.isoformat(), "type": "ADDED", "kind": "Service", "name": f"shop/{n}"}
        for n in range(count)
    ]


BEFORE = Reading(10.0, NOW, process(1.0), [session("tor-1", received=100)], [])
LATER = Reading(
    12.0,
    NOW,
    process(1.5),
    [session("tor-1", received=150, queued=2500), session("tor-2", up=False)],
    changes(50),
)


def test_the_first_line_has_sessions_cpu_memory_and_rates() -> None:
    assert summary(LATER, BEFORE) == (
        "worker-1  1/2 Established  cpu 25%  rss 87M  up 3h7m  updates in 25/s out 0/s  queue 2.5K"
    )


def test_a_restarted_agent_and_a_first_reading_have_no_rates() -> None:
    assert "cpu -" in summary(LATER._replace(process=process(0.1, pid=2)), BEFORE)
    assert "updates" not in summary(BEFORE, BEFORE)


def test_sessions_that_are_down_come_first_with_their_reason() -> None:
    texts = [text for text, _ in lines(LATER, BEFORE, 80, 24)]
    down, up = texts[3:5]
    assert down.split()[:2] == ["tor-2", "Idle"]
    assert "connection \\x1b[2Jrefused (retry in" in down, "not cut off at 80 columns"
    assert up.split() == ["tor-1", "Established", "5m", "25", "0", "2.5K", "3", "0"]


@pytest.mark.parametrize("width", [20, 40, 80, 200])
@pytest.mark.parametrize("height", [1, 3, 6, 24, 60])
@pytest.mark.parametrize("sessions", [0, 1, 500])
def test_a_screen_of_any_size_is_not_exceeded(width: int, height: int, sessions: int) -> None:
    many = [session(f"tor-{n}", up=n % 2 == 0) for n in range(sessions)]
    shown = lines(LATER._replace(sessions=many), BEFORE, width, height)
    assert len(shown) <= height
    assert all(len(text) <= width and text.isprintable() for text, _ in shown)


@pytest.mark.parametrize(
    ("name", "width", "shown"),
    [
        ("t" * 22, 80, "t" * 22),
        ("rack-1-of-the-hall-in-the-west-tor-1", 80, "rack-1-of-~-west-tor-1"),
        ("rack-1-of-the-hall-in-the-west-tor-1", 120, "rack-1-of-the-hall-in-the-west-tor-1"),
        ("t" * 253, 200, "t" * 49 + "~" + "t" * 50),
        ("機架" * 20, 80, "機架機架機~架機架機架"),
    ],
)
def test_a_name_has_more_room_on_a_wide_screen_and_loses_its_middle(
    name: str, width: int, shown: str
) -> None:
    reading = BEFORE._replace(sessions=[session(name)])
    texts = [text for text, _ in lines(reading, reading, width, 24)]
    (line,) = (text for text in texts if "Established " in text and not text.startswith("worker"))
    assert line.startswith(f"{shown.strip()} ")
    assert text_width(line) <= width


def test_columns_stay_apart_with_a_full_table() -> None:
    full = [{"family": "ipv4-unicast", "routes": 1_024_000}]
    item = session("tor-1") | {"received": full, "advertised": full}
    reading = BEFORE._replace(sessions=[item])
    texts = [text for text, _ in lines(reading, reading, 80, 24)]
    (line,) = (text for text in texts if text.startswith("tor-1"))
    assert line.split()[-3:] == ["0", "1024000", "1024000"]


def test_more_sessions_than_fit_are_counted_and_changes_keep_their_place() -> None:
    many = [session(f"tor-{n}") for n in range(500)]
    texts = [text for text, _ in lines(LATER._replace(sessions=many), BEFORE, 80, 24)]
    (more,) = (text for text in texts if text.startswith("... "))
    listed = sum(text.startswith("tor-") for text in texts)
    assert more == f"... {500 - listed} more sessions"
    assert sum("Service/shop/" in text for text in texts) >= 5


def test_what_is_wrong_with_the_agent_is_on_the_screen() -> None:
    assert lines(LATER, BEFORE, 80, 24, "no agent runs here")[1] == ("no agent runs here", "red")


@pytest.mark.parametrize(
    ("octets", "text"), [(0, "0"), (999, "999"), (1500, "1.5K"), (87e6, "87M"), (3e15, "3000T")]
)
def test_octets_have_a_unit(octets: float, text: str) -> None:
    assert size(octets) == text


@contextlib.contextmanager
def agent_with_a_session(tmp_path: Path) -> Iterator[str]:
    """Serve one session that is Established; yields the path of the socket."""
    peer = session_item(
        node="n", instance="main", name="tor-1", state="Established", since_time=NOW, families=[]
    )
    item = ProcessItem(
        node="n", version="1", pid=1, start_time=NOW, cpu_seconds=1.0, resident_octets=87_000_000
    )
    path = tmp_path / "agent.sock"
    own = ApiResource(path="/v1/process", kind="ProcessList", read=lambda _: [item])
    with serving(path, MadeUp([peer]), own):
        yield str(path)


@pytest.mark.program
@pytest.mark.parametrize(
    ("term", "screen"), [("xterm", True), ("vt100", True), ("vt52", True), ("unheard-of", False)]
)
def test_a_terminal_without_colours_or_that_is_not_known(
    term: str, screen: bool, tmp_path: Path
) -> None:
    with agent_with_a_session(tmp_path) as socket:
        words = ["top", "--interval", "0.01", "--count", "2", "--socket", socket]
        command = ["env", f"TERM={term}", "NO_COLOR=1", sys.executable, "-m", "waggle", *words]
        shown = run_in_terminal(command, columns=80)
    assert shown.status == 0, shown.text
    assert "1/1 Established" in shown.text
    assert ("\x1b" in shown.text) is screen
    assert not re.search(r"\x1b\[3[12]m", shown.text)


def test_over_a_pipe_each_reading_is_a_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with agent_with_a_session(tmp_path) as socket:
        words = ["top", "--interval", "0.01", "--count", "2", "--socket", socket]
        assert main(words) == output.EXIT_OK
    printed = capsys.readouterr()
    assert [text.split("  ")[:2] for text in printed.out.splitlines()] == [
        ["n", "1/1 Established"]
    ] * 2
    assert printed.err == ""


def test_an_unknown_peer_ends_it_with_the_nearest_name(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with agent_with_a_session(tmp_path) as socket:
        words = ["top", "--interval", "0.01", "--count", "1", "--socket", socket, "--peer", "tor-2"]
        assert main(words) == output.EXIT_NOT_FOUND
    printed = capsys.readouterr()
    assert printed.out == ""
    sentence = "no peer is called tor-2 (did you mean tor-1?)"
    assert printed.err == f"waggle top: {sentence}\n"


def test_without_an_agent_it_ends(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["top", "--socket", str(tmp_path / "none")]) == output.EXIT_ERROR
    assert "no agent runs here" in capsys.readouterr().err


def test_one_reading_is_an_answer(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with agent_with_a_session(tmp_path) as socket:
        assert main(["top", "-o", "json", "--socket", socket]) == output.EXIT_OK
        (item,) = json.loads(capsys.readouterr().out)["items"]
        assert (
            main(["top", "-o", "jsonpath={.items[0].sessions[*].state}", "--socket", socket]) == 0
        )
        assert capsys.readouterr().out == "Established"
    assert (item["node"], item["process"]["residentOctets"]) == ("n", 87_000_000)
    assert [session["name"] for session in item["sessions"]] == ["tor-1"]
    assert item["changes"] == []


def test_an_answer_has_one_reading_and_the_error_of_an_unknown_peer(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with agent_with_a_session(tmp_path) as socket:
        words = ["top", "-o", "json", "--socket", socket]
        assert main([*words, "--count", "2"]) == output.EXIT_USAGE
        printed = capsys.readouterr()
        assert printed.out == ""
        sentence = "--count: with -o table only, other formats have one reading"
        assert printed.err == f"waggle top: {sentence}\n"
        assert main([*words, "--peer", "tor-2"]) == output.EXIT_NOT_FOUND
    (error,) = json.loads(capsys.readouterr().out)["errors"]
    assert error["code"] == "NotFound"
    assert error["message"].endswith("tor-2 (did you mean tor-1?)")
