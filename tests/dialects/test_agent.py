"""A running agent with the test dialects and a router: they are read, applied, shown and switched."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.cmd.lab import established, routers
from tests.dialects.dialect_programs import WAGGLE
from tests.dialects.objects import NODE, beacon, lighthouse, node, service
from tests.support.agent import Agent
from tests.support.ports import free_port
from tests.support.wait import eventually
from waggle.__main__ import main

pytestmark = pytest.mark.program
PROGRAM = ("tests.dialects.dialect_programs", "agent")


@pytest.fixture
def port(tmp_path: Path) -> Iterator[int]:
    """Run a router at 127.0.0.2; return its port."""
    with routers(tmp_path, 1) as (port,):
        yield port


def agent(directory: Path, *arguments: str) -> Agent:
    """Return an agent with the test dialects, which are off by default."""
    return Agent(
        None,
        directory / "agent",
        node=NODE,
        arguments=(*arguments, "--mass-withdraw-hold=0"),
        program=PROGRAM,
    )


def own(port: int) -> dict[str, Any]:
    """Return the fields of a Beacon whose router is the one of the test."""
    return {"peerAddress": "127.0.0.2", "peerPort": port}


def waggle(capsys: pytest.CaptureFixture[str], it: Agent, *arguments: str) -> Any:  # noqa: ANN401
    """Run `waggle` on an agent; return the items that it prints."""
    assert main([*arguments, "--socket", str(it.socket), "-o", "json"], WAGGLE) == 0
    return json.loads(capsys.readouterr().out)["items"]


def test_a_beacon_is_read_applied_explained_and_reported(
    tmp_path: Path, port: int, capsys: pytest.CaptureFixture[str]
) -> None:
    it = agent(tmp_path, "--enable-cell", "beacon", "--beacon-community=65000")
    it.write_objects("shop.json", node(), beacon(**own(port)), service("web", "198.51.100.1"))
    it.start()
    try:
        it.wait_ready()
        established(it, 1)
        eventually(lambda: _check_advertised(it, "198.51.100.1/32"))
        (route,) = waggle(capsys, it, "routes", "advertised")
        assert (route["communities"], route["origins"][0]["name"]) == (["0:65000"], "web")
        (explained,) = waggle(capsys, it, "explain", "shop/web")
        assert (explained["reason"], explained["rule"]["kind"]) == ("Advertised", "Beacon")
        eventually(lambda: _check_status(it, established=True))
        it.write_objects("shop.json", node(), beacon(**own(port)), service("web", "198.51.100.2"))
        eventually(lambda: _check_advertised(it, "198.51.100.2/32"))
        it.remove("shop.json")
        eventually(lambda: _check_peers(it))
    finally:
        it.stop()


def _check_advertised(it: Agent, *prefixes: str) -> None:
    assert [route["prefix"] for route in it.routes("advertised")] == list(prefixes)


def _check_status(it: Agent, *, established: bool) -> None:
    (status,) = it.ask("/v1/status")
    found = [(item["kind"], item["status"]) for item in status.get("objects", [])]
    assert found == [("Beacon", {"established": established})]
    assert [one["type"] for one in status["conditions"]] == ["test.waggle.dev/NoNode"]


def _check_peers(it: Agent, *names: str) -> None:
    assert sorted(it.peers()) == sorted(names)


BEACON_ON = ("--enable-cell", "beacon")
CONFIGURED = ("--config", "waggle.yaml")
"""A file that switches the dialect on."""


@pytest.mark.parametrize(
    ("arguments", "names"),
    [
        ((), []),
        (BEACON_ON, ["router"]),
        (("--enable-cell", "lighthouse"), ["router"]),
        (CONFIGURED, ["router"]),
        ((*CONFIGURED, "--disable-cell", "beacon"), []),
    ],
    ids=["default", "enabled", "fed", "file", "disabled"],
)
def test_the_flag_of_a_dialect_switches_it_on_and_off(
    tmp_path: Path, port: int, arguments: tuple[str, ...], names: list[str]
) -> None:
    file = tmp_path / "waggle.yaml"
    file.write_text("cells: {beacon: {enabled: true}}\n")
    it = agent(tmp_path, *(str(file) if word == file.name else word for word in arguments))
    it.write_objects("beacon.json", node(), beacon(**own(port)))
    it.start()
    try:
        it.wait_ready()
        eventually(lambda: _check_peers(it, *names))
        (status,) = it.ask("/v1/status")
        flags = [unused["flag"] for unused in status.get("unusedObjects", [])]
        assert flags == ([] if names else ["--enable-cell beacon"])
    finally:
        it.stop()


def test_a_dialect_that_feeds_a_disabled_dialect_ends_the_agent(tmp_path: Path) -> None:
    it = agent(tmp_path, "--enable-cell", "lighthouse", "--disable-cell", "beacon")
    it.start()
    try:
        eventually(lambda: _check_ended(it))
    finally:
        it.stop()
    assert "cell lighthouse: needs cell beacon, which is switched off" in it.daemon.tail()


def _check_ended(it: Agent) -> None:
    assert not it.daemon.running


def test_a_dialect_adds_a_path_a_subcommand_and_a_metric(
    tmp_path: Path, port: int, capsys: pytest.CaptureFixture[str]
) -> None:
    http = free_port("127.0.0.1")
    it = agent(
        tmp_path,
        *("--enable-cell", "beacon", "--enable-cell", "lighthouse"),
        *("--http-address", f"127.0.0.1:{http}"),
    )
    it.write_objects("coast.json", node(), lighthouse("coast", NODE, "node-2", **own(port)))
    it.start()
    try:
        it.wait_ready()
        established(it, 1)
        socket = ["--socket", str(it.socket)]
        assert main(["lighthouses", "coast", "-o", "json", *socket], WAGGLE) == 0
        answer = json.loads(capsys.readouterr().out)
        items = [{"name": "coast", "nodes": [NODE, "node-2"]}]
        assert (answer["kind"], answer["items"]) == ("LighthouseList", items)
        assert main(["lighthouses", "coast", *socket], WAGGLE) == 0
        assert capsys.readouterr().out == f"coast ['{NODE}', 'node-2']\n"
        assert main(["lighthouses", "reef", *socket], WAGGLE) == 4
        assert "no Lighthouse is called reef" in capsys.readouterr().err
    finally:
        it.stop()
