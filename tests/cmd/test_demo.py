"""The demo as people run it: two programs, one round, changes, and a clean end."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
pytestmark = pytest.mark.program


@pytest.fixture(name="examples")
def copied(tmp_path: Path) -> Path:
    """Copy the examples, with a port that is free."""
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    with socket.create_server(("127.0.0.2", 0)) as probe:
        port = probe.getsockname()[1]
    for file in ("router.yaml", "quickstart/bgp.yaml"):
        path = tmp_path / "examples" / file
        path.write_text(path.read_text().replace("1790", str(port)))
    return tmp_path / "examples"


def start(examples: Path, *arguments: str) -> subprocess.Popen[str]:
    """Start the demo off a terminal."""
    command = [sys.executable, "-m", "waggle", "demo", *arguments]
    command += ["--manifests", str(examples / "quickstart")]
    command += ["--router", str(examples / "router.yaml")]
    return subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env={**os.environ}
    )


def test_once_ends_when_the_router_holds_the_routes_of_render(examples: Path) -> None:
    output, errors = start(examples, "--once").communicate(timeout=40)
    assert errors == ""
    prefixes = [line.split()[0] for line in output.splitlines()]
    assert sorted(prefixes) == [
        "10.244.1.0/24",
        "198.51.100.10/32",
        "2001:db8:100::10/128",
        "fd00:10:244:1::/64",
    ]


def test_once_fails_at_its_timeout(examples: Path) -> None:
    router = examples / "router.yaml"
    router.write_text(router.read_text().replace("asn: 65001", "asn: 64999"))
    demo = start(examples, "--once", "--timeout", "3")
    _, errors = demo.communicate(timeout=40)
    assert demo.returncode == 1
    assert "the routes of the router are not those of waggle render" in errors


def test_a_changed_manifest_is_shown_and_an_interrupt_ends_both_programs(examples: Path) -> None:
    demo = start(examples)
    assert demo.stdout is not None
    lines = iter(demo.stdout.readline, "")
    for line in lines:
        if line.startswith("+ 2001:db8:100::10/128"):
            break
    services = examples / "quickstart" / "services.yaml"
    changed = time.monotonic()
    services.write_text(services.read_text().replace("198.51.100.10", "198.51.100.99"))
    for line in lines:
        if line.startswith("+ 198.51.100.99/32"):
            break
    assert time.monotonic() - changed < 1.0
    demo.send_signal(signal.SIGINT)
    _, errors = demo.communicate(timeout=10)
    assert (demo.returncode, errors) == (0, "")


def test_a_port_in_use_is_an_immediate_error(examples: Path) -> None:
    port = int((examples / "router.yaml").read_text().split("port:")[1].split()[0])
    with socket.create_server(("127.0.0.2", port)):
        demo = start(examples, "--once")
        _, errors = demo.communicate(timeout=20)
    assert demo.returncode == 1
    assert f"cannot listen on 127.0.0.2 port {port}" in errors
