"""A command without an agent prints a document of the kind that its answer has, with the error."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from waggle.__main__ import main

KINDS = {
    "api /v1/peers": "ErrorList",
    "bfd": "BfdSessionList",
    "doctor": "CheckList",
    "events": "EventList",
    "explain": "ExplainList",
    "explain --received --peer tor 10.0.0.0/8": "ReceivedExplainList",
    "history": "HistoryList",
    "log": "LogLevelList",
    "log debug": "LogLevelList",
    "metrics": "MetricList",
    "peers": "PeerList",
    "peers clear tor": "ClearedList",
    "reconcilers": "ReconcilerList",
    "routes": "RouteList",
    "routes received": "RouteList",
    "routes kernel": "KernelRouteList",
    "status": "StatusList",
    "top": "TopList",
    "trace 10.0.0.0/8": "SpanList",
    "ui": "PageAddressList",
    "verify": "DriftList",
    "router announce 10.0.0.0/8": "PrefixChangeList",
    "router withdraw 10.0.0.0/8": "PrefixChangeList",
    "router shutdown tor": "PeerList",
    "router enable tor": "PeerList",
    "router clear tor": "ClearedList",
    "router collectors": "CollectorList",
    "router peers": "PeerList",
    "router routes": "RouteList",
}


@pytest.mark.parametrize(("command", "kind"), KINDS.items())
def test_an_error_is_in_a_document_of_the_kind_of_the_answer(
    command: str, kind: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "none"
    assert main([*command.split(), "-o", "json", "--socket", str(path)]) != 0
    document = json.loads(capsys.readouterr().out)
    assert (document["apiVersion"], document["kind"], document["items"]) == (
        "cli.waggle/v1",
        kind,
        [],
    )
    (error,) = document["errors"]
    assert error["code"] == "AgentNotRunning"
    assert str(path) in error["message"]
