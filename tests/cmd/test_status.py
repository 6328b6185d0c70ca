"""``waggle status`` against a healthy agent, and a degraded agent."""

from __future__ import annotations

import json
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from cells.api.model import (
    ConditionItem,
    FamilyCount,
    ObjectStatusItem,
    PartItem,
    ProblemItem,
    StatusItem,
)
from tests.cmd.terminal import Terminal
from tests.support.api import MadeUp, serving, session_item
from waggle.__main__ import main

SINCE = datetime.now(UTC) - timedelta(days=3, hours=5, minutes=30)
PEERS = [
    session_item(
        node="worker-1",
        instance="rack0",
        name="tor-1",
        address="192.0.2.1",
        local_asn=65001,
        peer_asn=65010,
        state="Established",
        since_time=SINCE,
        families=["ipv4-unicast"],
        received=[FamilyCount(family="ipv4-unicast", routes=3)],
        advertised=[FamilyCount(family="ipv4-unicast", routes=12)],
    ),
    session_item(
        node="worker-1",
        instance="rack0",
        name="tor-2",
        address="192.0.2.2",
        local_asn=65001,
        state="Active",
        families=[],
    ),
]
STATUS: dict[str, Any] = {
    "conditions": [
        {
            "type": "cilium.io/BGPReconcileError",
            "status": "True",
            "reason": "BGPReconcileError",
            "message": "no \x1b[31mAS\nno ID",
            "lastTransitionTime": "2026-01-01T00:00:00Z",
        }
    ],
}
ILL = StatusItem(
    node="worker-1",
    ready=False,
    waiting=["the first complete apply round"],
    health="degraded",
    degraded=[
        PartItem(path="kubernetes/Service", message="cannot reach https://x", since_time=SINCE)
    ],
    reporting="written 3 times",
    peers=PEERS,
    objects=[ObjectStatusItem(kind="CiliumBGPNodeConfig", name="worker-1", status=STATUS)],
    conditions=[
        ConditionItem(
            kind="CiliumBGPClusterConfig",
            name="c",
            type="cilium.io/NoMatchingNode",
            status="False",
            reason="NoMatchingNode",
        )
    ],
)


