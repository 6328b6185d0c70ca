"""Passwords reach the kernel and nothing else: no log, trace, recording, metric or answer."""

from __future__ import annotations

import base64
import json
import subprocess
import urllib.request
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from cells.api.client import at_socket
from tests.cmd.lab import NODE, PYTHON, configuration, routers, service
from tests.support.agent import Agent
from tests.support.otlp import Collector
from tests.support.ports import free_port
from tests.support.wait import eventually

pytestmark = pytest.mark.program

PASSWORD = "sesame-that-is-secret"
OTHER = "sesame-after-it-was-changed"
COLLECTOR = "sesame-of-the-collector"
"""Of the URL of the collector."""
FORMS = [
    form
    for word in (PASSWORD, OTHER, COLLECTOR)
    for form in (word.encode(), base64.b64encode(word.encode()), word.encode().hex().encode())
]
"""The passwords as such, as a Secret has them, and as octets are shown."""
TARGET = "kube-system/sesame"
ANSWERS: tuple[tuple[str, Mapping[str, str | None]], ...] = (
    *(
        (f"/v1/{name}", {})
        for name in (
            *("status", "intent", "explain", "history", "peers", "health", "cells", "reconcilers"),
            *("host", "process", "log", "metrics"),
        )
    ),
    ("/v1/spans", {"target": TARGET}),
    *(("/v1/routes", {"table": table}) for table in ("available", "advertised", "received")),
)
"""The paths that are read, with their queries: all that the agent has, but for watches, which name
objects alone."""


def protected(port: int, password: str) -> list[dict[str, Any]]:
    """Return the lab's objects, the first peer with a password."""
    objects = configuration([port])
    (peer,) = (o for o in objects if o["kind"] == "CiliumBGPPeerConfig")
    peer["spec"]["authSecretRef"] = "sesame"
    data = {"password": base64.b64encode(password.encode()).decode()}
    secret = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": "sesame", "namespace": "kube-system"},
        "data": data,
    }
    return [*objects, service("web", "198.51.100.7"), secret]


def test_a_password_is_in_no_output(tmp_path: Path) -> None:
    """With a router without a password, so that the failure is logged and reported as well."""
    recording, port = tmp_path / "recording", free_port("127.0.0.1")
    with Collector() as collector, routers(tmp_path, 1) as ports:
        agent = Agent(
            None,
            tmp_path / "agent",
            node=NODE,
            arguments=[
                "--otlp-endpoint", collector.endpoint.replace("//", f"//waggle:{COLLECTOR}@"),
                "--otlp-interval-seconds", "0.1",
                "--log-level", "debug", "--record-file", str(recording),
                "--http-address", f"127.0.0.1:{port}", "--trace-buffer", "2000",
            ],
        )  # fmt: skip
        agent.write_objects("bgp.json", *protected(ports[0], PASSWORD))
        agent.start()
        answers = []
        try:

            def refused() -> None:
                peers = list(agent.peers().values())
                assert len(peers) == 1
                peer = peers[0]
                assert peer["authentication"] == "TCP MD5", peer
                assert peer["state"] != "Established"

            eventually(refused, context=agent.daemon.tail)
            collector.wait_for("apply.round")
            for changed in (OTHER, PASSWORD):
                read = [at_socket(agent.socket).get(*question) for question in ANSWERS]
                assert all(answer["items"] for answer in read[:4]), read[:4]
                answers += [*read, at_socket(agent.socket).post("/v1/verify")]
                collector.spans.clear()
                agent.write_objects("bgp.json", *protected(ports[0], changed))
                collector.wait_for("apply.round")
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics") as response:
                metrics = response.read()
        finally:
            agent.stop()
        assert collector.bodies
    played = subprocess.run(
        [*PYTHON, "waggle", "replay", recording, "--show", "actions", "-o", "json"],
        capture_output=True,
        check=True,
    )
    places = {
        "the log": (tmp_path / "agent" / "log").read_bytes(),
        "the traces": b"".join(collector.bodies),
        "the recording": recording.read_bytes(),
        "the replay": played.stdout + played.stderr,
        "the metrics": metrics,
        "the answers": json.dumps(answers).encode(),
    }
    assert all(places.values())
    assert b"TCP MD5" in places["the answers"], "a password is in use"
    assert b"Secret" in places["the traces"], "the change itself is traced"
    found = [(place, form) for place, octets in places.items() for form in FORMS if form in octets]
    assert not found
