"""What the import contracts cannot say: the SDK's place, the modules' docstrings, the packaging."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
ROOMS = ("cells", "reconcilers", "resources", "speaker", "statedb", "cmd")


def _modules(*rooms: str) -> Iterator[Path]:
    for room in rooms:
        yield from (ROOT / room).rglob("*.py")


def _imports(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module


def test_only_cells_know_the_opentelemetry_sdk() -> None:
    others = _modules("speaker", "statedb", "resources", "reconcilers", "cmd")
    assert [p for p in others if any(i.startswith("opentelemetry.sdk") for i in _imports(p))] == []


@pytest.mark.parametrize("part", ["fsm.py", "engine", "peer", "rib", "message", "attribute"])
def test_the_speakers_core_does_no_io(part: str) -> None:
    """Sockets, clocks, chance and traces are the shell's (`speaker.server`)."""
    path = ROOT / "speaker" / part
    files = [path] if path.is_file() else list(path.rglob("*.py"))
    assert files
    banned = {"asyncio", "socket", "time", "opentelemetry", "opentelemetry.trace"}
    assert {(p.name, name) for p in files for name in _imports(p) if name in banned} == set()


def test_every_module_says_what_it_is_for() -> None:
    silent = [
        p
        for p in _modules(*ROOMS, "tests", "bench")
        if not ast.get_docstring(ast.parse(p.read_text()))
    ]
    assert silent == []


def test_the_standard_librarys_cmd_stays_importable() -> None:
    assert not (ROOT / "cmd" / "__init__.py").exists()
    done = subprocess.run(
        [sys.executable, "-c", "import cmd, pdb; print(cmd.Cmd.__name__)"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.strip() == "Cmd"


def test_lock_files_carry_hashes_and_no_index() -> None:
    for name in ("requirements.lock", "requirements-dev.lock"):
        text = (ROOT / name).read_text()
        assert "--hash=sha256:" in text
        assert "http" not in "".join(line for line in text.splitlines() if line.startswith("-"))
