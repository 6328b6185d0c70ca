"""``waggle peers`` against an agent with made-up sessions."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import msgspec
import pytest

from cells.api.model import FamilyCount
from tests.support.api import MadeUp, serving, session_item
from waggle import output, sessions
from waggle.__main__ import main


def counts(ipv4: int, ipv6: int) -> list[FamilyCount]:
    return [
        FamilyCount(family="ipv4-unicast", routes=ipv4),
        FamilyCount(family="ipv6-unicast", routes=ipv6),
    ]


UP = session_item(
    node="node-a",
    instance="default",
    name="tor-1",
    address="192.0.2.1",
    local_asn=65000,
    peer_asn=65001,
    state="Established",
    since_time=datetime.now(UTC) - timedelta(days=3, hours=5, minutes=30),
    bfd="Up",
    families=["ipv4-unicast", "ipv6-unicast"],
    received=[
        FamilyCount(family="ipv4-unicast", routes=3),
        FamilyCount(family="ipv6-unicast", routes=0),
    ],
    advertised=[
        FamilyCount(family="ipv4-unicast", routes=12),
        FamilyCount(family="ipv6-unicast", routes=1),
    ],
    peer_router_id="192.0.2.1",
    hold_seconds=90,
    keepalive_seconds=30,
    messages_received=7,
    messages_sent=9,
    flaps=0,
)
DOWN = session_item(
    node="node-a",
    instance="default",
    name="tor-2",
    address="192.0.2.2",
    local_asn=65000,
    peer_asn=65002,
    state="Active",
    families=["ipv4-unicast"],
    reason="connection refused",
    retry_seconds=12,
    last_error="connection \x1b[31mrefused",
)


@pytest.fixture(name="path")
def agent(tmp_path: Path) -> Iterator[Path]:
    path = tmp_path / "agent.sock"
    with serving(path, MadeUp([UP, DOWN])):
        yield path


def test_the_table_has_the_documented_columns(
    path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["peers", "--socket", str(path)]) == 0
    lines = [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()]
    assert lines == [
        "NODE PEER ADDRESS LOCAL-AS PEER-AS STATE SINCE BFD FAMILIES RECV SENT REASON",
        "node-a tor-1 192.0.2.1 65000 65001 Established 3d5h Up v4,v6 3,0 12,1 -",
        "node-a tor-2 192.0.2.2 65000 65002 Active - - v4 - - connection refused (retry in 12s)",
    ]


@pytest.mark.parametrize(
    ("seconds", "reason", "column"),
    [
        (75.2, "connection refused (retry in 1m16s)", "1m16s"),
        (0.1, "connection refused (retry in 1s)", "1s"),
        (0.0, "connection refused (retry now)", "now"),
        (None, "connection refused", "-"),
    ],
)
def test_a_countdown_does_not_stand_at_0(seconds: float | None, reason: str, column: str) -> None:
    item = msgspec.to_builtins(DOWN | {"retrySeconds": seconds})
    columns = sessions.columns(datetime.now(UTC))
    cells = output.row(columns, item)
    titles = [column.title for column in columns]
    assert cells[titles.index("REASON")] == reason
    assert cells[titles.index("NEXT-RETRY")] == column


def test_wide_adds_columns_and_escapes_texts_of_peers(
    path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["peers", "-o", "wide", "--socket", str(path)]) == 0
    out = capsys.readouterr().out
    for title in ("ROUTER-ID", "HOLD/KA", "MSG-IN/OUT", "FLAPS", "LAST-ERROR", "NEXT-RETRY"):
        assert title in out.splitlines()[0]
    assert "90/30" in out
    assert "7/9" in out
    assert "connection \\x1b[31mrefused" in out


def test_a_peer_that_does_not_get_all_routes_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "agent.sock"
    some = [
        FamilyCount(family="ipv4-unicast", routes=12, left_out=2, reason="there is no next hop"),
        FamilyCount(family="ipv6-unicast", routes=1, left_out=1, reason="they do not fit"),
    ]
    with serving(path, MadeUp([UP | {"advertised": some}, UP | {"name": "tor-3"}, DOWN])):
        assert main(["peers", "--socket", str(path)]) == 0
        shown = capsys.readouterr()
        assert " 12,1 " in shown.out
        first = "tor-1: 2 ipv4-unicast prefixes are not advertised: there is no next hop\n"
        sentence = "tor-1: 1 ipv6-unicast prefix is not advertised: they do not fit\n"
        assert shown.err == f"waggle peers: {first}waggle peers: {sentence}"
        assert main(["peers", "-o", "json", "--socket", str(path)]) == 0
        shown = capsys.readouterr()
        counts = {p["name"]: p.get("advertised", []) for p in json.loads(shown.out)["items"]}
        assert [count.get("leftOut") for count in counts["tor-1"]] == [2, 1]
        assert [count.get("leftOut") for count in counts["tor-3"]] == [None, None]
        assert shown.err == ""
        # The list of advertised routes has it, too; also where nothing is.
        assert main(["routes", "advertised", "--socket", str(path)]) == 0
        assert capsys.readouterr().err.endswith(f"waggle routes: {sentence}")
        assert main(["routes", "received", "--socket", str(path)]) == 0
        assert "do not fit" not in capsys.readouterr().err


def test_json_is_the_envelope_without_unknown_members(
    path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["peers", "-o", "json", "--socket", str(path)]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert answer["apiVersion"] == "cli.waggle/v1"
    assert answer["kind"] == "PeerList"
    up, down = answer["items"]
    assert (up["localASN"], up["peerASN"]) == (65000, 65001)
    assert up["advertised"] == [
        {"family": "ipv4-unicast", "routes": 12},
        {"family": "ipv6-unicast", "routes": 1},
    ]
    assert "advertised" not in down
    assert "received" not in down
    assert "sinceTime" not in down
    assert down["reason"]


def test_a_peer_is_selected_by_name_or_address(
    path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("tor-2", "192.0.2.2"):
        assert main(["peers", "--peer", name, "--socket", str(path), "-o", "jsonl"]) == 0
        assert json.loads(capsys.readouterr().out)["name"] == "tor-2"


def test_sessions_are_in_the_order_of_their_instances_and_addresses(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    ends = [("b", "192.0.2.9"), ("a", "2001:db8::1"), ("a", "192.0.2.10"), ("a", "192.0.2.9")]
    items = [
        {**DOWN, "instance": instance, "address": address, "name": f"{instance} {address}"}
        for instance, address in ends
    ]
    with serving(tmp_path / "agent.sock", MadeUp(items)):
        assert main(["peers", "-o", "json", "--socket", str(tmp_path / "agent.sock")]) == 0
    found = [item["name"] for item in json.loads(capsys.readouterr().out)["items"]]
    assert found == ["a 192.0.2.9", "a 192.0.2.10", "a 2001:db8::1", "b 192.0.2.9"]


def test_an_unknown_peer_is_exit_4(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["peers", "--peer", "tor-9", "--socket", str(path)]) == 4
    captured = capsys.readouterr()
    assert captured.out == ""
    text = "waggle peers: no peer is called tor-9 (did you mean tor-2?)\n"
    assert captured.err == text
    for form in ("json", "yaml", "jsonl"):
        assert main(["peers", "--peer", "tor-9", "--socket", str(path), "-o", form]) == 4
        assert "no peer is called tor-9" in capsys.readouterr().out
    assert main(["peers", "--peer", "tor-9", "--socket", str(path), "-o", "json"]) == 4
    answer = json.loads(capsys.readouterr().out)
    assert answer["items"] == []
    assert [error["code"] for error in answer["errors"]] == ["NotFound"]


def test_a_peer_of_another_instance_is_not_selected(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "agent.sock"
    with serving(path, MadeUp([UP, {**DOWN, "instance": "red", "name": "leaf-1"}])):
        words = ["peers", "--socket", str(path), "--instance", "red", "--peer"]
        assert main([*words, "tor-1"]) == 4
        text = "waggle peers: no peer is called tor-1 in the instance red\n"
        assert capsys.readouterr().err == text
        assert main([*words, "leaf-2"]) == 4
        near = "no peer is called leaf-2 in the instance red (did you mean leaf-1?)\n"
        assert capsys.readouterr().err == f"waggle peers: {near}"


def test_an_instance_without_peers_exists(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "agent.sock"
    with serving(path, MadeUp([UP], instances=["red"])):
        words = ["peers", "--socket", str(path), "--instance"]
        assert main([*words, "red"]) == 0
        text = "waggle peers: the instance red has no peers\n"
        assert capsys.readouterr().err == text
        assert main([*words, "red", "-o", "json"]) == 0
        assert json.loads(capsys.readouterr().out)["errors"] == []
        assert main([*words, "red", "--peer", "tor-1"]) == 4
        text = "waggle peers: no peer is called tor-1 in the instance red\n"
        assert capsys.readouterr().err == text
        assert main([*words, "rad"]) == 4
        assert capsys.readouterr().err == "waggle peers: no instance is called rad\n"


def test_no_peers_are_one_sentence_on_stderr(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "agent.sock"
    with serving(path, MadeUp()):
        assert main(["peers", "--socket", str(path)]) == 0
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith("waggle peers: no peers: ")
    assert captured.err.count("\n") == 1


def test_without_an_agent_there_is_one_sentence_and_exit_1(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "agent.sock"
    assert main(["peers", "--socket", str(path)]) == 1
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err == (
        f"waggle peers: no agent runs here: there is no socket {path} (see --socket)\n"
    )
    assert main(["peers", "--socket", str(path), "-o", "json"]) == 1
    answer = json.loads(capsys.readouterr().out)
    assert answer["items"] == []
    assert answer["errors"][0]["code"] == "AgentNotRunning"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["peers", "--sockt", "x"],
            "waggle peers: unknown flag --sockt (did you mean --socket?); see waggle peers --help",
        ),
        (["peers", "--med"], "waggle peers: unknown flag --med; see waggle peers --help"),
        (
            ["peers", "clear", "one", "two"],
            "waggle peers: unexpected argument two; see waggle peers --help",
        ),
        (["--sockt"], "waggle: unknown flag --sockt; see waggle --help"),
        (["peers", "-o", "jsn"], "-o/--output: unknown jsn (did you mean json?)"),
        (["pers"], "COMMAND: unknown pers (did you mean peers?)"),
    ],
)
def test_wrong_usage_is_one_sentence_and_exit_2(
    arguments: list[str],
    message: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("waggle.__main__.COMMANDS", ("peers",))
    with pytest.raises(SystemExit) as caught:
        main(arguments)
    assert caught.value.code == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1


def test_malformed_updates_of_a_peer_are_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "agent.sock"
    text = "AS_PATH: the first AS is 65009, the peer's is 65001 (treat-as-withdraw)"
    some = UP | {"received": counts(0, 0), "malformedUpdates": 9, "malformed": text}
    sentence = f"tor-1: 9 malformed UPDATEs: {text}\n"
    with serving(path, MadeUp([some, UP | {"name": "tor-3"}, DOWN])):
        assert main(["peers", "--socket", str(path)]) == 0
        assert capsys.readouterr().err == f"waggle peers: {sentence}"
        assert main(["routes", "received", "--socket", str(path)]) == 0
        assert capsys.readouterr().err.endswith(f"waggle routes: {sentence}")
        assert main(["routes", "advertised", "--socket", str(path)]) == 0
        assert "malformed" not in capsys.readouterr().err


def test_a_name_in_place_of_an_action_leads_to_the_flag(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with pytest.raises(SystemExit):
        main(["peers", "tor-1"])
    assert "--peer tor-1 selects a peer" in capsys.readouterr().err
