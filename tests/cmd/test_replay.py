"""`waggle replay`: what a recorded router did, seen again without it."""

from __future__ import annotations

import argparse
import json
import os
import stat
from pathlib import Path
from typing import Any

import pytest

from speaker.api import PeerConfig, RouteAttributes, Secret
from tests.cmd.router_process import Process
from tests.speaker.network import Network
from waggle.commands.replay import add_parser, run


def replay(*arguments: object) -> int:
    """Run ``waggle replay`` in this process."""
    parser = argparse.ArgumentParser()
    add_parser(parser.add_subparsers(dest="command"))
    return run(parser.parse_args(["replay", *map(str, arguments)]))


@pytest.fixture
def recording(tmp_path: Path) -> Path:
    """The recording of a router that received a prefix and advertised one."""
    return recorded(tmp_path)


def recorded(directory: Path) -> Path:
    """Write such a recording."""
    network = Network(record=True)
    one, other = network.host("one", "10.0.0.1", 65001), network.host("other", "10.0.0.2", 65002)
    for host, peer, asn in ((one, other, 65002), (other, one, 65001)):
        host.peer(
            PeerConfig(
                name=peer.name,
                address=peer.address,
                peer_asn=asn,
                import_="all",
                export="all",
                passive=host is other,
                password=Secret("hush"),
            )
        )
    one.routes({"192.0.2.0/24": RouteAttributes(med=5)})
    other.routes({"198.51.100.0/24": RouteAttributes(communities=(65002 << 16 | 7,))})
    network.run(5)
    assert one.recorder is not None
    one.recorder.finish(network.now)
    path = directory / "recording"
    path.write_bytes(b"".join(one.lines))
    return path


