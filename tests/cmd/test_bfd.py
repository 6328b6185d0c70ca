"""``waggle bfd`` against an agent with made-up sessions."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from cells.api.model import BfdIntervalsItem, BfdItem
from tests.support.api import MadeUp, serving
from waggle import output
from waggle.__main__ import main

UP = BfdItem(
    node="n",
    instance="default",
    peer="tor-1",
    address="192.0.2.1",
    profile="quick",
    state="Up",
    since_time=datetime.now(UTC) - timedelta(days=3, hours=5, minutes=30),
    remote_state="Up",
    remote_independent=True,
    local_discriminator=7,
    remote_discriminator=9,
    local_intervals=BfdIntervalsItem(
        transmit_seconds=0.3, receive_seconds=0.05, detect_multiplier=3
    ),
    remote_intervals=BfdIntervalsItem(
        transmit_seconds=0.1, receive_seconds=0.5, detect_multiplier=4
    ),
    transmit_interval_seconds=0.5,
    detection_seconds=0.4,
    ups=1,
    packets_sent=120,
    packets_received=130,
    echoes_sent=60,
    echoes_received=59,
    longest_gap_seconds=0.1012,
    lateness_seconds=0.0011,
)
DOWN = BfdItem(
    node="n",
    instance="default",
    peer="tor-2",
    address="fe80::2",
    device="eth1",
    multihop=True,
    state="Down",
    diagnostic="Control Detection Time Expired",
    remote_state="AdminDown",
    remote_diagnostic="Administratively Down",
    problem="no such device",
)


@pytest.fixture(name="path")
def agent(tmp_path: Path) -> Iterator[Path]:
    path = tmp_path / "agent.sock"
    with serving(path, MadeUp(bfd=[DOWN, UP], bfd_problems=["no real time"])):
        yield path


def test_a_session_is_a_line_with_the_states_of_both_ends(
    path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["bfd", "--socket", str(path)]) == output.EXIT_OK
    out = capsys.readouterr().out.splitlines()
    assert out[1].split() == [
        *("n", "tor-1", "192.0.2.1", "Up", "Up", "3d5h", "500ms", "400ms", "single", "-", "-")
    ]
    assert [text.strip() for text in out[2].split("  ")[-2:]] == [
        "Control Detection Time Expired (remote: Administratively Down)",
        "no such device",
    ]
    assert "fe80::2%eth1" in out[2]
    assert "multi" in out[2]


def test_wide_has_what_each_end_asks_for_and_how_well_packets_come(
    path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["bfd", "-o", "wide", "--peer", "tor-1", "--socket", str(path)]) == 0
    titles, row = capsys.readouterr().out.splitlines()
    for title, text in (
        ("LOCAL-INTERVALS", "300ms/50ms x3"),
        ("REMOTE-INTERVALS", "100ms/500ms x4"),
        ("PROFILE", "quick"),
        ("DISCRIMINATORS", "7/9"),
    ):
        assert row[titles.index(f" {title} ") + 1 :].startswith(text)
    assert {"130/120", "59/60"} <= set(row.split())
    assert "101.2ms" in row.split()
    assert "1.1ms" in row.split()


def test_problems_of_the_process_are_named(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main(["bfd", "--socket", str(path)])
    assert capsys.readouterr().err == "waggle bfd: no real time\n"


def test_json_has_the_members_of_the_api(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bfd", "-o", "json", "--peer", "192.0.2.1", "--socket", str(path)]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert (answer["kind"], answer["problems"]) == ("BfdSessionList", ["no real time"])
    (item,) = answer["items"]
    assert item["localIntervals"] == {
        "transmitSeconds": 0.3,
        "receiveSeconds": 0.05,
        "detectMultiplier": 3,
    }
    assert (item["detectionSeconds"], item["remoteIndependent"]) == (0.4, True)


def test_a_peer_without_a_session_is_not_found(
    path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["bfd", "--peer", "tor-3", "--socket", str(path)]) == output.EXIT_NOT_FOUND
    assert "no BFD session of that peer or instance: tor-3" in capsys.readouterr().err


def test_a_peer_that_is_there_without_a_session_is_not_suggested_for_itself(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "agent.sock"
    peers = [{"name": "tor-3", "instance": "default", "address": "192.0.2.3"}]
    with serving(path, MadeUp(peers, bfd=[UP])):
        assert main(["bfd", "--peer", "tor-3", "--socket", str(path)]) == output.EXIT_NOT_FOUND
    assert "did you mean" not in capsys.readouterr().err


def test_no_sessions_are_one_sentence(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "agent.sock"
    with serving(path, MadeUp()):
        assert main(["bfd", "--socket", str(path)]) == output.EXIT_OK
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err == "waggle bfd: no BFD sessions: no peer has BFD settings\n"


def test_a_peer_without_a_session_is_named_with_the_reason_for_none(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "agent.sock"
    with serving(path, MadeUp()):
        assert main(["bfd", "--peer", "tor-3", "--socket", str(path)]) == output.EXIT_NOT_FOUND
    sentence = "no BFD session of that peer or instance: tor-3: no peer has BFD settings"
    assert capsys.readouterr().err == f"waggle bfd: {sentence}\n"
