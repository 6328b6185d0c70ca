"""What the actions of ``waggle router`` send, and what they print of the answer."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.cells.api.test_client import answering, http
from waggle.__main__ import main

DONE: dict[str, Any] = {"apiVersion": "v1", "items": [], "errors": []}


@pytest.fixture(name="path")
def path_of_socket(tmp_path: Path) -> Path:
    return tmp_path / "api"


@pytest.mark.parametrize(
    ("words", "target", "body"),
    [
        (
            "announce 10.0.0.0/24 10.0.1.0/24",
            "announce",
            {"prefixes": ["10.0.0.0/24", "10.0.1.0/24"]}
            | {"communities": [], "largeCommunities": []},
        ),
        (
            (
                "announce 10.0.0.0/24 --next-hop 192.0.2.9 --med 0 --local-preference 200 "
                "--community 65000:1 --community no-export --large-community 65000:1:2"
            ),
            "announce",
            {
                "prefixes": ["10.0.0.0/24"],
                "nextHop": "192.0.2.9",
                "med": 0,
                "localPreference": 200,
                "communities": ["65000:1", "no-export"],
                "largeCommunities": ["65000:1:2"],
            },
        ),
        ("withdraw 10.0.0.0/24", "withdraw", {"prefixes": ["10.0.0.0/24"]}),
        ("clear tor-1", "clear", {"peer": "tor-1"}),
        ("clear tor-1 --message bye", "clear", {"peer": "tor-1", "message": "bye"}),
        ("shutdown tor-1 --message bye", "shutdown", {"peer": "tor-1", "message": "bye"}),
        ("enable tor-1", "enable", {"peer": "tor-1"}),
        ("clear tor-1 --soft out", "clear", {"peer": "tor-1", "soft": "out"}),
        (
            "clear tor-1 --soft in --family ipv4-unicast",
            "clear",
            {"peer": "tor-1", "soft": "in", "family": "ipv4-unicast"},
        ),
    ],
)
def test_an_action_sends_its_arguments(
    words: str, target: str, body: dict[str, Any], path: Path
) -> None:
    with answering(path, http(DONE)) as questions:
        assert main(["router", *words.split(), "--socket", str(path)]) == 0
    head, _, sent = questions[0].partition(b"\r\n\r\n")
    assert head.startswith(f"POST /v1/{target} ".encode())
    assert json.loads(sent) == body


def test_a_prefix_that_the_router_does_not_originate_is_exit_4(
    path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with answering(path, http({**DONE, "items": [{"absent": ["10.0.0.0/24"]}]})):
        assert main(["router", "withdraw", "10.0.0.0/24", "--socket", str(path)]) == 4
    text = "waggle router withdraw: 10.0.0.0/24: the router does not originate it\n"
    assert capsys.readouterr().err == text


@pytest.mark.parametrize(
    ("code", "status", "exit_status"),
    [
        ("NotFound", "404 Not Found", 4),
        ("BadRequest", "400 Bad Request", 2),
        ("Busy", "503 Busy", 1),
    ],
)
def test_an_action_that_is_refused(
    code: str, status: str, exit_status: int, path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    answer = {**DONE, "errors": [{"code": code, "message": "no peer is called tor-9"}]}
    with answering(path, http(answer, status)):
        assert main(["router", "clear", "tor-9", "--socket", str(path)]) == exit_status
    assert capsys.readouterr().err == "waggle router clear: no peer is called tor-9\n"


@pytest.mark.parametrize(("done", "status"), [(True, 0), (False, 1)])
def test_what_a_clear_has_done_is_a_line(
    done: bool, status: int, path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    item = {"node": "192.0.2.1", "name": "tor-1", "done": done, "message": "as it is"}
    with answering(path, http({**DONE, "items": [item]})):
        assert main(["router", "clear", "tor-1", "--socket", str(path)]) == status
    assert capsys.readouterr().out == "tor-1: as it is\n"


def test_the_stations_are_a_table(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    now = datetime(2026, 1, 1, 12, tzinfo=UTC)
    station = {
        "node": "192.0.2.1",
        "name": "one",
        "address": "192.0.2.7",
        "port": 11019,
        "connected": True,
        "synchronized": True,
        "sinceTime": (now - timedelta(seconds=12)).isoformat(),
        "octetsSent": 1000,
        "queuedOctets": 7,
        "connections": 2,
    }
    dumping = {**station, "name": "two", "synchronized": False}
    down = {**station, "name": "three", "connected": False, "reason": "refused"}
    answer = {
        "apiVersion": "v1",
        "kind": "CollectorList",
        "generatedAt": now.isoformat(),
        "items": [station, dumping, down],
        "errors": [],
    }
    with answering(path, http(answer)):
        assert main(["router", "collectors", "-o", "wide", "--socket", str(path)]) == 0
    rows = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert rows[0] == [
        *("NODE", "COLLECTOR", "ADDRESS", "PORT", "STATE", "SINCE", "OCTETS", "QUEUED"),
        *("CONNECTIONS", "REASON"),
    ]
    end = ["12s", "1000", "7", "2"]
    assert rows[1] == ["192.0.2.1", "one", "192.0.2.7", "11019", "synchronized", *end, "-"]
    assert rows[2] == ["192.0.2.1", "two", "192.0.2.7", "11019", "table", "dump", *end, "-"]
    assert rows[3] == ["192.0.2.1", "three", "192.0.2.7", "11019", "down", *end, "refused"]
    path.unlink()
    with answering(path, http(answer)):
        assert main(["router", "collectors", "-o", "json", "--socket", str(path)]) == 0
    assert json.loads(capsys.readouterr().out)["items"] == [station, dumping, down]


@pytest.mark.parametrize(
    ("flags", "sentence"),
    [
        ("--soft in --message x", "--message: not with --soft, which ends no session"),
        ("--soft out --family ipv4-unicast", "--family: with --soft in only"),
        ("--family ipv4-unicast", "--family: with --soft in only"),
    ],
)
def test_a_flag_of_clear_that_would_have_no_effect_is_wrong_usage(
    flags: str, sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["router", "clear", "tor-1", *flags.split(), "--socket", "s"]) == 2
    assert capsys.readouterr().err.startswith(f"waggle router clear: {sentence}; ")
