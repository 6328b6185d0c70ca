"""Faults as docs/runbook.md has them: planted with real speakers, named by ``doctor`` or ``explain``.

One agent has a peer for each fault of a session; `tests/reconcilers/doctor` has the faults of clusters.
"""

from __future__ import annotations

import contextlib
import io
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.cmd.lab import NODE, PYTHON, configuration, free_port, service
from tests.support.agent import Agent
from tests.support.daemon import Daemon
from tests.support.wait import eventually
from waggle.__main__ import main

pytestmark = [pytest.mark.program, pytest.mark.timeout(120)]

PLANTED = {
    "The router refuses connections": ("tests/cmd/test_runbook.py", '("port", REFUSED, "refused")'),
    "A TCP MD5 password on one end": ("tests/cmd/test_runbook.py", '("md5", PASSWORD,'),
    "Ends disagree on an AS number": ("tests/cmd/test_runbook.py", '("asns", AS_NUMBER,'),
    "Two routers with one router ID": ("tests/cmd/test_runbook.py", '("router-ids", ROUTER_ID,'),
    "The port is taken": ("tests/reconcilers/doctor/test_checks.py", 'id="port 179 is taken"'),
    "A Service is not selected": ("tests/cmd/test_runbook.py", '("shop/hidden",'),
    "A Service has no endpoint on the node": ("tests/cmd/test_runbook.py", '("shop/web",'),
    "A silent agent": ("tests/cmd/test_fleet_apiserver.py", 'results["agents", "fleet-silent"]'),
    "A clock that is wrong": (
        "tests/reconcilers/doctor/test_checks.py",
        'id="a clock that is wrong"',
    ),
    "A right is missing": (
        "tests/reconcilers/doctor/test_checks.py",
        'id="an agent lacks a right"',
    ),
    "A certificate expires": (
        "tests/reconcilers/doctor/test_checks.py",
        'id="a certificate that expires"',
    ),
}
"""The faults of the runbook: the test that plants each, and the line with which."""

REFUSED, PASSWORD, AS_NUMBER, ROUTER_ID = "tor-1", "tor-2", "tor-3", "tor-4"


@pytest.fixture(scope="module")
def agent(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Agent]:
    """An agent with four peers, none of which comes up."""
    directory = tmp_path_factory.mktemp("runbook")
    ports = [free_port(f"127.0.0.{number + 1}") for number in range(1, 5)]
    objects = configuration(ports)
    routers = []
    for number, fault in ((2, {"password": "secret"}), (3, {"asn": 64999}), (4, {})):
        neighbor = {"address": "127.0.0.1", "asn": 65001, "passive": True, "import": "all", **fault}
        config = {
            "asn": 65000,
            "routerID": "192.0.2.11" if number == 4 else f"192.0.2.{number}",
            "listen": [{"address": f"127.0.0.{number + 1}", "port": ports[number - 1]}],
            "neighbors": [neighbor],
        }
        path = directory / f"router-{number}.json"
        path.write_text(json.dumps(config))
        command: list[str | Path] = [*PYTHON, "waggle", "router", "-c", path]
        routers.append(Daemon(f"router {number}", command, log=directory / f"router-{number}.log"))
    web, shop = service("web", "198.51.100.7"), service("hidden", "198.51.100.8")
    shop["metadata"]["labels"] = {"expose": "false"}
    web["spec"]["externalTrafficPolicy"] = "Local"
    agent = Agent(None, directory / "agent", node=NODE)
    agent.write_objects("cluster.json", *objects, web, shop)
    with contextlib.ExitStack() as stack:
        for daemon in (*routers, agent.daemon):
            stack.callback(daemon.stop)
            daemon.start()
        agent.wait_ready()
        yield agent


def doctor(agent: Agent) -> dict[str, list[dict[str, Any]]]:
    """Return the findings by check."""
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        assert main(["doctor", "--socket", str(agent.socket), "-o", "json"]) == 1
    findings: dict[str, list[dict[str, Any]]] = {}
    for item in json.loads(printed.getvalue())["items"]:
        if item["result"] in ("error", "warning"):
            findings.setdefault(item["check"], []).append(item)
    return findings


@pytest.mark.parametrize(
    ("check", "name", "evidence"),
    [
        ("port", REFUSED, "refused"),
        ("md5", PASSWORD, "this node has no TCP MD5 password"),
        ("asns", AS_NUMBER, "Bad Peer AS"),
        ("router-ids", ROUTER_ID, "router ID 192.0.2.11 is that of node-1"),
    ],
)
def test_doctor_names_a_fault_of_a_session(
    agent: Agent, check: str, name: str, evidence: str
) -> None:
    def check_findings() -> None:
        findings = doctor(agent).get(check, [])
        named = [f for f in findings if f.get("object") == name and evidence in f["evidence"]]
        assert named, doctor(agent)
        assert named[0]["remedy"]

    eventually(check_findings, within=20, interval=0.3, context=agent.daemon.tail)


@pytest.mark.parametrize(
    ("target", "evidence"),
    [("shop/hidden", "expose=true"), ("shop/web", "no ready endpoint")],
)
def test_explain_names_what_stands_in_the_way_of_a_service(
    agent: Agent, target: str, evidence: str
) -> None:
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        assert main(["explain", target, "--socket", str(agent.socket)]) == 0
    assert evidence in printed.getvalue()


def test_each_fault_of_the_runbook_is_planted_by_a_test() -> None:
    faults, _, _ = Path("docs/runbook.md").read_text().partition("\n# Alerts\n")
    headings = [line.removeprefix("## ") for line in faults.splitlines() if line.startswith("## ")]
    assert headings == list(PLANTED)
    for file, line in PLANTED.values():
        assert line in Path(file).read_text(), (file, line)
