"""``waggle doctor`` as text: what is down is in one check, and the last line counts the results."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from cells.api.model import HostItem, StatusItem, SupportItem
from tests.support.api import MadeUp, serving, session_item
from waggle.__main__ import main


def refused(name: str) -> dict[str, Any]:
    return session_item(
        node="n", instance="main", name=name, address="192.0.2.1", local_asn=65000, peer_asn=65001,
        state="Active", families=["ipv4-unicast"], reason="connection refused", flaps=0,
        updates_received=0, updates_sent=0, messages_received=0, messages_sent=0,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("names", "counted"), [(["tor-1"], "1 error"), (["tor-1", "tor-2"], "2 errors")]
)
def test_a_refused_session_is_an_error_of_the_port_and_no_claim_that_sessions_are_up(
    names: list[str], counted: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    peers = [*map(refused, names)]
    status = StatusItem(node="n", ready=True, health="ok", reporting="no", peers=peers)
    host = HostItem(node="n", kernel="6.1", supports=SupportItem(), clock_synchronized=True)
    path = tmp_path / "agent.sock"
    with serving(path, MadeUp(peers=peers, status=status, host=host)):
        assert main(["doctor", "--socket", str(path)]) == 1
    printed = capsys.readouterr()
    rows = [line.split(maxsplit=4) for line in printed.out.splitlines()]
    assert [row[3] for row in rows if row[:2] == ["port", "error"]] == names
    (sessions,) = (row for row in rows if row[0] == "sessions")
    assert sessions[1:4] == ["ok", "-", "-"]
    assert sessions[4].startswith("no session is down for another reason")
    assert printed.err.startswith(f"waggle doctor: {counted}, ")
    assert "; 1 of 1 agent answered; " in printed.err
