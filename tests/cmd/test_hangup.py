"""SIGHUP: a reload once the program runs; ignored by a program without files to reload."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from tests.cmd.lab import PYTHON
from tests.support.daemon import Daemon
from tests.support.wait import eventually

ROUTER = """
import os, signal, sys
from waggle import router_config
load = router_config.load
def interrupted(*arguments):
    router_config.load = load
    os.kill(os.getpid(), signal.SIGHUP)
    return load(*arguments)
router_config.load = interrupted
from waggle.__main__ import main
sys.exit(main(["router", "-c", sys.argv[1] + "/router.yaml"]))
"""
AGENT = """
import os, signal, sys
from waggle_agent import __main__ as agent
import_lean = agent.import_lean
def interrupted():
    os.kill(os.getpid(), signal.SIGHUP)
    import_lean()
agent.import_lean = interrupted
sys.exit(agent.main(["--api-socket", sys.argv[1] + "/s", "--disable-cell", "kernel"], {}))
"""


@pytest.mark.program
@pytest.mark.parametrize(
    ("code", "reloaded"),
    [(ROUTER, "router.yaml: reloaded"), (AGENT, "agent.reload")],
    ids=["router", "agent"],
)
def test_a_hangup_during_the_start_is_a_reload_later(
    code: str, reloaded: str, tmp_path: Path
) -> None:
    (tmp_path / "router.yaml").write_text("asn: 65000\nrouterID: 192.0.2.1\nlisten: []\n")
    command = [sys.executable, "-c", code, str(tmp_path)]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as program:
        assert program.stderr is not None
        late = threading.Timer(60, program.kill)
        late.start()
        lines: list[str] = []
        for line in program.stderr:
            lines.append(line)
            if reloaded in line:
                program.send_signal(signal.SIGTERM)
        late.cancel()
    assert reloaded in "".join(lines)
    assert program.returncode == 0, lines


@pytest.mark.program
@pytest.mark.parametrize("program", ["waggle_bfd", "waggle_kernel"])
def test_a_program_without_a_file_to_reload_ignores_a_hangup(program: str, tmp_path: Path) -> None:
    socket = tmp_path / "socket"
    daemon = Daemon(program, [*PYTHON, program, "--socket", str(socket)], log=tmp_path / "log")

    def listens() -> None:
        daemon.check()
        assert socket.exists()

    daemon.start()
    try:
        eventually(listens)
        daemon.signal(signal.SIGHUP)  # would be handled before SIGTERM
        daemon.signal(signal.SIGTERM)
        assert daemon.wait(60) in (0, -signal.SIGTERM)
    finally:
        daemon.stop()