def test_the_sessions_have_the_columns_of_waggle_peers(
    recording: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert replay(recording) == 0
    out, err = capsys.readouterr()
    head, row = out.splitlines()
    assert head.split()[:6] == ["NODE", "PEER", "ADDRESS", "LOCAL-AS", "PEER-AS", "STATE"]
    assert row.split()[1:7] == ["other", "10.0.0.2", "65001", "65002", "Established", "5s"]
    assert "the recording ended: stopped" in err
    assert "same results as recorded (1 digests of the state are equal)" in err


@pytest.mark.parametrize(
    ("table", "prefixes"),
    [
        ("available", {"192.0.2.0/24", "198.51.100.0/24"}),
        ("received", {"198.51.100.0/24"}),
        ("advertised", {"192.0.2.0/24"}),
    ],
)
def test_the_routes_have_the_columns_of_waggle_routes(
    recording: Path, capsys: pytest.CaptureFixture[str], table: str, prefixes: set[str]
) -> None:
    assert replay(recording, "--show", "routes", "--table", table, "-o", "json") == 0
    answer = json.loads(capsys.readouterr().out)
    assert (answer["apiVersion"], answer["kind"]) == ("cli.waggle/v1", "RouteList")
    assert {item["prefix"] for item in answer["items"]} == prefixes
    assert replay(recording, "--show", "routes", "--table", table) == 0
    assert prefixes <= set(capsys.readouterr().out.split())


def test_the_actions_name_messages_and_peers(
    recording: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert replay(recording, "--show", "actions", "--peer", "other", "-o", "jsonl") == 0
    items = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert {item["peer"] for item in items} == {"other"}
    connect = next(item for item in items if item["action"] == "Connect")
    assert connect["detail"] == "to 10.0.0.2 port 179, with a password"
    written = [item["detail"] for item in items if item["action"] == "Write"]
    assert written[:2] == ["OPEN", "KEEPALIVE"]
    assert "3 UPDATE" in written
    closed = [item["detail"] for item in items if item["action"] == "Close"]
    assert set(closed) <= {"immediately", "after pending writes"}
    assert replay(recording, "--show", "actions") == 0
    assert "StateChanged: old OpenConfirm, new Established" in capsys.readouterr().out


def test_until_ends_the_replay_after_an_input(
    recording: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert replay(recording, "--until", 3, "-o", "json") == 0
    out, err = capsys.readouterr()
    (peer,) = json.loads(out)["items"]
    assert peer["state"] == "Connect"
    assert "stopped after input 3 (--until)" in err


def test_a_difference_is_named_and_exits_1(
    recording: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = [json.loads(line) for line in recording.read_text().splitlines()]
    routes = next(v for v in lines if v.get("input") == "UpdateRoutes")
    routes["fields"]["changes"]["ipv4-unicast"][0]["attributes"]["med"] = 6
    recording.write_text("".join(json.dumps(line) + "\n" for line in lines))
    assert replay(recording, "-o", "json") == 1
    out, err = capsys.readouterr()
    (error,) = json.loads(out)["errors"]
    assert error["code"] == "Difference"
    assert error["message"].startswith("after input ")
    assert f"OTHER results than recorded, {error['message']}" in err


def test_a_truncated_recording_is_replayed_up_to_its_end(
    recording: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    octets = recording.read_bytes()
    recording.write_bytes(octets[: octets.rindex(b'{"line":"input"') + 30])
    assert replay(recording) == 0
    assert "its last line is truncated and was skipped" in capsys.readouterr().err


def test_another_file_exits_2(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "x").write_text("hello\n")
    assert replay(tmp_path / "x") == 2
    assert f"{tmp_path}/x: line 1: " in capsys.readouterr().err
    assert replay(tmp_path / "nothing") == 2
    assert "No such file" in capsys.readouterr().err


def test_an_unknown_peer_exits_4_with_the_nearest_name(
    recording: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert replay(recording, "--peer", "othr") == 4
    sentence = "no peer is called othr (did you mean other?)"
    assert f"waggle replay: {sentence}\n" in capsys.readouterr().err


def test_a_table_is_one_of_routes(recording: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert replay(recording, "--table", "received") == 2
    assert capsys.readouterr().err == "waggle replay: --table: with --show routes only\n"


@pytest.mark.program
def test_a_recorded_router_can_be_replayed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "recording"
    password = "a password of theirs"
    one = Process(
        tmp_path,
        "one",
        "asn: 65000\nrouterID: 192.0.2.1\nlisten: [{address: 127.0.0.1, port: 0}]\n"
        "originate: [10.1.0.0/16]\nneighbors:\n"
        "  - {prefix: 127.0.0.0/8, import: all, export: all}\n"
        f"  - {{address: 192.0.2.77, asn: 1, passive: true, password: {password}}}",
        "--record",
        str(path),
    )
    try:
        port = int(one.line.rsplit(" ", 1)[1])
        other = Process(
            tmp_path,
            "two",
            "asn: 65002\nrouterID: 192.0.2.2\noriginate: [10.2.0.0/16]\n"
            f"neighbors: [{{address: 127.0.0.1, port: {port}, asn: 65000, "
            "localAddress: 127.0.0.2, export: local, connectRetryTime: 1}]",
        )
        try:
            one.until(lambda: "10.2.0.0/16" in one.prefixes())
            (before,) = [p for p in one.ask("peers") if p.get("dynamic")]
        finally:
            assert other.end() == 0
        one.until(lambda: one.prefixes() == {"10.1.0.0/16"})
    finally:
        assert one.end() == 0
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert path.stat().st_uid == os.geteuid()
    assert password.encode() not in path.read_bytes()

    assert replay(path, "-o", "json") == 0
    # At the moment when both routes were there, as the routers themselves saw it.
    up = _seq_of(path, capsys, "StateChanged: old OpenConfirm, new Established")
    down = _seq_of(path, capsys, "StateChanged: old Established")
    assert up < down
    assert replay(path, "--until", down - 1, "--peer", "127.0.0.2", "-o", "json") == 0
    (peer,) = json.loads(capsys.readouterr().out)["items"]
    assert (peer["state"], peer["peerRouterID"]) == ("Established", before["peerRouterID"])
    assert peer["received"] == [
        {"family": "ipv4-unicast", "routes": 1, "accepted": 1},
        {"family": "ipv6-unicast", "routes": 0, "accepted": 0},
    ]
    assert replay(path, "--until", down - 1, "--show", "routes", "-o", "json") == 0
    routes: list[dict[str, Any]] = json.loads(capsys.readouterr().out)["items"]
    assert {route["prefix"] for route in routes} == {"10.1.0.0/16", "10.2.0.0/16"}


def _seq_of(path: Path, capsys: pytest.CaptureFixture[str], detail: str) -> int:
    capsys.readouterr()
    assert replay(path, "--show", "actions", "-o", "jsonl") == 0
    items = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    seq: int = next(item["seq"] for item in items if item["detail"].startswith(detail))
    return seq