def test_a_degraded_agent_is_status_1_with_the_reasons(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with serving(tmp_path / "s", MadeUp(status=ILL)):
        assert main(["status", "--socket", str(tmp_path / "s")]) == 1
    assert [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()] == [
        "node worker-1",
        "ready no: waits for the first complete apply round",
        "health degraded",
        "- kubernetes/Service: cannot reach https://x (for 3d5h)",
        "status written 3 times",
        "instance rack0, AS 65001",
        "- tor-1 (192.0.2.1, AS 65010): Established for 3d5h; ipv4-unicast 3 received, 12 advertised",
        "- tor-2 (192.0.2.2): Active",
        "",
        "OBJECT CONDITION STATUS MESSAGE",
        r"CiliumBGPNodeConfig/worker-1 cilium.io/BGPReconcileError True no \x1b[31mAS; no ID",
        "CiliumBGPClusterConfig/c cilium.io/NoMatchingNode False -",
    ]


def test_a_ready_and_healthy_agent_is_status_0(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    well = StatusItem(node="n", ready=True, health="ok", reporting="there is no API server")
    with serving(tmp_path / "s", MadeUp(status=well)):
        assert main(["status", "--socket", str(tmp_path / "s")]) == 0
        assert "status     there is no API server" in capsys.readouterr().out
        assert main(["status", "--socket", str(tmp_path / "s"), "-o", "json"]) == 0
    (item,) = json.loads(capsys.readouterr().out)["items"]
    assert item == {"node": "n", "ready": True, "health": "ok", "reporting": well.reporting}


@pytest.mark.parametrize("form", ["C", "Python", "Python: the table in C is of another version"])
def test_the_form_of_the_prefix_tables_is_a_line(
    form: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    item = StatusItem(node="n", ready=True, health="ok", reporting="-", prefix_tables=form)
    with serving(tmp_path / "s", MadeUp(status=item)):
        assert main(["status", "--socket", str(tmp_path / "s")]) == 0
    assert f"speaker    prefix tables in {form}\n" in capsys.readouterr().out


def test_what_no_rule_restricts_is_a_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    item = StatusItem(
        node="n", ready=True, health="ok", reporting="-", unrestricted=["any address is advertised"]
    )
    with serving(tmp_path / "s", MadeUp(status=item)):
        assert main(["status", "--socket", str(tmp_path / "s")]) == 0
    assert "addresses  any address is advertised\n" in capsys.readouterr().out


def test_a_condition_that_is_true_while_all_is_well_is_a_row_without_a_mark(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    effective = ConditionItem(
        kind="BGPPolicy",
        name="edge",
        type="Effective",
        status="True",
        reason="Effective",
        message="it configures the node",
    )
    with serving(tmp_path / "s", MadeUp(status=replace(ILL, conditions=[effective]))):
        main(["status", "--socket", str(tmp_path / "s")])
    printed = capsys.readouterr()
    assert "BGPPolicy/edge Effective True it configures the node" in " ".join(printed.out.split())
    assert "!" not in printed.out + printed.err


def test_without_an_agent_there_is_one_sentence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["status", "--socket", str(tmp_path / "none")]) == 1
    assert "no agent runs here" in capsys.readouterr().err


def test_a_long_line_is_broken_at_spaces_on_a_terminal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    monkeypatch.setenv("TERM", "xterm")
    terminal = Terminal()
    monkeypatch.setattr(sys, "stdout", terminal)
    with serving(tmp_path / "s", MadeUp(status=ILL)):
        assert main(["status", "--socket", str(tmp_path / "s"), "--color", "never"]) == 1
    shown = terminal.getvalue().splitlines()
    assert shown[6:9] == [
        "  - tor-1 (192.0.2.1, AS 65010): Established for 3d5h;",
        "    ipv4-unicast 3 received, 12 advertised",
        "  - tor-2 (192.0.2.2): Active",
    ]
    assert shown[10:] == [
        "OBJECT                        CONDITION",
        "CiliumBGPNodeConfig/worker-1  cilium.io/BGPReconcileError",
        "  STATUS   True",
        r"  MESSAGE  no \x1b[31mAS; no ID",
        "CiliumBGPClusterConfig/c      cilium.io/NoMatchingNode",
        "  STATUS  False",
    ]


def test_malformed_updates_are_with_the_session(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    peer = PEERS[0] | {"malformedUpdates": 1, "malformed": "AS_PATH: AS 0 (treat-as-withdraw)"}
    with serving(tmp_path / "s", MadeUp(status=replace(ILL, peers=[peer]))):
        main(["status", "--socket", str(tmp_path / "s")])
    found = "12 advertised; 1 malformed UPDATE: AS_PATH: AS 0 (treat-as-withdraw)\n"
    assert found in capsys.readouterr().out


def test_problems_of_services_are_apart_and_the_first_five_are_printed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    of_services = [
        ProblemItem(
            objects=[f"Service/shop/s{n}"], field="spec.externalIPs", message="no", of_tenant=True
        )
        for n in range(7)
    ]
    own = ProblemItem(objects=["CiliumBGPClusterConfig/c"], field="spec", message="wrong")
    with serving(tmp_path / "s", MadeUp(status=replace(ILL, problems=[own, *of_services]))):
        main(["status", "--socket", str(tmp_path / "s")])
    shown = capsys.readouterr().out.splitlines()
    start = shown.index("problem    CiliumBGPClusterConfig/c: spec: wrong")
    assert shown[start + 1 : start + 8] == [
        "services   problems that users of namespaces cause and solve",
        *(f"  - Service/shop/s{n}: spec.externalIPs: no" for n in range(5)),
        "  - and 2 more (-o json)",
    ]
