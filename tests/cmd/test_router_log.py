"""The log of ``waggle router``: sentences, or with ``--log-format json`` objects as of the agent."""

from __future__ import annotations

import asyncio
import json
import logging
from pathlib import Path

import pytest
import structlog

from speaker.api import ESTABLISHED, StateChanged
from speaker.server import MemoryRelease
from tests.cmd.router_process import Process
from waggle.commands.router.log import RouterLog
from waggle.commands.router.program import Events
from waggle.router_config import load


def state(old: str, new: str, reason: str = "") -> StateChanged:
    return StateChanged(
        instance="main",
        peer="tor-1",
        address="192.0.2.1",
        old=old,
        new=new,
        reason=reason,
        routes=0,
    )


def test_a_line_of_text_is_a_sentence(capsys: pytest.CaptureFixture[str]) -> None:
    log = RouterLog()
    log.started("waggle router AS 65000 (192.0.2.1) listens on 127.0.0.1 port 179", port=179)
    log("Idle: connection lost", peer="tor-1")
    log("router.yaml: reloaded")
    assert capsys.readouterr() == (
        "waggle router AS 65000 (192.0.2.1) listens on 127.0.0.1 port 179\n",
        "waggle router: tor-1: Idle: connection lost\nwaggle router: router.yaml: reloaded\n",
    )


def test_a_line_of_json_has_the_keys_of_the_agents_log(capfd: pytest.CaptureFixture[str]) -> None:
    """Also a line of a part of the agent in the router, and of a library."""

    async def scenario() -> None:
        log = RouterLog("json")
        events = Events(load(Path("examples/router.yaml")), MemoryRelease(), log)
        await log.start()
        try:
            log.started("listens", address="127.0.0.1", port=179)
            events(state("OpenConfirm", ESTABLISHED))
            events(state(ESTABLISHED, "Idle", "connection lost"))
            # As the jobs of the kernel's routes and of BFD have it.
            structlog.configure(logger_factory=structlog.PrintLoggerFactory())
            structlog.get_logger("waggle.kernel").warning("no route", prefix="10.0.0.0/8")
            logging.getLogger("asyncio").warning("slow")
        finally:
            await log.stop()

    asyncio.run(scenario())
    printed = capfd.readouterr()
    started = json.loads(printed.out)
    assert (started["msg"], started["address"], started["port"]) == ("listens", "127.0.0.1", 179)
    lines = [json.loads(line) for line in printed.err.splitlines()]
    assert [list(line)[:4] for line in lines] == [["ts", "level", "logger", "msg"]] * 4
    assert [(line["level"], line["logger"], line["msg"]) for line in lines] == [
        ("info", "waggle.router", "Established"),
        ("warning", "waggle.router", "Idle: connection lost"),
        ("warning", "waggle", "no route"),
        ("warning", "asyncio", "slow"),
    ]
    assert [line.get("peer") for line in lines] == ["tor-1", "tor-1", None, None]
    assert lines[2]["prefix"] == "10.0.0.0/8"


@pytest.mark.program
def test_a_router_logs_json_from_its_start_to_its_end(tmp_path: Path) -> None:
    router = Process(
        tmp_path,
        "one",
        "asn: 65000\nrouterID: 192.0.2.1\nlisten: [{address: 127.0.0.1, port: 0}]",
        "--log-format",
        "json",
    )
    try:
        started = json.loads(router.line)
        assert started["address"] == "127.0.0.1"
        assert started["port"] > 0
        assert router.ask("peers") == []
    finally:
        assert router.end() == 0
    assert [json.loads(line)["level"] for line in router.errors.splitlines()] == []
