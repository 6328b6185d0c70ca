"""Only this room knows the OpenTelemetry SDK, and what the command line imports stays cheap."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def imported(path: Path) -> set[str]:
    """Return the full names of all modules that a file imports."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names |= {f"{node.module}.{alias.name}" for alias in node.names} | {node.module}
    return names


@pytest.mark.parametrize("room", ["speaker", "statedb", "resources", "reconcilers"])
def test_no_other_room_imports_the_opentelemetry_sdk_or_dependency_injection(room: str) -> None:
    for path in (ROOT / room).rglob("*.py"):
        wrong = [
            name
            for name in imported(path)
            if name.startswith(("opentelemetry.sdk", "dependency_injector", "cells"))
        ]
        assert not wrong, path


def test_the_sdk_is_loaded_only_when_spans_are_wanted() -> None:
    code = "import sys, cells.agent; print([m for m in sys.modules if 'opentelemetry.sdk' in m])"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT
    )
    assert done.stdout == "[]\n"
