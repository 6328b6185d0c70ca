"""``waggle router``: its file, its command and its process."""

from __future__ import annotations

import argparse
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from cells.api.client import at_socket
from waggle.commands.router import add_parser, run

MINIMAL = "asn: 65000\nrouterID: 192.0.2.1\n"


def write(directory: Path, text: str) -> Path:
    path = directory / "router.yaml"
    path.write_text(text)
    return path


def command(*arguments: str) -> int:
    """Run ``waggle router`` in this process."""
    parser = argparse.ArgumentParser()
    add_parser(parser.add_subparsers(dest="command"))
    return run(parser.parse_args(["router", *arguments]))


class Process:
    """A running router."""

    def __init__(self, directory: Path, name: str, text: str, *arguments: str) -> None:
        self.socket = directory / f"{name}.sock"
        path = directory / f"{name}.yaml"
        path.write_text(f"{text}\napiSocket: {self.socket}\n")
        self.path = path
        self.process = subprocess.Popen(
            [sys.executable, "-m", "waggle", "router", "-c", str(path), *arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert self.process.stdout is not None
        self.line = self.process.stdout.readline()

    def ask(self, name: str, **query: str | None) -> list[dict[str, Any]]:
        return list(at_socket(self.socket, "router").get(f"/v1/{name}", query)["items"])

    def until(self, condition: Callable[[], bool], seconds: float = 60.0) -> None:
        deadline = time.monotonic() + seconds
        while not condition():
            assert time.monotonic() < deadline, self.ask("peers")
            time.sleep(0.02)

    def prefixes(self, table: str = "available") -> set[str]:
        return {route["prefix"] for route in self.ask("routes", table=table)}

    def end(self) -> int:
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        _, self.errors = self.process.communicate(timeout=60)
        return self.process.returncode
