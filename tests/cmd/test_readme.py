"""The commands of the README, typed line by line into a shell."""

from __future__ import annotations

import os
import re
import select
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.cmd.terminal import ROOT, environment, open_terminal
from tests.support.ports import free_port

pytestmark = pytest.mark.program

PROMPT = "@@{}@@"


def block(title: str) -> list[str]:
    """Return the lines of the first block of commands below a title of the README."""
    text = (ROOT / "README.md").read_text().split(f"## {title}\n")[1]
    return text.split("```sh\n")[1].split("```")[0].splitlines()


class Shell:
    """An interactive shell in a terminal."""

    def __init__(self, folder: Path, columns: int = 80) -> None:
        self._here, there = open_terminal(columns)
        self._shell = subprocess.Popen(
            ["bash", "--norc", "--noprofile", "-i"],
            stdin=there,
            stdout=there,
            stderr=there,
            cwd=folder,
            env={
                **{k: v for k, v in environment().items() if k != "PROMPT_COMMAND"},
                "WAGGLE_API_SOCKET": str(folder / "run" / "agent.sock"),
                "PS1": "",
                "PS2": "",
            },
            preexec_fn=lambda: os.login_tty(os.dup(0)),
        )
        os.close(there)
        self._count = 0

    def type(self, text: str) -> tuple[int, str]:
        """Type a line; returns the exit status and the output."""
        self._count += 1
        mark = f"@@{self._count}:"
        os.write(self._here, f"{text}\n".encode())
        os.write(self._here, f"echo '@''@{self._count}:'$?'@''@'\n".encode())
        shown, deadline = "", time.monotonic() + 60
        while (found := re.search(mark + r"(\d+)@@", shown)) is None:
            ready, _, _ = select.select([self._here], [], [], max(0.0, deadline - time.monotonic()))
            assert ready, shown
            shown += os.read(self._here, 65536).decode()
        return int(found[1]), shown

    def close(self) -> None:
        """Close the terminal."""
        os.close(self._here)
        self._shell.wait(60)


@pytest.fixture(name="folder")
def checkout(tmp_path: Path) -> Path:
    """Return a folder like a checkout with its virtual environment, and a port that is free."""
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    (tmp_path / ".venv").symlink_to(sys.prefix)
    port = free_port("127.0.0.2")
    for file in ("router.yaml", "quickstart/bgp.yaml"):
        path = tmp_path / "examples" / file
        path.write_text(path.read_text().replace("1790", str(port)))
    return tmp_path


def test_look_around_works_line_by_line(folder: Path) -> None:
    shell = Shell(folder)
    shown = {}
    try:
        for line in block("Look around"):
            name = line.split("#")[0].strip()
            status, shown[name] = shell.type(line)
            if name == "waggle status" and status == 1:
                # Of a busy machine the event loop is blocked for a moment, and health shows it.
                status, shown[name] = shell.type("sleep 10; waggle status")
            assert status == 0, shown[name]
    finally:
        shell.type("waggle demo --stop")
        shell.close()
    assert "10.244.1.0/24 via 127.0.0.1" in shown["waggle demo --detach"]
    assert "Established" in shown["waggle peers"]
    assert "Service/shop/web" in shown["waggle routes advertised"]
    assert "Advertised" in shown["waggle explain shop/web"]
    assert "retry in" not in "".join(shown.values())
